/* SPDX-License-Identifier: MIT */
/* sha256.c - computes SHA-256, for keys that are made from tokens.
 *
 * The hash of base/hash.h does not fit: its value differs between processes and machines, and it
 * has 64 bits, so that two of 2^32 tokens are likely to collide.
 */
#include "core/admit/sha256.h"

#define BLOCK_BYTES 64

struct sha256 {
    uint32_t state[8];
    uint8_t block[BLOCK_BYTES];
    size_t filled;  /* bytes in `block` */
    uint64_t total; /* bytes added in total */
};

static const uint32_t start_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void expand_block(const uint8_t *block, uint32_t words[64])
{
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
                   block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + words[i - 7] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
                   (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
}

static void hash_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t words[64], s[8];

    expand_block(block, words);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t one = s[7] + (rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25)) + choice +
                       round_constants[i] + words[i];
        uint32_t two = (rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

static void hash_bytes(struct sha256 *sha, struct wr_span span)
{
    sha->total += span.bytes;
    while (span.bytes > 0) {
        size_t bytes = BLOCK_BYTES - sha->filled;
        if (bytes > span.bytes)
            bytes = span.bytes;
        memcpy(sha->block + sha->filled, span.data, bytes);
        span = wr_span_after(span, bytes);
        sha->filled += bytes;
        if (sha->filled == BLOCK_BYTES) {
            hash_block(sha->state, sha->block);
            sha->filled = 0;
        }
    }
}

/* Appends a 1 bit, zeros, and the number of bits in the last 8 bytes of a block. */
static void pad_message(struct sha256 *sha)
{
    static const char one[BLOCK_BYTES] = {(char)0x80};
    uint64_t bits = sha->total * 8;
    size_t bytes = (sha->filled < 56 ? 56 : 120) - sha->filled;
    char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (char)(bits >> (56 - 8 * i));
    hash_bytes(sha, (struct wr_span){one, bytes});
    hash_bytes(sha, (struct wr_span){length, sizeof length});
}

void wr_sha256(struct wr_span first, struct wr_span second, uint8_t ret_digest[WR_SHA256_BYTES])
{
    struct sha256 sha = {.filled = 0};

    memcpy(sha.state, start_state, sizeof sha.state);
    hash_bytes(&sha, first);
    hash_bytes(&sha, second);
    pad_message(&sha);
    for (int i = 0; i < WR_SHA256_BYTES; i++)
        ret_digest[i] = (uint8_t)(sha.state[i / 4] >> (24 - 8 * (i % 4)));
}
