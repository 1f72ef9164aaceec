/* SPDX-License-Identifier: MIT */
/* parts.h - declarations shared by the files that parse a request. */
#ifndef WR_CORE_RULES_REQUEST_PARTS_H
#define WR_CORE_RULES_REQUEST_PARTS_H

#include "core/rules/http/field.h"
#include "core/rules/request/request.h"

enum wr_request_place {
    WR_PLACE_START, /* before or in the request line */
    WR_PLACE_FIELDS,
    WR_PLACE_BODY,
    WR_PLACE_TRAILER, /* at the start of a trailer line */
    WR_PLACE_TRAILER_NAME,
    WR_PLACE_TRAILER_VALUE,
    WR_PLACE_TRAILER_LF,
    WR_PLACE_LAST_LF,
    WR_PLACE_END,
};

/* Parses the request line, given without CR LF. `line` is part of the request's text. */
enum wr_request_fault wr_request_start(struct wr_request *request, struct wr_span line);

/* Parses a header line, stores the field, and records what it says about the body and the
 * connection. */
enum wr_request_fault wr_request_field(struct wr_request *request, struct wr_span line);

/* Checks at the end of the head that the fields are consistent. */
enum wr_request_fault wr_request_judge(const struct wr_request *request);

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
