/* SPDX-License-Identifier: MIT */
/* request_parser.h - declarations shared by the files that parse a request. */
#ifndef WR_CORE_WEB_REQUEST_REQUEST_PARSER_H
#define WR_CORE_WEB_REQUEST_REQUEST_PARSER_H

#include "core/web/http/field.h"
#include "core/web/request/http_request.h"

enum wr_request_state {
    WR_REQUEST_AT_START, /* before or in the request line */
    WR_REQUEST_AT_FIELDS,
    WR_REQUEST_AT_BODY,
    WR_REQUEST_AT_TRAILER, /* at the start of a trailer line */
    WR_REQUEST_AT_TRAILER_NAME,
    WR_REQUEST_AT_TRAILER_VALUE,
    WR_REQUEST_AT_TRAILER_LF,
    WR_REQUEST_AT_LAST_LF,
    WR_REQUEST_AT_END,
};

/* Parses the request line, given without CR LF. `line` is part of the request's text. */
enum wr_request_fault wr_request_start(struct wr_request *request, struct wr_span line);

/* Parses a header line, stores the field, and records what it says about the body and the
 * connection. */
enum wr_request_fault wr_request_field(struct wr_request *request, struct wr_span line);

/* Checks at the end of the head that the fields are consistent. */
enum wr_request_fault wr_request_check_fields(const struct wr_request *request);

/* Returns the fault of the first control character in the line, OK if the line has none. */
static inline enum wr_request_fault wr_request_control(struct wr_span line)
{
    for (size_t i = 0; i < line.bytes; i++)
        if (wr_field_is_control(line.data[i]))
            return line.data[i] == '\r' ? WR_REQUEST_BARE_CR : WR_REQUEST_CONTROL;
    return WR_REQUEST_OK;
}

static inline struct wr_request_piece wr_request_piece(const struct wr_request *request, struct wr_span span)
{
    return (struct wr_request_piece){(uint16_t)(span.data - request->data), (uint16_t)span.bytes};
}

#endif
