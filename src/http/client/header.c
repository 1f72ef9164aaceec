/* SPDX-License-Identifier: MIT */
/* header.c - checks and packs the header lines that a caller adds to a request. */
#include "base/ascii.h"
#include "base/error.h"
#include "core/web/http/field.h"
#include "core/web/url/percent.h"
#include "http/client/client_internal.h"

#define METHOD_MAX 20
#define USERINFO_MAX 1024

/* Fields that callers cannot set: the connection or an option of their own determines them. */
static const char *const refused[] = {
    "Connection", "Content-Length",    "Expect",  "Host",       "Keep-Alive", "TE",
    "Trailer",    "Transfer-Encoding", "Upgrade", "User-Agent",
};

bool wr_method_ok(const char *method)
{
    size_t bytes = 0;
    while (wr_ascii_is_alnum(method[bytes]) && bytes <= METHOD_MAX)
        bytes++;
    return bytes > 0 && bytes <= METHOD_MAX && method[bytes] == '\0';
}

bool wr_header_value_ok(const char *value)
{
    return wr_field_is_sound(wr_span_of("X"), wr_span_of(value));
}

struct wr_span wr_header_name(const char *line)
{
    size_t bytes = 0;
    while (wr_field_is_token_char(line[bytes]))
        bytes++;
    return (struct wr_span){line, bytes};
}

/* Reports an invalid header line by its name only, because the value may be secret. */
static int refuse_header_line(struct wr_span name, const char *wrong, const char *right)
{
    return wr_invalid_text("header", name.data, name.bytes, wrong, WR_NOWHERE, right);
}

static int check_header_line(const char *line)
{
    struct wr_span name = wr_header_name(line);
    if (name.bytes == 0 || line[name.bytes] != ':')
        return refuse_header_line(name, "not a name and a colon", "write it as \"Name: value\"");
    if (!wr_header_value_ok(line + name.bytes))
        return refuse_header_line(name, "a control character in its value", "a header is one line");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (wr_field_is(name, refused[i]))
            return refuse_header_line(name, "set by weir itself", "leave it out; the option agent sets the User-Agent");
    return 0;
}

int wr_headers_pack(struct wr_buf *buf, const char *const *lines)
{
    for (size_t count = 0; lines != NULL && *lines != NULL; lines++) {
        if (count++ == WR_HEADERS_MAX)
            return wr_invalid("there are more than 100 headers");
        if (check_header_line(*lines) != 0)
            return WEIR_E_INVAL;
        wr_buf_append(buf, *lines, strlen(*lines) + 1);
    }
    wr_buf_append_char(buf, '\0');
    return 0;
}

static bool same_name(struct wr_span a, struct wr_span b)
{
    return a.bytes == b.bytes && wr_ascii_same(a.data, b.data, a.bytes);
}

bool wr_headers_has(const char *block, struct wr_span name)
{
    const char *line = block != NULL && *block != '\0' ? block : NULL;
    while (line != NULL && !same_name(wr_header_name(line), name))
        line = wr_headers_next(line);
    return line != NULL;
}

/* Encodes as base64 (RFC 4648 4). */
static void append_base64(struct wr_buf *buf, const unsigned char *data, size_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i;
        uint32_t group = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                         (left > 2 ? (uint32_t)data[i + 2] : 0);
        wr_buf_append_char(buf, digits[group >> 18]);
        wr_buf_append_char(buf, digits[group >> 12 & 63]);
        wr_buf_append_char(buf, left > 1 ? digits[group >> 6 & 63] : '=');
        wr_buf_append_char(buf, left > 2 ? digits[group & 63] : '=');
    }
}

/* Encodes credentials as in RFC 7617 2. */
void wr_headers_append_basic(struct wr_buf *buf, struct wr_span userinfo)
{
    unsigned char plain[USERINFO_MAX + 1];
    size_t bytes = 0;
    bool has_colon = false;
    while (userinfo.bytes > 0 && bytes < USERINFO_MAX) {
        int byte = wr_percent_peek(userinfo);
        has_colon = has_colon || userinfo.data[0] == ':';
        plain[bytes++] = byte >= 0 ? (unsigned char)byte : (unsigned char)userinfo.data[0];
        userinfo = wr_span_after(userinfo, byte >= 0 ? 3 : 1);
    }
    if (!has_colon)
        plain[bytes++] = ':';
    wr_buf_append_string(buf, "Authorization: Basic ");
    append_base64(buf, plain, bytes);
    wr_buf_append_char(buf, '\0');
}

/* ---- response heads ---- */

void wr_fields_append(struct wr_buf *buf, const struct wr_head *head)
{
    struct wr_span name, value;
    for (size_t cursor = 0; wr_head_next(head, &cursor, &name, &value);) {
        wr_buf_append_span(buf, name);
        wr_buf_append_char(buf, '\0');
        wr_buf_append_span(buf, value);
        wr_buf_append_char(buf, '\0');
    }
}

const char *wr_fields_find(const char *fields, size_t bytes, const char *name)
{
    for (const char *field = fields, *end = fields + bytes; field < end;) {
        const char *value = field + strlen(field) + 1;
        if (wr_field_is(wr_span_of(field), name))
            return value;
        field = value + strlen(value) + 1;
    }
    return NULL;
}

struct wr_span wr_fields_value(const struct wr_buf *fields, const char *name)
{
    bool is_empty = fields == NULL || fields->length == 0;
    return wr_span_of(is_empty ? NULL : wr_fields_find(fields->bytes, fields->length, name));
}
