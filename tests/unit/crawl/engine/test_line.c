/* SPDX-License-Identifier: MIT */
/* test_line.c - tests that an output line always has the same members and is valid JSON, whatever a
 * server sent. */
#include "lib/test.h"

#include "base/rng.h"
#include "crawl/engine/output_line.h"

#include <jansson.h>
#include <stdbool.h>

static char memory[65536];

/* Returns the line as jansson parses it; for json_decref. */
static json_t *read_line(const struct wr_output_line *line)
{
    struct wr_buf buf;
    json_error_t error;

    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_output_line_append(&buf, line);
    assert_int_equal(buf.error, 0);
    assert_true(buf.length > 1 && strchr(memory, '\n') == memory + buf.length - 1);
    json_t *object = json_loadb(memory, buf.length - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (object == NULL)
        fail_msg("%s at byte %d of %s", error.text, error.position, memory);
    assert_true(json_is_object(object));
    return object;
}

static const char *text_of(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    assert_non_null(value);
    return json_is_null(value) ? NULL : json_string_value(value);
}

static void assert_text(json_t *object, const char *key, const char *text)
{
    if (text == NULL)
        assert_true(json_is_null(json_object_get(object, key)));
    else
        assert_string_equal(text_of(object, key), text);
}

static struct wr_output_line full_line(void)
{
    static const uint32_t waited[WEIR_REASON_QUEUE + 1] = {
        [WEIR_REASON_PACE] = 100, [WEIR_REASON_ROBOTS_DELAY] = 2000, [WEIR_REASON_QUEUE] = 3};

    return (struct wr_output_line){.url = wr_span_of("https://h.example/a"),
                                   .final_url = wr_span_of("https://h.example/b"),
                                   .status = 200,
                                   .bytes = 12112,
                                   .digest = wr_span_of("xxh128:00"),
                                   .body = wr_span_of("h.example/0.html"),
                                   .content_type = wr_span_of("text/html"),
                                   .title = wr_span_of("Weirs"),
                                   .depth = 2,
                                   .referrer = wr_span_of("https://h.example/"),
                                   .attempts = 1,
                                   .links = 34,
                                   .verdict = WR_VERDICT_FETCHED,
                                   .error = wr_span_of("timeout"),
                                   .error_text = wr_span_of("it took too long"),
                                   .waited = waited,
                                   .dns_ns = 12345,
                                   .connect_ns = 1500000,
                                   .first_byte_ns = INT64_C(20250000999),
                                   .total_ns = 0};
}

static void a_line_has_all_members_in_their_order(void **state)
{
    struct wr_output_line line = full_line();

    (void)state;
    json_decref(read_line(&line));
    assert_string_equal(
        memory,
        "{\"url\": \"https://h.example/a\", \"final_url\": \"https://h.example/b\", \"status\": 200, \"bytes\": "
        "12112, \"digest\": \"xxh128:00\", \"body\": \"h.example/0.html\", \"content_type\": \"text/html\", \"title\": "
        "\"Weirs\", \"depth\": 2, "
        "\"referrer\": \"https://h.example/\", \"attempts\": 1, \"links\": 34, \"verdict\": \"fetched\", \"error\": "
        "\"timeout\", \"error_text\": \"it took too long\", \"wait_ms\": {\"pace\": 100, \"robots_delay\": 2000, "
        "\"queue\": 3}, \"dns_ms\": 0.012, \"connect_ms\": 1.5, \"first_byte_ms\": 20250, \"total_ms\": 0}\n");
}

static void unknown_members_of_a_line_are_null(void **state)
{
    static const char *const nulls[] = {"final_url", "status",     "digest",        "body",    "content_type",
                                        "title",     "referrer",   "links",         "error",   "error_text",
                                        "dns_ms",    "connect_ms", "first_byte_ms", "total_ms"};
    struct wr_output_line line = {.url = wr_span_of("https://h.example/a"),
                                  .error = wr_span_of(""),
                                  .referrer = wr_span_of(""),
                                  .links = -1,
                                  .verdict = WR_VERDICT_ROBOTS,
                                  .dns_ns = -1,
                                  .connect_ns = -1,
                                  .first_byte_ns = -1,
                                  .total_ns = -1};

    (void)state;
    json_t *object = read_line(&line);
    assert_int_equal(json_object_size(object), 20);
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        assert_true(json_is_null(json_object_get(object, nulls[i])));
    assert_text(object, "verdict", "robots");
    assert_int_equal(json_integer_value(json_object_get(object, "bytes")), 0);
    assert_int_equal(json_object_size(json_object_get(object, "wait_ms")), 0);
    json_decref(object);
    line.title = wr_span_of(""); /* an empty title, which is not the same as no title */
    line.links = 0;
    object = read_line(&line);
    assert_text(object, "title", "");
    assert_true(json_is_integer(json_object_get(object, "links")));
    json_decref(object);
}

static void wait_ms_uses_the_names_of_weir_reason_name(void **state)
{
    uint32_t waited[WEIR_REASON_QUEUE + 1];
    struct wr_output_line line = full_line();

    (void)state;
    for (uint32_t i = 0; i <= WEIR_REASON_QUEUE; i++)
        waited[i] = 10 + i;
    line.waited = waited;
    json_t *object = read_line(&line), *told = json_object_get(object, "wait_ms");
    assert_int_equal(json_object_size(told), WEIR_REASON_QUEUE); /* every reason except "none" */
    for (int i = WEIR_REASON_NONE + 1; i <= WEIR_REASON_QUEUE; i++)
        assert_int_equal(json_integer_value(json_object_get(told, weir_reason_name((weir_reason)i))), 10 + i);
    json_decref(object);
}

static void every_verdict_has_a_name(void **state)
{
    static const char *const words[] = {"fetched",   "robots",   "scope",     "depth",   "hops",    "budget",
                                        "trap",      "redirect", "failed",    "expired", "blocked", "too_large",
                                        "cancelled", "damaged",  "unchanged", "not_due", "absent"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_string_equal(wr_page_verdict_name((enum wr_page_verdict)i), words[i]);
    assert_null(wr_page_verdict_name((enum wr_page_verdict)(sizeof words / sizeof words[0])));
}

/* V10 */
static void no_user_or_password_of_a_url_is_shown(void **state)
{
    static const struct {
        const char *url, *shown;
    } rows[] = {
        {"https://me:secret@h.example/a", "https://h.example/a"},
        {"https://me@h.example", "https://h.example"},
        {"https://me:se@cret@h.example/a@b", "https://h.example/a@b"},
        {"https://h.example/a@b", "https://h.example/a@b"},
        {"https://h.example?a@b", "https://h.example?a@b"},
        {"https://h.example#a@b", "https://h.example#a@b"},
        {"https://me:secret@", "https://"},
        {"//me:secret@h.example/", "//h.example/"},
        {"a@b", "a@b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_output_line line = full_line();
        line.url = line.final_url = line.referrer = wr_span_of(rows[i].url);
        json_t *object = read_line(&line);
        assert_text(object, "url", rows[i].shown);
        assert_text(object, "final_url", rows[i].shown);
        assert_text(object, "referrer", rows[i].shown);
        json_decref(object);
    }
}

/* Writes a random text of whole UTF-8 characters, with control characters and quotes. */
static struct wr_span odd_text(struct wr_rng *rng, char *ret_text)
{
    static const char *const pieces[] = {"a",    "\"", "\\",  "\n", "\r",       "\x1b[2J",      "<",
                                         "\x7f", "\t", "\\u", "{",  "\xc3\xa9", "\xe2\x80\xa8", "\xf0\x9f\x98\x80",
                                         "\x01", " "};
    size_t used = 0;

    for (uint64_t left = wr_rng_below(rng, 12); left > 0; left--) {
        const char *piece = pieces[wr_rng_below(rng, sizeof pieces / sizeof pieces[0])];
        memcpy(ret_text + used, piece, strlen(piece));
        used += strlen(piece);
    }
    ret_text[used] = '\0';
    return (struct wr_span){ret_text, used};
}

static void random_text_is_unchanged_after_writing_and_parsing_a_line(void **state)
{
    char title[64], type[64], words[64];
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 5000; i++) {
        struct wr_output_line line = full_line();
        line.title = odd_text(&rng, title);
        line.content_type = odd_text(&rng, type);
        line.error_text = odd_text(&rng, words);
        json_t *object = read_line(&line);
        for (const char *at = memory; at[1] != '\0'; at++)
            assert_true(*at >= ' ' && *at <= '~');
        assert_text(object, "title", title);
        assert_text(object, "content_type", type[0] == '\0' ? NULL : type);
        assert_text(object, "error_text", words[0] == '\0' ? NULL : words);
        json_decref(object);
    }
}

static void any_bytes_give_a_valid_json_line(void **state)
{
    char bytes[6][64];
    struct wr_rng rng;

    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    for (int i = 0; i < 20000; i++) {
        struct wr_output_line line = full_line();
        struct wr_span *texts[] = {&line.url,      &line.final_url, &line.title,
                                   &line.referrer, &line.error,     &line.error_text};
        for (size_t j = 0; j < 6; j++) {
            size_t count = (size_t)wr_rng_below(&rng, sizeof bytes[j]);
            for (size_t k = 0; k < count; k++)
                bytes[j][k] = (char)(wr_rng_below(&rng, 3) == 0 ? "/@:?#\"\\\0"[wr_rng_below(&rng, 8)]
                                                                : (char)wr_rng_below(&rng, 256));
            *texts[j] = (struct wr_span){bytes[j], count};
        }
        json_decref(read_line(&line));
    }
}

WEIR_TESTS(test(a_line_has_all_members_in_their_order), test(unknown_members_of_a_line_are_null),
           test(wait_ms_uses_the_names_of_weir_reason_name), test(every_verdict_has_a_name),
           test(no_user_or_password_of_a_url_is_shown), test(random_text_is_unchanged_after_writing_and_parsing_a_line),
           test(any_bytes_give_a_valid_json_line))
