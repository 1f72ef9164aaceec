-- SPDX-License-Identifier: MIT
-- A common GCRA limiter for Redis. KEYS[1] is the key; one permit per ARGV[1] us, a burst of ARGV[2] us of permits.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = tonumber(redis.call('GET', KEYS[1]) or 0)
if full < now then full = now end
if full + ARGV[1] - now > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', full + ARGV[1]), 'PX', math.ceil(ARGV[2] / 1000))
return 1
