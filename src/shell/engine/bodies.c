/* SPDX-License-Identifier: MIT */
/* bodies.c - the names of files that bodies are saved in. */
#include "shell/engine/bodies.h"

#include "base/ascii.h"
#include "core/rules/http/field.h"

#include <openssl/evp.h>

#define FOLDER_MAX 100
#define DIGEST_BYTES 16 /* of the 32 that there are */

static const struct {
    const char *type, *ending;
} endings[] = {
    {"text/html", "html"},
    {"application/xhtml+xml", "xhtml"},
    {"text/plain", "txt"},
    {"text/css", "css"},
    {"text/csv", "csv"},
    {"text/markdown", "md"},
    {"text/javascript", "js"},
    {"application/javascript", "js"},
    {"application/json", "json"},
    {"application/ld+json", "json"},
    {"application/xml", "xml"},
    {"text/xml", "xml"},
    {"application/rss+xml", "xml"},
    {"application/atom+xml", "xml"},
    {"application/pdf", "pdf"},
    {"application/zip", "zip"},
    {"application/gzip", "gz"},
    {"image/png", "png"},
    {"image/jpeg", "jpg"},
    {"image/gif", "gif"},
    {"image/webp", "webp"},
    {"image/avif", "avif"},
    {"image/svg+xml", "svg"},
    {"image/x-icon", "ico"},
    {"font/woff2", "woff2"},
    {"audio/mpeg", "mp3"},
    {"video/mp4", "mp4"},
    {"video/webm", "webm"},
};

static const char *ending_of(struct wr_span content_type)
{
    struct wr_span type = wr_span_trim((struct wr_span){content_type.data, wr_span_find(content_type, ';')});
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (wr_field_is(type, endings[i].type))
            return endings[i].ending;
    return "bin";
}

/* Names of one word may mean devices, a dot at either end may hide or vanish: somewhere in this world. */
static void append_folder(struct wr_buf *buf, struct wr_span host)
{
    bool has_dot = false;
    for (size_t i = 0; i < host.bytes && i < FOLDER_MAX; i++) {
        char c = wr_ascii_lower(host.data[i]);
        bool is_edge = i == 0 || i + 1 == host.bytes || i + 1 == FOLDER_MAX;
        bool is_fine = wr_ascii_is_digit(c) || (c >= 'a' && c <= 'z') || (!is_edge && (c == '.' || c == '-'));
        has_dot |= c == '.' && is_fine;
        wr_buf_append_char(buf, is_fine ? c : '_');
    }
    wr_buf_append_string(buf, has_dot ? "" : "_");
}

void wr_body_name(const struct wr_url *url, struct wr_span content_type, char ret_name[WR_BODY_NAME_MAX + 1])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_name, WR_BODY_NAME_MAX + 1);
    append_folder(&buf, wr_url_part(url, url->host_at, url->path_at));
    wr_buf_append_char(&buf, '/');
    (void)EVP_Digest(url->text, url->fragment_at, digest, NULL, EVP_sha256(), NULL);
    for (int i = 0; i < DIGEST_BYTES; i++)
        wr_buf_append_hex(&buf, digest[i], 2, WR_HEX_SMALL);
    wr_buf_append_char(&buf, '.');
    wr_buf_append_string(&buf, ending_of(content_type));
}
