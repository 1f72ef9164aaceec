/* SPDX-License-Identifier: MIT */
/* key_stream.c - generates the sequence of keys for a benchmark. */
#include "cli/bench/key_stream.h"

#include <math.h>
#include <stdlib.h>
#include <weir/error.h>

#include "base/rng.h"

#define DIGIT_BITS 5
#define DIGITS_MAX 7 /* 7 digits of 5 bits make 2^35 different keys */

/* A prime above the maximum number of keys. Multiplication by it modulo the number of keys permutes
 * them, so that the popular keys were not created one after the other. */
#define SCATTER UINT64_C(2654435761)

static size_t key_digit_count(size_t key_bytes)
{
    return key_bytes < DIGITS_MAX ? key_bytes : DIGITS_MAX;
}

uint64_t wr_key_stream_keys_max(size_t key_bytes)
{
    return UINT64_C(1) << (DIGIT_BITS * key_digit_count(key_bytes));
}

void wr_key_stream_key(uint64_t number, size_t key_bytes, char *ret_text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    /* Common prefix of the keys of a service, repeated to fill the key. */
    static const char prefix[] = "tenant:user:";
    size_t digits = key_digit_count(key_bytes), prefix_bytes = key_bytes - digits;
    /* SCATTER is odd, so different numbers stay different in the lower bits. */
    uint64_t rest = number * SCATTER;
    for (size_t i = 0; i < prefix_bytes; i++)
        ret_text[i] = prefix[i % (sizeof prefix - 1)];
    for (size_t i = prefix_bytes; i < key_bytes; i++) {
        ret_text[i] = letters[rest % (1 << DIGIT_BITS)];
        rest >>= DIGIT_BITS;
    }
}

/* Zipf's distribution with exponent 1 by rejection-inversion (Hoermann and Derflinger 1996):
 * inverts the integral of 1/x and rejects values above the step. */
struct zipf {
    double keys, low, high, sure;
};

static struct zipf zipf_of(size_t keys)
{
    return (struct zipf){
        .keys = (double)keys,
        .low = log(1.5) - 1,
        .high = log((double)keys + 0.5),
        .sure = 2 - exp(log(2.5) - 0.5),
    };
}

/* Draws a number in 1 ... keys. */
static uint64_t zipf_draw(const struct zipf *zipf, struct wr_rng *rng)
{
    for (;;) {
        double u = zipf->high + wr_rng_unit(rng) * (zipf->low - zipf->high);
        double x = exp(u);
        double k = fmin(fmax(floor(x + 0.5), 1), zipf->keys);
        if (k - x <= zipf->sure || u >= log(k + 0.5) - 1 / k)
            return (uint64_t)k;
    }
}

static void draw_key_numbers(uint64_t *ret_numbers, size_t count, size_t keys, enum wr_key_distribution dist,
                             uint64_t seed)
{
    struct wr_rng rng;
    struct zipf zipf = zipf_of(keys);
    wr_rng_init(&rng, seed);
    for (size_t i = 0; i < count; i++)
        switch (dist) {
        case WR_DIST_ONE:
            ret_numbers[i] = 0;
            break;
        case WR_DIST_UNIFORM:
            ret_numbers[i] = wr_rng_below(&rng, keys);
            break;
        case WR_DIST_ZIPF:
            ret_numbers[i] = zipf_draw(&zipf, &rng) * SCATTER % keys;
            break;
        }
}

int wr_key_stream_init(struct wr_key_stream *ret_stream, size_t count, size_t keys, size_t key_bytes,
                       enum wr_key_distribution dist, uint64_t seed)
{
    struct wr_key_stream stream = {.count = count, .key_bytes = key_bytes};
    stream.texts = malloc(count * key_bytes);
    stream.numbers = malloc(count * sizeof *stream.numbers);
    if (stream.texts == NULL || stream.numbers == NULL) {
        wr_key_stream_release(&stream);
        return WEIR_E_NOMEM;
    }
    draw_key_numbers(stream.numbers, count, keys, dist, seed);
    for (size_t i = 0; i < count; i++)
        wr_key_stream_key(stream.numbers[i], key_bytes, stream.texts + i * key_bytes);
    *ret_stream = stream;
    return 0;
}

void wr_key_stream_release(struct wr_key_stream *stream)
{
    free(stream->texts);
    free(stream->numbers);
}
