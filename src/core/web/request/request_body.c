/* SPDX-License-Identifier: MIT */
/* request_body.c - parses a request body: by its length, or in chunks with a trailer, which is
 * checked and dropped. */
#include "core/web/http/field.h"
#include "core/web/request/request_parser.h"

static enum wr_request_step refuse_request_body(struct wr_request *request, enum wr_request_fault fault)
{
    request->fault = (uint8_t)fault;
    return WR_REQUEST_REFUSED;
}

static enum wr_request_step read_plain(struct wr_request *request, struct wr_span *rest, struct wr_span *ret_piece)
{
    size_t bytes = rest->bytes < request->body_bytes ? rest->bytes : (size_t)request->body_bytes;

    if (request->body_bytes == 0) {
        request->place = WR_REQUEST_AT_END;
        return WR_REQUEST_END;
    }
    if (bytes == 0)
        return WR_REQUEST_MORE;
    *ret_piece = (struct wr_span){rest->data, bytes};
    *rest = wr_span_after(*rest, bytes);
    request->body_bytes -= bytes;
    return WR_REQUEST_BODY;
}

/* Parses chunks. The limits apply as soon as the size of a chunk is known, so the result does not
 * depend on how the bytes are split. */
static enum wr_request_step read_chunks(struct wr_request *request, struct wr_span *rest, struct wr_span *ret_piece)
{
    struct wr_span piece = {NULL, 0};
    size_t before = rest->bytes;
    enum wr_chunks_step step = wr_chunks_next(&request->chunks, rest, &piece);
    size_t framing = before - rest->bytes - piece.bytes;

    if (framing > WR_REQUEST_FRAMING_MAX - request->framing_bytes)
        return refuse_request_body(request, WR_REQUEST_FRAMING);
    request->framing_bytes += (uint32_t)framing;
    switch (step) {
    case WR_CHUNKS_BODY:
        request->body_bytes += piece.bytes;
        if (request->body_bytes + request->chunks.left > WR_REQUEST_BODY_MAX)
            return refuse_request_body(request, WR_REQUEST_BODY_LARGE);
        *ret_piece = piece;
        return WR_REQUEST_BODY;
    case WR_CHUNKS_LAST:
        request->place = WR_REQUEST_AT_TRAILER;
        return WR_REQUEST_MORE;
    case WR_CHUNKS_BAD:
        return refuse_request_body(request, WR_REQUEST_CHUNK);
    case WR_CHUNKS_MORE:
        break;
    }
    return WR_REQUEST_MORE;
}

/* Returns the next state after a byte of the trailer; WR_REQUEST_AT_START if the byte is
 * invalid. */
static enum wr_request_state next_trailer_state(enum wr_request_state place, char c)
{
    switch (place) {
    case WR_REQUEST_AT_TRAILER:
        if (c == '\r')
            return WR_REQUEST_AT_LAST_LF;
        return wr_field_is_token_char(c) ? WR_REQUEST_AT_TRAILER_NAME : WR_REQUEST_AT_START;
    case WR_REQUEST_AT_TRAILER_NAME:
        if (c == ':')
            return WR_REQUEST_AT_TRAILER_VALUE;
        return wr_field_is_token_char(c) ? WR_REQUEST_AT_TRAILER_NAME : WR_REQUEST_AT_START;
    case WR_REQUEST_AT_TRAILER_VALUE:
        if (c == '\r')
            return WR_REQUEST_AT_TRAILER_LF;
        return wr_field_is_control(c) ? WR_REQUEST_AT_START : WR_REQUEST_AT_TRAILER_VALUE;
    case WR_REQUEST_AT_TRAILER_LF:
        return c == '\n' ? WR_REQUEST_AT_TRAILER : WR_REQUEST_AT_START;
    case WR_REQUEST_AT_LAST_LF:
        return c == '\n' ? WR_REQUEST_AT_END : WR_REQUEST_AT_START;
    default:
        return WR_REQUEST_AT_START;
    }
}

static enum wr_request_step read_trailer(struct wr_request *request, struct wr_span *rest)
{
    while (rest->bytes > 0 && request->place != WR_REQUEST_AT_END) {
        enum wr_request_state place = next_trailer_state((enum wr_request_state)request->place, rest->data[0]);
        if (++request->trailer_bytes > WR_REQUEST_TRAILER_MAX)
            return refuse_request_body(request, WR_REQUEST_TRAILER_LARGE);
        if (place == WR_REQUEST_AT_START)
            return refuse_request_body(request, WR_REQUEST_TRAILER);
        request->place = (uint8_t)place;
        *rest = wr_span_after(*rest, 1);
    }
    return request->place == WR_REQUEST_AT_END ? WR_REQUEST_END : WR_REQUEST_MORE;
}

enum wr_request_step wr_request_body(struct wr_request *request, struct wr_span *rest, struct wr_span *ret_piece)
{
    if (request->fault != WR_REQUEST_OK)
        return WR_REQUEST_REFUSED;
    if (request->place == WR_REQUEST_AT_END)
        return WR_REQUEST_END;
    if (!request->is_chunked)
        return read_plain(request, rest, ret_piece);
    if (request->place == WR_REQUEST_AT_BODY) {
        enum wr_request_step step = read_chunks(request, rest, ret_piece);
        if (request->place == WR_REQUEST_AT_BODY)
            return step;
    }
    return read_trailer(request, rest);
}
