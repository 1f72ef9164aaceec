/* SPDX-License-Identifier: MIT */
/* warc_record.h - writes a record: its fields and its block, gzipped. */
#ifndef WR_HTTP_WARC_WARC_RECORD_H
#define WR_HTTP_WARC_WARC_RECORD_H

#include "http/warc/warc.h"

#include <openssl/evp.h>
#include <zlib.h>

struct wr_warc {
    const weir_allocator *allocator;
    z_stream deflate;
    EVP_MD_CTX *sha;
    struct wr_buf fields, head;
};

#define WR_WARC_GZIP 16 /* added to the window bits: with a gzip header and trailer */
#define WR_WARC_ID 48   /* bytes of "<urn:uuid:...>" with its NUL */

/* Makes a random record id. Returns WEIR_E_SYSTEM if there are no random numbers. */
int wr_warc_record_id(char ret_id[WR_WARC_ID]);
/* Starts the fields of a record. The caller adds more to warc->fields. */
void wr_warc_record_begin(struct wr_warc *warc, const char *type, const char *id, int64_t wall_at);
void wr_warc_record_field(struct wr_warc *warc, const char *name, struct wr_span value);
void wr_warc_record_digest(struct wr_warc *warc, const char *name, const uint8_t digest[WR_WARC_DIGEST]);
void wr_warc_record_date(struct wr_buf *buf, int64_t wall_at);
/* Ends a record whose block is `first` and then `second`. Appends it gzipped to `buf`. */
int wr_warc_record_end(struct wr_warc *warc, struct wr_span first, struct wr_span second, struct wr_buf *buf);

#endif
