/* SPDX-License-Identifier: MIT */
/* warc.h - writes requests and responses as gzipped records of an archive (WARC 1.1, ISO 28500).
 *
 *     wr_warc_new(allocator, &warc);                      one per thread
 *     wr_warc_append_info(warc, &info, &buf);             the first record of a file
 *     wr_warc_payload_digest(warc, body, payload);               digest, to look it up in the archive
 *     wr_warc_append_exchange(warc, &exchange, &buf);     a response (or a revisit) and its request
 *     wr_warc_free(warc);
 *
 * Each record is its own gzip member, so that readers can start at its offset. Digests are SHA-1 in
 * Base32, as is usual in archives.
 *
 * A body is stored decoded, without chunks and codings (gzip, br, ...). So that the stored head
 * matches it, Transfer-Encoding and Content-Encoding get the prefix "X-Archive-Orig-", as does the
 * Content-Length of a coded body, and the real length is added. HTTP/2 is written as HTTP/1.1 with
 * WARC-Protocol: h2.
 */
#ifndef WR_HTTP_WARC_WARC_H
#define WR_HTTP_WARC_WARC_H

#include "base/address.h"
#include "base/hash.h"

#include <weir/memory.h>

#define WR_WARC_DIGEST 20 /* bytes of a SHA-1 digest */

struct wr_warc;

/* Makes a writer. Returns WEIR_E_NOMEM if there is no memory. */
int wr_warc_new(const weir_allocator *allocator, struct wr_warc **ret_warc);
void wr_warc_free(struct wr_warc *warc); /* NULL is allowed. */

/* The description of an archive file. */
struct wr_warc_info {
    struct wr_span name; /* name of the file, without folders */
    int64_t wall_at;
    struct wr_span software, agent;
    struct wr_span part_of; /* collection of the file, for example "job 3 of ..." */
    bool obeys_robots;
};

/* Appends the description. Returns the errors of wr_warc_append_exchange. */
int wr_warc_append_info(struct wr_warc *warc, const struct wr_warc_info *info, struct wr_buf *buf);

/* Returns true if the bytes `first` of a file have a description with this `part_of`. */
bool wr_warc_is_part_of(struct wr_span first, struct wr_span part_of);

void wr_warc_payload_digest(struct wr_warc *warc, struct wr_span body, uint8_t ret_digest[WR_WARC_DIGEST]);

/* The earlier record with the same payload. */
struct wr_warc_original {
    struct wr_span url;
    int64_t wall_at;
};

struct wr_warc_exchange {
    struct wr_span url;               /* URL without user and fragment */
    int64_t wall_at;                  /* time of the request */
    const struct wr_address *address; /* address of the server; NULL: unknown */
    /* head of the request, without secrets; empty: no request record */
    struct wr_span request;
    /* lines of the final head as received, with the empty line */
    struct wr_span head;
    struct wr_span body;   /* decoded body */
    const uint8_t *digest; /* wr_warc_payload_digest of the body */
    /* "length", "time", "disconnect", "unspecified"; NULL: complete */
    const char *truncated;
    bool is_http2; /* received by HTTP/2 */
    /* status 304: a revisit of what the server sent before */
    bool is_unchanged;
    const struct wr_warc_original *original; /* not NULL: a revisit of this record */
};

/* Appends a response or revisit, and its request. Returns WEIR_E_NOMEM; WEIR_E_SPACE (the buffer's
 * limit); WEIR_E_SYSTEM (no random numbers). Then discard the buffer. */
int wr_warc_append_exchange(struct wr_warc *warc, const struct wr_warc_exchange *exchange, struct wr_buf *buf);

/* ---- payloads in the archive (payload_table.c)
 * -------------------------------------------------------- */

#define WR_PAYLOAD_TABLE_SLOTS 65536 /* remembered payloads; a new one replaces that of its slot */
#define WR_PAYLOAD_URL_MAX 1024      /* bytes; payloads with longer URLs are not remembered */
#define WR_PAYLOAD_BYTES_MIN 256     /* bytes; a revisit record of a smaller payload saves nothing */

struct wr_payload_table;

/* Identifies a payload. An attacker can make two payloads with the same SHA-1, but not with the
 * same hash under a secret key. */
struct wr_payload_key {
    uint8_t digest[WR_WARC_DIGEST];
    uint64_t keyed;
    uint64_t bytes;
};

/* Makes a table of payloads. Takes at most some 70 MB, with URLs of the greatest length. Returns
 * WEIR_E_NOMEM. */
int wr_payload_table_new(const weir_allocator *allocator, struct wr_payload_table **ret_seen);
void wr_payload_table_free(struct wr_payload_table *seen);
/* Returns false if the payload is unknown. The URL is valid until the next wr_payload_table_put. */
bool wr_payload_table_find(const struct wr_payload_table *seen, const struct wr_payload_key *key,
                           struct wr_warc_original *ret_original);
/* Remembers a payload in place of another. Does nothing if there is no memory. */
void wr_payload_table_put(struct wr_payload_table *seen, const struct wr_payload_key *key,
                          const struct wr_warc_original *original);

#endif
