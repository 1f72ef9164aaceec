/* SPDX-License-Identifier: MIT */
/* hash.h - a keyed hash for keys that strangers choose.
 *
 * Without the secret nobody can tell which keys collide, so nobody can make a table slow. Two functions, one
 * contract; wr_hash_key_init picks what the processor does best:
 *   - SipHash-1-3, anywhere;
 *   - a CBC-MAC of four AES rounds per 16 bytes, where the processor has AES instructions: the best differential
 * through four rounds has probability 2^-113, and it needs a sixth of SipHash's instructions, which is what lets the
 *     processor overlap one lookup's cache miss with the next. The length comes in as a secret multiple, so that no
 *     choice of bytes can make up for a different length.
 * The value differs from process to process: never store or send it.
 */
#ifndef WR_BASE_HASH_H
#define WR_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_HASH_SECRET_BYTES 96

struct wr_hash_key {
    _Alignas(
        16) uint8_t secret[WR_HASH_SECRET_BYTES]; /* five AES round keys and two words; SipHash uses the first key */
    bool has_aes;                                 /* use the AES form */
};

/* `secret` is WR_HASH_SECRET_BYTES of randomness. */
void wr_hash_key_init(struct wr_hash_key *ret_key, const void *secret);

uint64_t wr_hash(const struct wr_hash_key *key, const void *data, size_t bytes);

#endif
