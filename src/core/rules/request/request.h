/* SPDX-License-Identifier: MIT */
/* request.h - a request to our own daemon: read in the one way that all read alike, or refused.
 *
 *     wr_request_init(&request);
 *     step = wr_request_head(&request, text);                  all that has come since the request's first byte
 *     … WR_REQUEST_MORE: call again when more has come. WR_REQUEST_HEAD: request.method, wr_request_target(), … …
 *     rest = text after request.head_bytes;
 *     while ((step = wr_request_body(&request, &rest, &piece)) == WR_REQUEST_BODY) … piece …
 *     … WR_REQUEST_END: `rest` begins with the next request …
 *
 * Nothing is copied: the fields are places in the caller's text, who has to keep the head together in one block. It may
 * move between two calls: what is asked of a request refers to the text given last.
 *
 * Behind a proxy two programs read the same bytes, and where they disagree about the end of a request somebody's body
 * becomes somebody else's request (RFC 9112 11.2). So whatever could be read in two ways is refused, with a status and
 * a reason, and the connection has to be closed; docs/internals/request.md lists it. To close without draining would
 * take the answer back (a reset overtakes it): drop up to WR_REQUEST_DRAIN_MAX further bytes first.
 */
#ifndef WR_CORE_RULES_REQUEST_REQUEST_H
#define WR_CORE_RULES_REQUEST_REQUEST_H

#include "base/span.h"
#include "core/rules/http/chunks.h"

/* nginx passes on four buffers of 8 KB, and adds the original target, which is in one of them. */
#define WR_REQUEST_LINE_MAX 16384 /* of any line of the head, with CR LF */
#define WR_REQUEST_HEAD_MAX 49152 /* less than 2^16 */
#define WR_REQUEST_FIELDS_MAX 128
#define WR_REQUEST_BODY_MAX (1 << 20)    /* decoded */
#define WR_REQUEST_FRAMING_MAX (1 << 16) /* of chunks: sizes, extensions and ends of lines */
#define WR_REQUEST_TRAILER_MAX 4096
#define WR_REQUEST_DRAIN_MAX (1 << 18)

/* What is wrong, the status to answer, and why in words. */
#define WR_REQUEST_FAULTS(X)                                                                      \
    X(WR_REQUEST_OK, 0, "nothing is wrong")                                                       \
    X(WR_REQUEST_BLANK_LINES, 400, "more than one empty line before the request")                 \
    X(WR_REQUEST_BARE_LF, 400, "a line that ends without CR")                                     \
    X(WR_REQUEST_BARE_CR, 400, "a CR that is not followed by LF")                                 \
    X(WR_REQUEST_CONTROL, 400, "a control character")                                             \
    X(WR_REQUEST_METHOD, 400, "a method that is not made of capital letters")                     \
    X(WR_REQUEST_METHOD_UNKNOWN, 501, "a method that is not known here")                          \
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
    X(WR_REQUEST_HOST, 400, "a Host that is none")                                                \
    X(WR_REQUEST_LENGTHS, 400, "more than one Content-Length")                                    \
    X(WR_REQUEST_LENGTH, 400, "a Content-Length that is no number")                               \
    X(WR_REQUEST_BOTH, 400, "both Content-Length and Transfer-Encoding")                          \
    X(WR_REQUEST_TRANSFERS, 400, "more than one Transfer-Encoding")                               \
    X(WR_REQUEST_TRANSFER_OLD, 400, "Transfer-Encoding in HTTP/1.0")                              \
    X(WR_REQUEST_TRANSFER, 501, "a Transfer-Encoding other than chunked")                         \
    X(WR_REQUEST_EXPECT, 417, "an Expect other than 100-continue")                                \
    X(WR_REQUEST_BODY_LARGE, 413, "the body is too large")                                        \
    X(WR_REQUEST_CHUNK, 400, "a malformed chunk")                                                 \
    X(WR_REQUEST_FRAMING, 400, "too many small chunks, or too large chunk extensions")            \
    X(WR_REQUEST_TRAILER, 400, "after the last chunk something that is no header field")          \
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

/* Places in the text. */
struct wr_request_piece {
    uint16_t at, bytes;
};

struct wr_request_field {
    struct wr_request_piece name, value; /* the value without blanks around it */
};

struct wr_request {
    const char *data; /* the text that was given last */
    struct wr_chunks chunks;
    uint64_t body_bytes;    /* Content-Length, less what is read of it; of chunks, what is read */
    uint32_t head_bytes;    /* read so far, in whole lines; at WR_REQUEST_HEAD of the whole head */
    uint32_t scanned;       /* bytes of the next line that have no LF in them */
    uint32_t framing_bytes; /* of chunks */
    uint32_t trailer_bytes;
    uint32_t field_count;
    struct wr_request_piece target, host; /* an absent Host is empty */
    uint8_t fault;                        /* enum wr_request_fault */
    uint8_t method;                       /* enum wr_request_method */
    uint8_t minor;                        /* HTTP/1.0 or 1.1 */
    uint8_t place;                        /* enum wr_request_place, in parts.h */
    bool has_blank_line, has_host, has_length, has_expect, has_close, has_keep_alive;
    bool is_chunked;
    struct wr_request_field fields[WR_REQUEST_FIELDS_MAX]; /* so far in their order */
};

/* For the first request, and for each that follows it. */
void wr_request_init(struct wr_request *ret_request);

enum wr_request_step {
    WR_REQUEST_MORE,    /* call again when more has come */
    WR_REQUEST_HEAD,    /* the head is whole */
    WR_REQUEST_BODY,    /* *ret_piece is the next piece of the body */
    WR_REQUEST_END,     /* the request has ended */
    WR_REQUEST_REFUSED, /* request.fault says why; it stays so */
};

/* `text`: all that has come since the request's first byte, also what was given before. Says MORE, HEAD (and again, if
 * called again) or REFUSED. */
enum wr_request_step wr_request_head(struct wr_request *request, struct wr_span text);

/* After HEAD. `rest` is what has come after the head and was not read yet; what is read of it is dropped. Says MORE,
 * BODY, END or REFUSED. */
enum wr_request_step wr_request_body(struct wr_request *request, struct wr_span *rest, struct wr_span *ret_piece);

static inline struct wr_span wr_request_span(const struct wr_request *request, struct wr_request_piece piece)
{
    return (struct wr_span){request->data + piece.at, piece.bytes};
}

/* The path and the query. */
static inline struct wr_span wr_request_target(const struct wr_request *request)
{
    return wr_request_span(request, request->target);
}

/* The first field of that name at or after *cursor, in any case, which then stands behind it; start with 0. */
bool wr_request_find(const struct wr_request *request, const char *name, uint32_t *cursor, struct wr_span *ret_value);

/* Whether the connection may carry another request after this one. */
bool wr_request_keeps(const struct wr_request *request);

/* Whether the client waits for "100 Continue" before it sends the body. */
bool wr_request_waits(const struct wr_request *request);

#endif
