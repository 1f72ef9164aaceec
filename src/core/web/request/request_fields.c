/* SPDX-License-Identifier: MIT */
/* request_fields.c - parses header fields, and what some of them say about body and connection. */
#include "base/parse.h"
#include "core/web/http/field.h"
#include "core/web/request/request_parser.h"

/* ---- field values ---------------------------------------------------------------------------- */

/* Returns true if the value has only characters of a host and port (RFC 3986 3.2.2). Other programs
 * may read any other character in a different way. */
static bool is_host_text(struct wr_span value)
{
    for (size_t i = 0; i < value.bytes; i++)
        if (!wr_ascii_is_printable(value.data[i]) || strchr(" \"#/<>?@\\^`{|}", value.data[i]) != NULL)
            return false;
    return true;
}

static enum wr_request_fault note_host_field(struct wr_request *request, struct wr_span value)
{
    if (request->has_host)
        return WR_REQUEST_HOSTS;
    request->has_host = true;
    request->host = wr_request_piece(request, value);
    return is_host_text(value) ? WR_REQUEST_OK : WR_REQUEST_HOST;
}

static enum wr_request_fault note_length(struct wr_request *request, struct wr_span value)
{
    if (request->has_length)
        return WR_REQUEST_LENGTHS;
    request->has_length = true;
    bool is_number = wr_scan_u64(value.data, value.bytes, 0, INT64_MAX, &request->body_bytes);
    return is_number ? WR_REQUEST_OK : WR_REQUEST_LENGTH;
}

static enum wr_request_fault note_transfer(struct wr_request *request, struct wr_span value)
{
    if (request->is_chunked)
        return WR_REQUEST_TRANSFERS;
    request->is_chunked = true;
    return wr_field_is(value, "chunked") ? WR_REQUEST_OK : WR_REQUEST_TRANSFER;
}

static enum wr_request_fault note_expect(struct wr_request *request, struct wr_span value)
{
    request->has_expect = true;
    return wr_field_is(value, "100-continue") ? WR_REQUEST_OK : WR_REQUEST_EXPECT;
}

static enum wr_request_fault note_connection(struct wr_request *request, struct wr_span value)
{
    while (value.bytes > 0) {
        size_t comma = wr_span_find(value, ',');
        struct wr_span word = wr_span_trim((struct wr_span){value.data, comma});
        request->has_close = request->has_close || wr_field_is(word, "close");
        request->has_keep_alive = request->has_keep_alive || wr_field_is(word, "keep-alive");
        value = wr_span_after(value, comma < value.bytes ? comma + 1 : comma);
    }
    return WR_REQUEST_OK;
}

static enum wr_request_fault note_field(struct wr_request *request, struct wr_span name, struct wr_span value)
{
    if (wr_field_is(name, "Host"))
        return note_host_field(request, value);
    if (wr_field_is(name, "Content-Length"))
        return note_length(request, value);
    if (wr_field_is(name, "Transfer-Encoding"))
        return note_transfer(request, value);
    if (wr_field_is(name, "Connection"))
        return note_connection(request, value);
    if (wr_field_is(name, "Expect"))
        return note_expect(request, value);
    return WR_REQUEST_OK;
}

enum wr_request_fault wr_request_check_fields(const struct wr_request *request)
{
    if (!request->has_host && request->minor == 1)
        return WR_REQUEST_NO_HOST;
    if (request->is_chunked && request->has_length)
        return WR_REQUEST_BOTH;
    /* RFC 9112 6.1: an HTTP/1.0 sender does not know chunked coding */
    if (request->is_chunked && request->minor == 0)
        return WR_REQUEST_TRANSFER_OLD;
    return request->body_bytes > WR_REQUEST_BODY_MAX ? WR_REQUEST_BODY_LARGE : WR_REQUEST_OK;
}

/* ---- header lines ---------------------------------------------------------------------------- */

static bool is_request_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns the reason why a line is not a valid field. */
static enum wr_request_fault field_fault(struct wr_span line, size_t colon)
{
    enum wr_request_fault fault = wr_request_control(line);

    if (fault != WR_REQUEST_OK)
        return fault;
    if (colon == line.bytes)
        return WR_REQUEST_NO_FIELD;
    return colon > 0 && is_request_blank(line.data[colon - 1]) ? WR_REQUEST_COLON : WR_REQUEST_NAME;
}

enum wr_request_fault wr_request_field(struct wr_request *request, struct wr_span line)
{
    if (is_request_blank(line.data[0]))
        return WR_REQUEST_FOLD;
    size_t colon = wr_span_find(line, ':');
    if (colon == line.bytes)
        return field_fault(line, colon);
    struct wr_span name = {line.data, colon}, value = wr_span_trim(wr_span_after(line, colon + 1));
    if (!wr_field_is_sound(name, value))
        return field_fault(line, colon);
    if (request->field_count == WR_REQUEST_FIELDS_MAX)
        return WR_REQUEST_FIELDS;
    request->fields[request->field_count++] =
        (struct wr_request_field){wr_request_piece(request, name), wr_request_piece(request, value)};
    return note_field(request, name, value);
}
