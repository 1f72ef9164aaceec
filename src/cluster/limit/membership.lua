-- SPDX-License-Identifier: MIT
-- membership.lua - gives a node one of a few seats, or renews it. Seats that have expired are free.
--
-- KEYS seats; ARGV who, number of seats, duration (ms). Returns 1 or 0, and since when the store
-- knows of seats: if that changes, the store has lost its data. Invalid data is deleted.
local time = redis.call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
local since = KEYS[1] .. ':since'
local reply = redis.pcall('GET', since)
local born = type(reply) == 'string' and #reply < 17 and string.find(reply, '^%d+$') and tonumber(reply) or 0
if born == 0 then
  born = time[1] * 1000000 + time[2]
  redis.call('SET', since, string.format('%.0f', born))
end
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then redis.call('DEL', KEYS[1]) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + 3600000), '+inf') -- invalid
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return {0, born}
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[3]), ARGV[1])
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last[2] + 1))
return {1, born}
