/* SPDX-License-Identifier: MIT */
/* ask.h - what the API is asked: a JSON object, read without a tree and without memory of its own.
 *
 *     wr_ask_begin(&reader, body);
 *     while (wr_ask_next(&reader, &ask))                 one object, or a list of them
 *         …
 *     if (reader.wrong != NULL) refuse(reader.wrong);
 *
 * Strict: a member that is not known, comes twice, or is of another kind is refused, and so are numbers that are not
 * whole. Strings are places in the body; those with escapes are copied to the reader's own room.
 */
#ifndef WR_SHELL_SERVE_ASK_H
#define WR_SHELL_SERVE_ASK_H

#include "base/span.h"

#include <stdint.h>

#define WR_ASK_HEADERS_MAX 64
#define WR_ASK_SCRATCH 16384 /* of strings with escapes, in one object */

struct wr_ask_header {
    struct wr_span name, value;
};

/* Members, in the order of the struct. */
enum {
    WR_ASK_METHOD = 1 << 0,
    WR_ASK_TARGET = 1 << 1,
    WR_ASK_HOST = 1 << 2,
    WR_ASK_CLIENT = 1 << 3,
    WR_ASK_RULE = 1 << 4,
    WR_ASK_KEY = 1 << 5,
    WR_ASK_HOLD = 1 << 6,
    WR_ASK_COST = 1 << 7,
    WR_ASK_USED = 1 << 8,
    WR_ASK_TIMEOUT = 1 << 9,
    WR_ASK_LEASE = 1 << 10,
    WR_ASK_HEADERS = 1 << 11,
};
#define WR_ASK_REQUEST \
    (WR_ASK_METHOD | WR_ASK_TARGET | WR_ASK_HOST | WR_ASK_CLIENT | WR_ASK_HEADERS | WR_ASK_COST) /* describe one */

/* A string that is not there has no data; a number that is not there is 0. */
struct wr_ask {
    unsigned members;                            /* that are there: WR_ASK_… */
    struct wr_span method, target, host, client; /* a request */
    struct wr_span rule, key;                    /* or a rule and a key */
    struct wr_span hold;
    uint32_t cost; /* 1 … */
    uint32_t used; /* 0 … */
    int64_t timeout_ns, lease_ns;
    uint32_t header_count;
    struct wr_ask_header headers[WR_ASK_HEADERS_MAX];
};

struct wr_ask_reader {
    const char *at, *end;
    const char *wrong; /* what, and what would be right; NULL: nothing */
    bool is_list, has_begun;
    size_t scratch_bytes;
    char scratch[WR_ASK_SCRATCH];
};

void wr_ask_begin(struct wr_ask_reader *ret_reader, struct wr_span body);

/* Goes on at byte `at` of the body, behind an object that was read before. */
void wr_ask_go_on(struct wr_ask_reader *ret_reader, struct wr_span body, size_t at, bool is_list);

/* False at the end, which leaves *ret_ask alone, and if something is wrong. */
bool wr_ask_next(struct wr_ask_reader *reader, struct wr_ask *ret_ask);

/* For weir_request.header. */
const char *wr_ask_header(void *context, const char *name, size_t index, size_t *ret_bytes);

#endif
