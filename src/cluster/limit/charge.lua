-- SPDX-License-Identifier: MIT
-- charge.lua - charges a key for a request and for extra permits: all limits of a rule, or none.
-- Times are the store's, in us.
--
-- KEYS state; ARGV permits, extra, owed, state as last seen, back, charged at, who, held, message,
-- reset, bill; then for each limit: kind, permits, refill, period in us.
--     owed bill         permits admitted without asking: charged in any case, but once. A bill is
--                       repeated with its number if its answer was lost; KEY:paid has each node's last
--     back              permits that were charged at `charged at` but not used
--     who held message  a node, its permits in flight, and the number of this message: it has no
--                       effect if a later one came before
--     reset             1: forget the key first
-- Returns granted, extra given, wait, wait for all (us; FOREVER: until a release), permits left,
-- time until the key is as good as new (us), now, state, and 1 if data at the key or beside it was
-- invalid.
--
-- The state is text: kinds, when it began, its revision, its last reset, and three numbers per
-- limit:
--     b  token bucket    time when full, remainder of that in 1/refill us
--     p  stepped bucket  last step, permits missing since
--     f  fixed window    begin, count
--     s  sliding window  slot, count in it, count in the one before
--     l  leaky bucket    next start
--     g  sliding log     last charge, its number, closed until; a sorted set beside it has times
--     c  in flight       closed until; a hash beside it has the nodes' numbers, each with an expiry
-- A state that a node has seen is older and has no effect, unless the store has lost data. Then its
-- begin differs or its revision is greater, and the stricter of both states counts, limit by limit.
-- A state from before the last reset does not count. A state that was restored from one node's copy
-- and charged since gets what another node had seen beyond that copy, which is kept in KEY:was.
-- Invalid data is deleted, and its limits count as used up. So nothing is admitted that should not
-- be, and the key recovers by the rule.
--
-- Functions of a kind: `at` brings a state to now; `ask` returns the time until n would be granted;
-- `room` how many would be now; `take` charges; `give` takes back; `more` adds what state `a` has
-- beyond `was`; `life` returns how long the state matters, `full` how long any can; `shut` uses the
-- limit up. Numbers are doubles: integers are exact up to 2^53, and charge.c ensures that none
-- exceeds that. Divisions subtract the remainder first, so that they are exact too.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local FOREVER = 4503599627370496
local PAID_MS = 3600000
local who, held, message = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local function quo(a, b) return (a - a % b) / b end
local function up(a, b) return quo(a + b - 1, b) end
local function whole(n) return string.format('%.0f', n) end
local function is_other(key, type)
  local is = redis.call('TYPE', key).ok
  if is == type or is == 'none' then return false end
  redis.call('DEL', key)
  return true
end
local TYPES = {g = 'zset', c = 'hash'}
local limits, kinds = {}, ''
for i = 12, #ARGV, 4 do
  limits[#limits + 1] = {ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]),
    beside = KEYS[1] .. ':' .. #limits + 1}
  local l = limits[#limits]
  l.damaged = TYPES[l[1]] and is_other(l.beside, TYPES[l[1]])
  kinds = kinds .. ARGV[i]
end
-- Makes only the kinds that these limits need, because making them costs the most.
local changed = false -- true also if the clock went back and a state lies ahead of it
local K = {}
local function has(kind) return string.find(kinds, kind, 1, true) end
local function owe(l, s, debt) s.debt, s[1], s[2] = debt, now + quo(debt, l[3]), debt % l[3] end
if has('b') then K.b = {
  at = function(l, s)
    s.debt = math.max((s[1] - now) * l[3] + s[2], 0)
    if s.debt > l[2] * l[4] then
      owe(l, s, l[2] * l[4])
      changed = true
    end
  end,
  ask = function(l, s, n) return up(math.max(s.debt + n * l[4] - l[2] * l[4], 0), l[3]) end,
  take = function(l, s, n) owe(l, s, s.debt + n * l[4]) end,
  give = function(l, s, n, at) owe(l, s, math.max(s.debt - math.max(n * l[4] - (now - at) * l[3], 0), 0)) end,
  room = function(l, s) return math.max(quo(l[2] * l[4] - s.debt, l[4]), 0) end,
  more = function(l, s, a, was) owe(l, s, s.debt + math.max(a.debt - was.debt, 0)) end,
  life = function(l, s) return up(s.debt, l[3]) end,
  full = function(l) return up(l[2] * l[4], l[3]) end,
} end
if has('p') then K.p = {
  at = function(l, s)
    if s[1] == 0 or s[1] > now then s[1], changed = now, changed or s[1] > now end
    local steps = quo(now - s[1], l[4])
    s[1], s[2] = s[1] + steps * l[4], math.max(math.min(s[2], l[2]) - steps * l[3], 0)
  end,
  ask = function(l, s, n)
    local over = s[2] + n - l[2]
    return over <= 0 and 0 or s[1] + up(over, l[3]) * l[4] - now
  end,
  take = function(l, s, n) s[2] = s[2] + n end,
  give = function(l, s, n, at)
    local back = n - math.max(up(s[1] - at, l[4]), 0) * l[3]
    s[2] = math.max(s[2] - math.max(back, 0), 0)
  end,
  room = function(l, s) return math.max(l[2] - s[2], 0) end,
  more = function(l, s, a, was) s[2] = s[2] + math.max(a[2] - was[2], 0) end,
  life = function(l, s) return s[1] + up(s[2], l[3]) * l[4] - now end,
  full = function(l) return up(l[2], l[3]) * l[4] end,
} end
if has('f') then K.f = {
  at = function(l, s)
    if s[1] == 0 or s[1] > now then s[1], changed = now, changed or s[1] > now end
    local past = quo(now - s[1], l[4])
    if past > 0 then s[1], s[2] = s[1] + past * l[4], 0 end
  end,
  ask = function(l, s, n) return s[2] + n <= l[2] and 0 or s[1] + l[4] - now end,
  take = function(l, s, n) s[2] = s[2] + n end,
  give = function(l, s, n, at) if at >= s[1] then s[2] = math.max(s[2] - n, 0) end end,
  room = function(l, s) return math.max(l[2] - s[2], 0) end,
  more = function(l, s, a, was) s[2] = s[2] + math.max(a[2] - was[2], 0) end,
  life = function(l, s) return s[1] + l[4] - now end,
  full = function(l) return l[4] end,
} end
local function open_after(l, prev, room)
  if room <= 0 then return l[4] end
  if room > prev then return 0 end
  return l[4] + 1 - up(room * l[4], prev)
end
if has('s') then K.s = {
  at = function(l, s)
    if s[1] == 0 or s[1] > now then s[1], changed = now, changed or s[1] > now end
    local past = quo(now - s[1], l[4])
    if past > 0 then s[1], s[2], s[3] = s[1] + past * l[4], 0, past == 1 and s[2] or 0 end
    s.used = s[2] + quo(s[3] * (l[4] - (now - s[1])), l[4])
  end,
  ask = function(l, s, n)
    if n <= l[2] - s.used then return 0 end
    local room = l[2] - n + 1
    local open = open_after(l, s[3], room - s[2])
    if open >= l[4] then open = l[4] + open_after(l, s[2], room) end
    return s[1] + open - now
  end,
  take = function(l, s, n) s[2], s.used = s[2] + n, s.used + n end,
  give = function(l, s, n, at)
    local slot = at >= s[1] and 2 or at >= s[1] - l[4] and 3
    if slot then s[slot] = math.max(s[slot] - n, 0) end
    K.s.at(l, s)
  end,
  room = function(l, s) return math.max(l[2] - s.used, 0) end,
  more = function(l, s, a, was)
    for i = 2, 3 do s[i] = s[i] + math.max(a[i] - was[i], 0) end
  end,
  life = function(l, s) return s[1] + 2 * l[4] - now end,
  full = function(l) return 2 * l[4] end,
} end
if has('l') then K.l = {
  at = function(l, s)
    local last = now + l[2] * l[4]
    if s[1] > last then s[1], changed = last, true end
  end,
  ask = function(l, s, n) return math.max(s[1] - now, 0) end,
  take = function(l, s, n) s[1] = math.max(s[1], now) + n * l[4] end,
  give = function() end, -- other callers already wait for later starts
  room = function(l, s) return s[1] <= now and 1 or 0 end,
  life = function(l, s) return math.max(s[1] - now, 0) end,
  full = function(l) return l[2] * l[4] end,
  shut = function(l, s) s[1] = now + l[2] * l[4] end,
} end
if has('g') then K.g = {
  at = function(l, s)
    local far = s[1] > now + l[4] -- the clock went back
    if far or s[1] > now - l[4] and redis.call('EXISTS', l.beside) == 0 then -- lost: counts as full
      s[3] = math.max(math.min(s[1], now) + l[4], s[3])
    end
    if far then redis.call('DEL', l.beside) end
    changed = changed or far or s[3] > now + l[4]
    s[1], s[3] = math.min(s[1], now + l[4]), math.min(s[3], now + l[4])
    redis.call('ZREMRANGEBYSCORE', l.beside, '-inf', whole(now - l[4]))
    redis.call('ZREMRANGEBYSCORE', l.beside, '(' .. whole(math.max(s[1], now + l[4])), '+inf') -- invalid
    s.used = s[3] > now and l[2] or redis.call('ZCARD', l.beside)
  end,
  ask = function(l, s, n)
    local over = s.used + n - l[2]
    if over <= 0 then return 0 end
    if s[3] > now then return s[3] - now end
    return redis.call('ZRANGE', l.beside, over - 1, over - 1, 'WITHSCORES')[2] + l[4] - now
  end,
  take = function(l, s, n)
    s[1], s.used = math.max(s[1], now), s.used + n
    for i = 1, n do
      s[2] = (s[2] + 1) % FOREVER
      redis.call('ZADD', l.beside, whole(s[1]), whole(s[1]) .. '-' .. whole(s[2]))
    end
    redis.call('PEXPIRE', l.beside, whole(up(s[1] + l[4] - now, 1000) + 1))
  end,
  give = function(l, s, n, at)
    local old = redis.call('ZRANGEBYSCORE', l.beside, '-inf', whole(at), 'LIMIT', 0, n)
    for _, one in ipairs(old) do redis.call('ZREM', l.beside, one) end
    if s[3] <= now then s.used = s.used - #old end
    if s.used == 0 then s[1] = 0 end
  end,
  room = function(l, s) return math.max(l[2] - s.used, 0) end,
  life = function(l, s) return math.max(s[1] + l[4] - now, s[3] - now, 0) end,
  full = function(l) return l[4] end,
  shut = function(l, s) s[3], s.used = now + l[4], l[2] end,
} end
if has('c') then K.c = {
  at = function(l, s)
    if s[1] > now + l[4] then s[1], changed = now + l[4], true end
    if l.used then return end
    local all = redis.call('HGETALL', l.beside)
    l.used, l.own, l.late = 0, held, false
    for i = 1, #all, 2 do
      local count, till, last = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')
      l.damaged = l.damaged or not count
      if not count or tonumber(till) <= now then
        redis.call('HDEL', l.beside, all[i])
      else
        if tonumber(till) > now + l[4] then -- clock went back, or never expires
          redis.call('HSET', l.beside, all[i], count .. ' ' .. whole(now + l[4]) .. ' ' .. last)
        end
        if all[i] ~= who then
          l.used = l.used + count
        elseif tonumber(last) >= message then
          l.own, l.late = tonumber(count), true
        end
      end
    end
  end,
  ask = function(l, s, n)
    if s[1] > now then return s[1] - now end
    return not l.late and l.used + l.own + n <= l[2] and 0 or FOREVER
  end,
  take = function(l, s, n) l.own = l.own + n end,
  give = function() end, -- `held` reports it
  room = function(l, s) return s[1] > now and 0 or math.max(l[2] - l.used - l.own, 0) end,
  life = function(l, s) return math.max(s[1] - now, 0) end,
  full = function() return 0 end,
  shut = function(l, s) s[1] = now + l[4] end, -- nodes report their numbers sooner
  done = function(l)
    if l.late then return end
    if l.own == 0 then
      redis.call('HDEL', l.beside, who)
    else
      redis.call('HSET', l.beside, who, whole(l.own) .. ' ' .. whole(now + l[4]) .. ' ' .. whole(message))
      redis.call('PEXPIRE', l.beside, whole(up(l[4], 1000) + 1))
    end
  end,
} end
local function is_whole(word) return #word < 17 and string.find(word, '^%d+$') and tonumber(word) < 2 * FOREVER end
-- Parses a state. One for other kinds of limits counts as none, because the rule was different.
-- Also returns whether it is a state at all.
local function read(text)
  local words = {}
  for word in string.gmatch(string.sub(text or '', 1, 4096), '%S+') do words[#words + 1] = word end
  local good = words[1] and string.find(words[1], '^%l+$') and #words == 4 + 3 * #words[1]
  for i = 2, #words do good = good and is_whole(words[i]) end
  local function number(i) return good and words[1] == kinds and tonumber(words[i]) or 0 end
  local all = {began = number(2), revision = number(3), reset = number(4)}
  for i = 1, #limits do all[i] = {number(3 * i + 2), number(3 * i + 3), number(3 * i + 4)} end
  return all, good
end
local function is_stricter(l, a, b, is_new)
  if l[1] == 'g' then -- there is only one log, that of `a` or another
    if redis.call('ZSCORE', l.beside, whole(a[1]) .. '-' .. whole(a[2])) then return a[2] > b[2] end
    b[2], b[3] = math.max(a[2], b[2]), math.max(a[1] + l[4], a[3], b[3])
    return false
  end
  K[l[1]].at(l, a)
  K[l[1]].at(l, b)
  local x, y = K[l[1]].room(l, a), K[l[1]].room(l, b)
  return x < y or x == y and (is_new or a[1] > b[1])
end
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then
  redis.call('DEL', KEYS[1])
  found = 'something else'
end
local state, is_good = read(found or nil)
local is_damaged = found and not is_good
local seen = read(ARGV[4])
if ARGV[10] == '1' then
  state, seen = read(), read()
  state.reset = now
  is_damaged = false
  for _, l in ipairs(limits) do
    if l[1] ~= 'c' then
      redis.call('DEL', l.beside)
      l.damaged = false
    end
  end
  changed = true
end
state.reset = math.min(state.reset, now)
local made_of = false
if seen.began > 0 and seen.began >= state.reset and
  (seen.began ~= state.began or seen.revision > state.revision) then
  local known = redis.pcall('GET', KEYS[1] .. ':was')
  local was = read(type(known) == 'string' and known or nil)
  local is_same, is_new = was.began == seen.began, state.began == 0
  if not is_same or seen.revision > was.revision then
    for i, l in ipairs(limits) do
      local kind = K[l[1]]
      if is_same and not is_new and kind.more then
        for _, s in ipairs({state[i], seen[i], was[i]}) do kind.at(l, s) end
        kind.more(l, state[i], seen[i], was[i])
      elseif is_stricter(l, seen[i], state[i], is_new) then
        state[i] = seen[i]
      end
      if is_same or is_new and kind.more and kind.room(l, state[i]) < l[2] then made_of = ARGV[4] end
    end
    if not is_new and not is_same then state.began = math.max(state.began, seen.began) end
    state.revision = math.max(state.revision, seen.revision)
    state.reset = math.max(state.reset, seen.reset)
    changed = true
  end
end
local lost = is_damaged
for i, l in ipairs(limits) do
  local kind, s = K[l[1]], state[i]
  kind.at(l, s)
  if is_damaged or l.damaged then
    if kind.shut then kind.shut(l, s) else kind.take(l, s, kind.room(l, s)) end
    changed, lost = true, true
  end
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
local paid = KEYS[1] .. ':paid'
if owed > 0 then
  is_other(paid, 'hash')
  if (tonumber(redis.call('HGET', paid, who) or 0) or 0) >= tonumber(ARGV[11]) then owed = 0 end
  if owed > 0 then redis.call('HSET', paid, who, ARGV[11]) end
  redis.call('PEXPIRE', paid, PAID_MS)
end
local back, charged_at = tonumber(ARGV[5]), math.min(tonumber(ARGV[6]), now)
for i, l in ipairs(limits) do
  if back > 0 and charged_at >= state.reset then K[l[1]].give(l, state[i], back, charged_at) end
  if owed > 0 and l[1] ~= 'c' then K[l[1]].take(l, state[i], math.min(owed, l[2])) end
  changed = changed or back > 0 or owed > 0
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
if changed then
  state.began = state.began > 0 and state.began or now
  state.revision = (state.revision + 1) % FOREVER
end
local life, stays, most = 0, redis.call('PTTL', KEYS[1]) * 1000, 0 -- nodes' copies matter too
local words = {kinds, whole(state.began), whole(state.revision), whole(state.reset)}
for i, l in ipairs(limits) do
  life = math.max(life, K[l[1]].life(l, state[i]))
  most = math.max(most, K[l[1]].full(l))
  for j = 1, 3 do words[#words + 1] = whole(state[i][j]) end
  if l[1] == 'c' then K.c.done(l) end
end
local text = table.concat(words, ' ')
stays = math.max(math.min(stays, 2 * most), life, state.reset == now and most or 0)
if changed and stays > 0 then
  redis.call('SET', KEYS[1], text, 'PX', whole(up(stays, 1000) + 1))
  if made_of then redis.call('SET', KEYS[1] .. ':was', made_of, 'PX', whole(up(stays, 1000) + 1)) end
end
return {wait == 0 and 1 or 0, given, wait, all, room(), life, now, text, lost and 1 or 0}
