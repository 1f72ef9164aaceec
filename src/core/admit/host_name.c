/* SPDX-License-Identifier: MIT */
/* host_name.c - normalises the name of a host to one spelling. */
#include "core/admit/host_name.h"

#include "base/address.h"
#include "base/ascii.h"
#include "base/parse.h"

/* Removes ":80", or just ':' (RFC 3986 3.2.3), from the end. Returns false if the text after the
 * last ':' is not a port. */
static bool drop_port(struct wr_span *host)
{
    size_t bytes = host->bytes;
    uint64_t port;

    while (bytes > 0 && host->data[bytes - 1] != ':' && host->data[bytes - 1] != ']')
        bytes--;
    if (bytes == 0 || host->data[bytes - 1] == ']')
        return bytes == 0 || bytes == host->bytes;
    struct wr_span digits = wr_span_after(*host, bytes);
    host->bytes = bytes - 1;
    return digits.bytes == 0 || (digits.bytes <= 5 && wr_scan_u64(digits.data, digits.bytes, 0, 65535, &port));
}

static weir_request_fault append_v6_host(struct wr_buf *buf, struct wr_span host)
{
    struct wr_address address;
    struct wr_span text = {host.data + 1, host.bytes - 2};

    if (host.bytes < 2 || host.data[host.bytes - 1] != ']' || !wr_address_parse_v6(text, &address))
        return WEIR_FAULT_HOST;
    wr_buf_append_char(buf, '[');
    wr_address_append_v6(buf, &address);
    wr_buf_append_char(buf, ']');
    return WEIR_FAULT_NONE;
}

/* Returns true if URL parsers take a name with this last label for an IPv4 address: "1", "0x7f". */
static bool is_v4_number(struct wr_span label)
{
    if (label.bytes > 1 && label.data[0] == '0' && wr_ascii_lower(label.data[1]) == 'x')
        return true;
    for (size_t i = 0; i < label.bytes; i++) {
        if (!wr_ascii_is_digit(label.data[i]))
            return false;
    }
    return true;
}

weir_request_fault wr_host_append(struct wr_buf *buf, struct wr_span host)
{
    struct wr_address address;
    struct wr_span label = {host.data, 0};

    if (host.bytes == 0)
        return WEIR_FAULT_MISSING;
    if (!drop_port(&host))
        return WEIR_FAULT_HOST;
    if (host.bytes > 0 && host.data[0] == '[')
        return append_v6_host(buf, host);
    if (host.bytes > 1 && host.data[host.bytes - 1] == '.')
        host.bytes--; /* the dot of the DNS root, which resolvers drop */
    if (host.bytes > WR_HOST_MAX)
        return WEIR_FAULT_LONG;
    for (size_t i = 0; i < host.bytes; i++) {
        char c = host.data[i];
        if (c == '.' ? label.bytes == 0 : !(wr_ascii_is_alnum(c) || c == '-' || c == '_'))
            return WEIR_FAULT_HOST;
        label = c == '.' ? (struct wr_span){host.data + i + 1, 0} : (struct wr_span){label.data, label.bytes + 1};
        wr_buf_append_char(buf, wr_ascii_lower(c));
    }
    if (label.bytes == 0 || (is_v4_number(label) && !(wr_address_parse(host, &address) && wr_address_is_v4(&address))))
        return WEIR_FAULT_HOST;
    return buf->error != 0 ? WEIR_FAULT_LONG : WEIR_FAULT_NONE;
}
