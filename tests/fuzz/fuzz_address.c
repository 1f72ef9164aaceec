/* SPDX-License-Identifier: MIT */
/* fuzz_address.c - fuzzes addresses as proxies write them: each is parsed or refused. A parsed
 * address is formatted and parses as the same address again. */
#include "base/address.h"

#include "fuzz/fuzz.h"

static void check_spelling(const struct wr_address *address)
{
    char text[64];
    struct wr_buf buf;
    struct wr_address again;

    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_address_append(&buf, address);
    fuzz_check(buf.error == 0);
    fuzz_check(wr_address_parse(wr_buf_from(&buf, 0), &again));
    fuzz_check(memcmp(&again, address, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wr_span text = {(const char *)data, bytes};
    struct wr_address address;

    if (wr_address_parse_peer(text, &address))
        check_spelling(&address);
    return 0;
}
