/* SPDX-License-Identifier: MIT */
/* test_options.c - the table-driven option parser that every command uses. */
#include "lib/test.h"

#include <unistd.h>
#include <weir/time.h>

#include "base/nearest.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"

struct settings {
    bool flag;
    uint64_t count, size;
    int64_t duration;
    int choice;
    const char *string;
    struct wr_option_list list;
};

static const char *const colours[] = {"red", "green", NULL};

static const struct wr_option options[] = {
    {"flag", WR_FLAG(struct settings, flag), .help = "a flag"},
    {"count", WR_COUNT(struct settings, count), .value = "N", .min = 1, .max = UINT64_MAX, .help = "a count"},
    {"size", WR_SIZE(struct settings, size), .value = "SIZE", .min = 1024, .max = 1 << 20, .help = "a size"},
    {"duration", WR_DURATION(struct settings, duration), .value = "TIME", .min = 0, .max = (uint64_t)WEIR_HOUR,
     .help = "a duration"},
    {"colour", WR_CHOICE(struct settings, choice), .choices = colours, .help = "a choice"},
    {"name", WR_STRING(struct settings, string), .value = "NAME", .help = "a text"},
    {"also", WR_LIST(struct settings, list), .value = "WORD", .help = "a word of several"},
};

static const struct wr_usage usage = {
    .who = "weir test",
    .operands = "URL…",
    .operands_min = 0,
    .operands_max = 2,
    .about = "A test.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static const struct settings defaults = {
    .count = 7, .size = 4096, .duration = 90 * WEIR_SECOND, .choice = 1, .string = "weir"};

/* Result of parsing one command line: its output on `stream`, the return value, the status and the
 * settings. */
struct run {
    bool go;
    int status, operands;
    struct settings settings;
    char said[2048];
};

#define WORDS_MAX 16

static int divert(FILE *stream, FILE *to)
{
    int saved = dup(fileno(stream));
    fflush(stream);
    dup2(fileno(to), fileno(stream));
    return saved;
}

static void restore(FILE *stream, int saved)
{
    fflush(stream);
    dup2(saved, fileno(stream));
    close(saved);
}

static struct run parse(const struct wr_usage *how, FILE *stream, char *words[WORDS_MAX])
{
    struct run run = {.settings = defaults, .status = -1};
    FILE *file = tmpfile();
    assert_non_null(file);
    while (words[run.operands] != NULL)
        run.operands++;
    int saved = divert(stream, file);
    run.go = wr_options_parse(how, &run.operands, words, &run.settings, &run.status);
    restore(stream, saved);
    rewind(file);
    run.said[fread(run.said, 1, sizeof run.said - 1, file)] = '\0';
    fclose(file);
    return run;
}

#define PARSE(...) parse(&usage, stderr, (char *[WORDS_MAX]){__VA_ARGS__})

static void assert_refused(struct run run, const char *because)
{
    assert_false(run.go);
    assert_int_equal(run.status, WR_EXIT_USAGE);
    assert_memory_equal(run.said, "weir test: ", 11);
    if (strstr(run.said, because) == NULL)
        fail_msg("said \"%s\", not \"%s\"", run.said, because);
    assert_ptr_equal(strchr(run.said, '\n'), run.said + strlen(run.said) - 1);
}

static void empty_command_line_leaves_the_defaults(void **state)
{
    (void)state;
    struct run run = PARSE(NULL);
    assert_true(run.go);
    assert_int_equal(run.operands, 0);
    assert_false(run.settings.flag);
    assert_int_equal(run.settings.count, 7);
    assert_string_equal(run.settings.string, "weir");
}

static void every_kind_of_value_is_stored(void **state)
{
    (void)state;
    struct run run = PARSE("--flag", "--count=18446744073709551615", "--size", "64k", "--duration", "1.5s", "--colour",
                           "red", "--name=");
    assert_true(run.go);
    assert_true(run.settings.flag);
    assert_true(run.settings.count == UINT64_MAX);
    assert_int_equal(run.settings.size, 65536);
    assert_int_equal(run.settings.duration, 1500 * WEIR_MILLISECOND);
    assert_int_equal(run.settings.choice, 0);
    assert_string_equal(run.settings.string, "");
}

static void list_option_keeps_all_values_in_order(void **state)
{
    (void)state;
    struct run run = PARSE("--also", "a", "x", "--also=b", "--also", "a");
    assert_true(run.go);
    assert_int_equal(run.settings.list.count, 3);
    assert_string_equal(run.settings.list.items[0], "a");
    assert_string_equal(run.settings.list.items[1], "b");
    assert_string_equal(run.settings.list.items[2], "a");
    assert_refused(PARSE("--also"), "needs a value: WORD");
}

static void list_option_with_too_many_values_is_refused(void **state)
{
    (void)state;
    char *words[WR_OPTION_LIST_MAX + 2] = {NULL};
    char word[] = "--also=a";
    for (size_t i = 0; i <= WR_OPTION_LIST_MAX; i++)
        words[i] = word;
    assert_refused(parse(&usage, stderr, words), "more than 64 times");
}

static void value_may_look_like_an_option(void **state)
{
    (void)state;
    assert_string_equal(PARSE("--name", "--flag").settings.string, "--flag");
    assert_string_equal(PARSE("--name=a=b").settings.string, "a=b");
}

static void operands_may_stand_between_options_and_keep_their_order(void **state)
{
    (void)state;
    char *words[WORDS_MAX] = {"one", "--count", "5", "--", "--flag"};
    struct run run = parse(&usage, stderr, words);
    assert_true(run.go);
    assert_int_equal(run.operands, 2);
    assert_string_equal(words[0], "one");
    assert_string_equal(words[1], "--flag");
    assert_int_equal(run.settings.count, 5);
    assert_false(run.settings.flag);
    assert_int_equal(PARSE("-").operands, 1);
}

static void wrong_number_of_operands_is_refused(void **state)
{
    (void)state;
    struct wr_usage wants = usage;
    wants.operands_min = 1;
    assert_refused(PARSE("a", "b", "c"), "unexpected \"c\"; expected URL…");
    assert_refused(parse(&wants, stderr, (char *[WORDS_MAX]){NULL}), "expected URL…; \"weir test --help\" explains");
}

static void invalid_option_value_is_refused_with_the_valid_range(void **state)
{
    (void)state;
    assert_refused(PARSE("--count", "0"), "--count: number \"0\": too small; use 1 ... 18446744073709551615");
    assert_refused(PARSE("--size", "1023"), "a size such as 64k or 1.5M, from 1024 to 1048576 bytes");
    assert_refused(PARSE("--size", "2M"), "from 1024 to 1048576 bytes");
    assert_refused(PARSE("--duration", "61m"), "a duration such as 500ms or 2h, from 0 to 1h");
    assert_refused(PARSE("--duration=1.5 s"), "--duration: duration \"1.5 s\": unknown unit at character 4");
    assert_refused(PARSE("--size=64q"), "--size: size \"64q\": unknown unit at character 3");
    assert_refused(PARSE("--colour", "blue"), "one of red, green");
    assert_refused(PARSE("--name"), "--name needs a value: NAME");
}

static void help_shows_defaults_of_every_kind(void **state)
{
    (void)state;
    struct run run = parse(&usage, stdout, (char *[WORDS_MAX]){"--count", "5", "--help"});
    assert_false(run.go);
    assert_int_equal(run.status, WR_EXIT_OK);
    assert_string_equal(run.said, "usage: weir test [OPTION]… URL…\n"
                                  "\n"
                                  "A test.\n"
                                  "\n"
                                  "  --flag                  a flag\n"
                                  "  --count N               a count (default 7)\n"
                                  "  --size SIZE             a size (default 4k)\n"
                                  "  --duration TIME         a duration (default 90s)\n"
                                  "  --colour red|green      a choice (default green)\n"
                                  "  --name NAME             a text (default weir)\n"
                                  "  --also WORD             a word of several\n"
                                  "  -h, --help              Show this text\n");
}

static void nearest_word_is_the_one_with_few_typing_errors(void **state)
{
    (void)state;
    static const struct {
        const char *word, *best;
    } lines[] = {
        {"keys", "keys"}, {"kyes", "keys"}, {"key", "keys"}, {"keyss", "keys"}, {"threds", "threads"},
        {"k", NULL},      {"sheep", NULL},  {"", NULL},      {"xeyz", NULL},    {"bathces", NULL},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct wr_nearest nearest = {.word = lines[i].word};
        wr_nearest_offer(&nearest, "threads");
        wr_nearest_offer(&nearest, "keys");
        wr_nearest_offer(&nearest, "a-word-of-more-than-thirty-two-letters");
        if (lines[i].best == NULL)
            assert_null(nearest.best);
        else
            assert_string_equal(nearest.best, lines[i].best);
    }
}

WEIR_TESTS(test(empty_command_line_leaves_the_defaults), test(every_kind_of_value_is_stored),
           test(list_option_keeps_all_values_in_order), test(list_option_with_too_many_values_is_refused),
           test(value_may_look_like_an_option), test(operands_may_stand_between_options_and_keep_their_order),
           test(wrong_number_of_operands_is_refused), test(invalid_option_value_is_refused_with_the_valid_range),
           test(help_shows_defaults_of_every_kind), test(nearest_word_is_the_one_with_few_typing_errors))
