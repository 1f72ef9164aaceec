-- SPDX-License-Identifier: MIT
-- seat.lua - gives or renews one of a few seats. Those whose time is over are free; who has one keeps it.
--
-- KEYS seats; ARGV who, how many seats, for how long (ms). Returns 1 or 0, and since when the store has known of seats:
-- if that changes, it has forgotten all.
local time = redis.call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local since = KEYS[1] .. ':since'
local born = tonumber(redis.call('GET', since) or nil)
if not born then
  born = time[1] * 1000000 + time[2]
  redis.call('SET', since, string.format('%.0f', born))
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return {0, born}
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[3]), ARGV[1])
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last[2] + 1))
return {1, born}
