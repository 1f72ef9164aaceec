/* SPDX-License-Identifier: MIT */
/* limit_text.c - limits as text:
 *
 *     10/s                     a token bucket: 10 a second, burst of 10
 *     10/s burst=20            a burst of 20
 *     1000/h sliding_window    another algorithm: fixed_window, sliding_window, sliding_log or
 *                              leaky_bucket
 *     concurrent=20            at most 20 in flight
 */
#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/span.h"
#include "core/limit/algorithm.h"

#include <string.h>
#include <weir/limit.h>

static const char limit_right[] =
    "write it as \"10/s\", \"10/s burst=20\", \"1000/h sliding_window\" or \"concurrent=20\"";

static int refuse_limit_at(const char *text, const char *wrong, size_t at)
{
    return wr_invalid_text("limit", text, strlen(text), wrong, at, limit_right);
}

static int refuse_limit_text(const char *text, const char *wrong)
{
    return refuse_limit_at(text, wrong, WR_NOWHERE);
}

/* ---- parsing
 * ---------------------------------------------------------------------------------- */

struct wording {
    bool has_rate, has_burst, has_concurrent, has_algorithm;
    uint32_t count, burst, concurrent;
    int64_t period_ns;
    struct wr_span algorithm;
};

static bool take_named_count(struct wr_span word, const char *name, uint32_t *ret_count)
{
    size_t bytes = strlen(name);
    uint64_t number;

    if (word.bytes <= bytes || memcmp(word.data, name, bytes) != 0 ||
        !wr_scan_u64(word.data + bytes, word.bytes - bytes, 1, WEIR_PERMITS_MAX, &number))
        return false;
    *ret_count = (uint32_t)number;
    return true;
}

static bool is_algorithm(struct wr_span word)
{
    static const char *const names[] = {"token_bucket", "fixed_window", "sliding_window", "sliding_log",
                                        "leaky_bucket"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (wr_span_is(word, names[i]))
            return true;
    }
    return false;
}

/* Parses one word of a limit. Returns 0, or WEIR_E_INVAL with a message if the word is unknown or
 * repeated. */
static int parse_limit_word(struct wording *wording, const char *text, struct wr_span word)
{
    if (!wording->has_rate && wr_span_find(word, '/') < word.bytes) {
        wording->has_rate = wr_parse_rate(word.data, word.bytes, &wording->count, &wording->period_ns) == 0;
        return wording->has_rate ? 0 : WEIR_E_INVAL;
    }
    if (!wording->has_burst && take_named_count(word, "burst=", &wording->burst)) {
        wording->has_burst = true;
    } else if (!wording->has_concurrent && take_named_count(word, "concurrent=", &wording->concurrent)) {
        wording->has_concurrent = true;
    } else if (!wording->has_algorithm && is_algorithm(word)) {
        wording->algorithm = word;
        wording->has_algorithm = true;
    } else {
        return refuse_limit_at(text, "a word that is not understood", (size_t)(word.data - text));
    }
    return 0;
}

static int make_rate(const char *text, const struct wording *wording, weir_limit *ret_limit)
{
    bool is_bucket = !wording->has_algorithm || wr_span_is(wording->algorithm, "token_bucket");
    bool is_leaky = wr_span_is(wording->algorithm, "leaky_bucket");
    uint32_t burst = wording->has_burst ? wording->burst : wording->count;

    if (is_bucket)
        return weir_limit_token_bucket(ret_limit, burst, wording->count, wording->period_ns);
    if (is_leaky && wording->period_ns % wording->count != 0)
        return refuse_limit_text(text, "the period is not a whole number of intervals");
    if (is_leaky)
        return weir_limit_leaky_bucket(ret_limit, burst, wording->period_ns / wording->count);
    if (wording->has_burst)
        return refuse_limit_text(text, "a window has no burst");
    if (wr_span_is(wording->algorithm, "fixed_window"))
        return weir_limit_fixed_window(ret_limit, wording->count, wording->period_ns);
    if (wr_span_is(wording->algorithm, "sliding_window"))
        return weir_limit_sliding_window(ret_limit, wording->count, wording->period_ns);
    return weir_limit_sliding_log(ret_limit, wording->count, wording->period_ns);
}

int weir_limit_parse(const char *text, weir_limit *ret_limit)
{
    struct wording wording = {.algorithm = {"", 0}};
    if (text == NULL || ret_limit == NULL)
        return wr_invalid(text == NULL ? "text is NULL" : "ret_limit is NULL");
    struct wr_span rest = wr_span_trim(wr_span_of(text));

    while (rest.bytes > 0) {
        struct wr_span word = {rest.data, wr_span_find(rest, ' ')};
        if (parse_limit_word(&wording, text, word) < 0)
            return WEIR_E_INVAL;
        rest = wr_span_trim(wr_span_after(rest, word.bytes));
    }
    if (wording.has_rate == wording.has_concurrent)
        return refuse_limit_text(text, wording.has_rate ? "both a rate and concurrent=" : "there is no rate");
    if (wording.has_concurrent && (wording.has_burst || wording.has_algorithm))
        return refuse_limit_text(text, "concurrent= cannot be combined with other words");
    if (wording.has_concurrent)
        return weir_limit_concurrency(ret_limit, wording.concurrent);
    return make_rate(text, &wording, ret_limit);
}

/* ---- formatting ------------------------------------------------------------------------------ */

/* Appends a period in its largest unit that leaves a whole number: "s", "10s", "90m". */
static void append_period(struct wr_buf *buf, int64_t period_ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"d", WEIR_DAY},          {"h", WEIR_HOUR},         {"m", WEIR_MINUTE},     {"s", WEIR_SECOND},
                 {"ms", WEIR_MILLISECOND}, {"us", WEIR_MICROSECOND}, {"ns", WEIR_NANOSECOND}};
    size_t unit = 0;
    while (period_ns % units[unit].ns != 0)
        unit++;
    if (period_ns != units[unit].ns)
        wr_buf_append_u64(buf, (uint64_t)(period_ns / units[unit].ns));
    wr_buf_append_string(buf, units[unit].name);
}

static void append_rate(struct wr_buf *buf, uint32_t count, int64_t period_ns)
{
    wr_buf_append_u64(buf, count);
    wr_buf_append_string(buf, "/");
    append_period(buf, period_ns);
}

static void append_burst(struct wr_buf *buf, uint32_t burst, uint32_t usual)
{
    if (burst == usual)
        return;
    wr_buf_append_string(buf, " burst=");
    wr_buf_append_u64(buf, burst);
}

/* Returns false if the limit has no text: a stepped bucket, or an algorithm of the caller's. */
static bool append_limit(struct wr_buf *buf, const weir_limit *limit)
{
    if (limit->algorithm == &wr_token_bucket) {
        append_rate(buf, limit->refill, limit->period_ns);
        append_burst(buf, limit->permits, limit->refill);
    } else if (limit->algorithm == &wr_leaky_bucket) {
        append_rate(buf, 1, limit->period_ns);
        wr_buf_append_string(buf, " leaky_bucket");
        append_burst(buf, limit->permits, 1);
    } else if (limit->algorithm == &wr_concurrency) {
        wr_buf_append_string(buf, "concurrent=");
        wr_buf_append_u64(buf, limit->permits);
    } else if (limit->algorithm == &wr_fixed_window || limit->algorithm == &wr_sliding_window ||
               limit->algorithm == &wr_sliding_log) {
        append_rate(buf, limit->permits, limit->period_ns);
        wr_buf_append_string(buf, " ");
        wr_buf_append_string(buf, weir_limit_name(limit));
    } else {
        return false;
    }
    return true;
}

int weir_limit_format(const weir_limit *limit, char *buffer, size_t buffer_bytes, size_t *ret_bytes)
{
    struct wr_buf buf;
    if (limit == NULL || limit->algorithm == NULL)
        return wr_invalid("limit is not one that a weir_limit function has made");
    if (buffer == NULL || buffer_bytes == 0)
        return wr_invalid("buffer has no room; WEIR_LIMIT_TEXT_MAX bytes are enough");
    wr_buf_init_fixed(&buf, buffer, buffer_bytes);
    if (!append_limit(&buf, limit))
        return wr_invalid("limit: this algorithm has no text; those of weir_limit_parse have one");
    if (buf.error != 0)
        return WEIR_E_SPACE;
    if (ret_bytes != NULL)
        *ret_bytes = buf.length;
    return 0;
}
