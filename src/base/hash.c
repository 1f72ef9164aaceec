/* SPDX-License-Identifier: MIT */
/* hash.c - SipHash-1-3, and a four-round AES CBC-MAC for processors with AES instructions. */
#include "base/hash.h"

#include <string.h>

static uint64_t load64(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* ---- SipHash-1-3 (Aumasson, Bernstein) ---- */

struct siphash {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate_left(uint64_t word, int by)
{
    return word << by | word >> (64 - by);
}

static inline void sip_round(struct siphash *v)
{
    v->a += v->b;
    v->c += v->d;
    v->b = rotate_left(v->b, 13) ^ v->a;
    v->d = rotate_left(v->d, 16) ^ v->c;
    v->a = rotate_left(v->a, 32) + v->d;
    v->c += v->b;
    v->d = rotate_left(v->d, 21) ^ v->a;
    v->b = rotate_left(v->b, 17) ^ v->c;
    v->c = rotate_left(v->c, 32);
}

static inline void sip_word(struct siphash *v, uint64_t word)
{
    v->d ^= word;
    sip_round(v);
    v->a ^= word;
}

static uint64_t siphash(const struct wr_hash_key *key, const uint8_t *data, size_t bytes)
{
    uint64_t k0 = load64(key->secret), k1 = load64(key->secret + 8);
    struct siphash v = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                        k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8)
        sip_word(&v, load64(data + i));
    uint64_t last = (uint64_t)bytes << 56;
    if (bytes >= 8 && i < bytes) {
        last |= load64(data + bytes - 8) >> 8 * (8 - (bytes - i));
        i = bytes;
    }
    for (size_t shift = 0; i < bytes; i++, shift += 8)
        last |= (uint64_t)data[i] << shift;
    sip_word(&v, last);
    v.c ^= 0xff;
    for (int round = 0; round < 3; round++)
        sip_round(&v);
    return v.a ^ v.b ^ v.c ^ v.d;
}

/* ---- AES ---- */

#if defined(__x86_64__)
#include <immintrin.h>

#define AES __attribute__((target("aes,sse2")))

static uint64_t load32(const uint8_t *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static inline AES __m128i four_rounds(__m128i block, const __m128i *keys)
{
    block = _mm_aesenc_si128(block, keys[1]);
    block = _mm_aesenc_si128(block, keys[2]);
    block = _mm_aesenc_si128(block, keys[3]);
    return _mm_aesenc_si128(block, keys[4]);
}

/* Loads fewer than 16 bytes with overlapping reads. Together with the length they determine each
 * byte. */
static inline AES __m128i short_block(const uint8_t *data, size_t bytes)
{
    uint64_t low = 0, high = 0;
    if (bytes >= 8) {
        low = load64(data);
        high = load64(data + bytes - 8);
    } else if (bytes >= 4) {
        low = load32(data);
        high = load32(data + bytes - 4);
    } else if (bytes > 0) {
        low = (uint64_t)data[0] | (uint64_t)data[bytes / 2] << 8 | (uint64_t)data[bytes - 1] << 16;
    }
    return _mm_set_epi64x((long long)high, (long long)low);
}

/* Returns the length times two secret odd words. If the plain length were xored in, it would cancel
 * against the first bytes: "aaaa" and "`aaaa" would collide under every key. */
static inline AES __m128i secret_length(const uint8_t *words, size_t bytes)
{
    uint64_t low = bytes * (load64(words) | 1), high = bytes * (load64(words + 8) | 1);
    return _mm_set_epi64x((long long)high, (long long)low);
}

static AES uint64_t aes_hash(const struct wr_hash_key *key, const uint8_t *data, size_t bytes)
{
    const __m128i *keys = (const __m128i *)(const void *)key->secret;
    __m128i state = _mm_xor_si128(keys[0], secret_length(key->secret + 5 * sizeof *keys, bytes));
    if (bytes < 16) {
        state = _mm_xor_si128(state, short_block(data, bytes));
    } else {
        for (size_t i = 0; i + 16 < bytes; i += 16)
            state = four_rounds(_mm_xor_si128(state, _mm_loadu_si128((const __m128i *)(const void *)(data + i))), keys);
        /* The last 16 bytes may overlap the block before; the length keeps that unambiguous. */
        state = _mm_xor_si128(state, _mm_loadu_si128((const __m128i *)(const void *)(data + bytes - 16)));
    }
    return (uint64_t)_mm_cvtsi128_si64(four_rounds(state, keys));
}

static bool processor_has_aes(void)
{
    return __builtin_cpu_supports("aes");
}

#else

static uint64_t aes_hash(const struct wr_hash_key *key, const uint8_t *data, size_t bytes)
{
    return siphash(key, data, bytes);
}

static bool processor_has_aes(void)
{
    return false;
}

#endif

void wr_hash_key_init(struct wr_hash_key *ret_key, const void *secret)
{
    memcpy(ret_key->secret, secret, WR_HASH_SECRET_BYTES);
    ret_key->has_aes = processor_has_aes();
}

uint64_t wr_hash(const struct wr_hash_key *key, const void *data, size_t bytes)
{
    return key->has_aes ? aes_hash(key, data, bytes) : siphash(key, data, bytes);
}
