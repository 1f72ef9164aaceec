/* SPDX-License-Identifier: MIT */
/* http_request.c - parses the head of a request line by line as its bytes arrive. */
#include "core/web/request/http_request.h"

#include "core/web/http/field.h"
#include "core/web/request/request_parser.h"

_Static_assert(WR_REQUEST_HEAD_MAX <= UINT16_MAX, "places in a head have 16 bits");

int wr_request_fault_status(enum wr_request_fault fault)
{
    static const uint16_t statuses[] = {
#define X(fault, status, text) status,
        WR_REQUEST_FAULTS(X)
#undef X
    };
    return statuses[fault];
}

const char *wr_request_fault_text(enum wr_request_fault fault)
{
    static const char *const texts[] = {
#define X(fault, status, text) text,
        WR_REQUEST_FAULTS(X)
#undef X
    };
    return texts[fault];
}

void wr_request_init(struct wr_request *ret_request)
{
    memset(ret_request, 0, offsetof(struct wr_request, fields));
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Returns the fault of an incomplete line that has reached the length `most`. */
static enum wr_request_fault too_long_fault(const struct wr_request *request, size_t most)
{
    if (request->place == WR_REQUEST_AT_START)
        return WR_REQUEST_TARGET_LONG;
    return most == WR_REQUEST_LINE_MAX ? WR_REQUEST_LINE_LONG : WR_REQUEST_HEAD_LARGE;
}

/* Takes the next line, without its LF. Returns false if it is incomplete. Only the length of an
 * incomplete line is checked, so that the result does not depend on how the bytes are split. */
static bool take_request_line(struct wr_request *request, struct wr_span text, struct wr_span *ret_line)
{
    size_t most = WR_REQUEST_HEAD_MAX - request->head_bytes;
    most = most < WR_REQUEST_LINE_MAX ? most : WR_REQUEST_LINE_MAX;
    struct wr_span line = wr_span_after(text, request->head_bytes);
    line.bytes = line.bytes < most ? line.bytes : most;
    size_t lf = request->scanned + wr_span_find(wr_span_after(line, request->scanned), '\n');
    request->scanned = (uint32_t)lf;
    if (lf == line.bytes) {
        if (lf == most)
            request->fault = (uint8_t)too_long_fault(request, most);
        return false;
    }
    request->scanned = 0;
    request->head_bytes += (uint32_t)lf + 1;
    *ret_line = (struct wr_span){line.data, lf};
    return true;
}

static enum wr_request_fault take_empty_line(struct wr_request *request)
{
    if (request->place == WR_REQUEST_AT_FIELDS) {
        request->place = WR_REQUEST_AT_BODY;
        return wr_request_check_fields(request);
    }
    if (request->has_blank_line)
        return WR_REQUEST_BLANK_LINES;
    request->has_blank_line = true;
    return WR_REQUEST_OK;
}

static enum wr_request_fault read_request_head_line(struct wr_request *request, struct wr_span line)
{
    if (line.bytes == 0 || line.data[line.bytes - 1] != '\r')
        return WR_REQUEST_BARE_LF;
    line.bytes--;
    if (line.bytes == 0)
        return take_empty_line(request);
    if (request->place == WR_REQUEST_AT_FIELDS)
        return wr_request_field(request, line);
    request->place = WR_REQUEST_AT_FIELDS;
    return wr_request_start(request, line);
}

enum wr_request_step wr_request_head(struct wr_request *request, struct wr_span text)
{
    struct wr_span line;

    request->data = text.data;
    while (request->fault == WR_REQUEST_OK && request->place < WR_REQUEST_AT_BODY) {
        if (take_request_line(request, text, &line))
            request->fault = (uint8_t)read_request_head_line(request, line);
        else if (request->fault == WR_REQUEST_OK)
            return WR_REQUEST_MORE;
    }
    return request->fault == WR_REQUEST_OK ? WR_REQUEST_HEAD : WR_REQUEST_REFUSED;
}

/* ---- accessors ------------------------------------------------------------------------------- */

bool wr_request_find(const struct wr_request *request, const char *name, uint32_t *cursor, struct wr_span *ret_value)
{
    size_t bytes = strlen(name);

    while (*cursor < request->field_count) {
        const struct wr_request_field *field = &request->fields[(*cursor)++];
        if (field->name.bytes != bytes || !wr_ascii_same(request->data + field->name.at, name, bytes))
            continue;
        *ret_value = wr_request_span(request, field->value);
        return true;
    }
    return false;
}

bool wr_request_keeps_alive(const struct wr_request *request)
{
    if (request->fault != WR_REQUEST_OK || request->has_close)
        return false;
    return request->minor == 1 || request->has_keep_alive;
}

bool wr_request_expects_continue(const struct wr_request *request)
{
    bool has_body = request->is_chunked || request->body_bytes > 0;

    return request->fault == WR_REQUEST_OK && request->has_expect && request->minor == 1 && has_body;
}
