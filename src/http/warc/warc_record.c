/* SPDX-License-Identifier: MIT */
/* warc_record.c - writes a record: its fields and its block, gzipped. */
#include "http/warc/warc_record.h"

#include "base/alloc.h"

#include <sys/random.h>
#include <time.h>
#include <weir/limit.h>

#define FIELDS_MAX ((size_t)64 << 10)
#define HEAD_MAX ((size_t)1 << 20)
#define PIECE ((size_t)1 << 30)

int wr_warc_new(const weir_allocator *allocator, struct wr_warc **ret_warc)
{
    struct wr_warc *warc = wr_alloc(allocator, sizeof *warc, _Alignof(struct wr_warc));
    if (warc == NULL)
        return WEIR_E_NOMEM;
    *warc = (struct wr_warc){.allocator = allocator, .sha = EVP_MD_CTX_new()};
    wr_buf_init(&warc->fields, allocator, FIELDS_MAX);
    wr_buf_init(&warc->head, allocator, HEAD_MAX);
    bool packs = deflateInit2(&warc->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + WR_WARC_GZIP,
                              MAX_MEM_LEVEL - 1, Z_DEFAULT_STRATEGY) == Z_OK;
    if (packs && warc->sha != NULL && EVP_DigestInit_ex(warc->sha, EVP_sha1(), NULL) == 1) {
        *ret_warc = warc;
        return 0;
    }
    wr_warc_free(warc);
    return WEIR_E_NOMEM;
}

void wr_warc_free(struct wr_warc *warc)
{
    if (warc == NULL)
        return;
    (void)deflateEnd(&warc->deflate); /* allowed even if it was never initialised */
    EVP_MD_CTX_free(warc->sha);
    wr_buf_release(&warc->fields);
    wr_buf_release(&warc->head);
    wr_free(warc->allocator, warc, sizeof *warc, _Alignof(struct wr_warc));
}

/* ---- digests --------------------------------------------------------------------------------- */

/* Computes SHA-1. It cannot fail, because the context was initialised once. */
static void compute_digest(struct wr_warc *warc, struct wr_span first, struct wr_span second,
                           uint8_t ret_digest[WR_WARC_DIGEST])
{
    (void)EVP_DigestInit_ex(warc->sha, NULL, NULL);
    (void)EVP_DigestUpdate(warc->sha, first.data, first.bytes);
    (void)EVP_DigestUpdate(warc->sha, second.data, second.bytes);
    (void)EVP_DigestFinal_ex(warc->sha, ret_digest, NULL);
}

void wr_warc_payload_digest(struct wr_warc *warc, struct wr_span body, uint8_t ret_digest[WR_WARC_DIGEST])
{
    compute_digest(warc, body, (struct wr_span){NULL, 0}, ret_digest);
}

/* Appends Base32 (RFC 4648). Every 5 bytes become 8 letters; a digest has 4 times 5 bytes. */
static void append_base32(struct wr_buf *buf, const uint8_t digest[WR_WARC_DIGEST])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    for (size_t i = 0; i < WR_WARC_DIGEST; i += 5) {
        uint64_t bits = 0;
        for (size_t j = 0; j < 5; j++)
            bits = bits << 8 | digest[i + j];
        for (int at = 35; at >= 0; at -= 5)
            wr_buf_append_char(buf, letters[bits >> at & 31]);
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

int wr_warc_record_id(char ret_id[WR_WARC_ID])
{
    uint8_t bytes[16];
    struct wr_buf buf;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return WEIR_E_SYSTEM;
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40); /* RFC 9562: version 4, random */
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    wr_buf_init_fixed(&buf, ret_id, WR_WARC_ID);
    wr_buf_append_string(&buf, "<urn:uuid:");
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            wr_buf_append_char(&buf, '-');
        wr_buf_append_hex(&buf, bytes[i], 2, WR_HEX_SMALL);
    }
    wr_buf_append_char(&buf, '>');
    return 0;
}

static void append_two(struct wr_buf *buf, char before, int number)
{
    wr_buf_append_char(buf, before);
    wr_buf_append_char(buf, (char)('0' + number / 10 % 10));
    wr_buf_append_char(buf, (char)('0' + number % 10));
}

/* Appends "2026-11-15T22:19:33.250Z". It has milliseconds, because a page may redirect to itself
 * within a second. */
void wr_warc_record_date(struct wr_buf *buf, int64_t wall_at)
{
    time_t seconds = (time_t)(wall_at / WEIR_SECOND);
    int ms = (int)(wall_at / WEIR_MILLISECOND % 1000);
    struct tm date = {.tm_year = 70};
    (void)gmtime_r(&seconds, &date);
    wr_buf_append_u64(buf, (uint64_t)date.tm_year + 1900);
    append_two(buf, '-', date.tm_mon + 1);
    append_two(buf, '-', date.tm_mday);
    append_two(buf, 'T', date.tm_hour);
    append_two(buf, ':', date.tm_min);
    append_two(buf, ':', date.tm_sec);
    wr_buf_append_char(buf, '.');
    wr_buf_append_char(buf, (char)('0' + ms / 100));
    wr_buf_append_char(buf, (char)('0' + ms / 10 % 10));
    wr_buf_append_char(buf, (char)('0' + ms % 10));
    wr_buf_append_char(buf, 'Z');
}

void wr_warc_record_field(struct wr_warc *warc, const char *name, struct wr_span value)
{
    wr_buf_append_string(&warc->fields, name);
    wr_buf_append_string(&warc->fields, ": ");
    wr_buf_append_span(&warc->fields, value);
    wr_buf_append_string(&warc->fields, "\r\n");
}

void wr_warc_record_digest(struct wr_warc *warc, const char *name, const uint8_t digest[WR_WARC_DIGEST])
{
    wr_buf_append_string(&warc->fields, name);
    wr_buf_append_string(&warc->fields, ": sha1:");
    append_base32(&warc->fields, digest);
    wr_buf_append_string(&warc->fields, "\r\n");
}

void wr_warc_record_begin(struct wr_warc *warc, const char *type, const char *id, int64_t wall_at)
{
    struct wr_buf *fields = &warc->fields;
    wr_buf_clear(fields);
    wr_buf_append_string(fields, "WARC/1.1\r\n");
    wr_warc_record_field(warc, "WARC-Type", wr_span_of(type));
    wr_warc_record_field(warc, "WARC-Record-ID", wr_span_of(id));
    wr_buf_append_string(fields, "WARC-Date: ");
    wr_warc_record_date(fields, wall_at);
    wr_buf_append_string(fields, "\r\n");
}

/* ---- compression ----------------------------------------------------------------------------- */

static void deflate_piece(struct wr_warc *warc, struct wr_span data, bool is_last, struct wr_buf *buf)
{
    unsigned char out[16384];
    z_stream *deflate_to = &warc->deflate;
    do {
        size_t piece = data.bytes < PIECE ? data.bytes : PIECE;
        deflate_to->next_in = (unsigned char *)data.data;
        deflate_to->avail_in = (uInt)piece;
        data = piece > 0 ? wr_span_after(data, piece) : data;
        do {
            deflate_to->next_out = out;
            deflate_to->avail_out = sizeof out;
            (void)deflate(deflate_to, is_last && data.bytes == 0 ? Z_FINISH : Z_NO_FLUSH);
            wr_buf_append(buf, out, sizeof out - deflate_to->avail_out);
        } while (deflate_to->avail_out == 0);
    } while (data.bytes > 0);
}

int wr_warc_record_end(struct wr_warc *warc, struct wr_span first, struct wr_span second, struct wr_buf *buf)
{
    uint8_t digest[WR_WARC_DIGEST];
    struct wr_buf *fields = &warc->fields;
    compute_digest(warc, first, second, digest);
    wr_warc_record_digest(warc, "WARC-Block-Digest", digest);
    wr_buf_append_string(fields, "Content-Length: ");
    wr_buf_append_u64(fields, first.bytes + second.bytes);
    wr_buf_append_string(fields, "\r\n\r\n");
    if (fields->error != 0)
        return fields->error;
    (void)deflateReset(&warc->deflate);
    deflate_piece(warc, wr_buf_from(fields, 0), false, buf);
    deflate_piece(warc, first, false, buf);
    deflate_piece(warc, second, false, buf);
    deflate_piece(warc, wr_span_of("\r\n\r\n"), true, buf);
    return buf->error;
}
