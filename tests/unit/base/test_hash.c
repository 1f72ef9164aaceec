/* SPDX-License-Identifier: MIT */
/* test_hash.c - tests the keyed hash: correct, and different for each secret. */
#include "base/hash.h"
#include "base/rng.h"
#include "lib/test.h"

#include <stdbool.h>

/* SipHash as in its paper, for any number of rounds. */
static uint64_t paper_siphash(const uint8_t key[16], const uint8_t *data, size_t bytes, int c_rounds, int d_rounds)
{
#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
    uint64_t k[2] = {0, 0};
    for (int i = 0; i < 16; i++)
        k[i / 8] |= (uint64_t)key[i] << (8 * (i % 8));
    uint64_t v[4] = {k[0] ^ UINT64_C(0x736f6d6570736575), k[1] ^ UINT64_C(0x646f72616e646f6d),
                     k[0] ^ UINT64_C(0x6c7967656e657261), k[1] ^ UINT64_C(0x7465646279746573)};
    for (size_t word = 0; word <= bytes / 8 + 1; word++) {
        uint64_t m = 0;
        bool finish = word == bytes / 8 + 1;
        for (size_t i = word * 8; !finish && i < word * 8 + 8; i++)
            m |= (uint64_t)(i < bytes ? data[i] : i % 8 == 7 ? (uint8_t)bytes : 0) << (8 * (i % 8));
        if (finish)
            v[2] ^= 0xff;
        v[3] ^= m;
        for (int r = 0; r < (finish ? d_rounds : c_rounds); r++) {
            v[0] += v[1], v[1] = ROTL(v[1], 13), v[1] ^= v[0], v[0] = ROTL(v[0], 32);
            v[2] += v[3], v[3] = ROTL(v[3], 16), v[3] ^= v[2];
            v[0] += v[3], v[3] = ROTL(v[3], 21), v[3] ^= v[0];
            v[2] += v[1], v[1] = ROTL(v[1], 17), v[1] ^= v[2], v[2] = ROTL(v[2], 32);
        }
        v[0] ^= m;
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
#undef ROTL
}

static void count_up(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)i;
}

static void portable_hash_is_siphash_1_3(void **state)
{
    (void)state;
    uint8_t secret[WR_HASH_SECRET_BYTES], data[64];
    count_up(secret, sizeof secret);
    count_up(data, sizeof data);
    /* The test vector of the paper checks the reference, and the reference checks our code. */
    assert_true(paper_siphash(secret, data, 15, 2, 4) == UINT64_C(0xa129ca6149be45e5));
    struct wr_hash_key key;
    wr_hash_key_init(&key, secret);
    key.has_aes = false;
    for (size_t bytes = 0; bytes <= sizeof data; bytes++)
        assert_true(wr_hash(&key, data, bytes) == paper_siphash(secret, data, bytes, 1, 3));
}

/* At every length, each byte, its position and the length change the hash. */
static void every_byte_and_the_length_change_the_hash(void **state)
{
    (void)state;
    uint8_t secret[WR_HASH_SECRET_BYTES], data[80] = {0};
    count_up(secret, sizeof secret);
    struct wr_hash_key key;
    wr_hash_key_init(&key, secret);
    for (int form = 0; form < 2; form++, key.has_aes = false) {
        for (size_t bytes = 0; bytes < sizeof data; bytes++) {
            uint64_t plain = wr_hash(&key, data, bytes);
            assert_true(plain != wr_hash(&key, data, bytes + 1));
            for (size_t i = 0; i < bytes; i++) {
                data[i] = 1;
                assert_true(plain != wr_hash(&key, data, bytes));
                data[i] = 0;
            }
        }
    }
}

/* Keys that fall into one bucket under one secret scatter under another: an attacker cannot prepare
 * collisions. */
static void keys_that_collide_under_one_secret_scatter_under_another(void **state)
{
    (void)state;
    struct wr_rng rng;
    wr_rng_init(&rng, weir_test_seed());
    uint8_t secrets[2][WR_HASH_SECRET_BYTES];
    for (size_t i = 0; i < sizeof secrets; i++)
        secrets[i / sizeof secrets[0]][i % sizeof secrets[0]] = (uint8_t)wr_rng_next(&rng);
    struct wr_hash_key keys[2];
    wr_hash_key_init(&keys[0], secrets[0]);
    wr_hash_key_init(&keys[1], secrets[1]);
    for (int form = 0; form < 2; form++, keys[0].has_aes = keys[1].has_aes = false) {
        unsigned buckets[256] = {0}, found = 0;
        for (uint64_t i = 0; found < 2560; i++) {
            if (wr_hash(&keys[0], &i, sizeof i) % 256 != 7)
                continue;
            found++;
            buckets[wr_hash(&keys[1], &i, sizeof i) % 256]++;
        }
        for (int i = 0; i < 256; i++)
            assert_in_range(buckets[i], 0, 40); /* mean 10; the probability of 40 is below 10^-11 */
    }
}

/* Keys of 1 to 64 equal bytes, except a first byte that compensates the length. If the length were
 * XORed into the first block, all of these keys would share one hash under every secret. */
static void no_first_byte_compensates_a_different_length_in_the_hash(void **state)
{
    (void)state;
    uint8_t secret[WR_HASH_SECRET_BYTES], data[64];
    count_up(secret, sizeof secret);
    struct wr_hash_key key;
    wr_hash_key_init(&key, secret);
    for (int form = 0; form < 2; form++, key.has_aes = false) {
        uint64_t seen[65];
        for (size_t bytes = 1; bytes <= 64; bytes++) {
            memset(data, 'a', sizeof data);
            data[0] = (uint8_t)('a' ^ bytes ^ 16);
            seen[bytes] = wr_hash(&key, data, bytes);
            for (size_t other = 1; other < bytes; other++)
                assert_true(seen[bytes] != seen[other]);
        }
    }
}

WEIR_TESTS(test(no_first_byte_compensates_a_different_length_in_the_hash), test(portable_hash_is_siphash_1_3),
           test(every_byte_and_the_length_change_the_hash),
           test(keys_that_collide_under_one_secret_scatter_under_another))
