/* SPDX-License-Identifier: MIT */
/* network.c - parses networks, and checks whether they contain an address. */
#include "core/admit/network.h"

#include "base/error.h"
#include "base/parse.h"

bool wr_network_holds(const weir_network *network, const struct wr_address *address)
{
    return wr_address_has_prefix(address, network->address, network->prefix);
}

/* Clears all bits after the first `prefix`. */
static void clear_host_bits(struct wr_address *address, unsigned prefix)
{
    for (unsigned i = 0; i < sizeof address->bytes; i++) {
        unsigned kept = prefix > 8 * i ? prefix - 8 * i : 0;
        if (kept < 8)
            address->bytes[i] &= (uint8_t)(0xff00 >> kept);
    }
}

void wr_network_append(struct wr_buf *buf, const struct wr_address *address, unsigned v4_prefix, unsigned v6_prefix)
{
    struct wr_address network = *address;
    bool is_v4 = wr_address_is_v4(address);
    unsigned bits = is_v4 ? 32 : 128;
    unsigned prefix = is_v4 ? v4_prefix : v6_prefix;

    clear_host_bits(&network, 128 - bits + prefix);
    wr_address_append(buf, &network);
    if (prefix < bits) {
        wr_buf_append_char(buf, '/');
        wr_buf_append_u64(buf, prefix);
    }
}

int weir_network_parse(const char *text, weir_network *ret_network)
{
    static const char right[] = "use an address and a prefix, such as 10.0.0.0/8 or 2001:db8::/32";
    struct wr_span span = wr_span_of(text);
    struct wr_span bare = {span.data, wr_span_find(span, '/')};
    struct wr_address address, masked;

    if (text == NULL || ret_network == NULL)
        return wr_invalid("NULL; give a text such as 10.0.0.0/8, and a network to fill");
    if (!wr_address_parse(bare, &address))
        return wr_invalid_text("network", span.data, span.bytes, "not an IP address", WR_NOWHERE, right);
    /* The prefix counts the bits of the spelling. */
    bool is_v4 = wr_span_find(bare, ':') == bare.bytes;
    uint64_t prefix = is_v4 ? 32 : 128;
    if (bare.bytes < span.bytes &&
        !wr_scan_u64(span.data + bare.bytes + 1, span.bytes - bare.bytes - 1, 0, prefix, &prefix))
        return wr_invalid_text("network", span.data, span.bytes, "the prefix is not a number of its bits",
                               bare.bytes + 1, right);
    if (is_v4)
        prefix += 96;
    masked = address;
    clear_host_bits(&masked, (unsigned)prefix);
    if (memcmp(&masked, &address, sizeof address) != 0)
        return wr_invalid_text("network", span.data, span.bytes, "bits are set beyond the prefix", WR_NOWHERE,
                               "set them to 0, or make the prefix longer");
    memcpy(ret_network->address, address.bytes, sizeof address.bytes);
    ret_network->prefix = (uint8_t)prefix;
    return 0;
}
