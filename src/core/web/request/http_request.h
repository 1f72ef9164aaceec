/* SPDX-License-Identifier: MIT */
/* http_request.h - parses a request to weir's own server strictly, and refuses ambiguous requests.
 *
 *     wr_request_init(&request);
 *     step = wr_request_head(&request, text);             all bytes since the start of the request
 *     ... WR_REQUEST_MORE: call it with more bytes. WR_REQUEST_HEAD: use request.method ...
 *     rest = text after request.head_bytes;
 *     while ((step = wr_request_body(&request, &rest, &piece)) == WR_REQUEST_BODY) ... piece ...
 *     ... WR_REQUEST_END: `rest` begins with the next request ...
 *
 * Nothing is copied: fields are offsets into the caller's text, so the caller must keep the head in
 * one block. The block may move between two calls: accessors use the text of the last call.
 *
 * Behind a proxy, two programs parse the same bytes. If they disagree about the end of a request,
 * the body of one request becomes another client's request (request smuggling, RFC 9112 11.2). So
 * everything ambiguous is refused with a status and a reason, and the connection must be closed;
 * docs/internals/request.md lists the cases. Before closing, drop up to WR_REQUEST_DRAIN_MAX
 * further bytes, because a reset could overtake the response.
 */
#ifndef WR_CORE_WEB_REQUEST_HTTP_REQUEST_H
#define WR_CORE_WEB_REQUEST_HTTP_REQUEST_H

#include "base/span.h"
#include "core/web/http/chunks.h"

/* The limits follow nginx, which forwards up to four buffers of 8 KB and adds the original target,
 * which is in one of them. */
#define WR_REQUEST_LINE_MAX 16384 /* bytes of any head line, with CR LF */
#define WR_REQUEST_HEAD_MAX 49152 /* bytes of the whole head; must be less than 2^16 */
#define WR_REQUEST_FIELDS_MAX 128
#define WR_REQUEST_BODY_MAX (1 << 20)    /* bytes of a decoded body */
#define WR_REQUEST_FRAMING_MAX (1 << 16) /* bytes of chunk sizes, extensions and line ends */
#define WR_REQUEST_TRAILER_MAX 4096
#define WR_REQUEST_DRAIN_MAX (1 << 18)

/* Faults of a request: enum constant, status of the response, and the reason as text. */
#define WR_REQUEST_FAULTS(X)                                                                      \
    X(WR_REQUEST_OK, 0, "nothing is wrong")                                                       \
    X(WR_REQUEST_BLANK_LINES, 400, "more than one empty line before the request")                 \
    X(WR_REQUEST_BARE_LF, 400, "a line that ends without CR")                                     \
    X(WR_REQUEST_BARE_CR, 400, "a CR that is not followed by LF")                                 \
    X(WR_REQUEST_CONTROL, 400, "a control character")                                             \
    X(WR_REQUEST_METHOD, 400, "a method that is not made of capital letters")                     \
    X(WR_REQUEST_METHOD_UNKNOWN, 501, "an unknown method")                                        \
    X(WR_REQUEST_TARGET_FORM, 400, "a target that does not begin with /")                         \
    X(WR_REQUEST_TARGET_BYTE, 400, "a target with #, or with a byte that is not printable ASCII") \
    X(WR_REQUEST_TARGET_LONG, 414, "the request line is too long")                                \
    X(WR_REQUEST_SPACES, 400, "a request line that is not three words with one space between")    \
    X(WR_REQUEST_VERSION_MISSING, 400, "a request line without a version")                        \
    X(WR_REQUEST_VERSION_FORM, 400, "a version that is not written HTTP/1.0 or HTTP/1.1")         \
    X(WR_REQUEST_VERSION, 505, "a version other than HTTP/1.0 and HTTP/1.1")                      \
    X(WR_REQUEST_LINE_LONG, 431, "a header field that is too long")                               \
    X(WR_REQUEST_FIELDS, 431, "too many header fields")                                           \
    X(WR_REQUEST_HEAD_LARGE, 431, "the header is too large")                                      \
    X(WR_REQUEST_FOLD, 400, "a header line that begins with a blank")                             \
    X(WR_REQUEST_NO_FIELD, 400, "a header line without a colon")                                  \
    X(WR_REQUEST_COLON, 400, "a blank before the colon of a header field")                        \
    X(WR_REQUEST_NAME, 400, "a header field whose name is not a token")                           \
    X(WR_REQUEST_HOSTS, 400, "more than one Host")                                                \
    X(WR_REQUEST_NO_HOST, 400, "no Host")                                                         \
    X(WR_REQUEST_HOST, 400, "an invalid Host")                                                    \
    X(WR_REQUEST_LENGTHS, 400, "more than one Content-Length")                                    \
    X(WR_REQUEST_LENGTH, 400, "a Content-Length that is not a number")                            \
    X(WR_REQUEST_BOTH, 400, "both Content-Length and Transfer-Encoding")                          \
    X(WR_REQUEST_TRANSFERS, 400, "more than one Transfer-Encoding")                               \
    X(WR_REQUEST_TRANSFER_OLD, 400, "Transfer-Encoding in HTTP/1.0")                              \
    X(WR_REQUEST_TRANSFER, 501, "a Transfer-Encoding other than chunked")                         \
    X(WR_REQUEST_EXPECT, 417, "an Expect other than 100-continue")                                \
    X(WR_REQUEST_BODY_LARGE, 413, "the body is too large")                                        \
    X(WR_REQUEST_CHUNK, 400, "a malformed chunk")                                                 \
    X(WR_REQUEST_FRAMING, 400, "too many small chunks, or too large chunk extensions")            \
    X(WR_REQUEST_TRAILER, 400, "a trailer line that is not a header field")                       \
    X(WR_REQUEST_TRAILER_LARGE, 431, "the trailer is too large")

enum wr_request_fault {
#define X(fault, status, text) fault,
    WR_REQUEST_FAULTS(X)
#undef X
};
#define WR_REQUEST_FAULT_COUNT (WR_REQUEST_TRAILER_LARGE + 1)

int wr_request_fault_status(enum wr_request_fault fault);
const char *wr_request_fault_text(enum wr_request_fault fault);

#define WR_REQUEST_METHODS(X)     \
    X(WR_METHOD_GET, "GET")       \
    X(WR_METHOD_HEAD, "HEAD")     \
    X(WR_METHOD_POST, "POST")     \
    X(WR_METHOD_PUT, "PUT")       \
    X(WR_METHOD_PATCH, "PATCH")   \
    X(WR_METHOD_DELETE, "DELETE") \
    X(WR_METHOD_OPTIONS, "OPTIONS")

enum wr_request_method {
#define X(method, name) method,
    WR_REQUEST_METHODS(X)
#undef X
};

const char *wr_request_method_name(enum wr_request_method method);

/* A part of the request's text. */
struct wr_request_piece {
    uint16_t at, bytes;
};

struct wr_request_field {
    struct wr_request_piece name, value; /* `value` is without blanks around it */
};

struct wr_request {
    const char *data; /* request text of the last wr_request_head */
    struct wr_chunks chunks;
    uint64_t body_bytes;    /* Content-Length: bytes still to read. Chunked: bytes read so far */
    uint32_t head_bytes;    /* bytes of whole lines read; after the head its length */
    uint32_t scanned;       /* bytes of the next line already searched for LF */
    uint32_t framing_bytes; /* bytes of chunk sizes, extensions and line ends so far */
    uint32_t trailer_bytes;
    uint32_t field_count;
    struct wr_request_piece target, host; /* `host` is empty if there is no Host */
    uint8_t fault;                        /* why it was refused: enum wr_request_fault */
    uint8_t method;                       /* method: enum wr_request_method */
    uint8_t minor;                        /* version: 0 for HTTP/1.0, 1 for HTTP/1.1 */
    uint8_t place;                        /* parser state: enum wr_request_state of request_parser.h */
    bool has_blank_line, has_host, has_length, has_expect, has_close, has_keep_alive;
    bool is_chunked;
    struct wr_request_field fields[WR_REQUEST_FIELDS_MAX]; /* header fields in their order */
};

/* Initializes the parser; call it before each request of a connection. */
void wr_request_init(struct wr_request *ret_request);

enum wr_request_step {
    WR_REQUEST_MORE,    /* incomplete: call again with more bytes */
    WR_REQUEST_HEAD,    /* the head is complete */
    WR_REQUEST_BODY,    /* *ret_piece is the next piece of the body */
    WR_REQUEST_END,     /* the request is complete */
    WR_REQUEST_REFUSED, /* request.fault is the reason; every later call says the same */
};

/* Parses the head. `text` is everything since the first byte of the request, including bytes of
 * earlier calls. Returns MORE, HEAD (also if called anew after HEAD) or REFUSED. */
enum wr_request_step wr_request_head(struct wr_request *request, struct wr_span text);

/* Parses the body, after HEAD. `rest` is the unread text after the head; bytes that were read are
 * removed from it. Returns MORE, BODY, END or REFUSED. */
enum wr_request_step wr_request_body(struct wr_request *request, struct wr_span *rest, struct wr_span *ret_piece);

static inline struct wr_span wr_request_span(const struct wr_request *request, struct wr_request_piece piece)
{
    return (struct wr_span){request->data + piece.at, piece.bytes};
}

/* Returns the path and query. */
static inline struct wr_span wr_request_target(const struct wr_request *request)
{
    return wr_request_span(request, request->target);
}

/* Finds the first field with that name (ignoring case) at or after *cursor, and moves *cursor
 * behind it; start with 0. Returns false if the head has no further such field. */
bool wr_request_find(const struct wr_request *request, const char *name, uint32_t *cursor, struct wr_span *ret_value);

/* Returns true if the connection may carry another request. */
bool wr_request_keeps_alive(const struct wr_request *request);

/* Returns true if the client waits for "100 Continue" before it sends the body. */
bool wr_request_expects_continue(const struct wr_request *request);

#endif
