-- SPDX-License-Identifier: MIT
-- baton.lua - whose turn is it to start requests to a host? One hash for each host:
--
--     gate, saved                  the gate as it was last told, and when
--     holder, token, until, pass   who has the turn, its number, its end, when it will be passed on
--     l:WHO = arrival until        who waits
--     f:WHO = count until          who has requests in flight
--     m:N = time text, first, last letters to who has the turn, from the first that was not read to the last
--
-- A store that was emptied knows nothing of who has the turn. It shows by a token that is below what somebody has seen,
-- or by its own age (PREFIX:born): then nobody is given a turn for as long as an old one may last.
--
-- Times are us of this store's clock. KEYS host; ARGV 1 who, 2 verb, 3 token, 4 highest token seen, 5 wants to wait,
-- 6 requests in flight, 7 lease, 8 line, 9 crew, 10 pass (us), 11 letters read, 12 gate or '', 13 letter or ''.
-- Returns whether the turn is who's, its token, how old the gate is, whether its holder was lost, others' requests in
-- flight, others that wait, those before who, us until it is passed on, the gate if it comes, then of each letter its
-- number, age and text.
local KEEP_MS = 604800000
local LETTERS = 1000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local who, verb = ARGV[1], ARGV[2]
local h = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do h[all[i]] = all[i + 1] end
local function text(n) return string.format('%.0f', n) end
local function put(field, value)
  h[field] = value
  redis.call('HSET', KEYS[1], field, value)
end
local function drop(field)
  if h[field] then
    h[field] = nil
    redis.call('HDEL', KEYS[1], field)
  end
end
local function hold(name, token, ms)
  put('holder', name)
  put('token', token)
  put('until', text(now + ms * 1000))
end
local function is_young()
  local born = string.match(KEYS[1], '^[^{]*') .. 'born'
  redis.pcall('SET', born, text(now), 'NX')
  local at = redis.pcall('GET', born)
  return type(at) ~= 'string' or now - at < ARGV[7] * 1000
end
if tonumber(ARGV[4]) > tonumber(h.token or 0) then
  if verb == 'hold' and not h.token then
    hold(who, ARGV[3], ARGV[7])
  else
    hold('?', ARGV[4], ARGV[7])
  end
elseif not h.token and is_young() then
  hold('?', '0', ARGV[7])
end
local ours = h.holder == who and h.token == ARGV[3] and tonumber(h['until']) > now
local granted, lost, age = false, 0, 0
if tonumber(ARGV[6]) > 0 then
  put('f:' .. who, ARGV[6] .. ' ' .. text(now + ARGV[9] * 1000))
else
  drop('f:' .. who)
end
if ARGV[13] ~= '' then
  local last = tonumber(h.last or 0) + 1
  put('last', text(last))
  put('m:' .. text(last), text(now) .. ' ' .. ARGV[13])
  if last - tonumber(h.first or 1) >= LETTERS then
    drop('m:' .. text(h.first or 1))
    put('first', text((h.first or 1) + 1))
  end
end
if ours and ARGV[12] ~= '' then
  put('gate', ARGV[12])
  put('saved', text(now))
  local first = tonumber(h.first or 1)
  for n = first, tonumber(ARGV[11]) do drop('m:' .. text(n)) end
  if tonumber(ARGV[11]) >= first then put('first', text(ARGV[11] + 1)) end
end
if ours and verb == 'hold' then
  hold(who, h.token, ARGV[7])
  put('pass', text(now + ARGV[10]))
elseif ours and verb == 'pass' then
  ours = false
  drop('holder')
end
if ARGV[5] == '1' then
  local since = h['l:' .. who] and string.match(h['l:' .. who], '^%d+') or text(now)
  put('l:' .. who, since .. ' ' .. text(now + ARGV[8] * 1000))
else
  drop('l:' .. who)
end
local others, waiting, place = 0, 0, 0
local since = tonumber(h['l:' .. who] and string.match(h['l:' .. who], '^%d+') or 0)
for field, value in pairs(h) do
  local kind, name = string.match(field, '^([lf]):(.*)$')
  if kind and name ~= who then
    local first, last = string.match(value, '^(%d+) (%d+)$')
    first = tonumber(first)
    if tonumber(last) <= now then
      drop(field)
    elseif kind == 'f' then
      others = others + first
    else
      waiting = waiting + 1
      if first < since or (first == since and name < who) then place = place + 1 end
    end
  end
end
local free = not h.holder or h.holder == who or tonumber(h['until']) <= now
if verb == 'want' and ARGV[5] == '1' and free and place == 0 then
  granted = true
  lost = h.holder and 1 or 0
  age = now - (h.saved or now)
  hold(who, text((h.token or 0) + 1), ARGV[7])
  drop('l:' .. who)
  put('pass', text(now))
end
redis.call('PEXPIRE', KEYS[1], KEEP_MS)
local busy = (not granted and h.holder) and math.max((h.pass or now) - now, 0) or 0
local reply = {(ours or granted) and 1 or 0, tonumber(h.token or 0), age, lost, others, waiting, place, busy,
  granted and h.gate or ''}
if ours or granted then
  for n = tonumber(h.first or 1), tonumber(h.last or 0) do
    local letter = h['m:' .. text(n)]
    if letter then
      local at, words = string.match(letter, '^(%d+) (.*)$')
      reply[#reply + 1] = n
      reply[#reply + 1] = math.max(now - at, 0)
      reply[#reply + 1] = words
    end
  end
end
return reply
