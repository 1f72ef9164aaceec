/* SPDX-License-Identifier: MIT */
/* test_edges.c - tests boundary values of the admission parsers, and the texts of their errors. */
#include "base/ascii.h"
#include "core/admit/admission_result.h"
#include "core/admit/credentials.h"
#include "core/admit/key_source.h"
#include "core/admit/match.h"
#include "core/admit/method.h"
#include "core/admit/numbered_keys.h"
#include "core/admit/ranges.h"
#include "core/admit/request_headers.h"
#include "core/admit/usage_record.h"
#include "lib/test.h"

#include <weir/time.h>

static void retry_after_of_a_refusal_is_whole_seconds_and_at_least_one(void **state)
{
    (void)state;
    static const struct {
        weir_ruling_outcome outcome;
        weir_verdict verdict;
        int64_t wait_ns, seconds;
    } rows[] = {
        {WEIR_OUTCOME_FAILED, WEIR_GO, 0, 1},
        {WEIR_OUTCOME_GRANTED, WEIR_GO, 0, 0},
        {WEIR_OUTCOME_MALFORMED, WEIR_GO, 0, 0},
        {WEIR_OUTCOME_REFUSED, WEIR_DENY, WEIR_UNTIL_RELEASE, 0},
        {WEIR_OUTCOME_REFUSED, WEIR_WAIT, 0, 1},
        {WEIR_OUTCOME_REFUSED, WEIR_WAIT, 1, 1},
        {WEIR_OUTCOME_REFUSED, WEIR_WAIT, WEIR_SECOND, 1},
        {WEIR_OUTCOME_REFUSED, WEIR_WAIT, WEIR_SECOND + 1, 2},
        {WEIR_OUTCOME_REFUSED, WEIR_WAIT, 90 * WEIR_SECOND, 90},
        {WEIR_OUTCOME_REFUSED, WEIR_WAIT, WEIR_UNTIL_RELEASE, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_ruling ruling = {.outcome = rows[i].outcome,
                              .decision = {.verdict = rows[i].verdict, .wait_ns = rows[i].wait_ns}};
        if (wr_retry_after_s(&ruling) != rows[i].seconds)
            fail_msg("row %zu: %lld s", i, (long long)wr_retry_after_s(&ruling));
    }
    assert_int_equal(wr_seconds_up(-1), 0);
    assert_int_equal(wr_seconds_up(INT64_MAX), INT64_MAX / WEIR_SECOND + 1);
}

/* ---- credentials ----------------------------------------------------------------------------- */

static const char basic_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char jwt_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool is_taken(const char *value)
{
    struct wr_span token;
    return wr_credentials_read(wr_span_of(value), &token) == WEIR_FAULT_NONE;
}

static void base64_credential_with_nonzero_unused_bits_is_refused(void **state)
{
    (void)state;
    char text[64];
    for (int i = 0; i < 64; i++) {
        snprintf(text, sizeof text, "Basic QUJDA%c==", basic_digits[i]);
        assert_int_equal(is_taken(text), i % 16 == 0);
        snprintf(text, sizeof text, "Basic QUJDAA%c=", basic_digits[i]);
        assert_int_equal(is_taken(text), i % 4 == 0);
        snprintf(text, sizeof text, "Basic QUJDAAA%c", basic_digits[i]);
        assert_true(is_taken(text));
        snprintf(text, sizeof text, "eyJA.A%c.AAA", jwt_digits[i]);
        assert_int_equal(is_taken(text), i % 16 == 0);
        snprintf(text, sizeof text, "eyJA.AAAA.AA%c", jwt_digits[i]);
        assert_int_equal(is_taken(text), i % 4 == 0);
    }
    assert_false(is_taken("Basic QUJDA-AA")); /* digits of the other base64 alphabet */
    assert_false(is_taken("Basic QUJDA_AA"));
    assert_false(is_taken("eyJA.AA+A.AAA"));
    assert_false(is_taken("eyJA.AA/A.AAA"));
    assert_true(is_taken("Basic =") == false && is_taken("Basic AAA===") == false);
}

static void base64_credential_of_impossible_length_is_refused(void **state)
{
    (void)state;
    for (int length = 1; length <= 24; length++) {
        char text[64];
        snprintf(text, sizeof text, "eyJA.%.*s.AA", length, "AAAAAAAAAAAAAAAAAAAAAAAA");
        if (is_taken(text) != (length % 4 != 1))
            fail_msg("%s", text);
        snprintf(text, sizeof text, "Basic %.*s", length, "AAAAAAAAAAAAAAAAAAAAAAAA");
        if (is_taken(text) != (length % 4 == 0))
            fail_msg("%s", text);
    }
}

/* ---- paths and hosts ------------------------------------------------------------------------- */

static void path_patterns_are_accepted_or_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *words; /* NULL: accepted */
    } rows[] = {
        {"/a%2Fb", NULL},
        {"/%2F", NULL},
        {"/a%2Fb/*", NULL},
        {"**%2Fb", NULL},
        {"/a%2fb", "capitals"},
        {"/a%2", "no request path can match it"},
        {"/a**", NULL},
        {"/a/**", NULL},
        {"**a", NULL},
        {"/a**b", "among other wildcards"},
        {"/**a**", "among other wildcards"},
        {"/a*b**", "among other wildcards"},
        {"*.css", "it does not begin with '/'"},
        {"**", "it does not begin with '/'"},
        {"a**", "it does not begin with '/'"},
        {"", "it does not begin with '/'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_glob pattern;
        int error = wr_glob_parse_path(rows[i].pattern, &pattern);
        if ((error == 0) != (rows[i].words == NULL) ||
            (error != 0 && strstr(weir_error_detail(), rows[i].words) == NULL))
            fail_msg("%s: %s", rows[i].pattern, error != 0 ? weir_error_detail() : "taken");
    }
}

static void host_that_ends_in_a_number_is_an_address_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *host, *spelling; /* NULL: refused */
    } rows[] = {{"0x", NULL},
                {"0X", NULL},
                {"a.0x", NULL},
                {"a.0x1", NULL},
                {"a.1", NULL},
                {"a.0y", "a.0y"},
                {"0", NULL},
                {"x0", "x0"},
                {"a.x", "a.x"},
                {"1.2.3.4", "1.2.3.4"},
                {"1.2.3.4.", "1.2.3.4"},
                {"1.2.3", NULL},
                {"[]", NULL},
                {"[", NULL},
                {"[::1]", "[::1]"},
                {"[::1]:80", "[::1]"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char memory[WR_HOST_MAX + 1];
        struct wr_buf host;
        wr_buf_init_fixed(&host, memory, sizeof memory);
        weir_request_fault fault = wr_host_append(&host, wr_span_of(rows[i].host));
        if ((fault == WEIR_FAULT_NONE) != (rows[i].spelling != NULL) ||
            (fault == WEIR_FAULT_NONE && !wr_span_is(wr_buf_from(&host, 0), rows[i].spelling)))
            fail_msg("%s", rows[i].host);
    }
}

static struct wr_request_reading asked;

static void case_sensitive_patterns_add_a_reading_to_any_path(void **state)
{
    (void)state;
    weir_request request;
    weir_request_init(&request, "GET", "/login", NULL);
    for (unsigned loose = 1; loose <= WR_LOOSE_ALL; loose *= 2) {
        assert_int_equal(wr_request_reading_begin(&request, WR_READS_PATH | WR_READS_LOOSE(loose), 0, &asked),
                         WEIR_FAULT_NONE);
        assert_int_equal(asked.varies, loose);
        assert_true(wr_request_reading_next(&asked));
        assert_int_equal(asked.loose, loose);
        assert_false(wr_request_reading_next(&asked));
        assert_int_equal(asked.loose, 0);
        assert_int_equal(wr_request_reading_begin(&request, WR_READS_LOOSE(loose), 0, &asked), WEIR_FAULT_NONE);
        assert_int_equal(asked.varies, 0); /* no rule compares paths */
    }
    assert_int_equal(
        wr_request_reading_begin(&request, WR_READS_PATH | WR_READS_LOOSE(WR_LOOSE_CASE), WEIR_EXACT_CASE, &asked),
        WEIR_FAULT_NONE);
    assert_int_equal(asked.varies, 0);
    assert_false(wr_request_reading_next(&asked));
}

static void root_path_has_one_reading(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        unsigned varies;
    } rows[] = {{"/", 0},  {"/?a", 0},  {"", 0},         {"?a", 0}, {"/a", 0}, {"/a/", WR_LOOSE_END},
                {"/A", 1}, {"/a/b", 0}, {"http://a/", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wr_target target;
        assert_int_equal(wr_target_read(wr_span_of(rows[i].target), &target), WEIR_FAULT_NONE);
        if ((target.varies & (WR_LOOSE_END | WR_LOOSE_CASE)) != rows[i].varies)
            fail_msg("%s: %u", rows[i].target, target.varies);
    }
}

static void shortest_utf8_form_is_accepted_and_over_long_ones_refused(void **state)
{
    (void)state;
    static const char *const taken[] = {"/%C2%80", "/%DF%BF", "/%E0%A0%80", "/%EF%BF%BD", "/%F0%90%80%80"};
    static const char *const refused[] = {"/%C0%AF",    "/%C1%81",       "/%C1%BF",      "/%E0%9F%BF",
                                          "/%E0%80%AF", "/%F0%8F%BF%BF", "/%F0%80%80%AF"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        struct wr_target target;
        if (wr_target_read(wr_span_of(taken[i]), &target) != WEIR_FAULT_NONE)
            fail_msg("%s was refused", taken[i]);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct wr_target target;
        if (wr_target_read(wr_span_of(refused[i]), &target) == WEIR_FAULT_NONE)
            fail_msg("%s was accepted", refused[i]);
    }
}

static void known_methods_have_one_spelling_where_a_rule_looks_at_them(void **state)
{
    (void)state;
    weir_request request;
    weir_request_init(&request, "geT", "/", NULL);
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_METHOD, 0, &asked), WEIR_FAULT_NONE);
    assert_string_equal(asked.request.method, "GET");
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_PATH | WR_READS_HOST, 0, &asked), WEIR_FAULT_NONE);
    assert_string_equal(asked.request.method, "geT");
    weir_request_init(&request, "brew", "/", NULL);
    assert_int_equal(wr_request_reading_begin(&request, WR_READS_METHOD, 0, &asked), WEIR_FAULT_NONE);
    assert_string_equal(asked.request.method, "brew");
}

/* ---- clients --------------------------------------------------------------------------------- */

static void prefix_of_a_trusted_network_is_at_most_128(void **state)
{
    (void)state;
    weir_request request;
    char buffer[WEIR_KEY_MAX];
    size_t bytes;
    weir_request_init(&request, "GET", "/", "203.0.113.7");
    for (unsigned prefix = 127; prefix <= 130; prefix++) {
        weir_network network = {.prefix = (uint8_t)prefix};
        weir_key_rule key;
        weir_key_rule_init(&key, WEIR_KEY_IP);
        key.trusted = &network;
        key.trusted_count = 1;
        assert_int_equal(weir_key_extract(&key, &request, buffer, sizeof buffer, &bytes, NULL),
                         prefix <= 128 ? 0 : WEIR_E_INVAL);
    }
}

static void prefixes_of_a_key_are_those_of_an_address(void **state)
{
    (void)state;
    static const struct {
        uint8_t v4, v6;
        bool is_ok;
    } rows[] = {{1, 1, true}, {32, 128, true}, {0, 64, false}, {33, 64, false}, {32, 0, false}, {32, 129, false}};
    weir_request request;
    char buffer[WEIR_KEY_MAX];
    size_t bytes;
    weir_request_init(&request, "GET", "/", "203.0.113.7");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_key_rule key, user, composite;
        weir_key_rule_init(&key, WEIR_KEY_IP);
        key.v4_prefix = rows[i].v4;
        key.v6_prefix = rows[i].v6;
        int wanted = rows[i].is_ok ? 0 : WEIR_E_INVAL;
        assert_int_equal(weir_key_extract(&key, &request, buffer, sizeof buffer, &bytes, NULL), wanted);
        weir_key_rule_init(&user, WEIR_KEY_USER); /* user keys ignore the prefixes */
        user.v4_prefix = rows[i].v4;
        user.v6_prefix = rows[i].v6;
        assert_int_equal(weir_key_extract(&user, &request, buffer, sizeof buffer, &bytes, NULL), 0);
        const weir_key_rule *parts[2] = {&key, &user};
        weir_key_rule_init(&composite, WEIR_KEY_COMPOSITE);
        composite.parts = parts;
        composite.parts_count = 2;
        assert_int_equal(weir_key_extract(&composite, &request, buffer, sizeof buffer, &bytes, NULL), wanted);
        parts[0] = &user;
        parts[1] = &key;
        assert_int_equal(weir_key_extract(&composite, &request, buffer, sizeof buffer, &bytes, NULL), wanted);
    }
}

static void request_with_a_null_text_and_a_length_is_refused(void **state)
{
    (void)state;
    for (int what = 0; what < 5; what++) {
        weir_request request;
        weir_request_init(&request, "GET", "/", "203.0.113.7");
        assert_int_equal(wr_request_check(&request), 0);
        request.method = what == 0 ? NULL : request.method;
        request.target = what == 1 ? NULL : request.target;
        request.peer = what == 2 ? NULL : request.peer;
        request.host_bytes = what == 3 ? 1 : 0;
        request.size -= what == 4;
        assert_int_equal(wr_request_check(&request), WEIR_E_INVAL);
    }
    assert_int_equal(wr_request_check(NULL), WEIR_E_INVAL);
}

static void error_of_a_refused_network_quotes_its_text(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"10.0.0.0/33", "network \"10.0.0.0/33\": the prefix is not a number of its bits"},
        {"10.0.0", "network \"10.0.0\": not an IP address"},
        {"10.0.0.1/8", "network \"10.0.0.1/8\": bits are set beyond the prefix"},
    };
    for (size_t i = 0; i < 3; i++) {
        weir_network network;
        assert_int_equal(weir_network_parse(rows[i][0], &network), WEIR_E_INVAL);
        assert_memory_equal(weir_error_detail(), rows[i][1], strlen(rows[i][1]));
    }
}

static void network_contains_its_last_address_and_not_the_next(void **state)
{
    (void)state;
    static const struct {
        const char *network, *last, *after;
    } rows[] = {{"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
                {"10.0.0.0/7", "11.255.255.255", "12.0.0.0"},
                {"2001:db8::/32", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"},
                {"2001:db8::/37", "2001:db8:7ff:ffff:ffff:ffff:ffff:ffff", "2001:db8:800::"},
                {"::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_network network;
        struct wr_range range;
        struct wr_address address;
        assert_int_equal(weir_network_parse(rows[i].network, &network), 0);
        assert_int_equal(wr_ranges_make(&network, 1, &range), 1);
        assert_true(wr_address_parse(wr_span_of(rows[i].last), &address));
        assert_true(wr_ranges_hold(&range, 1, &address));
        if (rows[i].after == NULL)
            continue;
        assert_true(wr_address_parse(wr_span_of(rows[i].after), &address));
        assert_false(wr_ranges_hold(&range, 1, &address));
    }
}

static void peer_is_a_unix_socket_by_its_first_five_bytes(void **state)
{
    (void)state;
    weir_key_rule key;
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trust_unix = true;
    assert_true(wr_peer_is_trusted(&key, (struct wr_span){"unix:/run/x", 11}));
    assert_true(wr_peer_is_trusted(&key, (struct wr_span){"unix:", 5}));
    assert_true(wr_peer_is_trusted(&key, (struct wr_span){"", 0}));
    assert_false(wr_peer_is_trusted(&key, (struct wr_span){"unix:", 4}));
    assert_false(wr_peer_is_trusted(&key, wr_span_of("unixx")));
    key.trust_unix = false;
    assert_false(wr_peer_is_trusted(&key, (struct wr_span){"unix:", 5}));
}

static void peer_is_trusted_by_its_network(void **state)
{
    (void)state;
    weir_network network;
    weir_key_rule key;
    assert_int_equal(weir_network_parse("10.0.0.0/8", &network), 0);
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trusted = &network;
    key.trusted_count = 1;
    assert_true(wr_peer_is_trusted(&key, wr_span_of("10.1.2.3")));
    assert_true(wr_peer_is_trusted(&key, wr_span_of("10.1.2.3:4711")));
    assert_false(wr_peer_is_trusted(&key, wr_span_of("11.1.2.3")));
    assert_false(wr_peer_is_trusted(&key, wr_span_of("unix:/run/x")));
}

static void every_fault_has_a_name_and_a_text_and_unknown_ones_those_of_none(void **state)
{
    (void)state;
    assert_string_equal(weir_request_fault_name(WEIR_FAULT_NONE), "none");
    for (unsigned fault = WEIR_FAULT_NONE + 1; fault < 200; fault++) {
        bool is_known = strcmp(weir_request_fault_name((weir_request_fault)fault), "none") != 0;
        bool has_text =
            strcmp(weir_request_fault_text((weir_request_fault)fault), weir_request_fault_text(WEIR_FAULT_NONE)) != 0;
        assert_int_equal(is_known, has_text);
        assert_true(fault > 3 || is_known);
        assert_true(fault < 30 || !is_known);
    }
}

static void pattern_match_costs_one_step_per_eight_bytes_and_fails_at_zero(void **state)
{
    (void)state;
    static const char text[] = "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct wr_glob pattern;
    uint32_t steps = 100;
    assert_int_equal(strlen(text), 72);
    assert_int_equal(wr_glob_parse_path(text, &pattern), 0);
    assert_true(wr_glob_fits(&pattern, wr_span_of(text), 0, &steps));
    assert_int_equal(steps, 90);
    steps = 9;
    assert_false(wr_glob_fits(&pattern, wr_span_of(text), 0, &steps));
    assert_int_equal(wr_glob_parse_path("/*a*b", &pattern), 0);
    steps = 20;
    assert_false(wr_glob_fits(&pattern, wr_span_of(text), 0, &steps));
    assert_int_equal(steps, 0);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void every_key_source_has_a_name(void **state)
{
    (void)state;
    static const char *const words[] = {"global", "ip", "route", "host", "method"};
    static const enum wr_key_source sources[] = {WR_KEY_FROM_GLOBAL, WR_KEY_FROM_IP, WR_KEY_FROM_ROUTE,
                                                 WR_KEY_FROM_HOST, WR_KEY_FROM_METHOD};
    for (size_t i = 0; i < 5; i++) {
        enum wr_key_source source = WR_KEY_FROM_TOKEN;
        const char *header = "untouched";
        assert_int_equal(wr_key_source_parse(words[i], &source, &header), 0);
        assert_int_equal(source, sources[i]);
        assert_null(header);
    }
}

static void error_of_a_refused_limit_quotes_it_and_says_why(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"7/s leaky_bucket", "the period is not a whole number of intervals"},
        {"10/m fixed_window burst=3", "a window has no burst"},
        {"concurrent=2 burst=3", "concurrent= cannot be combined with other words"},
        {"burst=5", "there is no rate"},
        {"10/s concurrent=2", "both a rate and concurrent="},
        {"10/s fast", "a word that is not understood"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_limit limit;
        char words[128];
        assert_int_equal(weir_limit_parse(rows[i][0], &limit), WEIR_E_INVAL);
        snprintf(words, sizeof words, "\"%s\": %s", rows[i][0], rows[i][1]);
        if (strstr(weir_error_detail(), words) == NULL)
            fail_msg("%s", weir_error_detail());
    }
}

static void sorting_words_reads_no_entry_beyond_the_count(void **state)
{
    (void)state;
    struct wr_numbered_key words[] = {{wr_span_of("fig"), 1}, {wr_span_of("pear"), 2}, {wr_span_of("pear"), 3}};
    assert_null(wr_numbered_keys_sort(words, 2));
    assert_null(wr_numbered_keys_sort(words, 1));
    assert_null(wr_numbered_keys_sort(words, 0));
    assert_non_null(wr_numbered_keys_sort(words, 3));
    struct wr_numbered_key twice[] = {{wr_span_of("fig"), 1}, {wr_span_of("fig"), 2}, {wr_span_of("pear"), 3}};
    assert_non_null(wr_numbered_keys_sort(twice, 2));
    assert_non_null(wr_numbered_keys_sort(twice, 3));
    struct wr_numbered_key many[26];
    static const char letters[] = "qwertyuiopasdfghjklzxcvbnm";
    for (uint32_t i = 0; i < 26; i++)
        many[i] = (struct wr_numbered_key){{letters + i, 1}, i};
    assert_null(wr_numbered_keys_sort(many, 26));
    for (uint32_t i = 0; i < 26; i++)
        assert_int_equal(wr_numbered_keys_find(many, 26, (struct wr_span){letters + i, 1})->number, i);
}

static void longest_key_fits_a_line_of_state_and_a_longer_one_is_refused(void **state)
{
    (void)state;
    static char text[2 * WEIR_KEY_MAX + 64];
    static struct wr_usage_record record;
    for (size_t bytes = WEIR_KEY_MAX - 1; bytes <= WEIR_KEY_MAX + 1; bytes++)
        for (size_t kind = 0; kind < 3; kind++) {
            size_t at = (size_t)snprintf(text, sizeof text, "%c ", "kct"[kind]);
            memset(text + at, '6', 2 * bytes);
            memcpy(text + at + 2 * bytes, " 17", 4);
            assert_int_equal(wr_usage_record_parse(wr_span_of(text), &record), bytes <= WEIR_KEY_MAX);
            if (bytes > WEIR_KEY_MAX)
                continue;
            assert_int_equal(record.kind, "kct"[kind]);
            assert_int_equal(record.key_bytes, bytes);
            assert_int_equal(record.usages[0].used, 17);
        }
}

static void state_record_age_is_at_least_a_nanosecond(void **state)
{
    (void)state;
    static struct wr_usage_record record;
    assert_true(wr_usage_record_parse(wr_span_of("k 61 5/1"), &record));
    assert_int_equal(record.usages[0].back_ns, 1);
    assert_false(wr_usage_record_parse(wr_span_of("k 61 5/0"), &record));
    assert_false(wr_usage_record_parse((struct wr_span){"k 616 5", 7}, &record));
}

static void field_format_errors_name_the_bad_argument(void **state)
{
    (void)state;
    weir_admission_result admission = {.allowed = true};
    char buffer[64];
    size_t bytes;
    (void)weir_field_format(NULL, WEIR_FIELD_RETRY_AFTER, 0, buffer, sizeof buffer, &bytes);
    assert_non_null(strstr(weir_error_detail(), "the admission is NULL"));
    (void)weir_field_format(&admission, WEIR_FIELD_RETRY_AFTER, 0, NULL, 0, &bytes);
    assert_non_null(strstr(weir_error_detail(), "no buffer or no ret_bytes"));
    (void)weir_field_format(&admission, WEIR_FIELD_RETRY_AFTER, -1, buffer, sizeof buffer, &bytes);
    assert_non_null(strstr(weir_error_detail(), "wall_ns is not a time of day"));
    (void)weir_fields_format(&admission, 1U << 30, 0, buffer, sizeof buffer, &bytes);
    assert_non_null(strstr(weir_error_detail(), "unknown bits"));
}

WEIR_TESTS(test(peer_is_trusted_by_its_network), test(every_fault_has_a_name_and_a_text_and_unknown_ones_those_of_none),
           test(pattern_match_costs_one_step_per_eight_bytes_and_fails_at_zero),
           test(state_record_age_is_at_least_a_nanosecond), test(prefixes_of_a_key_are_those_of_an_address),
           test(request_with_a_null_text_and_a_length_is_refused), test(error_of_a_refused_network_quotes_its_text),
           test(network_contains_its_last_address_and_not_the_next),
           test(shortest_utf8_form_is_accepted_and_over_long_ones_refused),
           test(retry_after_of_a_refusal_is_whole_seconds_and_at_least_one),
           test(base64_credential_with_nonzero_unused_bits_is_refused),
           test(base64_credential_of_impossible_length_is_refused),
           test(path_patterns_are_accepted_or_refused_with_a_reason),
           test(host_that_ends_in_a_number_is_an_address_or_refused),
           test(case_sensitive_patterns_add_a_reading_to_any_path), test(root_path_has_one_reading),
           test(known_methods_have_one_spelling_where_a_rule_looks_at_them),
           test(prefix_of_a_trusted_network_is_at_most_128), test(peer_is_a_unix_socket_by_its_first_five_bytes),
           test(every_key_source_has_a_name), test(error_of_a_refused_limit_quotes_it_and_says_why),
           test(sorting_words_reads_no_entry_beyond_the_count),
           test(longest_key_fits_a_line_of_state_and_a_longer_one_is_refused),
           test(field_format_errors_name_the_bad_argument))
