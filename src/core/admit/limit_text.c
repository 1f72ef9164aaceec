/* SPDX-License-Identifier: MIT */
/* limit_text.c - parses limits and keys from text. */
#include "core/admit/limit_text.h"

#include "base/error.h"
#include "base/parse.h"
#include "core/admit/request_headers.h"

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

/* ---- limits ---------------------------------------------------------------------------------- */

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

int wr_limit_parse(const char *text, weir_limit *ret_limit)
{
    struct wording wording = {.algorithm = {"", 0}};
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

/* ---- keys ------------------------------------------------------------------------------------ */

static bool holds_secret(const char *header)
{
    static const char *const names[] = {"authorization", "proxy-authorization", "cookie", "x-api-key"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(header, names[i]) == 0)
            return true;
    }
    return false;
}

static int parse_header(const char *text, enum wr_key_source source, const char *header, enum wr_key_source *ret_source,
                        const char **ret_header)
{
    if (!wr_header_name_ok(header))
        return wr_invalid_text("key", text, strlen(text), "not the name of a header in lower case", WR_NOWHERE,
                               "write it as header:x-user-id");
    if (source == WR_KEY_FROM_HEADER && holds_secret(header))
        return wr_invalid_text("key", text, strlen(text), "its values are secrets, and keys are shown", WR_NOWHERE,
                               "write token: in place of header:, and only a digest is kept");
    *ret_source = source;
    *ret_header = header;
    return 0;
}

int wr_key_source_parse(const char *text, enum wr_key_source *ret_source, const char **ret_header)
{
    /* Names in the order of enum wr_key_source. */
    static const char *const plain[] = {"global", "ip", "route", "host", "method"};

    if (strncmp(text, "header:", 7) == 0)
        return parse_header(text, WR_KEY_FROM_HEADER, text + 7, ret_source, ret_header);
    if (strncmp(text, "token:", 6) == 0)
        return parse_header(text, WR_KEY_FROM_TOKEN, text + 6, ret_source, ret_header);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (strcmp(text, plain[i]) == 0) {
            *ret_source = (enum wr_key_source)i;
            *ret_header = NULL;
            return 0;
        }
    }
    return wr_invalid_text("key", text, strlen(text), "unknown", WR_NOWHERE,
                           "use ip, global, route, host, method, header:NAME or token:NAME");
}
