/* SPDX-License-Identifier: MIT */
/* match.c - decides which requests a rule applies to. */
#include "core/admit/match.h"

#include "core/admit/method.h"

#include <assert.h>

/* ---- readings -------------------------------------------------------------------------------- */

/* Sets the target to the path of the current reading: the original text if it is spelled that way,
 * else a copy. */
static weir_request_fault write_reading(struct wr_request_reading *asked)
{
    struct wr_buf path;

    if (asked->loose == 0 && asked->target.is_written) {
        asked->request.target = asked->target.path.data;
        asked->request.target_bytes = asked->target.path.bytes;
        return WEIR_FAULT_NONE;
    }
    wr_buf_init_fixed(&path, asked->path, sizeof asked->path);
    weir_request_fault fault = wr_path_append(&path, &asked->target, asked->loose);
    asked->request.target = path.bytes;
    asked->request.target_bytes = path.length;
    return fault;
}

static bool fits_reading_budget(const struct wr_request_reading *asked)
{
    size_t bytes = asked->target.path.bytes, most = WR_READ_MAX;

    for (unsigned rest = asked->varies; rest != 0; rest &= rest - 1)
        most /= 2;
    return asked->varies == 0 || (bytes <= most && bytes <= WR_PATH_MAX);
}

static weir_request_fault read_request_path(struct wr_request_reading *asked, unsigned wanted, unsigned exact)
{
    struct wr_span target = {asked->request.target, asked->request.target_bytes};
    weir_request_fault fault = wr_target_read(target, &asked->target);

    if (fault != WEIR_FAULT_NONE)
        return fault;
    if ((wanted & WR_READS_PATH) != 0)
        asked->varies = (asked->target.varies | wanted >> 8) & wr_loose_without(exact);
    return fits_reading_budget(asked) ? write_reading(asked) : WEIR_FAULT_LONG;
}

static weir_request_fault append_normal_host(struct wr_buf *host, struct wr_span text, char *memory,
                                             size_t memory_bytes)
{
    wr_buf_init_fixed(host, memory, memory_bytes);
    return wr_host_append(host, text);
}

static weir_request_fault read_request_host(struct wr_request_reading *asked)
{
    struct wr_span given = wr_span_trim((struct wr_span){asked->request.host, asked->request.host_bytes});
    struct wr_span authority = asked->target.authority;
    char memory[WR_HOST_MAX + 1];
    struct wr_buf host, other;
    weir_request_fault fault =
        append_normal_host(&host, authority.data != NULL ? authority : given, asked->host, sizeof asked->host);

    if (fault == WEIR_FAULT_NONE && authority.data != NULL && given.data != NULL) {
        fault = append_normal_host(&other, given, memory, sizeof memory);
        if (fault == WEIR_FAULT_NONE && strcmp(host.bytes, other.bytes) != 0)
            fault = WEIR_FAULT_HOST;
    }
    asked->request.host = host.bytes;
    asked->request.host_bytes = host.length;
    return fault == WEIR_FAULT_MISSING ? WEIR_FAULT_HOST : fault;
}

void wr_request_reading_keep(const weir_request *request, weir_request_fault fault,
                             struct wr_request_reading *ret_asked)
{
    ret_asked->request = *request;
    ret_asked->fault = fault;
    ret_asked->steps = WR_MATCH_STEPS_MAX;
    ret_asked->varies = ret_asked->loose = 0;
    ret_asked->target.authority = (struct wr_span){NULL, 0};
}

weir_request_fault wr_request_reading_begin(const weir_request *request, unsigned wanted, unsigned exact,
                                            struct wr_request_reading *ret_asked)
{
    weir_request_fault fault = WEIR_FAULT_NONE;
    const char *method = NULL;

    wr_request_reading_keep(request, WEIR_FAULT_NONE, ret_asked);
    if ((wanted & WR_READS_METHOD) != 0) {
        struct wr_span text = {request->method, request->method_bytes};
        method = wr_method_known(text);
        if (method == NULL && !wr_method_is_token(text))
            fault = WEIR_FAULT_BYTES;
    }
    if (method != NULL)
        ret_asked->request.method = method;
    if (fault == WEIR_FAULT_NONE && request->target != NULL)
        fault = read_request_path(ret_asked, wanted, exact);
    bool has_host = request->host != NULL || ret_asked->target.authority.data != NULL;
    if (fault == WEIR_FAULT_NONE && (wanted & WR_READS_HOST) != 0 && has_host)
        fault = read_request_host(ret_asked);
    return fault;
}

/* Advances to the next subset of `varies`, in numeric order. No reading is longer than the first,
 * so each fits. */
bool wr_request_reading_next(struct wr_request_reading *asked)
{
    if (asked->varies == 0)
        return false;
    asked->loose = (asked->loose - asked->varies) & asked->varies;
    weir_request_fault fault = write_reading(asked);
    assert(fault == WEIR_FAULT_NONE);
    (void)fault;
    return asked->loose != 0;
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool method_fits(const struct wr_match *match, struct wr_span method)
{
    for (uint32_t i = 0; i < match->method_count; i++) {
        if (wr_method_fits(match->methods[i], method))
            return true;
    }
    return match->method_count == 0;
}

static bool any_glob_fits(const struct wr_glob *patterns, uint32_t count, struct wr_span text, unsigned loose,
                          uint32_t *steps)
{
    for (uint32_t i = 0; i < count; i++) {
        if (text.bytes > 0 && wr_glob_fits(&patterns[i], text, loose, steps))
            return true;
    }
    return count == 0;
}

/* Compares values without case: callers may write them in any case, and most services ignore it. */
static bool header_fits(const struct wr_header_pattern *pattern, const weir_request *request, uint32_t *steps)
{
    for (size_t line = 0; request->header != NULL && line < WEIR_HEADER_LINES_MAX; line++) {
        struct wr_span value = {NULL, 0};
        if (!wr_steps_take(steps, WR_MATCH_LOOKUP_STEPS))
            return false;
        value.data = request->header(request->header_context, pattern->name, line, &value.bytes);
        if (value.data == NULL)
            return false;
        if (pattern->any || wr_glob_fits(&pattern->value, wr_span_trim(value), WR_LOOSE_CASE, steps))
            return true;
    }
    return false;
}

bool wr_match_fits(const struct wr_match *match, struct wr_request_reading *asked)
{
    const weir_request *request = &asked->request;

    if (!method_fits(match, (struct wr_span){request->method, request->method_bytes}) ||
        !any_glob_fits(match->paths, match->path_count, (struct wr_span){request->target, request->target_bytes},
                       asked->loose, &asked->steps) ||
        !any_glob_fits(match->hosts, match->host_count, (struct wr_span){request->host, request->host_bytes}, 0,
                       &asked->steps))
        return false;
    for (uint32_t i = 0; i < match->header_count; i++) {
        if (!header_fits(&match->headers[i], request, &asked->steps))
            return false;
    }
    return true;
}
