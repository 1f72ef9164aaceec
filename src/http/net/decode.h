/* SPDX-License-Identifier: MIT */
/* decode.h - decodes a body's content coding: gzip, deflate, br or zstd, and only one of them.
 *
 *     error = wr_decoder_new(allocator, head, &decoder);
 *     while (wr_decoder_has_work(decoder, in))
 *         result = wr_decoder_step(decoder, &in);        a bounded piece of work
 *         if (wr_decoder_is_full(decoder)) …             wr_decoder_take_output(decoder) has the output
 *
 * A response with several codings is rejected. Nested codings can expand a few KB to gigabytes
 * between the layers, where no limit on input or output applies. Servers use one coding.
 *
 * Work is bounded, not only bytes. A step gives the library at most WR_DECODE_IN bytes and takes at
 * most WR_DECODE_OUT from it: brotli spends up to 2 µs on an input byte, a thousand times as much
 * as on an honest page. A stream with much input and little output is rejected: the input may be at
 * most WR_DECODE_TIMES the output plus WR_DECODE_SLACK. Honest input is smaller than its output,
 * but br and zstd may read a block of 128 KB before they produce any.
 */
#ifndef WR_HTTP_NET_DECODE_H
#define WR_HTTP_NET_DECODE_H

#include "core/web/http/head.h"

#define WR_DECODE_IN ((size_t)256)
#define WR_DECODE_OUT ((size_t)16 << 10)
#define WR_DECODE_SLACK ((uint64_t)256 << 10)
#define WR_DECODE_TIMES 4

struct wr_decoder;

enum wr_decode_result {
    WR_DECODE_OK,
    WR_DECODE_BAD,
    WR_DECODE_UNKNOWN,       /* a coding that the decoder does not know */
    WR_DECODE_NESTED,        /* several codings in one response */
    WR_DECODE_LITTLE_OUTPUT, /* too little output for the input */
    WR_DECODE_MEMORY,
};

/* Creates a decoder for the head's Content-Encoding, which must exist: head->codings > 0. */
enum wr_decode_result wr_decoder_new(const weir_allocator *allocator, const struct wr_head *head,
                                     struct wr_decoder **ret_decoder);

/* Returns true if a step has work: there is input, or there may be more output. Bytes after the end
 * of gzip, deflate and br are skipped, as browsers do. */
bool wr_decoder_has_work(const struct wr_decoder *decoder, struct wr_span in);

/* Calls the library once, and removes from `in` what it has read. The output must have room. */
enum wr_decode_result wr_decoder_step(struct wr_decoder *decoder, struct wr_span *in);

/* Returns true if the output has no room for another step. */
bool wr_decoder_is_full(const struct wr_decoder *decoder);

/* Returns the output since the last call; valid until the next step. */
struct wr_span wr_decoder_take_output(struct wr_decoder *decoder);

struct wr_decoder_work {
    uint64_t read, made; /* bytes of input and of output */
    uint64_t steps;
};

const struct wr_decoder_work *wr_decoder_work(const struct wr_decoder *decoder);

void wr_decoder_free(const weir_allocator *allocator, struct wr_decoder *decoder);

#endif
