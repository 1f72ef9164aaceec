/* SPDX-License-Identifier: MIT */
/* hash.h - a keyed hash for table keys that come from untrusted input.
 *
 * Without the secret an attacker cannot find keys that collide, and so cannot make a table slow.
 * There are two hash functions with the same contract; wr_hash_key_init picks the faster one for
 * the processor:
 *   - SipHash-1-3, on any processor;
 *   - a CBC-MAC of four AES rounds per 16 bytes, on processors with AES instructions. The best
 *     differential through four rounds has probability 2^-113. It needs a sixth of SipHash's
 *     instructions, so the processor can overlap the cache miss of one lookup with the next. The
 *     length is mixed in as a secret multiple, so that no choice of bytes can cancel it.
 * The value differs from process to process: never store or send it.
 */
#ifndef WR_BASE_HASH_H
#define WR_BASE_HASH_H

#include "base/seam.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_HASH_SECRET_BYTES 96

struct wr_hash_key {
    /* five AES round keys and two words; SipHash uses the first 16 bytes */
    _Alignas(16) uint8_t secret[WR_HASH_SECRET_BYTES];
    bool has_aes; /* true: use the AES function */
};

/* Initializes the key from `secret`, which points to WR_HASH_SECRET_BYTES random bytes. */
WR_SEAM void wr_hash_key_init(struct wr_hash_key *ret_key, const void *secret);

WR_SEAM uint64_t wr_hash(const struct wr_hash_key *key, const void *data, size_t bytes);

#endif
