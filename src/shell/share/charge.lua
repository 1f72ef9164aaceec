-- SPDX-License-Identifier: MIT
-- charge.lua - charges a key for a request and for extra permits, all limits of a rule or none, by the store's clock.
--
-- KEYS state; ARGV permits, extra, owed, the state as last seen, then for each limit: kind, permits, refill, period in
-- us. What is owed was admitted without asking: it is charged in any case.
-- Returns granted, extra given, wait, wait for all (us), what is left, until all is as new (us), state.
--
-- A limit's state is three numbers, which only ever grow in their order; so of two states the greater is the stricter.
--     b  token bucket      full at, rest of it in parts of 1/refill us
--     p  stepped bucket    last step, missing since
--     f  fixed window      begin, count
--     s  sliding window    slot, count in it, count in the one before
--     l  leaky bucket      next start
--     g  sliding log       last charge, its number; the instants lie in a sorted set beside the key
-- `at` brings a state to now; `ask` says how long until n would be granted; `room` how many would be now; `life` for how
-- long the state matters. Numbers are doubles: whole ones are exact up to 2^53, and charge.c sees to it that none gets
-- beyond. Divisions are by a remainder taken off first, so that they are exact too.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function quo(a, b) return (a - a % b) / b end
local function up(a, b) return quo(a + b - 1, b) end
local K = {}
K.b = {
  at = function(l, s)
    local debt = (s[1] - now) * l[3] + s[2]
    l.debt = math.min(math.max(debt, 0), l[2] * l[4])
  end,
  ask = function(l, s, n) return up(math.max(l.debt + n * l[4] - l[2] * l[4], 0), l[3]) end,
  take = function(l, s, n)
    l.debt = l.debt + n * l[4]
    s[1], s[2] = now + quo(l.debt, l[3]), l.debt % l[3]
  end,
  room = function(l, s) return quo(l[2] * l[4] - l.debt, l[4]) end,
  life = function(l, s) return up(l.debt, l[3]) end,
}
K.p = {
  at = function(l, s)
    if s[1] == 0 or s[1] > now then s[1] = now end
    local steps = quo(now - s[1], l[4])
    s[1], s[2] = s[1] + steps * l[4], math.max(s[2] - steps * l[3], 0)
  end,
  ask = function(l, s, n)
    local over = s[2] + n - l[2]
    return over <= 0 and 0 or s[1] + up(over, l[3]) * l[4] - now
  end,
  take = function(l, s, n) s[2] = s[2] + n end,
  room = function(l, s) return math.max(l[2] - s[2], 0) end,
  life = function(l, s) return s[1] + up(s[2], l[3]) * l[4] - now end,
}
K.f = {
  at = function(l, s)
    if s[1] == 0 or s[1] > now then s[1] = now end
    local past = quo(now - s[1], l[4])
    if past > 0 then s[1], s[2] = s[1] + past * l[4], 0 end
  end,
  ask = function(l, s, n) return s[2] + n <= l[2] and 0 or s[1] + l[4] - now end,
  take = function(l, s, n) s[2] = s[2] + n end,
  room = function(l, s) return math.max(l[2] - s[2], 0) end,
  life = function(l, s) return s[1] + l[4] - now end,
}
local function open_after(l, prev, room)
  if room <= 0 then return l[4] end
  if room > prev then return 0 end
  return l[4] + 1 - up(room * l[4], prev)
end
K.s = {
  at = function(l, s)
    if s[1] == 0 or s[1] > now then s[1] = now end
    local past = quo(now - s[1], l[4])
    if past > 0 then s[1], s[2], s[3] = s[1] + past * l[4], 0, past == 1 and s[2] or 0 end
    l.used = s[2] + quo(s[3] * (l[4] - (now - s[1])), l[4])
  end,
  ask = function(l, s, n)
    if n <= l[2] - l.used then return 0 end
    local room = l[2] - n + 1
    local open = open_after(l, s[3], room - s[2])
    if open >= l[4] then open = l[4] + open_after(l, s[2], room) end
    return s[1] + open - now
  end,
  take = function(l, s, n) s[2], l.used = s[2] + n, l.used + n end,
  room = function(l, s) return math.max(l[2] - l.used, 0) end,
  life = function(l, s) return s[1] + 2 * l[4] - now end,
}
K.l = {
  at = function(l, s) s[1] = math.min(s[1], now + l[2] * l[4]) end,
  ask = function(l, s, n) return math.max(s[1] - now, 0) end,
  take = function(l, s, n) s[1] = math.max(s[1], now) + n * l[4] end,
  room = function(l, s) return s[1] <= now and 1 or 0 end,
  life = function(l, s) return math.max(s[1] - now, 0) end,
}
local function add_to_log(l, s, n, at)
  for i = 1, n do
    s[2] = s[2] + 1
    redis.call('ZADD', l.log, string.format('%.0f', at), string.format('%.0f-%.0f', at, s[2]))
  end
end
K.g = {
  at = function(l, s)
    local gone = redis.call('EXISTS', l.log) == 0
    if gone and s[1] > now - l[4] then add_to_log(l, s, l[2], math.min(s[1], now)) end -- forgotten: as if it were full
    redis.call('ZREMRANGEBYSCORE', l.log, '-inf', string.format('%.0f', now - l[4]))
    l.used = redis.call('ZCARD', l.log)
  end,
  ask = function(l, s, n)
    local over = l.used + n - l[2]
    if over <= 0 then return 0 end
    local hit = redis.call('ZRANGE', l.log, over - 1, over - 1, 'WITHSCORES')
    return hit[2] + l[4] - now
  end,
  take = function(l, s, n)
    s[1], l.used = math.max(s[1], now), l.used + n
    add_to_log(l, s, n, s[1])
    redis.call('PEXPIRE', l.log, string.format('%.0f', up(s[1] + l[4] - now, 1000) + 1))
  end,
  room = function(l, s) return math.max(l[2] - l.used, 0) end,
  life = function(l, s) return math.max(s[1] + l[4] - now, 0) end,
}
local limits, kinds = {}, ''
for i = 5, #ARGV, 4 do
  limits[#limits + 1] = {ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]),
    log = KEYS[1] .. ':' .. i}
  kinds = kinds .. ARGV[i]
end
-- A state of other kinds of limits, or of another making, counts as none.
local function read(text)
  local all, words = {}, {}
  for word in string.gmatch(text or '', '%S+') do words[#words + 1] = word end
  local good = words[1] == kinds and #words == 1 + 3 * #limits
  for i = 1, #limits do
    all[i] = {0, 0, 0}
    for j = 1, 3 do all[i][j] = good and tonumber(words[3 * i + j - 2]) or 0 end
  end
  return all
end
local function greater(a, b)
  for j = 1, 3 do if a[j] ~= b[j] then return a[j] > b[j] end end
  return false
end
local state, seen = read(redis.call('GET', KEYS[1])), read(ARGV[4])
local changed = false
for i, l in ipairs(limits) do
  if greater(seen[i], state[i]) then state[i], changed = seen[i], true end
  K[l[1]].at(l, state[i])
end
local function ask(n)
  local wait = 0
  for i, l in ipairs(limits) do wait = math.max(wait, K[l[1]].ask(l, state[i], math.min(n, l[2]))) end
  return wait
end
local function room()
  local most = 4294967295
  for i, l in ipairs(limits) do most = math.min(most, K[l[1]].room(l, state[i])) end
  return most
end
local function take(n)
  for i, l in ipairs(limits) do K[l[1]].take(l, state[i], n) end
  changed = true
end
local permits, extra, owed = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if owed > 0 then
  for i, l in ipairs(limits) do K[l[1]].take(l, state[i], math.min(owed, l[2])) end
  changed = true
end
local wait = permits > 0 and ask(permits) or 0
local given, all = 0, 0
if wait == 0 then
  if permits > 0 then take(permits) end
  given = math.min(extra, room())
  if given > 0 then take(given) end
  if given < extra then all = ask(extra - given) end
else
  all = ask(permits + extra)
end
local life, words = 0, {kinds}
for i, l in ipairs(limits) do
  life = math.max(life, K[l[1]].life(l, state[i]))
  for j = 1, 3 do words[#words + 1] = string.format('%.0f', state[i][j]) end
end
local text = table.concat(words, ' ')
if changed then redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', up(life, 1000) + 1)) end
return {wait == 0 and 1 or 0, given, wait, all, room(), life, text}
