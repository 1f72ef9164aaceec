/* SPDX-License-Identifier: MIT */
/* decode.h - a body's content coding, taken off: gzip, deflate, br, zstd; one at most.
 *
 *     error = wr_decoder_new(allocator, head, &decoder);
 *     while (wr_decoder_wants(decoder, in))
 *         result = wr_decoder_step(decoder, &in);             a bounded piece of work
 *         if (wr_decoder_is_full(decoder)) …                  wr_decoder_take(decoder) is what was made
 *
 * A server that wraps codings in each other makes gigabytes of a few KB between the layers, which no limit on what
 * comes in or goes out sees. Servers use one coding, so a response with more is refused.
 *
 * Work is bounded, not only bytes. A step gives WR_DECODE_IN bytes at most to the library and takes WR_DECODE_OUT from
 * it: brotli spends up to 2 µs on a byte of its input, a thousand times as much as on one of an honest page. And a
 * stream that takes much and gives little is refused: it may take four times what it gives, and WR_DECODE_SLACK. What
 * is honest takes less than it gives; br and zstd may read a block of 128 KB before they give any of it.
 */
#ifndef WR_SHELL_NET_DECODE_H
#define WR_SHELL_NET_DECODE_H

#include "core/rules/http/head.h"

#define WR_DECODE_IN ((size_t)256)
#define WR_DECODE_OUT ((size_t)16 << 10)
#define WR_DECODE_SLACK ((uint64_t)256 << 10)
#define WR_DECODE_TIMES 4

struct wr_decoder;

enum wr_decode {
    WR_DECODE_OK,
    WR_DECODE_BAD,
    WR_DECODE_UNKNOWN, /* a coding that nobody knows here */
    WR_DECODE_NESTED,  /* more than one */
    WR_DECODE_BARREN,  /* takes too much for what it gives */
    WR_DECODE_MEMORY,
};

/* For the head's Content-Encoding, of which there is one: head->codings > 0. */
enum wr_decode wr_decoder_new(const weir_allocator *allocator, const struct wr_head *head,
                              struct wr_decoder **ret_decoder);

/* Whether there is anything to do: there is input, or there may be more output. What follows the end of gzip, deflate
 * and br is skipped, as browsers do. */
bool wr_decoder_wants(const struct wr_decoder *decoder, struct wr_span in);

/* One call of the library; there must be room for what it makes. Takes what it has read from `in`. */
enum wr_decode wr_decoder_step(struct wr_decoder *decoder, struct wr_span *in);

/* No room is left for another step. */
bool wr_decoder_is_full(const struct wr_decoder *decoder);

/* What was made since it was taken last; good until the next step. */
struct wr_span wr_decoder_take(struct wr_decoder *decoder);

struct wr_decoder_work {
    uint64_t read, made; /* bytes */
    uint64_t steps;
};

const struct wr_decoder_work *wr_decoder_work(const struct wr_decoder *decoder);

void wr_decoder_free(const weir_allocator *allocator, struct wr_decoder *decoder); /* NULL is fine */

#endif
