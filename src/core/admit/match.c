/* SPDX-License-Identifier: MIT */
/* match.c - which requests a rule is for. */
#include "core/admit/match.h"

#include "base/address.h"
#include "base/ascii.h"
#include "core/admit/route.h"

/* ---- one spelling -------------------------------------------------------------------------------------- */

static weir_fault read_path(const weir_request *request, struct wr_asked *asked)
{
    struct wr_span target = {request->target, request->target_bytes};
    struct wr_buf path;

    size_t plain = wr_route_plain(target);
    if (plain > 0) {
        asked->request.target_bytes = plain;
        return WEIR_FAULT_NONE;
    }
    wr_buf_init_fixed(&path, asked->path, sizeof asked->path);
    weir_fault fault = wr_route_append(&path, target);
    asked->request.target = path.bytes;
    asked->request.target_bytes = path.length; /* 0 for a mere query: then there is no path, and none fits */
    return fault == WEIR_FAULT_MISSING ? WEIR_FAULT_NONE : fault;
}

static weir_fault read_host(const weir_request *request, struct wr_asked *asked)
{
    struct wr_span host = wr_span_trim((struct wr_span){request->host, request->host_bytes});

    host = wr_host_without_port(host);
    if (host.bytes > 0 && host.data[host.bytes - 1] == '.')
        host.bytes--; /* the root, which resolvers drop */
    if (host.bytes > WR_HOST_MAX)
        return WEIR_FAULT_LONG;
    for (size_t i = 0; i < host.bytes; i++)
        asked->host[i] = wr_ascii_lower(host.data[i]);
    asked->request.host = asked->host;
    asked->request.host_bytes = host.bytes;
    return WEIR_FAULT_NONE;
}

weir_fault wr_asked_read(const weir_request *request, unsigned wanted, struct wr_asked *ret_asked)
{
    weir_fault fault = WEIR_FAULT_NONE;

    ret_asked->request = *request;
    if ((wanted & WR_ASKED_PATH) != 0 && request->target_bytes > 0)
        fault = read_path(request, ret_asked);
    if (fault == WEIR_FAULT_NONE && (wanted & WR_ASKED_HOST) != 0 && request->host_bytes > 0)
        fault = read_host(request, ret_asked);
    return fault;
}

/* ---- matching ------------------------------------------------------------------------------------------ */

static bool method_fits(const struct wr_match *match, struct wr_span method)
{
    for (uint32_t i = 0; i < match->method_count; i++) {
        const struct wr_span *wanted = &match->methods[i];
        if (wanted->bytes == method.bytes && memcmp(wanted->data, method.data, method.bytes) == 0)
            return true;
    }
    return match->method_count == 0;
}

static bool one_fits(const struct wr_glob *patterns, uint32_t count, struct wr_span text)
{
    for (uint32_t i = 0; i < count; i++) {
        if (text.bytes > 0 && wr_glob_fits(&patterns[i], text))
            return true;
    }
    return count == 0;
}

static bool header_fits(const struct wr_header_pattern *pattern, const weir_request *request)
{
    for (size_t line = 0; request->header != NULL && line < WEIR_HEADER_LINES_MAX; line++) {
        struct wr_span value = {NULL, 0};
        value.data = request->header(request->header_context, pattern->name, line, &value.bytes);
        if (value.data == NULL)
            return false;
        if (pattern->any || wr_glob_fits(&pattern->value, wr_span_trim(value)))
            return true;
    }
    return false;
}

bool wr_match_fits(const struct wr_match *match, const weir_request *request)
{
    if (!method_fits(match, (struct wr_span){request->method, request->method_bytes}) ||
        !one_fits(match->paths, match->path_count, (struct wr_span){request->target, request->target_bytes}) ||
        !one_fits(match->hosts, match->host_count, (struct wr_span){request->host, request->host_bytes}))
        return false;
    for (uint32_t i = 0; i < match->header_count; i++) {
        if (!header_fits(&match->headers[i], request))
            return false;
    }
    return true;
}
