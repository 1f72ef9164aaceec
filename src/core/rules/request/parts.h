/* SPDX-License-Identifier: MIT */
/* parts.h - what the files that read a request know of each other. */
#ifndef WR_CORE_RULES_REQUEST_PARTS_H
#define WR_CORE_RULES_REQUEST_PARTS_H

#include "core/rules/http/field.h"
#include "core/rules/request/request.h"

enum wr_request_place {
    WR_PLACE_START, /* before the request line */
    WR_PLACE_FIELDS,
    WR_PLACE_BODY,
    WR_PLACE_TRAILER, /* at the beginning of a line of it */
    WR_PLACE_TRAILER_NAME,
    WR_PLACE_TRAILER_VALUE,
    WR_PLACE_TRAILER_LF,
    WR_PLACE_LAST_LF,
    WR_PLACE_END,
};

/* Takes the request line apart, which is without CR LF. `line` is part of the text. */
enum wr_request_fault wr_request_start(struct wr_request *request, struct wr_span line);

/* Takes a line of a field apart, keeps it, and notes what it says of the request. */
enum wr_request_fault wr_request_field(struct wr_request *request, struct wr_span line);

/* The head has ended: whether what its fields say goes together. */
enum wr_request_fault wr_request_judge(const struct wr_request *request);

/* The first control character of a line as a fault; OK if there is none. */
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
