/* SPDX-License-Identifier: MIT */
/* host_key.c - Converts all spellings of a host to one key. Invalid hosts never become keys,
 * because keys are used in stores, in file names and on terminals. */
#include "base/address.h"
#include "base/ascii.h"
#include "base/error.h"

#include <weir/pace.h>

#define HOST_MAX 253 /* maximum length of a name in bytes (RFC 1035 3.1, as text) */
#define LABEL_MAX 63
#define PORT_MAX 65535

static int refuse_host_key(struct wr_span text, const char *wrong, const char *right)
{
    return wr_invalid_text("host", text.data, text.bytes, wrong, WR_NOWHERE, right);
}

/* Parses a port such as ":080" to 1 ... 65535. Returns 0 if there is no port ("" or ":"), and
 * UINT32_MAX if it is invalid. */
static uint32_t parse_key_port(struct wr_span text)
{
    uint32_t port = 0;
    if (text.bytes <= 1)
        return text.bytes == 0 || text.data[0] == ':' ? 0 : UINT32_MAX;
    for (size_t i = 1; i < text.bytes; i++) {
        if (!wr_ascii_is_digit(text.data[i]))
            return UINT32_MAX;
        port = port * 10 + (uint32_t)(text.data[i] - '0');
        if (port > PORT_MAX)
            return UINT32_MAX;
    }
    return text.data[0] == ':' && port > 0 ? port : UINT32_MAX;
}

/* Appends a name in lower case: letters, digits, '-' and '_' in labels of 1 ... 63 bytes. */
static int append_dns_name(struct wr_buf *buf, struct wr_span name, struct wr_span text)
{
    size_t label = 0;
    if (name.bytes > 0 && name.data[name.bytes - 1] == '.')
        name.bytes--;
    if (name.bytes == 0 || name.bytes > HOST_MAX)
        return refuse_host_key(text, name.bytes == 0 ? "no name" : "too long",
                               "use at most 253 bytes, such as www.example.org");
    for (size_t i = 0; i < name.bytes; i++) {
        char c = name.data[i];
        if (c != '.' && !wr_ascii_is_alnum(c) && c != '-' && c != '_')
            return refuse_host_key(text, "a character that host names cannot have",
                                   "use letters, digits, '-' and '.'; others as xn--");
        label = c == '.' ? 0 : label + 1;
        if (label > LABEL_MAX || (c == '.' && (i == 0 || name.data[i - 1] == '.')))
            return refuse_host_key(text, "a part that is empty or longer than 63 bytes",
                                   "use for example www.example.org");
        wr_buf_append_char(buf, wr_ascii_lower(c));
    }
    return label > 0 ? 0 : refuse_host_key(text, "an empty part", "use for example www.example.org");
}

static int append_v6_key(struct wr_buf *buf, struct wr_span address, struct wr_span text)
{
    struct wr_address v6;
    if (!wr_address_parse_v6(address, &v6))
        return refuse_host_key(text, "not an IPv6 address", "use for example [2001:db8::1]");
    wr_buf_append_char(buf, '[');
    wr_address_append_v6(buf, &v6);
    wr_buf_append_char(buf, ']');
    return 0;
}

/* Appends the host and stores the rest of the text, a port, in `*ret_rest`. */
static int append_host_key(struct wr_buf *buf, struct wr_span text, struct wr_span *ret_rest)
{
    bool is_v6 = text.bytes > 0 && text.data[0] == '[';
    size_t end = wr_span_find(text, is_v6 ? ']' : ':');
    if (is_v6 && end == text.bytes)
        return refuse_host_key(text, "no ]", "use for example [2001:db8::1]");
    *ret_rest = wr_span_after(text, end + is_v6);
    if (is_v6)
        return append_v6_key(buf, (struct wr_span){text.data + 1, end - 1}, text);
    return append_dns_name(buf, (struct wr_span){text.data, end}, text);
}

int weir_host_key(const char *host, size_t host_bytes, char *ret_key, size_t key_size, size_t *ret_bytes)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf buf;
    struct wr_span text = {host, host == NULL ? 0 : host_bytes}, rest = {NULL, 0};

    if (ret_key == NULL)
        return wr_invalid("ret_key is NULL; give room for WEIR_PACE_KEY_MAX + 1 bytes");
    wr_buf_init_fixed(&buf, key, sizeof key);
    int error = append_host_key(&buf, text, &rest);
    if (error != 0)
        return error;
    uint32_t port = parse_key_port(rest);
    if (port == UINT32_MAX)
        return refuse_host_key(text, "not a port", "use host:1 ... host:65535, and IPv6 in brackets");
    if (port != 0 && port != 80 && port != 443) {
        wr_buf_append_char(&buf, ':');
        wr_buf_append_u64(&buf, port);
    }
    if (buf.length >= key_size)
        return wr_failed(WEIR_E_SPACE);
    memcpy(ret_key, key, buf.length + 1);
    if (ret_bytes != NULL)
        *ret_bytes = buf.length;
    return 0;
}
