/* SPDX-License-Identifier: MIT */
/* key_stream.h - generates the sequence of keys for a benchmark.
 *
 * The keys are stored one after the other, as texts and as numbers. A server has the key in its
 * cache when it decides, so reading it must not cost a cache miss here either.
 */
#ifndef WR_CLI_BENCH_KEY_STREAM_H
#define WR_CLI_BENCH_KEY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wr_key_distribution {
    WR_DIST_ONE,     /* always the same key */
    WR_DIST_UNIFORM, /* all keys equally often */
    WR_DIST_ZIPF,    /* the k-th most popular key 1/k as often as the most popular one */
};

struct wr_key_stream {
    char *texts;       /* key texts, count * key_bytes bytes, not terminated */
    uint64_t *numbers; /* key numbers, `count` elements */
    size_t count, key_bytes;
};

/* Draws `count` keys out of `keys`. Returns WEIR_E_NOMEM if out of memory. */
int wr_key_stream_init(struct wr_key_stream *ret_stream, size_t count, size_t keys, size_t key_bytes,
                       enum wr_key_distribution dist, uint64_t seed);
void wr_key_stream_release(struct wr_key_stream *stream);

/* Writes the text of key `number`, `key_bytes` bytes long. Different numbers below
 * wr_key_stream_keys_max get different texts. */
void wr_key_stream_key(uint64_t number, size_t key_bytes, char *ret_text);

/* Returns the number of different keys of length `key_bytes`. */
uint64_t wr_key_stream_keys_max(size_t key_bytes);

#endif
