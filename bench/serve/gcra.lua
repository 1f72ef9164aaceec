-- SPDX-License-Identifier: MIT
-- A limiter as people write it for Redis: KEYS[1]; a permit each ARGV[1] us, ARGV[2] us of them at once.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = tonumber(redis.call('GET', KEYS[1]) or 0)
if full < now then full = now end
if full + ARGV[1] - now > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', full + ARGV[1]), 'PX', math.ceil(ARGV[2] / 1000))
return 1
