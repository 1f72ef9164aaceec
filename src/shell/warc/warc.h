/* SPDX-License-Identifier: MIT */
/* warc.h - records of an archive (WARC 1.1, ISO 28500): what was sent and what came, in; gzipped records, out.
 *
 *     wr_warc_new(allocator, &warc);                      for one thread
 *     wr_warc_append_info(warc, &info, &buf);             the first record of a file
 *     wr_warc_payload(warc, body, payload);               its digest: is it in the archive already?
 *     wr_warc_append_exchange(warc, &exchange, &buf);     a response (or a revisit of one) and its request
 *     wr_warc_free(warc);
 *
 * Each record is a gzip member of its own, so that readers find it by its offset alone. Digests are SHA-1 in Base32, as
 * all archives have them.
 *
 * A body is kept as it was read: chunks and codings (gzip, br, …) are taken off. So that the head that is kept is true
 * of it, Transfer-Encoding and Content-Encoding get "X-Archive-Orig-" in front of their names, as does the length that
 * was of the coded body, and the real one is added. HTTP/2 is written as HTTP/1.1, with WARC-Protocol: h2.
 */
#ifndef WR_SHELL_WARC_WARC_H
#define WR_SHELL_WARC_WARC_H

#include "base/address.h"
#include "base/hash.h"

#include <weir/memory.h>

#define WR_WARC_DIGEST 20 /* bytes of SHA-1 */

struct wr_warc;

/* WEIR_E_NOMEM. */
int wr_warc_new(const weir_allocator *allocator, struct wr_warc **ret_warc);
void wr_warc_free(struct wr_warc *warc); /* NULL is fine */

/* What a file says of itself. */
struct wr_warc_info {
    struct wr_span name; /* of the file, without folders */
    int64_t wall_at;
    struct wr_span software, agent;
    struct wr_span part_of; /* "job 3 of …" */
    bool obeys_robots;
};

/* Errors as of wr_warc_append_exchange. */
int wr_warc_append_info(struct wr_warc *warc, const struct wr_warc_info *info, struct wr_buf *buf);

/* Whether what a file begins with is such a record, and says that it is part of this. */
bool wr_warc_is_part_of(struct wr_span first, struct wr_span part_of);

void wr_warc_payload(struct wr_warc *warc, struct wr_span body, uint8_t ret_digest[WR_WARC_DIGEST]);

/* Where the same payload is. */
struct wr_warc_original {
    struct wr_span url;
    int64_t wall_at;
};

struct wr_warc_exchange {
    struct wr_span url;                      /* without user and fragment */
    int64_t wall_at;                         /* when it was sent */
    const struct wr_address *address;        /* of the server; NULL: not known */
    struct wr_span request;                  /* its head, without secrets; empty: no record of it */
    struct wr_span head;                     /* lines of the final head as they came, with the empty one */
    struct wr_span body;                     /* decoded */
    const uint8_t *digest;                   /* wr_warc_payload of it */
    const char *truncated;                   /* "length", "time", "disconnect", "unspecified"; NULL: it is whole */
    bool is_http2;                           /* it came by HTTP/2 */
    bool is_unchanged;                       /* 304: a revisit of what the server had sent before */
    const struct wr_warc_original *original; /* not NULL: a revisit of this */
};

/* WEIR_E_NOMEM, WEIR_E_SPACE (the buffer's), WEIR_E_SYSTEM (no random numbers); the buffer is then to be thrown away.
 */
int wr_warc_append_exchange(struct wr_warc *warc, const struct wr_warc_exchange *exchange, struct wr_buf *buf);

/* ---- what is in the archive already (seen.c) ---- */

#define WR_SEEN_SLOTS 65536  /* payloads that are remembered, one for each slot: a newer one takes the place */
#define WR_SEEN_URL_MAX 1024 /* bytes: those with longer URLs are not */
#define WR_SEEN_LEAST 256    /* bytes: to say where a smaller one is takes as much room */

struct wr_seen;

/* What a payload is known by. SHA-1 can be deceived; a hash under a secret cannot. */
struct wr_seen_key {
    uint8_t digest[WR_WARC_DIGEST];
    uint64_t keyed;
    uint64_t bytes;
};

/* At most some 70 MB, if all URLs were as long as they may be. WEIR_E_NOMEM. */
int wr_seen_new(const weir_allocator *allocator, struct wr_seen **ret_seen);
void wr_seen_free(struct wr_seen *seen);
/* False: not known. The URL is good until the next wr_seen_put. */
bool wr_seen_find(const struct wr_seen *seen, const struct wr_seen_key *key, struct wr_warc_original *ret_original);
/* Forgets another one for it; without memory, this one. */
void wr_seen_put(struct wr_seen *seen, const struct wr_seen_key *key, const struct wr_warc_original *original);

#endif
