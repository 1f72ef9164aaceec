-- SPDX-License-Identifier: MIT
-- gate_lease.lua - decides which process may start requests to a host: the one that has the turn. There
-- is one hash per host:
--
--     gate, saved                  the gate as last stored, and when
--     holder, token, until, pass   the process with the turn, its token, its end, expected passing
--     l:WHO = arrival until        processes that wait
--     f:WHO = count until          requests in flight of a process
--     m:N = time text, first, last messages to the holder, from the first unread one to the last
--
-- A store that was emptied, or a replica that took over, may not know the holder. It notices this
-- by a token that is lower than one that a process has seen, or by its own age: PREFIX:born has the
-- time since when this server is known, and its run_id. Then no process gets a turn for as long as
-- an old one may last. But the holder continues, and brings its gate with it. The same holds for
-- invalid data under the key or in a field, which is deleted. No time is later than it can be.
--
-- Times are us of this store's clock. KEYS host; ARGV 1 who, 2 verb, 3 token, 4 highest token seen,
-- 5 wants to wait, 6 requests in flight, 7 lease (ms), 8 expiry of a waiting process (ms), 9 expiry
-- of requests in flight (ms), 10 pass (us), 11 messages read, 12 gate or '', 13 message or ''.
-- Returns whether `who` has the turn, its token, the age of the gate, whether its holder was lost,
-- requests in flight of others, others that wait, those ahead of `who`, us until the turn is passed
-- on, the gate if it moves to `who`, then of each message its number, age and text.
local KEEP_MS = 604800000
local LETTERS = 1000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local who, verb = ARGV[1], ARGV[2]
local h = {}
local damaged = false
local type_of = redis.call('TYPE', KEYS[1]).ok
if type_of ~= 'hash' and type_of ~= 'none' then
  redis.call('DEL', KEYS[1])
  damaged = true
end
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
  if name == '?' then put('pass', h['until']) end -- waiting processes ask when it is over
end
local function is_whole(word)
  return type(word) == 'string' and #word < 17 and string.find(word, '^%d+$') and tonumber(word) < 2 ^ 52
end
local function youth_ms()
  local born = string.match(KEYS[1], '^[^{]*') .. 'born'
  local info, known = redis.pcall('INFO', 'server'), redis.pcall('GET', born)
  local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '0' -- INFO may be forbidden
  local at, by = string.match(type(known) == 'string' and known or '', '^(%d+) (%x+)$')
  local is_known = by == run and is_whole(at)
  if is_known and tonumber(at) <= now then return math.max(ARGV[7] - math.floor((now - at) / 1000), 0) end
  local left_ms = is_known and 0 or tonumber(ARGV[7]) -- a known server's clock went back
  redis.call('SET', born, text(math.max(now - (ARGV[7] - left_ms) * 1000, 0)) .. ' ' .. run)
  return left_ms
end
for _, field in ipairs({'saved', 'token', 'until', 'pass', 'first', 'last'}) do
  if h[field] and not is_whole(h[field]) then
    drop(field)
    damaged = true
  end
end
local unread = (h.last or 0) - (h.first or 1) + 1
if unread < 0 or unread > LETTERS then
  drop('first')
  drop('last')
  damaged = true
end
if damaged or h.token and not h['until'] or h.holder and not h.token then
  drop('token')
  drop('holder')
  damaged = true
end
if h['until'] and tonumber(h['until']) > now + ARGV[7] * 1000 then put('until', text(now + ARGV[7] * 1000)) end
-- Renumbers unread messages after `read`. A holder that has read higher numbers would skip them.
local function number_letters_after(read)
  local letters = {}
  for n = tonumber(h.first or 1), tonumber(h.last or 0) do
    letters[#letters + 1] = h['m:' .. text(n)]
    drop('m:' .. text(n))
  end
  for i, letter in ipairs(letters) do put('m:' .. text(read + i), letter) end
  put('first', text(read + 1))
  put('last', text(read + #letters))
end
local has_it = (verb == 'hold' or verb == 'pass') and ARGV[3] == ARGV[4]
local unknown = tonumber(ARGV[4]) - tonumber(h.token or 0)
if has_it and (unknown > 0 and not h.token or unknown >= 0 and h.holder == '?' or unknown > 0 and youth_ms() > 0) then
  hold(who, ARGV[3], ARGV[7])
  number_letters_after(tonumber(ARGV[11]))
elseif unknown > 0 or not h.token and damaged then
  hold('?', ARGV[4], ARGV[7])
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
    local most = now + (kind == 'f' and ARGV[9] or ARGV[8]) * 1000
    first = math.min(tonumber(first) or 0, 2 ^ 52)
    if not last or tonumber(last) <= now then
      drop(field)
    elseif tonumber(last) > most then
      put(field, text(first) .. ' ' .. text(most))
    end
    if not h[field] then -- expired or invalid
    elseif kind == 'f' then
      others = math.min(others + first, 2 ^ 32)
    else
      waiting = waiting + 1
      if first < since or (first == since and name < who) then place = place + 1 end
    end
  end
end
local free = not h.holder or h.holder == who or tonumber(h['until']) <= now
local young_ms = verb == 'want' and ARGV[5] == '1' and free and place == 0 and youth_ms()
if young_ms and young_ms > 0 then
  hold('?', h.token or '0', young_ms)
elseif young_ms then
  granted = true
  lost = h.holder and 1 or 0
  age = math.max(now - (h.saved or now), 0)
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
      reply[#reply + 1] = at and math.max(now - at, 0) or 0
      reply[#reply + 1] = words or ''
    end
  end
end
return reply
