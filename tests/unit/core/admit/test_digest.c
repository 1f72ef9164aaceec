/* SPDX-License-Identifier: MIT */
/* test_digest.c - tests SHA-256 against the examples of FIPS 180-4, and with text divided at any
 * point. */
#include "lib/test.h"

#include "core/admit/sha256.h"

static void assert_digest(struct wr_span first, struct wr_span second, const char *expected)
{
    uint8_t digest[WR_SHA256_BYTES];
    char hex[2 * WR_SHA256_BYTES + 1];

    wr_sha256(first, second, digest);
    for (int i = 0; i < WR_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, expected);
}

static void sha256_matches_the_examples_of_fips_180_4(void **state)
{
    static char million[1000000];

    (void)state;
    memset(million, 'a', sizeof million);
    assert_digest(wr_span_of(""), wr_span_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_digest(wr_span_of("abc"), wr_span_of(""),
                  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest(wr_span_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), wr_span_of(NULL),
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_digest(wr_span_of(NULL), (struct wr_span){million, sizeof million},
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void sha256_does_not_depend_on_where_the_text_is_divided(void **state)
{
    char text[200];

    (void)state;
    memset(text, 'x', sizeof text);
    for (size_t bytes = 0; bytes <= sizeof text; bytes++) {
        uint8_t whole[WR_SHA256_BYTES], parts[WR_SHA256_BYTES];
        wr_sha256((struct wr_span){text, bytes}, (struct wr_span){NULL, 0}, whole);
        for (size_t first = 0; first <= bytes; first += 7) {
            wr_sha256((struct wr_span){text, first}, (struct wr_span){text + first, bytes - first}, parts);
            assert_memory_equal(whole, parts, sizeof whole);
        }
    }
}

WEIR_TESTS(test(sha256_matches_the_examples_of_fips_180_4), test(sha256_does_not_depend_on_where_the_text_is_divided))
