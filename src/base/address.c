/* SPDX-License-Identifier: MIT */
/* address.c - parses and formats IP addresses. */
#include "base/address.h"

#include "base/ascii.h"

#define GROUPS 8 /* number of 16-bit groups in an IPv6 address */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool wr_address_is_v4(const struct wr_address *address)
{
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

bool wr_address_has_prefix(const struct wr_address *address, const uint8_t prefix[16], unsigned bits)
{
    size_t whole = bits / 8;
    unsigned rest = bits % 8;

    if (memcmp(prefix, address->bytes, whole) != 0)
        return false;
    return rest == 0 || (prefix[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

/* Parses a decimal number of at most `digits_max` digits, without leading zeros, at the start of
 * `text` and removes it from `text`. */
static bool take_bounded_decimal(struct wr_span *text, size_t digits_max, unsigned max, unsigned *ret_number)
{
    unsigned number = 0;
    size_t digits = 0;

    for (; digits < text->bytes && wr_ascii_is_digit(text->data[digits]); digits++) {
        if (digits == digits_max || (digits == 1 && text->data[0] == '0'))
            return false;
        number = number * 10 + (unsigned)(text->data[digits] - '0');
    }
    if (digits == 0 || number > max)
        return false;
    *text = wr_span_after(*text, digits);
    *ret_number = number;
    return true;
}

/* Parses exactly four decimal octets "a.b.c.d". Returns false if `text` is anything else. */
static bool parse_dotted_quad(struct wr_span text, uint8_t ret_octets[4])
{
    uint8_t octets[4];

    for (int i = 0; i < 4; i++) {
        unsigned octet;
        if (i > 0) {
            if (text.bytes == 0 || text.data[0] != '.')
                return false;
            text = wr_span_after(text, 1);
        }
        if (!take_bounded_decimal(&text, 3, 255, &octet))
            return false;
        octets[i] = (uint8_t)octet;
    }
    if (text.bytes != 0)
        return false;
    memcpy(ret_octets, octets, sizeof octets);
    return true;
}

/* Parses 1 to 4 hex digits at the start of `text` and removes them from `text`. */
static bool take_ipv6_group(struct wr_span *text, uint8_t ret_group[2])
{
    unsigned group = 0;
    size_t digits = 0;

    for (; digits < text->bytes && wr_ascii_hex_value(text->data[digits]) >= 0; digits++) {
        if (digits == 4)
            return false;
        group = group << 4 | (unsigned)wr_ascii_hex_value(text->data[digits]);
    }
    if (digits == 0)
        return false;
    *text = wr_span_after(*text, digits);
    ret_group[0] = (uint8_t)(group >> 8);
    ret_group[1] = (uint8_t)group;
    return true;
}

/* Parses IPv6 groups separated by ':' up to the end of `text` or up to a "::", which stays in
 * `text`. The last two groups may be written as an IPv4 address. Returns the number of groups, -1
 * if the text is invalid. */
static int take_ipv6_groups(struct wr_span *text, int most, uint8_t *ret_bytes)
{
    for (int count = 0; count < most;) {
        if (wr_span_find(*text, ':') == text->bytes && count + 2 <= most &&
            parse_dotted_quad(*text, ret_bytes + 2 * count)) {
            *text = wr_span_after(*text, text->bytes);
            return count + 2;
        }
        if (!take_ipv6_group(text, ret_bytes + 2 * count))
            return -1;
        count++;
        if (text->bytes == 0 || (text->bytes >= 2 && text->data[0] == ':' && text->data[1] == ':'))
            return count;
        if (text->data[0] != ':')
            return -1;
        *text = wr_span_after(*text, 1);
    }
    return -1;
}

bool wr_address_parse_v6(struct wr_span text, struct wr_address *ret_address)
{
    uint8_t left[16] = {0}, right[16];
    int lefts = 0, rights = 0;

    if (text.bytes < 2)
        return false;
    if (text.data[0] != ':' || text.data[1] != ':') {
        lefts = take_ipv6_groups(&text, GROUPS, left);
        if (lefts < 0 || (text.bytes == 0 && lefts != GROUPS))
            return false;
    }
    if (lefts < GROUPS) { /* `text` starts with "::", which stands for at least one group */
        text = wr_span_after(text, 2);
        if (text.bytes > 0)
            rights = take_ipv6_groups(&text, GROUPS - 1 - lefts, right);
        if (rights < 0)
            return false;
        memcpy(left + 2 * (GROUPS - rights), right, (size_t)rights * 2);
    }
    if (text.bytes != 0)
        return false;
    memcpy(ret_address->bytes, left, sizeof left);
    return true;
}

bool wr_address_parse(struct wr_span text, struct wr_address *ret_address)
{
    uint8_t octets[4];

    if (!parse_dotted_quad(text, octets))
        return wr_address_parse_v6(text, ret_address);
    memcpy(ret_address->bytes, mapped, sizeof mapped);
    memcpy(ret_address->bytes + sizeof mapped, octets, sizeof octets);
    return true;
}

static bool is_zone_byte(char c)
{
    return wr_ascii_is_alnum(c) || c == '.' || c == '-' || c == '_' || c == '~';
}

/* Removes a zone such as "%eth0" (RFC 4007 11) from the end. A zone names an interface of this
 * machine and says nothing about the peer. Returns false if the zone is malformed. */
static bool drop_zone(struct wr_span *text)
{
    size_t at = wr_span_find(*text, '%');

    for (size_t i = at + 1; i < text->bytes; i++) {
        if (!is_zone_byte(text->data[i]))
            return false;
    }
    if (at + 1 == text->bytes)
        return false;
    text->bytes = at;
    return true;
}

/* Returns true if `text` is empty or a port such as ":80". */
static bool is_port(struct wr_span text)
{
    unsigned port;

    if (text.bytes == 0)
        return true;
    if (text.data[0] != ':')
        return false;
    text = wr_span_after(text, 1);
    return take_bounded_decimal(&text, 5, 65535, &port) && text.bytes == 0;
}

/* Parses an IPv6 address with an optional zone, such as "2001:db8::1%eth0". */
static bool parse_zoned_ipv6(struct wr_span text, struct wr_address *ret_address)
{
    return drop_zone(&text) && wr_address_parse_v6(text, ret_address);
}

bool wr_address_parse_peer(struct wr_span text, struct wr_address *ret_address)
{
    text = wr_span_trim(text);
    if (text.bytes > 0 && text.data[0] == '[') {
        size_t close = wr_span_find(text, ']');
        if (close == text.bytes || !is_port(wr_span_after(text, close + 1)))
            return false;
        return parse_zoned_ipv6((struct wr_span){text.data + 1, close - 1}, ret_address);
    }
    size_t colon = wr_span_find(text, ':');
    /* the first '.' is before the ':': IPv4 with a port */
    if (wr_span_find(text, '.') < colon && colon < text.bytes)
        return is_port(wr_span_after(text, colon)) && wr_address_parse((struct wr_span){text.data, colon}, ret_address);
    return wr_address_parse(text, ret_address) || parse_zoned_ipv6(text, ret_address);
}

struct wr_span wr_host_without_port(struct wr_span host)
{
    size_t digits = 0;

    while (digits < host.bytes && wr_ascii_is_digit(host.data[host.bytes - 1 - digits]))
        digits++;
    if (digits < host.bytes && host.data[host.bytes - 1 - digits] == ':')
        host.bytes -= digits + 1;
    return host;
}

static void append_dotted_quad(struct wr_buf *buf, const uint8_t octets[4])
{
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            wr_buf_append_char(buf, '.');
        wr_buf_append_u64(buf, octets[i]);
    }
}

static unsigned ipv6_group_at(const struct wr_address *address, int index)
{
    return (unsigned)address->bytes[2 * index] << 8 | address->bytes[2 * index + 1];
}

/* Finds the first of the longest runs of two or more zero groups (RFC 5952 4.2). *ret_first is -1
 * if there is no such run. */
static void find_zero_groups(const struct wr_address *address, int *ret_first, int *ret_count)
{
    int first = -1, count = 1;

    for (int i = 0; i < GROUPS; i++) {
        int run = 0;
        while (i + run < GROUPS && ipv6_group_at(address, i + run) == 0)
            run++;
        if (run > count) {
            first = i;
            count = run;
        }
        i += run;
    }
    *ret_first = first;
    *ret_count = count;
}

void wr_address_append_v6(struct wr_buf *buf, const struct wr_address *address)
{
    int gap, gap_count;

    find_zero_groups(address, &gap, &gap_count);
    for (int i = 0; i < GROUPS; i++) {
        if (i == gap) {
            wr_buf_append_string(buf, "::");
            i += gap_count - 1;
            continue;
        }
        if (i > 0 && i != gap + gap_count)
            wr_buf_append_char(buf, ':');
        unsigned group = ipv6_group_at(address, i);
        wr_buf_append_hex(buf, group, group > 0xfff ? 4 : group > 0xff ? 3 : group > 0xf ? 2 : 1, WR_HEX_SMALL);
    }
}

void wr_address_append(struct wr_buf *buf, const struct wr_address *address)
{
    if (wr_address_is_v4(address))
        append_dotted_quad(buf, address->bytes + sizeof mapped);
    else
        wr_address_append_v6(buf, address);
}
