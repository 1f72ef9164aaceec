/* SPDX-License-Identifier: MIT */
/* stream.h - the keys of a benchmark in the order in which they are asked for.
 *
 * They lie one after the other, as texts and as numbers: a server has the key in its cache when it decides, so reading
 * it must not cost a miss here either.
 */
#ifndef WR_CLI_BENCH_STREAM_H
#define WR_CLI_BENCH_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wr_dist {
    WR_DIST_ONE,     /* always the same key */
    WR_DIST_UNIFORM, /* each equally often */
    WR_DIST_ZIPF,    /* the k-th most popular 1/k as often as the first */
};

struct wr_stream {
    char *texts;       /* count * key_bytes, not terminated */
    uint64_t *numbers; /* count */
    size_t count, key_bytes;
};

/* Draws `count` of `keys` keys. WEIR_E_NOMEM. */
int wr_stream_init(struct wr_stream *ret_stream, size_t count, size_t keys, size_t key_bytes, enum wr_dist dist,
                   uint64_t seed);
void wr_stream_release(struct wr_stream *stream);

/* Writes the text of key `number`, key_bytes long. Different numbers below wr_stream_keys_max have different texts. */
void wr_stream_key(uint64_t number, size_t key_bytes, char *ret_text);

/* How many different keys that long there are. */
uint64_t wr_stream_keys_max(size_t key_bytes);

#endif
