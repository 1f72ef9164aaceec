-- SPDX-License-Identifier: MIT
-- weir.lua - HAProxy asks weir before it passes a request on. docs/guide/behind-a-proxy.md explains it.
--
--     global
--         lua-load /etc/haproxy/weir.lua
--     frontend www
--         http-request lua.weir 127.0.0.1:8480
--
-- The argument is where weir listens: an address and a port, or unix@/run/weir/weir.sock. Afterwards
--     txn.weir_status         200: may go; 403, 429, 400, 503: may not, and why; 0: weir did not answer (in time)
--     txn.weir_retry_after, txn.weir_ratelimit, txn.weir_policy         fields for the client, where there are some
--     txn.weir_why            with 400: what is wrong with the request

local TIMEOUT_MS = 500 -- of one try; HAProxy's client makes four, so that a client waits 2 s at most
local TRIES_MAX = 5
-- More, and HAProxy's client (2.6.12) crashes at 100: such requests are refused with 400.
local FIELDS_MAX = 64

-- Of what the client sent, these are not for weir: those that we say ourselves, and those of the connection.
local ours = {
    ["x-original-method"] = true, ["x-original-uri"] = true, ["x-original-host"] = true,
    ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true, ["x-forwarded-host"] = true, ["x-forwarded-for"] = true,
    ["host"] = true, ["connection"] = true, ["keep-alive"] = true, ["content-length"] = true,
    ["transfer-encoding"] = true, ["te"] = true, ["trailer"] = true, ["upgrade"] = true, ["expect"] = true,
}

-- nil: there are too many
local function question(txn)
    local headers, count = {}, 0
    for name, values in pairs(txn.http:req_get_headers()) do
        if not ours[name] then
            local list = {}
            for i = 0, #values do
                list[#list + 1] = values[i]
            end
            count = count + #list
            headers[name] = list
        end
    end
    if count > FIELDS_MAX then
        return nil
    end
    local host = txn.sf:req_fhdr("host")
    headers["host"] = { "localhost" } -- weir accepts this Host
    headers["x-original-method"] = { txn.sf:method() }
    headers["x-original-uri"] = { txn.sf:url() } -- as it came: the path of "http://host?x" is empty
    if host ~= nil then -- without it, the host is in the URL, or weir refuses the request
        headers["x-original-host"] = { host }
    end
    headers["x-forwarded-for"] = { txn.sf:src() }
    return headers
end

local function keep(txn, variable, values)
    if values ~= nil and values[0] ~= nil then
        txn:set_var(variable, values[0])
    end
end

-- Every answer of weir has the field X-Weir. HAProxy's client makes its own 5xx when it gets no answer.
local function is_silence(answer)
    return answer == nil or answer.headers == nil or answer.headers["x-weir"] == nil
end

local function ask(address, headers, milliseconds)
    return core.httpclient():get {
        url = "http://localhost/check?deny=429",
        dst = address,
        headers = headers,
        timeout = milliseconds,
    }
end

core.register_action("weir", { "http-req" }, function(txn, address)
    local headers = question(txn)
    if headers == nil then
        txn:set_var("txn.weir_status", 400)
        txn:set_var("txn.weir_why", "too many fields")
        return
    end
    local start = core.now().sec
    local answer = ask(address, headers, TIMEOUT_MS)
    -- When weir restarts, connections that HAProxy has kept are closed, one after the other.
    for _ = 1, TRIES_MAX - 1 do
        if not is_silence(answer) or core.now().sec > start + 1 then
            break
        end
        core.msleep(20)
        answer = ask(address, headers, TIMEOUT_MS)
    end
    if is_silence(answer) then
        txn:set_var("txn.weir_status", 0)
        return
    end
    txn:set_var("txn.weir_status", answer.status == 204 and 200 or answer.status)
    keep(txn, "txn.weir_why", answer.headers["x-weir-why"])
    keep(txn, "txn.weir_retry_after", answer.headers["retry-after"])
    keep(txn, "txn.weir_ratelimit", answer.headers["ratelimit"])
    keep(txn, "txn.weir_policy", answer.headers["ratelimit-policy"])
end, 1)
