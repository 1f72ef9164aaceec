/* SPDX-License-Identifier: MIT */
/* address.c - reads IP addresses and networks. */
#include "core/admit/address.h"

#include "base/ascii.h"
#include "base/error.h"
#include "base/parse.h"

#define GROUPS 8 /* of 16 bits */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool wr_address_is_v4(const struct wr_address *address)
{
    return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

/* Takes a decimal number of at most `digits_max` digits, without leading zeros, off the front of `text`. */
static bool take_decimal(struct wr_span *text, size_t digits_max, unsigned max, unsigned *ret_number)
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

/* Four octets and nothing else. */
static bool parse_v4(struct wr_span text, uint8_t ret_octets[4])
{
    uint8_t octets[4];

    for (int i = 0; i < 4; i++) {
        unsigned octet;
        if (i > 0) {
            if (text.bytes == 0 || text.data[0] != '.')
                return false;
            text = wr_span_after(text, 1);
        }
        if (!take_decimal(&text, 3, 255, &octet))
            return false;
        octets[i] = (uint8_t)octet;
    }
    if (text.bytes != 0)
        return false;
    memcpy(ret_octets, octets, sizeof octets);
    return true;
}

/* Takes 1 … 4 hex digits off the front of `text`. */
static bool take_group(struct wr_span *text, uint8_t ret_group[2])
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

/* Groups divided by ':' up to the end of `text` or to a "::" (which stays), the last two perhaps written as IPv4.
 * Returns how many, -1 if it is not that. */
static int take_groups(struct wr_span *text, int most, uint8_t *ret_bytes)
{
    for (int count = 0; count < most;) {
        if (wr_span_find(*text, ':') == text->bytes && count + 2 <= most && parse_v4(*text, ret_bytes + 2 * count)) {
            *text = wr_span_after(*text, text->bytes);
            return count + 2;
        }
        if (!take_group(text, ret_bytes + 2 * count))
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

static bool parse_v6(struct wr_span text, uint8_t ret_bytes[16])
{
    uint8_t left[16] = {0}, right[16];
    int lefts = 0, rights = 0;

    if (text.bytes < 2)
        return false;
    if (text.data[0] != ':' || text.data[1] != ':') {
        lefts = take_groups(&text, GROUPS, left);
        if (lefts < 0 || (text.bytes == 0 && lefts != GROUPS))
            return false;
    }
    if (lefts < GROUPS) { /* at the "::", which stands for one group at least */
        text = wr_span_after(text, 2);
        if (text.bytes > 0)
            rights = take_groups(&text, GROUPS - 1 - lefts, right);
        if (rights < 0)
            return false;
        memcpy(left + 2 * (GROUPS - rights), right, (size_t)rights * 2);
    }
    if (text.bytes != 0)
        return false;
    memcpy(ret_bytes, left, sizeof left);
    return true;
}

bool wr_address_parse(struct wr_span text, struct wr_address *ret_address)
{
    uint8_t octets[4];

    if (!parse_v4(text, octets))
        return parse_v6(text, ret_address->bytes);
    memcpy(ret_address->bytes, mapped, sizeof mapped);
    memcpy(ret_address->bytes + sizeof mapped, octets, sizeof octets);
    return true;
}

static bool is_zone_byte(char c)
{
    return wr_ascii_is_alnum(c) || c == '.' || c == '-' || c == '_' || c == '~';
}

/* Drops "%eth0" (RFC 4007 11): the zone is ours, not the caller's. */
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

/* Nothing, or ":80". */
static bool is_port(struct wr_span text)
{
    unsigned port;

    if (text.bytes == 0)
        return true;
    if (text.data[0] != ':')
        return false;
    text = wr_span_after(text, 1);
    return take_decimal(&text, 5, 65535, &port) && text.bytes == 0;
}

/* "2001:db8::1%eth0": an IPv6 address, perhaps with a zone. */
static bool parse_zoned(struct wr_span text, struct wr_address *ret_address)
{
    return drop_zone(&text) && parse_v6(text, ret_address->bytes);
}

bool wr_address_parse_peer(struct wr_span text, struct wr_address *ret_address)
{
    text = wr_span_trim(text);
    if (text.bytes > 0 && text.data[0] == '[') {
        size_t close = wr_span_find(text, ']');
        if (close == text.bytes || !is_port(wr_span_after(text, close + 1)))
            return false;
        return parse_zoned((struct wr_span){text.data + 1, close - 1}, ret_address);
    }
    size_t colon = wr_span_find(text, ':');
    if (wr_span_find(text, '.') < colon && colon < text.bytes) /* a dot first: IPv4 with a port */
        return is_port(wr_span_after(text, colon)) && wr_address_parse((struct wr_span){text.data, colon}, ret_address);
    return wr_address_parse(text, ret_address) || parse_zoned(text, ret_address);
}

bool wr_network_holds(const weir_network *network, const struct wr_address *address)
{
    size_t whole = network->prefix / 8;
    unsigned rest = network->prefix % 8;

    if (memcmp(network->address, address->bytes, whole) != 0)
        return false;
    return rest == 0 || (network->address[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

/* Clears all bits after the first `prefix`. */
static void mask(struct wr_address *address, unsigned prefix)
{
    for (unsigned i = 0; i < sizeof address->bytes; i++) {
        if (8 * i >= prefix)
            address->bytes[i] = 0;
        else if (8 * i + 8 > prefix)
            address->bytes[i] &= (uint8_t)(0xff00 >> (prefix - 8 * i));
    }
}

static void append_v4(struct wr_buf *buf, const uint8_t octets[4])
{
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            wr_buf_append_char(buf, '.');
        wr_buf_append_u64(buf, octets[i]);
    }
}

static unsigned group_of(const struct wr_address *address, int index)
{
    return (unsigned)address->bytes[2 * index] << 8 | address->bytes[2 * index + 1];
}

/* The first longest run of zero groups, if there are two or more (RFC 5952 4.2). */
static void find_gap(const struct wr_address *address, int *ret_first, int *ret_count)
{
    int first = -1, count = 1;

    for (int i = 0; i < GROUPS; i++) {
        int run = 0;
        while (i + run < GROUPS && group_of(address, i + run) == 0)
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

static void append_v6(struct wr_buf *buf, const struct wr_address *address)
{
    int gap, gap_count;

    find_gap(address, &gap, &gap_count);
    for (int i = 0; i < GROUPS; i++) {
        if (i == gap) {
            wr_buf_append_string(buf, "::");
            i += gap_count - 1;
            continue;
        }
        if (i > 0 && i != gap + gap_count)
            wr_buf_append_char(buf, ':');
        unsigned group = group_of(address, i);
        wr_buf_append_hex(buf, group, group > 0xfff ? 4 : group > 0xff ? 3 : group > 0xf ? 2 : 1, WR_HEX_SMALL);
    }
}

void wr_network_append(struct wr_buf *buf, const struct wr_address *address, unsigned v4_prefix, unsigned v6_prefix)
{
    struct wr_address network = *address;
    bool is_v4 = wr_address_is_v4(address);
    unsigned bits = is_v4 ? 32 : 128;
    unsigned prefix = is_v4 ? v4_prefix : v6_prefix;

    mask(&network, 128 - bits + prefix);
    if (is_v4)
        append_v4(buf, network.bytes + sizeof mapped);
    else
        append_v6(buf, &network);
    if (prefix < bits) {
        wr_buf_append_char(buf, '/');
        wr_buf_append_u64(buf, prefix);
    }
}

int weir_network_parse(const char *text, weir_network *ret_network)
{
    static const char right[] = "use an address and a prefix, as 10.0.0.0/8 or 2001:db8::/32";
    struct wr_span span = wr_span_of(text);
    struct wr_span bare = {span.data, wr_span_find(span, '/')};
    struct wr_address address, masked;

    if (text == NULL || ret_network == NULL)
        return wr_invalid("NULL; give a text as 10.0.0.0/8 and a network to fill");
    if (!wr_address_parse(bare, &address))
        return wr_invalid_text("network", span.data, span.bytes, "not an IP address", WR_NOWHERE, right);
    bool is_v4 = wr_span_find(bare, ':') == bare.bytes; /* a prefix counts the bits of the spelling */
    uint64_t prefix = is_v4 ? 32 : 128;
    if (bare.bytes < span.bytes &&
        !wr_scan_u64(span.data + bare.bytes + 1, span.bytes - bare.bytes - 1, 0, prefix, &prefix))
        return wr_invalid_text("network", span.data, span.bytes, "the prefix is not a number of its bits",
                               bare.bytes + 1, right);
    if (is_v4)
        prefix += 96;
    masked = address;
    mask(&masked, (unsigned)prefix);
    if (memcmp(&masked, &address, sizeof address) != 0)
        return wr_invalid_text("network", span.data, span.bytes, "bits are set beyond the prefix", WR_NOWHERE,
                               "set them to 0, or make the prefix longer");
    memcpy(ret_network->address, address.bytes, sizeof address.bytes);
    ret_network->prefix = (uint8_t)prefix;
    return 0;
}
