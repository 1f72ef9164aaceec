/* SPDX-License-Identifier: MIT */
/* test_sources.c - settings from the command line, the environment and a file: their precedence,
 * and errors. */
#include "lib/test.h"

#include <unistd.h>
#include <weir/error.h>
#include <weir/time.h>

#include "cli/crawl/crawl_settings.h"
#include "cli/fetch/fetch_command.h"
#include "cli/kit/console.h"
#include "cli/kit/sources.h"
#include "cli/warm/warm_settings.h"
#include "core/pace/pace_options.h"

struct settings {
    struct wr_sources sources;
    struct wr_pace_flags pace;
    bool flag;
    uint64_t count, size;
    int64_t duration;
    int choice;
    const char *string, *secret;
    struct wr_option_list list;
};

static const char *const colours[] = {"red", "green", NULL};

static const struct wr_option options[] = {
    {"flag", WR_FLAG(struct settings, flag), .help = "a flag"},
    {"count", WR_COUNT(struct settings, count), .value = "N", .min = 1, .max = 100, .help = "a count"},
    {"size", WR_SIZE(struct settings, size), .value = "SIZE", .max = 1 << 20, .help = "a size"},
    {"duration", WR_DURATION(struct settings, duration), .value = "D", .max = (uint64_t)WEIR_HOUR, .help = "a time"},
    {"colour", WR_CHOICE(struct settings, choice), .choices = colours, .help = "a choice"},
    {"name", WR_STRING(struct settings, string), .value = "NAME", .help = "a text"},
    {"two-words", WR_STRING(struct settings, secret), .value = "RATE", .check = wr_check_rate, .help = "a rate"},
    {"also", WR_LIST(struct settings, list), .value = "WORD", .help = "words"},
    WR_PACE_OPTIONS(struct settings, pace),
    WR_CONFIG_OPTION(struct settings, sources, NULL),
};
static const struct wr_usage usage = {
    .who = "weir door",
    .section = "door",
    .operands = "URL…",
    .operands_max = 2,
    .about = "",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

#define FILE_NAME "sources.yaml"
#define WORDS_MAX 16

struct run {
    bool go;
    int status, count;
    struct settings settings;
    char said[1024];
};

static void write_file(const char *text, size_t bytes)
{
    FILE *file = fopen(FILE_NAME, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

/* Parses these arguments. `file` is the text of the configuration file; NULL: there is no file. */
static struct run parse(const char *file, char *words[WORDS_MAX])
{
    struct run run = {.settings = {.count = 7, .pace = {.attempts = 3}}};
    FILE *said = tmpfile();
    assert_non_null(said);
    if (file != NULL) {
        write_file(file, strlen(file));
        setenv("WEIR_CONFIG", FILE_NAME, 1);
    }
    while (words[run.count] != NULL)
        run.count++;
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    run.go = wr_options_parse(&usage, &run.count, words, &run.settings, &run.status);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(said);
    run.said[fread(run.said, 1, sizeof run.said - 1, said)] = '\0';
    fclose(said);
    unsetenv("WEIR_CONFIG");
    unlink(FILE_NAME);
    return run;
}

#define PARSE(file, ...) parse(file, (char *[WORDS_MAX]){__VA_ARGS__})

static void assert_refused(struct run run, const char *said)
{
    char line[1024];
    snprintf(line, sizeof line, "weir door: %s\n", said);
    assert_false(run.go);
    assert_int_equal(run.status, WR_EXIT_USAGE);
    assert_string_equal(run.said, line);
}

static void assert_from(const struct run *run, const char *name, enum wr_value_source_kind kind, uint32_t line)
{
    const struct wr_option *option = wr_option_find(&usage, name, strlen(name));
    assert_int_equal(run->settings.sources.of[option - options].kind, kind);
    assert_int_equal(run->settings.sources.of[option - options].line, line);
}

/* ---- precedence ---- */

static void every_kind_of_setting_is_read_from_a_file(void **state)
{
    (void)state;
    struct run run = PARSE("door:\n  flag: true\n  count: 5\n  size: 64k\n  duration: 90s\n  colour: green\n"
                           "  name: a text\n  two-words: 2.5\n  also: [x, 'y']\n",
                           NULL);
    assert_true(run.go);
    assert_true(run.settings.flag);
    assert_int_equal(run.settings.count, 5);
    assert_int_equal(run.settings.size, 65536);
    assert_int_equal(run.settings.duration, 90 * WEIR_SECOND);
    assert_int_equal(run.settings.choice, 1);
    assert_string_equal(run.settings.string, "a text");
    assert_string_equal(run.settings.secret, "2.5");
    assert_int_equal(run.settings.list.count, 2);
    assert_string_equal(run.settings.list.items[1], "y");
    assert_from(&run, "count", WR_FROM_FILE, 3);
    assert_from(&run, "also", WR_FROM_FILE, 9);
    assert_from(&run, "interval", WR_FROM_DEFAULT, 0);
}

static void every_kind_of_setting_is_read_from_the_environment(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"FLAG", "1"},   {"COUNT", "5"},       {"SIZE", "64k"},        {"DURATION", "90s"},
        {"NAME", "a b"}, {"TWO_WORDS", "2.5"}, {"ALSO", "x\n\ny z\n"}, {"COLOUR", "green"},
    };
    char name[32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "WEIR_DOOR_%s", names[i][0]);
        setenv(name, names[i][1], 1);
    }
    struct run run = PARSE(NULL, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "WEIR_DOOR_%s", names[i][0]);
        unsetenv(name);
    }
    assert_true(run.go);
    assert_true(run.settings.flag);
    assert_int_equal(run.settings.count, 5);
    assert_int_equal(run.settings.size, 65536);
    assert_int_equal(run.settings.duration, 90 * WEIR_SECOND);
    assert_int_equal(run.settings.choice, 1);
    assert_string_equal(run.settings.string, "a b");
    assert_int_equal(run.settings.list.count, 2);
    assert_string_equal(run.settings.list.items[0], "x");
    assert_string_equal(run.settings.list.items[1], "y z");
    assert_from(&run, "count", WR_FROM_ENVIRONMENT, 0);
}

static void flag_overrides_environment_overrides_file_overrides_default(void **state)
{
    (void)state;
    static const char file[] = "door:\n  count: 10\n  also: [a, b]\n  flag: true\n";
    assert_int_equal(PARSE(NULL, NULL).settings.count, 7);
    assert_int_equal(PARSE(file, NULL).settings.count, 10);
    setenv("WEIR_DOOR_COUNT", "20", 1);
    setenv("WEIR_DOOR_ALSO", "c", 1);
    struct run run = PARSE(file, NULL);
    assert_int_equal(run.settings.count, 20);
    assert_int_equal(run.settings.list.count, 1); /* a list is replaced as a whole */
    assert_string_equal(run.settings.list.items[0], "c");
    run = PARSE(file, "--count=30", "--also", "d", "--also", "e", "--flag=false");
    assert_int_equal(run.settings.count, 30);
    assert_from(&run, "count", WR_FROM_FLAG, 0);
    assert_int_equal(run.settings.list.count, 2);
    assert_string_equal(run.settings.list.items[0], "d");
    assert_false(run.settings.flag);
    unsetenv("WEIR_DOOR_COUNT");
    unsetenv("WEIR_DOOR_ALSO");
}

static void section_of_a_command_overrides_the_pace_section(void **state)
{
    (void)state;
    static const char both[] = "pace: {interval: 1s}\ndoor: {interval: 2s}\n";
    static const char turned[] = "door: {interval: 2s}\npace: {interval: 1s}\n";
    assert_int_equal(PARSE("pace: {interval: 1s}\n", NULL).settings.pace.interval, WEIR_SECOND);
    assert_int_equal(PARSE(both, NULL).settings.pace.interval, 2 * WEIR_SECOND);
    assert_int_equal(PARSE(turned, NULL).settings.pace.interval, 2 * WEIR_SECOND);
    setenv("WEIR_PACE_INTERVAL", "3s", 1);
    assert_int_equal(PARSE(both, NULL).settings.pace.interval, 3 * WEIR_SECOND);
    setenv("WEIR_DOOR_INTERVAL", "4s", 1);
    assert_int_equal(PARSE(both, NULL).settings.pace.interval, 4 * WEIR_SECOND);
    assert_int_equal(PARSE(both, "--set", "pace.interval=5s").settings.pace.interval, 5 * WEIR_SECOND);
    assert_int_equal(PARSE(both, "--interval=6s", "--set", "pace.interval=5s").settings.pace.interval, 6 * WEIR_SECOND);
    unsetenv("WEIR_PACE_INTERVAL");
    unsetenv("WEIR_DOOR_INTERVAL");
}

static void config_file_is_named_by_flag_or_environment(void **state)
{
    (void)state;
    /* no file, whatever the environment says */
    struct run run = PARSE("door: {count: 5}\n", "--config", "");
    assert_true(run.go);
    assert_int_equal(run.settings.count, 7);
    assert_null(run.settings.sources.file);
    run = PARSE("door: {count: 5}\n", "--config", "/nonexistent/weir.yaml");
    assert_refused(run, "/nonexistent/weir.yaml: No such file or directory; name a file that exists, or write one as "
                        "docs/guide/configuring.md shows");
    run = PARSE("door: {count: 5}\n", "--config=" FILE_NAME);
    assert_int_equal(run.settings.count, 5);
}

static void empty_files_sections_and_variables_leave_the_defaults(void **state)
{
    (void)state;
    setenv("WEIR_DOOR_COUNT", "", 1);
    assert_int_equal(PARSE("", NULL).settings.count, 7);
    assert_int_equal(PARSE("# nothing\n", NULL).settings.count, 7);
    assert_int_equal(PARSE("door:\npace: {}\ncrawl: ~\n", NULL).settings.count, 7);
    unsetenv("WEIR_DOOR_COUNT");
}

/* ---- errors ---- */

static void config_file_mistakes_are_reported_with_line_column_and_hint(void **state)
{
    (void)state;
    static const struct {
        const char *file, *said;
    } rows[] = {
        {"dor: {}\n", ":1:1: unknown key \"dor\" in the file; did you mean \"door\"?"},
        {"door:\n  cuont: 5\n", ":2:3: unknown key \"cuont\" in door; did you mean count?"},
        {"door: {zzzz: 5}\n", ":1:8: unknown key in door; \"man weir.yaml\" lists them all"},
        {"door: {config: x}\n", ":1:8: unknown key in door; \"man weir.yaml\" lists them all"},
        {"door: {count: 5, count: 6}\n", ":1:18: count is given twice; remove one of them"},
        {"door: {count: 0}\n", ":1:15: count: number \"0\": too small; use 1 ... 100"},
        {"door: {count: '5'}\n", ":1:15: count is a text in quotes; it must be a whole number from 1 to 100"},
        {"door: {count: [5]}\n", ":1:15: count is a list; it must be a whole number from 1 to 100"},
        {"door: {count: {a: 5}}\n", ":1:15: count is a mapping; it must be a whole number from 1 to 100"},
        {"door: {count: }\n", ":1:15: count has no value; leave it out, or write a whole number from 1 to 100"},
        {"door: {flag: yes}\n", ":1:14: flag cannot be \"yes\": it must be true or false"},
        {"door: {colour: blue}\n", ":1:16: colour cannot be \"blue\": it must be one of red, green"},
        {"door: {duration: 2h}\n",
         ":1:18: duration cannot be \"2h\": it must be a duration such as 500ms or 2h, from 0 to 1h"},
        {"door: {two-words: fast}\n",
         ":1:19: two-words: number \"fast\": not a digit at character 1; use 0 ... 1000000000"},
        {"door: {name: \"a\\0b\"}\n", ":1:14: name has control characters; it must be a text without them"},
        {"pace: {opne: 5s}\n", ":1:8: unknown key \"opne\" in pace; did you mean open?"},
        {"pace: {open: 0.1ms}\n", ":1:14: open cannot be \"0.1ms\": it must be a duration of 1ms or more"},
        {"pace: {burst: 0.5}\n", ":1:15: burst cannot be \"0.5\": it must be 1 ... 1e9 starts"},
        {"pace: {breaker: maybe}\n", ":1:17: breaker cannot be \"maybe\": it must be true or false"},
        {"pace: {profile: fast}\n", ":1:17: profile cannot be \"fast\": it must be one of adaptive, aimd, strict, "
                                    "learned, unlimited, origin-tuned"},
        {"pace: {robots-delay-factor: 0}\n",
         ":1:29: robots-delay-factor cannot be \"0\": it must be a factor of 0.01 ... 100"},
        {"crawl: {dpeth: 5}\n", ":1:9: unknown key \"dpeth\" in crawl; did you mean depth?"},
        {"fetch: {redirects: 1001}\n", ":1:20: redirects: number \"1001\": too large; use 0 ... 1000"},
        {"warm: {header: [secret]}\n",
         ":1:17: header: it is not a line \"Name: value\", as in \"Accept-Language: en\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char said[512];
        snprintf(said, sizeof said, "%s%s", FILE_NAME, rows[i].said);
        assert_refused(PARSE(rows[i].file, NULL), said);
    }
}

static void environment_mistakes_are_reported_by_variable_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *said;
    } rows[] = {
        {"WEIR_DOOR_CUONT", "5", "the environment's WEIR_DOOR_CUONT is unknown; did you mean count?"},
        {"WEIR_DOOR_COUNT", "x",
         "the environment's WEIR_DOOR_COUNT: number \"x\": not a digit at character 1; use 1 ... 100"},
        {"WEIR_DOOR_FLAG", "yes", "the environment's WEIR_DOOR_FLAG cannot be \"yes\": it must be true or false"},
        {"WEIR_PACE_OPEN", "x",
         "the environment's WEIR_PACE_OPEN cannot be \"x\": it must be a duration of 1ms or more"},
        {"WEIR_PACE_Z", "x", "the environment's WEIR_PACE_Z is unknown; \"man weir.yaml\" lists them all"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv(rows[i].name, rows[i].value, 1);
        struct run run = PARSE(NULL, NULL);
        unsetenv(rows[i].name);
        assert_refused(run, rows[i].said);
    }
}

static void option_set_mistakes_are_reported_with_a_hint(void **state)
{
    (void)state;
    assert_refused(PARSE(NULL, "--set", "open=5s"),
                   "--set cannot be \"open=5s\": it must be pace.NAME=VALUE, as in --set pace.open=30s");
    assert_refused(PARSE(NULL, "--set", "pace.open"),
                   "--set cannot be \"pace.open\": it must be pace.NAME=VALUE, as in --set pace.open=30s");
    assert_refused(PARSE(NULL, "--set", "pace.opne=5s"), "--set has no setting pace.opne; did you mean pace.open?");
    assert_refused(PARSE(NULL, "--set", "pace.open=x"),
                   "--set: pace.open cannot be \"x\": it must be a duration of 1ms or more");
    assert_refused(PARSE(NULL, "--set"), "--set needs a value: pace.NAME=VALUE");
}

static void hostile_config_files_give_one_error_line(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "door: &a {count: 5}\npace: *a\n",
        "door: {<<: {count: 5}}\n",
        "door: !!map {count: 5}\n",
        "door: {count: 5}\n---\ndoor: {count: 6}\n",
        "door:\n\tcount: 5\n",
        "door: {name: \xff\xfe}\n",
        "door: {? [a] : b}\n",
        "rules: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "door: {also: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "[",
        "- door\n",
        "\x1b[31mdoor: 1\n",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct run run = PARSE(rows[i], NULL);
        assert_false(run.go);
        assert_memory_equal(run.said, "weir door: " FILE_NAME ":", strlen("weir door: " FILE_NAME ":"));
        assert_ptr_equal(strchr(run.said, '\n'), run.said + strlen(run.said) - 1);
        assert_null(strchr(run.said, '\x1b'));
    }
}

/* ---- saved arguments of jobs, and the option tables ---- */

static void settings_of_file_and_environment_become_arguments(void **state)
{
    (void)state;
    setenv("WEIR_DOOR_DURATION", "90s", 1);
    struct run run = PARSE("door: {flag: true, count: 5, size: 64k, colour: green, name: a b, also: [x, y]}\n"
                           "pace: {open: 30s, interval: 1.5s}\n",
                           "--count=6");
    unsetenv("WEIR_DOOR_DURATION");
    int count = 0;
    char **words = wr_sources_args(&usage, &run.settings, &count);
    static const char *const expected[] = {"--flag=true",    "--size=64k",        "--duration=90s",
                                           "--colour=green", "--name=a b",        "--also=x",
                                           "--also=y",       "--interval=1500ms", "--set=pace.open=30s"};
    assert_int_equal(count, sizeof expected / sizeof expected[0]);
    for (int i = 0; i < count; i++)
        assert_string_equal(words[i], expected[i]);
    assert_null(words[count]);
    struct settings again = {.count = 7};
    assert_true(wr_options_read(&usage, &count, words, &again));
    assert_int_equal(again.size, 65536);
    assert_int_equal(again.pace.interval, 1500 * WEIR_MILLISECOND);
    free(words);
}

static void every_pace_option_has_a_name_in_the_config_file(void **state)
{
    (void)state;
    static const char *const others[][2] = {{"min_interval", "interval"},
                                            {"max_in_flight", "per-host"},
                                            {"cancel_after", "cancel-after-429"},
                                            {"retry_attempts", "attempts"}};
    size_t index, count = 0;
    for (size_t i = 0; wr_pace_option_name(i) != NULL; i++, count++) {
        char name[64];
        snprintf(name, sizeof name, "%s", wr_pace_option_name(i));
        for (char *c = name; *c != '\0'; c++)
            *c = *c == '_' ? '-' : *c;
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            if (strcmp(wr_pace_option_name(i), others[k][0]) == 0)
                snprintf(name, sizeof name, "%s", others[k][1]);
        if (!wr_pace_find(wr_span_of(name), &index))
            fail_msg("%s", name);
        assert_non_null(wr_pace_expected(index));
    }
    assert_true(count > 40);
    for (index = 0; wr_pace_name(index) != NULL; index++)
        assert_non_null(wr_pace_expected(index));
    /* profile, robots-delay-factor, max-hosts, shards and ttl */
    assert_int_equal(index, count + 5);
}

/* Returns a value that differs from the default of this setting. */
static const char *other_value(size_t index)
{
    const char *wanted = wr_pace_expected(index), *name = wr_pace_name(index);
    if (strcmp(name, "strategy") == 0 || strcmp(name, "profile") == 0)
        return "aimd";
    if (strstr(wanted, "true") != NULL)
        return strcmp(name, "breaker") == 0 ? "false" : "true";
    if (strstr(wanted, "duration") != NULL)
        return strcmp(name, "window") == 0 || strstr(name, "max") != NULL ? "99s" : "777ms";
    return strstr(wanted, "0.") != NULL || strcmp(name, "min-rate") == 0 ? "0.125" : "7";
}

static bool reaches(size_t index, const struct settings *settings, const weir_pace_options *pace)
{
    char is[64] = "", was[64] = "";
    weir_pace_options usual;
    struct wr_pacer_settings more;
    struct wr_buf buf;
    weir_pace_options_init(&usual);
    wr_buf_init_fixed(&buf, is, sizeof is);
    wr_pace_append(&buf, &settings->pace.named, pace, index);
    wr_buf_init_fixed(&buf, was, sizeof was);
    wr_pace_append(&buf, &(struct wr_pace_texts){.text = {NULL}}, &usual, index);
    wr_pacer_settings_make(&settings->pace, &more);
    if (strcmp(wr_pace_name(index), "profile") == 0)
        return pace->profile == WEIR_PROFILE_AIMD;
    if (was[0] != '\0')
        return strcmp(is, was) != 0;
    return more.max_hosts == 7 || more.shards == 7 || more.ttl_ns == 777 * WEIR_MILLISECOND ||
           more.delay_factor == 0.125;
}

static void every_pace_setting_reaches_the_pacer(void **state)
{
    (void)state;
    for (size_t i = 0; wr_pace_name(i) != NULL; i++) {
        char file[128];
        weir_pace_options pace = {.size = 0};
        snprintf(file, sizeof file, "pace: {%s: %s}\n", wr_pace_name(i), other_value(i));
        struct run run = PARSE(file, NULL);
        if (!run.go || wr_pace_options_from_flags(&run.settings.pace, &pace) != 0)
            fail_msg("%s%s: %s", file, run.said, weir_error_detail());
        if (!reaches(i, &run.settings, &pace))
            fail_msg("%s changed nothing", file);
    }
}

static void contradictory_pace_settings_are_refused(void **state)
{
    (void)state;
    weir_pace_options pace;
    struct run run = PARSE("pace: {min-rate: 5, rate-ceiling: 4}\n", NULL);
    assert_true(run.go);
    assert_int_equal(wr_pace_options_from_flags(&run.settings.pace, &pace), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(),
                        "pace: the option min-rate is above rate-ceiling; it must be at most that");
}

static void option_tables_of_all_sections_fit_the_origin_array(void **state)
{
    (void)state;
    for (size_t i = 0; wr_sections[i] != NULL; i++) {
        assert_true(wr_sections[i]->count <= WR_OPTIONS_MAX);
        assert_non_null(wr_option_find(wr_sections[i], "config", strlen("config")));
        for (const char *c = wr_sections[i]->section; *c != '\0'; c++)
            assert_true(*c >= 'a' && *c <= 'z');
    }
}

WEIR_TESTS(test(every_kind_of_setting_is_read_from_a_file), test(every_kind_of_setting_is_read_from_the_environment),
           test(flag_overrides_environment_overrides_file_overrides_default),
           test(section_of_a_command_overrides_the_pace_section), test(config_file_is_named_by_flag_or_environment),
           test(empty_files_sections_and_variables_leave_the_defaults),
           test(config_file_mistakes_are_reported_with_line_column_and_hint),
           test(environment_mistakes_are_reported_by_variable_name), test(option_set_mistakes_are_reported_with_a_hint),
           test(hostile_config_files_give_one_error_line), test(settings_of_file_and_environment_become_arguments),
           test(every_pace_option_has_a_name_in_the_config_file), test(every_pace_setting_reaches_the_pacer),
           test(contradictory_pace_settings_are_refused), test(option_tables_of_all_sections_fit_the_origin_array))
