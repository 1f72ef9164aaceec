/* SPDX-License-Identifier: MIT */
/* api_request.h - parses a request to the API: a JSON object, without building a tree or allocating
 * memory.
 *
 *     wr_api_reader_begin(&reader, body);
 *     while (wr_api_reader_next(&reader, &ask))                 one object, or a list of them
 *         ...
 *     if (reader.wrong != NULL) refuse(reader.wrong);
 *
 * Refuses unknown and repeated members, members of the wrong type, and numbers that are not whole.
 * Strings point into the body, except those with escapes, which are decoded into the reader's
 * scratch buffer.
 */
#ifndef WR_SERVE_DAEMON_API_REQUEST_H
#define WR_SERVE_DAEMON_API_REQUEST_H

#include "base/span.h"

#include <stdint.h>

#define WR_API_HEADERS_MAX 64
#define WR_API_SCRATCH_BYTES 16384 /* bytes of all decoded strings in one object */

struct wr_api_request_header {
    struct wr_span name, value;
};

/* Bits for the members of struct wr_api_request, in the order of the names in api_request.c.
 * WR_API_REQUEST_MEMBERS has those that describe an HTTP request. */
enum {
    WR_API_METHOD = 1 << 0,
    WR_API_TARGET = 1 << 1,
    WR_API_HOST = 1 << 2,
    WR_API_CLIENT = 1 << 3,
    WR_API_RULE = 1 << 4,
    WR_API_KEY = 1 << 5,
    WR_API_HOLD = 1 << 6,
    WR_API_COST = 1 << 7,
    WR_API_USED = 1 << 8,
    WR_API_TIMEOUT = 1 << 9,
    WR_API_LEASE = 1 << 10,
    WR_API_HEADERS = 1 << 11,
};
#define WR_API_REQUEST_MEMBERS /* members of an HTTP request */ \
    (WR_API_METHOD | WR_API_TARGET | WR_API_HOST | WR_API_CLIENT | WR_API_HEADERS | WR_API_COST)

/* One parsed object. Absent strings have no data; absent numbers are 0. */
struct wr_api_request {
    /* bits of the members that are present, WR_ASK_... */
    unsigned members;
    struct wr_span method, target, host, client; /* description of an HTTP request */
    struct wr_span rule, key;                    /* rule name and key, instead of an HTTP request */
    struct wr_span hold;
    uint32_t cost; /* cost of the request; 1 or more if present */
    uint32_t used; /* permits used; 0 or more */
    int64_t timeout_ns, lease_ns;
    uint32_t header_count;
    struct wr_api_request_header headers[WR_API_HEADERS_MAX];
};

struct wr_api_reader {
    const char *at, *end;
    const char *wrong; /* error message with a suggestion; NULL if there was no error */
    bool is_list, has_begun;
    size_t scratch_bytes;
    char scratch[WR_API_SCRATCH_BYTES];
};

void wr_api_reader_begin(struct wr_api_reader *ret_reader, struct wr_span body);

/* Continues at byte `at` of the body, after an object that was read before. */
void wr_api_reader_resume(struct wr_api_reader *ret_reader, struct wr_span body, size_t at, bool is_list);

/* Reads the next object. Returns false at the end, where *ret_ask stays unchanged, and on
 * errors. */
bool wr_api_reader_next(struct wr_api_reader *reader, struct wr_api_request *ret_ask);

/* Returns a header of a struct wr_api_request (`context`); for weir_request.header. */
const char *wr_api_request_header(void *context, const char *name, size_t index, size_t *ret_bytes);

#endif
