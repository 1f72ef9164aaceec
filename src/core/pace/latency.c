/* SPDX-License-Identifier: MIT */
/* latency.c - Keeps the moving mean of the latency and a ring of 16-bit floating-point samples. */
#include "core/pace/latency.h"

#include "base/bits.h"

#include <string.h>

#define DIGITS 12 /* significant bits of a sample */
#define HALF (1u << (DIGITS - 1))

size_t wr_latency_bytes(const weir_pace_options *options)
{
    return offsetof(struct wr_latency, samples) + options->latency_ring * sizeof(uint16_t);
}

void wr_latency_init(struct wr_latency *latency, const weir_pace_options *options)
{
    latency->mean_ns = (float)options->latency_target_ns;
}

/* Codes sort like the latencies that they represent. Below 2 * HALF a code is the number itself.
 * Above, the exponent counts in steps of HALF, because the first significant bit is always 1. */
static uint16_t encode_latency(int64_t latency_ns)
{
    uint64_t us = (uint64_t)(latency_ns > 0 ? latency_ns : 0) / WEIR_MICROSECOND;
    unsigned most = 30 + DIGITS;
    us = us < 1 ? 1 : us >> most != 0 ? (UINT64_C(1) << most) - 1 : us;
    unsigned bits = 64 - (unsigned)__builtin_clzll(us);
    unsigned shift = bits > DIGITS ? bits - DIGITS : 0;
    return (uint16_t)(shift * HALF + (unsigned)(us >> shift));
}

static int64_t decode_latency(uint16_t code)
{
    if (code < 2 * HALF)
        return code * WEIR_MICROSECOND;
    unsigned shift = code / HALF - 1;
    return (int64_t)((uint64_t)(code % HALF + HALF) << shift) * WEIR_MICROSECOND;
}

void wr_latency_add(struct wr_latency *latency, const weir_pace_options *options, int64_t latency_ns)
{
    double mean = (double)latency->mean_ns;
    latency->mean_ns = (float)(mean + options->latency_weight * ((double)latency_ns - mean));
    latency->samples[latency->at] = encode_latency(latency_ns);
    latency->at = (uint16_t)(latency->at + 1u < options->latency_ring ? latency->at + 1u : 0);
}

/* Sorts with Shell sort: the ring is small and rarely sorted. */
static void sort_latencies(uint16_t *codes, size_t count)
{
    for (size_t gap = count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < count; i++) {
            uint16_t code = codes[i];
            size_t j = i;
            for (; j >= gap && codes[j - gap] > code; j -= gap)
                codes[j] = codes[j - gap];
            codes[j] = code;
        }
}

int64_t wr_latency_p95(const struct wr_latency *latency, const weir_pace_options *options)
{
    uint16_t codes[WEIR_RING_MAX];
    size_t count = 0;
    /* The ring fills from the front. */
    while (count < options->latency_ring && latency->samples[count] != 0)
        count++;
    if (count == 0)
        return 0;
    memcpy(codes, latency->samples, count * sizeof *codes);
    sort_latencies(codes, count);
    return decode_latency(codes[(count * 95 + 99) / 100 - 1]);
}
