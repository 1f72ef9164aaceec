/* SPDX-License-Identifier: MIT */
/* test_panel_parts.c - tests of the parts of a dashboard: queries, samples, host histories, tokens,
 * rules. */
#include "lib/test.h"

#include "limiter/memory/memory.h"
#include "watch/dashboard/dashboard_query.h"
#include "watch/dashboard/host_history.h"
#include "watch/dashboard/rules_source.h"
#include "watch/dashboard/sample_history.h"
#include "watch/dashboard/token.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const weir_allocator *system_allocator(void)
{
    return wr_allocator_or_system(NULL);
}

/* ---- queries ---- */

static void query_is_decoded_into_its_parts(void **state)
{
    struct wr_dashboard_query query;
    struct wr_dashboard_since since;
    (void)state;
    assert_int_equal(wr_dashboard_query_parse(wr_span_of("view=hosts&sort=wait&reverse=1&most=500&q=a%26b+%C3%b6&name="
                                                         "x.example%3a80&run=0123456789abcdef&since=42&other=%00"),
                                              &query, &since),
                     0);
    assert_string_equal(query.view, "hosts");
    assert_string_equal(query.sort, "wait");
    assert_string_equal(query.text, "a&b \xc3\xb6");
    assert_string_equal(query.name, "x.example:80");
    assert_true(query.is_reversed);
    assert_int_equal(query.most, 500);
    assert_string_equal(since.run, "0123456789abcdef");
    assert_int_equal(since.number, 42);
}

static void empty_query_is_the_overview(void **state)
{
    struct wr_dashboard_query query, same;
    struct wr_dashboard_since since;
    (void)state;
    assert_int_equal(wr_dashboard_query_parse((struct wr_span){NULL, 0}, &query, &since), 0);
    assert_string_equal(query.view, "overview");
    assert_int_equal(wr_dashboard_query_parse(wr_span_of("&&=&view=overview&"), &same, &since), 0);
    assert_memory_equal(&query, &same, sizeof query);
}

static void invalid_query_is_refused(void **state)
{
    static const char *const bad[] = {"view=%",
                                      "view=%4",
                                      "view=%gg",
                                      "view=%00",
                                      "view=0123456789abcdef",
                                      "most=0",
                                      "most=501",
                                      "most=",
                                      "most=-1",
                                      "reverse=2",
                                      "since=x",
                                      "since=1%30",
                                      "q=%zz",
                                      "run=0123456789abcdef0",
                                      "since=18446744073709551616"};
    struct wr_dashboard_query query;
    struct wr_dashboard_since since;
    char longest[1024] = "q=";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wr_dashboard_query_parse(wr_span_of(bad[i]), &query, &since), WEIR_E_INVAL);
    memset(longest + 2, 'a', WR_DASHBOARD_TEXT_MAX);
    assert_int_equal(wr_dashboard_query_parse(wr_span_of(longest), &query, &since), 0);
    longest[2 + WR_DASHBOARD_TEXT_MAX] = 'a';
    assert_int_equal(wr_dashboard_query_parse(wr_span_of(longest), &query, &since), WEIR_E_INVAL);
}

/* ---- samples ---- */

static void keep(struct wr_sample_history *history, const char *text)
{
    wr_buf_append_string(wr_sample_history_next(history), text);
    wr_sample_history_commit(history);
}

static void assert_history(const struct wr_sample_history *history, uint64_t since, size_t most_bytes,
                           const char *expected)
{
    struct wr_buf buf;
    char memory[256];
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_sample_history_append(history, since, most_bytes, &buf);
    assert_string_equal(memory, expected);
}

static void history_has_the_last_samples_in_order(void **state)
{
    struct wr_sample_history history;
    (void)state;
    assert_int_equal(wr_sample_history_init(&history, 4, system_allocator()), 0);
    assert_history(&history, 0, 100, "");
    assert_int_equal(wr_sample_history_last(&history).bytes, 0);
    keep(&history, "1");
    keep(&history, "2");
    assert_history(&history, 0, 100, "1,2");
    keep(&history, "3");
    keep(&history, "4");
    keep(&history, "5");
    assert_history(&history, 0, 100, "3,4,5"); /* the fourth place is reserved for the next one */
    assert_history(&history, 4, 100, "5");
    assert_history(&history, 5, 100, "");
    assert_history(&history, 99, 100, "");
    assert_history(&history, 0, 4, "4,5"); /* the newest that fit */
    assert_true(wr_span_is(wr_sample_history_last(&history), "5"));
    wr_sample_history_release(&history);
}

static void too_long_sample_is_not_kept(void **state)
{
    struct wr_sample_history history;
    (void)state;
    assert_int_equal(wr_sample_history_init(&history, 4, system_allocator()), 0);
    keep(&history, "1");
    struct wr_buf *next = wr_sample_history_next(&history);
    for (int i = 0; i < WR_DASHBOARD_SAMPLE_MAX + 1; i++)
        wr_buf_append_char(next, 'x');
    wr_sample_history_commit(&history);
    assert_int_equal(history.number, 1);
    keep(&history, "2");
    assert_history(&history, 0, 100, "1,2");
    wr_sample_history_release(&history);
}

/* ---- host histories ---- */

static json_t *trail_of(const struct wr_host_history *trail, const char *key)
{
    struct wr_buf buf;
    json_error_t mistake;
    wr_buf_init(&buf, system_allocator(), 1 << 20);
    wr_host_history_append(trail, key, &buf);
    json_t *root = json_loadb(buf.bytes, buf.length, 0, &mistake);
    assert_non_null(root);
    wr_buf_release(&buf);
    return root;
}

static void mark(struct wr_host_history *trail, const char *key, double rate, int64_t now)
{
    struct wr_host_view host = {.rate = rate, .allowed_rate = (double)INFINITY, .cap = UINT32_MAX, .in_flight = 2};
    memcpy(host.key, key, strlen(key) + 1);
    wr_host_history_record(trail, &host, now, now + WEIR_DAY);
}

static void host_history_has_one_mark_in_five_seconds(void **state)
{
    struct wr_host_history *trail;
    (void)state;
    assert_int_equal(wr_host_history_new(system_allocator(), &trail), 0);
    for (int64_t second = 0; second < 20; second++)
        mark(trail, "a.example", (double)second, second * WEIR_SECOND);
    json_t *marks = trail_of(trail, "a.example");
    assert_int_equal(json_array_size(marks), 4);
    const json_t *last = json_array_get(marks, 3);
    assert_int_equal(json_integer_value(json_array_get(last, 0)), (15 + 86400) * 1000);
    assert_float_equal(json_number_value(json_array_get(last, 1)), 15, 0);
    assert_true(json_is_null(json_array_get(last, 2)));
    assert_int_equal(json_integer_value(json_array_get(last, 3)), 2);
    assert_true(json_is_null(json_array_get(last, 5)));
    json_decref(marks);
    marks = trail_of(trail, "b.example");
    assert_int_equal(json_array_size(marks), 0);
    json_decref(marks);
    wr_host_history_free(trail);
}

static void host_histories_are_bounded_and_the_oldest_is_evicted(void **state)
{
    struct wr_host_history *trail;
    char key[32];
    (void)state;
    assert_int_equal(wr_host_history_new(system_allocator(), &trail), 0);
    for (int64_t i = 0; i < 2 * WR_HOST_HISTORY_RECORDS; i++)
        mark(trail, "long.example", (double)i, i * WR_HOST_HISTORY_INTERVAL_NS);
    json_t *marks = trail_of(trail, "long.example");
    assert_int_equal(json_array_size(marks), WR_HOST_HISTORY_RECORDS);
    assert_float_equal(json_number_value(json_array_get(json_array_get(marks, 0), 1)), WR_HOST_HISTORY_RECORDS, 0);
    json_decref(marks);
    for (int64_t i = 0; i < WR_HOST_HISTORY_HOSTS; i++) {
        (void)snprintf(key, sizeof key, "%d.example", (int)i);
        mark(trail, key, 1, (1000 + i) * WEIR_MINUTE);
    }
    marks = trail_of(trail, "long.example");
    assert_int_equal(json_array_size(marks), 0);
    json_decref(marks);
    marks = trail_of(trail, "0.example");
    assert_int_equal(json_array_size(marks), 1);
    json_decref(marks);
    wr_host_history_free(trail);
}

/* ---- tokens ---- */

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void token_file_is_created_private_and_read_again(void **state)
{
    char folder[] = "/tmp/weir-token-XXXXXX", path[64], first[WR_DASHBOARD_TOKEN_ROOM], second[WR_DASHBOARD_TOKEN_ROOM];
    struct stat status;
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/token", folder);
    assert_int_equal(wr_dashboard_token_read(path, first), 0);
    assert_int_equal(strlen(first), 32);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(wr_dashboard_token_read(path, second), 0);
    assert_string_equal(first, second);
    assert_int_equal(wr_dashboard_token_generate(second), 0);
    assert_string_not_equal(first, second);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void token_file_readable_by_others_or_without_a_valid_token_is_refused(void **state)
{
    static const char *const bad[] = {
        "", "\n", "short\n", "0123456789abcde\n", "with a blank inside\n", "umlaut\xc3\xb6umlautumlaut\n"};
    char folder[] = "/tmp/weir-token-XXXXXX", path[64], token[WR_DASHBOARD_TOKEN_ROOM] = "untouched";
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/token", folder);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(path, bad[i], 0600);
        assert_int_equal(wr_dashboard_token_read(path, token), WEIR_E_INVAL);
    }
    write_file(path, "0123456789abcdef\n", 0644);
    assert_int_equal(wr_dashboard_token_read(path, token), WEIR_E_INVAL);
    assert_string_equal(token, "untouched");
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(wr_dashboard_token_read(path, token), 0);
    assert_string_equal(token, "0123456789abcdef");
    assert_int_equal(wr_dashboard_secret_read(path, 1, token), 0);
    write_file(path, "s\n", 0600);
    assert_int_equal(wr_dashboard_secret_read(path, 1, token), 0);
    assert_string_equal(token, "s");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(wr_dashboard_secret_read(path, 1, token), WEIR_E_ABSENT);
    assert_int_equal(wr_dashboard_token_read("/nowhere/token", token), WEIR_E_SYSTEM);
    assert_int_equal(rmdir(folder), 0);
}

/* On file systems with ACLs systemd gives files of LoadCredential= mode 0440 and group root. */
static void secret_of_root_may_be_readable_by_roots_group_only(void **state)
{
    char folder[] = "/tmp/weir-token-XXXXXX", path[64], token[WR_DASHBOARD_TOKEN_ROOM];
    (void)state;
    if (geteuid() != 0)
        SKIP("only root can make files that belong to root");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/token", folder);
    write_file(path, "0123456789abcdef\n", 0440);
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(wr_dashboard_token_read(path, token), 0);
    static const mode_t modes[] = {0444, 0460, 0404, 0442};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(wr_dashboard_token_read(path, token), WEIR_E_INVAL);
    }
    assert_int_equal(chmod(path, 0440), 0);
    assert_int_equal(chown(path, 0, 1), 0);
    assert_int_equal(wr_dashboard_token_read(path, token), WEIR_E_INVAL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void short_token_is_refused(void **state)
{
    static const char *const views[] = {"overview", NULL};
    const struct wr_dashboard_source source = {.kind = "crawl", .views = views};
    struct wr_dashboard_options options = {.source = &source, .token = "short"};
    struct wr_dashboard *panel = NULL;
    (void)state;
    assert_int_equal(wr_dashboard_new(&options, &panel), WEIR_E_INVAL);
    options.token = "0123456789abcdef";
    assert_int_equal(wr_dashboard_new(&options, &panel), 0);
    wr_dashboard_free(panel);
}

/* ---- rules ---- */

struct rules {
    struct wr_rules *book;
    struct wr_dashboard_rules *shown;
    int reloads;
};

static int reload(void *context, char *ret_why, size_t why_bytes)
{
    struct rules *rules = context;
    (void)snprintf(ret_why, why_bytes, "line 3: <b>no</b>");
    return rules->reloads++ == 0 ? 0 : WEIR_E_INVAL;
}

static int open_rules(void **state)
{
    static struct rules rules;
    static struct wr_rules_settings settings;
    char why[WR_CONFIG_WHY_BYTES] = "";
    wr_rules_settings_init(&settings);
    settings.rule_count = 1;
    (void)snprintf(settings.rules[0].name, sizeof settings.rules[0].name, "api");
    (void)snprintf(settings.rules[0].key[0], sizeof settings.rules[0].key[0], "header:x-key");
    (void)snprintf(settings.rules[0].limits[0], sizeof settings.rules[0].limits[0], "2/h");
    settings.rules[0].key_count = settings.rules[0].limit_count = 1;
    settings.rules[0].cost = settings.rules[0].cost_max = 1;
    (void)snprintf(settings.rules[0].match.methods[0], sizeof settings.rules[0].match.methods[0], "GET");
    (void)snprintf(settings.rules[0].match.methods[1], sizeof settings.rules[0].match.methods[1], "HEAD");
    (void)snprintf(settings.rules[0].match.paths[0], sizeof settings.rules[0].match.paths[0], "/api/*");
    (void)snprintf(settings.rules[0].match.headers[0].name, sizeof settings.rules[0].match.headers[0].name, "x-key");
    settings.rules[0].match.method_count = 2;
    settings.rules[0].match.path_count = settings.rules[0].match.header_count = 1;
    rules = (struct rules){.book = NULL};
    if (wr_rules_new(&settings, NULL, &rules.book, why, sizeof why) != 0) {
        print_message("%s\n", why);
        return 1;
    }
    *state = &rules;
    return wr_dashboard_rules_new(&(struct wr_dashboard_rules_options){rules.book, "weir.yaml", reload, &rules},
                                  &rules.shown);
}

static int close_rules(void **state)
{
    struct rules *rules = *state;
    wr_dashboard_rules_free(rules->shown);
    wr_rules_free(rules->book);
    return 0;
}

static json_t *view_of(const struct rules *rules, const char *name)
{
    const struct wr_dashboard_source *source = wr_dashboard_rules_source(rules->shown);
    struct wr_dashboard_query query = {.most = 50};
    struct wr_buf buf;
    json_error_t mistake;
    wr_buf_init(&buf, system_allocator(), 1 << 20);
    memcpy(query.view, name, strlen(name) + 1);
    if (strcmp(name, "sample") == 0)
        source->sample(source->context, &buf);
    else
        source->view(source->context, &query, &buf);
    json_t *root = json_loadb(buf.bytes, buf.length, 0, &mistake);
    assert_non_null(root);
    assert_null(memchr(buf.bytes, '<', buf.length));
    assert_null(memchr(buf.bytes, '\n', buf.length));
    wr_buf_release(&buf);
    return root;
}

static bool is_done(const struct rules *rules, const char *request)
{
    const struct wr_dashboard_source *source = wr_dashboard_rules_source(rules->shown);
    struct wr_buf buf;
    json_error_t mistake;
    wr_buf_init(&buf, system_allocator(), 1 << 20);
    source->command(source->context, wr_span_of(request), &buf);
    json_t *root = json_loadb(buf.bytes, buf.length, 0, &mistake);
    bool ok = json_is_true(json_object_get(root, "ok"));
    assert_non_null(root);
    json_decref(root);
    wr_buf_release(&buf);
    return ok;
}

static void ask_api(const struct rules *rules, const char *key, int times)
{
    struct wr_verdict verdict;
    for (int i = 0; i < times; i++)
        assert_int_equal(wr_rules_try_key(rules->book, "api", key, strlen(key), 0, &verdict), 0);
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void rules_are_shown_with_their_decisions_and_top_keys(void **state)
{
    const struct rules *rules = *state;
    static const char hostile[] = "<img src=x onerror=1>";
    ask_api(rules, hostile, 5);
    ask_api(rules, "b", 3);
    json_t *sample = view_of(rules, "sample"), *view = view_of(rules, "rules"), *overview = view_of(rules, "overview");
    const json_t *rule = json_array_get(json_object_get(view, "rules"), 0), *top = json_object_get(rule, "top");
    assert_int_equal(number(rule, "allowed"), 4);
    assert_int_equal(number(rule, "denied"), 4);
    assert_int_equal(number(rule, "keys"), 2);
    assert_int_equal(number(sample, "keys"), 2);
    assert_int_equal(json_array_size(top), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(top, 0), "key")), hostile);
    assert_int_equal(number(json_array_get(top, 0), "denied"), 3);
    assert_int_equal(number(json_array_get(top, 0), "remaining"), 0);
    assert_string_equal(json_string_value(json_object_get(rule, "match")), "GET|HEAD /api/* x-key");
    assert_string_equal(json_string_value(json_object_get(rule, "by")), "header:x-key");
    assert_string_equal(json_string_value(json_object_get(rule, "limit")), "2/h");
    assert_string_equal(json_string_value(json_object_get(view, "file")), "weir.yaml");
    assert_null(json_object_get(json_array_get(json_object_get(overview, "rules"), 0), "top"));
    json_decref(sample);
    json_decref(view);
    json_decref(overview);
}

static void dashboard_commands_reset_a_key_and_reload_the_rules(void **state)
{
    struct rules *rules = *state;
    struct wr_verdict verdict;
    ask_api(rules, "a", 3);
    assert_int_equal(wr_rules_try_key(rules->book, "api", "a", 1, 0, &verdict), 0);
    assert_false(verdict.allowed);
    assert_true(is_done(rules, "{\"ask\":\"reset\",\"rule\":\"api\",\"key\":\"a\"}"));
    assert_int_equal(wr_rules_try_key(rules->book, "api", "a", 1, 0, &verdict), 0);
    assert_true(verdict.allowed);
    assert_false(is_done(rules, "{\"ask\":\"reset\",\"rule\":\"api\",\"key\":\"nobody\"}"));
    assert_false(is_done(rules, "{\"ask\":\"reset\",\"rule\":\"none\",\"key\":\"a\"}"));
    assert_false(is_done(rules, "{\"ask\":\"reset\"}"));
    assert_true(is_done(rules, "{\"ask\":\"reload\"}"));
    assert_false(is_done(rules, "{\"ask\":\"reload\"}"));
    assert_int_equal(rules->reloads, 2);
    assert_false(is_done(rules, "{\"ask\":\"reload\",\"ask\":\"reset\"}"));
    assert_false(is_done(rules, "[]"));
    assert_false(is_done(rules, ""));
    assert_int_equal(rules->reloads, 2);
}

WEIR_TESTS(test(query_is_decoded_into_its_parts), test(empty_query_is_the_overview), test(invalid_query_is_refused),
           test(history_has_the_last_samples_in_order), test(too_long_sample_is_not_kept),
           test(host_history_has_one_mark_in_five_seconds), test(host_histories_are_bounded_and_the_oldest_is_evicted),
           test(token_file_is_created_private_and_read_again),
           test(token_file_readable_by_others_or_without_a_valid_token_is_refused),
           test(secret_of_root_may_be_readable_by_roots_group_only), test(short_token_is_refused),
           cmocka_unit_test_setup_teardown(rules_are_shown_with_their_decisions_and_top_keys, open_rules, close_rules),
           cmocka_unit_test_setup_teardown(dashboard_commands_reset_a_key_and_reload_the_rules, open_rules,
                                           close_rules))
