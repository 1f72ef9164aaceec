/* SPDX-License-Identifier: MIT */
/* url_host.c - the host parser of the URL standard (3.5), for http and https.
 *
 *     raw -- no tabs --+-- "[...]" ------------------------------------------------------- IPv6
 *                      `-- percent-decoded -- to ASCII -- checked --+-- ends in a number -- IPv4
 *                                                                   `-- does not ---------- name
 */
#include "core/web/url/url_host.h"

#include "base/address.h"
#include "base/ascii.h"
#include "core/web/url/percent.h"

#define LABEL_MAX 63
#define RAW_MAX 1024 /* bytes of a host before conversion to ASCII; longer ones cannot give 253 */
#define V4_PARTS 4
#define V4_VALUES (UINT64_C(1) << 32)

static void append_without_ignored(struct wr_buf *buf, struct wr_span raw)
{
    for (size_t i = 0; i < raw.bytes; i++)
        if (!wr_url_ignores(raw.data[i]))
            wr_buf_append_char(buf, raw.data[i]);
}

static void append_decoded(struct wr_buf *buf, struct wr_span text)
{
    while (text.bytes > 0) {
        int byte = wr_percent_peek(text);
        wr_buf_append_char(buf, byte < 0 ? text.data[0] : (char)byte);
        text = wr_span_after(text, byte < 0 ? 1 : 3);
    }
}

/* Removes the first label and its '.' from `name`, and returns the label. */
static struct wr_span take_label(struct wr_span *name)
{
    struct wr_span label = {name->data, wr_span_find(*name, '.')};
    *name = wr_span_after(*name, label.bytes < name->bytes ? label.bytes + 1 : label.bytes);
    return label;
}

/* ---- names ---- */

/* Returns true if the domain needs the IDNA conversion. ASCII without "xn--" only needs lower case
 * (3.3, domain to ASCII, step 1). */
static bool needs_idna(struct wr_span domain)
{
    for (size_t i = 0; i < domain.bytes; i++)
        if ((unsigned char)domain.data[i] >= 0x80)
            return true;
    while (domain.bytes > 0) {
        struct wr_span label = take_label(&domain);
        if (label.bytes >= 4 && wr_ascii_same(label.data, "xn--", 4))
            return true;
    }
    return false;
}

static bool is_name_byte(char c)
{
    return wr_ascii_is_alnum(c) || c == '-' || c == '_' || c == '.';
}

static bool has_only_name_bytes(struct wr_span text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (!is_name_byte(text.data[i]))
            return false;
    return true;
}

/* Returns false if the domain has an ASCII character that names cannot have. Such a character stays
 * invalid after the conversion, which can therefore be skipped. */
static bool may_become_name(struct wr_span domain)
{
    for (size_t i = 0; i < domain.bytes; i++)
        if ((unsigned char)domain.data[i] < 0x80 && !is_name_byte(domain.data[i]))
            return false;
    return true;
}

static enum wr_url_fault append_ascii(struct wr_buf *buf, struct wr_span domain, const struct wr_idna *idna)
{
    if (!may_become_name(domain))
        return WR_URL_HOST;
    if (!needs_idna(domain) || (idna == NULL && has_only_name_bytes(domain))) {
        for (size_t i = 0; i < domain.bytes; i++)
            wr_buf_append_char(buf, wr_ascii_lower(domain.data[i]));
        return WR_URL_OK;
    }
    if (idna == NULL)
        return WR_URL_IDNA;
    int error = idna->to_ascii(idna->context, domain, buf);
    if (error != 0)
        return error == WEIR_E_NOMEM ? WR_URL_MEMORY : WR_URL_IDNA;
    return has_only_name_bytes((struct wr_span){buf->bytes, buf->length}) ? WR_URL_OK : WR_URL_HOST;
}

/* Returns true if the labels have valid lengths. One trailing dot (the DNS root) is allowed. */
static bool has_valid_labels(struct wr_span name)
{
    if (name.data[name.bytes - 1] == '.')
        name.bytes--;
    if (name.bytes == 0 || name.bytes > WR_URL_HOST_MAX || name.data[name.bytes - 1] == '.')
        return false;
    while (name.bytes > 0) {
        struct wr_span label = take_label(&name);
        if (label.bytes == 0 || label.bytes > LABEL_MAX)
            return false;
    }
    return true;
}

/* ---- IPv4 ---- */

/* Parses one part of an IPv4 address: "10", "0x1f", "017" or "0x" (0). Numbers too large for an
 * address become V4_VALUES. Returns false if `text`, which is not empty, is not a number. */
static bool parse_ipv4_part(struct wr_span text, uint64_t *ret_number)
{
    unsigned radix = 10;
    uint64_t number = 0;

    if (text.bytes >= 2 && text.data[0] == '0') {
        bool is_hex = wr_ascii_lower(text.data[1]) == 'x';
        radix = is_hex ? 16 : 8;
        text = wr_span_after(text, is_hex ? 2 : 1);
    }
    for (size_t i = 0; i < text.bytes; i++) {
        int digit = wr_ascii_hex_value(text.data[i]);
        if (digit < 0 || (unsigned)digit >= radix)
            return false;
        number = number * radix + (unsigned)digit;
        if (number > V4_VALUES)
            number = V4_VALUES;
    }
    *ret_number = number;
    return true;
}

static bool is_digits(struct wr_span text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (!wr_ascii_is_digit(text.data[i]))
            return false;
    return text.bytes > 0;
}

/* Returns true if the last label is a number; such a host must be an IPv4 address (3.5, ends in a
 * number checker). */
static bool ends_in_number(struct wr_span name)
{
    uint64_t number;
    struct wr_span last = {NULL, 0};

    while (name.bytes > 0)
        last = take_label(&name);
    return is_digits(last) || parse_ipv4_part(last, &number);
}

/* Parses "127.0.0.1", "127.1", "0x7f000001" or "017700000001": the last part fills all missing
 * bytes. */
static bool parse_url_ipv4(struct wr_span text, uint64_t *ret_address)
{
    uint64_t address = 0;

    for (unsigned parts = 1; text.bytes > 0; parts++) {
        uint64_t number;
        struct wr_span part = take_label(&text);
        if (parts > V4_PARTS || !parse_ipv4_part(part, &number))
            return false;
        if (text.bytes > 0 && number > 255)
            return false;
        unsigned missing = text.bytes > 0 ? V4_PARTS - parts : 0;
        if (text.bytes == 0 && number >= V4_VALUES >> (8 * (parts - 1)))
            return false;
        address |= number << (8 * missing);
    }
    *ret_address = address;
    return true;
}

static enum wr_url_fault append_url_ipv4(struct wr_buf *buf, struct wr_span name)
{
    uint64_t address;

    if (!parse_url_ipv4(name, &address))
        return WR_URL_V4;
    for (unsigned shift = 32; shift > 0; shift -= 8) {
        wr_buf_append_u64(buf, address >> (shift - 8) & 255);
        if (shift > 8)
            wr_buf_append_char(buf, '.');
    }
    return WR_URL_OK;
}

/* ---- IPv6 ---- */

static enum wr_url_fault append_url_ipv6(struct wr_buf *buf, struct wr_span text)
{
    struct wr_address address;

    if (text.bytes < 2 || text.data[text.bytes - 1] != ']')
        return WR_URL_V6;
    if (!wr_address_parse_v6((struct wr_span){text.data + 1, text.bytes - 2}, &address))
        return WR_URL_V6;
    wr_buf_append_char(buf, '[');
    wr_address_append_v6(buf, &address);
    wr_buf_append_char(buf, ']');
    return WR_URL_OK;
}

/* ---- fast path: hosts that need no conversion ---- */

/* Returns true for labels of small letters, digits and dashes without "xn--", the last of which
 * starts with a letter. */
static bool is_plain_name(struct wr_span raw)
{
    size_t label = 0, last = 0;

    for (size_t i = 0; i <= raw.bytes; i++) {
        char c = i < raw.bytes ? raw.data[i] : '.';
        if ((c >= 'a' && c <= 'z') || wr_ascii_is_digit(c) || c == '-')
            continue;
        if (c != '.' || i == label || i - label > LABEL_MAX ||
            (i - label >= 4 && memcmp(raw.data + label, "xn--", 4) == 0))
            return false;
        last = label;
        label = i + 1;
    }
    return raw.bytes <= WR_URL_HOST_MAX && raw.data[last] >= 'a' && raw.data[last] <= 'z';
}

/* Returns true for four decimal numbers up to 255 without leading zeros. */
static bool is_plain_ipv4(struct wr_span raw)
{
    unsigned number = 0, parts = 0;
    size_t part = 0;

    for (size_t i = 0; i <= raw.bytes; i++) {
        char c = i < raw.bytes ? raw.data[i] : '.';
        if (wr_ascii_is_digit(c) && i - part < 3) {
            number = number * 10 + (unsigned)(c - '0');
            continue;
        }
        if (c != '.' || i == part || number > 255 || (i - part > 1 && raw.data[part] == '0'))
            return false;
        parts++;
        number = 0;
        part = i + 1;
    }
    return parts == V4_PARTS;
}

/* ---- any host ---- */

static enum wr_url_fault append_url_name(struct wr_buf *buf, struct wr_span domain, const struct wr_idna *idna)
{
    char memory[RAW_MAX];
    struct wr_buf ascii;

    wr_buf_init_fixed(&ascii, memory, sizeof memory);
    enum wr_url_fault fault = append_ascii(&ascii, domain, idna);
    if (fault != WR_URL_OK)
        return fault;
    struct wr_span name = {memory, ascii.length};
    if (name.bytes == 0)
        return WR_URL_NO_HOST;
    if (ascii.error != 0 || !has_valid_labels(name))
        return WR_URL_NAME;
    if (ends_in_number(name))
        return append_url_ipv4(buf, name);
    wr_buf_append_span(buf, name);
    return WR_URL_OK;
}

enum wr_url_fault wr_url_host_append(struct wr_buf *buf, struct wr_span raw, const struct wr_idna *idna)
{
    char memory[RAW_MAX * 3], decoded_memory[RAW_MAX];
    struct wr_buf stripped, decoded;

    if (is_plain_name(raw) || is_plain_ipv4(raw)) {
        wr_buf_append_span(buf, raw);
        return WR_URL_OK;
    }
    wr_buf_init_fixed(&stripped, memory, sizeof memory);
    append_without_ignored(&stripped, raw);
    if (stripped.length == 0)
        return WR_URL_NO_HOST;
    if (stripped.error != 0)
        return WR_URL_NAME;
    if (memory[0] == '[')
        return append_url_ipv6(buf, (struct wr_span){memory, stripped.length});
    wr_buf_init_fixed(&decoded, decoded_memory, sizeof decoded_memory);
    append_decoded(&decoded, (struct wr_span){memory, stripped.length});
    if (decoded.error != 0)
        return WR_URL_NAME;
    return append_url_name(buf, (struct wr_span){decoded_memory, decoded.length}, idna);
}
