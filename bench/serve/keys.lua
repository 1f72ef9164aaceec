-- SPDX-License-Identifier: MIT
-- Requests for wrk, built before the run: wrk … -s keys.lua URL -- CALL KEYS EACH
--   get      GET, the key in a header
--   try      POST /v1/try, EACH decisions in a list (1: no list)
--   pipeline POST /v1/try, EACH pipelined requests
local requests, next_one = {}, 0

local function ask(key)
    return string.format('{"rule":"each","key":"k%d"}', key % KEYS)
end

local function try(first, each)
    local list = {}
    for i = 0, each - 1 do
        list[#list + 1] = ask(first + i)
    end
    local body = each == 1 and list[1] or '[' .. table.concat(list, ',') .. ']'
    return wrk.format('POST', '/v1/try', {['Content-Type'] = 'application/json'}, body)
end

local function pipeline(first, each)
    local list = {}
    for i = 0, each - 1 do
        list[#list + 1] = try(first + i, 1)
    end
    return table.concat(list)
end

function init(words)
    local call, each = words[1], tonumber(words[3])
    KEYS = tonumber(words[2])
    for i = 0, KEYS - 1, each do
        local key = i * 7919 -- scatters the keys
        if call == 'get' then
            wrk.headers['X-Key'] = 'k' .. key % KEYS
            requests[#requests + 1] = wrk.format()
        else
            requests[#requests + 1] = call == 'try' and try(key, each) or pipeline(key, each)
        end
    end
end

function request()
    next_one = next_one % #requests + 1
    return requests[next_one]
end
