/* SPDX-License-Identifier: MIT */
/* config_command.c - weir config: prints the settings in force and checks settings files. */
#include "cli/config/config_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/crawl/crawl_command.h"
#include "cli/crawl/crawl_settings.h"
#include "cli/fetch/fetch_command.h"
#include "cli/kit/command.h"
#include "cli/kit/complete.h"
#include "cli/kit/console.h"
#include "cli/kit/sanitise.h"
#include "cli/kit/show_settings.h"
#include "cli/kit/sources.h"
#include "cli/serve/serve_command.h"
#include "cli/warm/warm.h"
#include "cli/warm/warm_settings.h"
#include "limiter/memory/memory.h"
#include "serve/rules/rules.h"

#define WORDS_MAX 256
#define SECTIONS_MAX 16

static int run_config_check(int argc, char **argv);

/* Commands with a section in the settings file. Each of them also needs a line in `list`. */
const struct wr_usage *const wr_sections[] = {&wr_crawl_usage, &wr_fetch_usage, &wr_serve_usage, &wr_warm_usage, NULL};

static const struct wr_command list[] = {
    {"check", "Check a file of settings", run_config_check, NULL},
    {"crawl", "Print the settings of weir crawl", wr_crawl_run, NULL},
    {"fetch", "Print the settings of weir fetch", wr_fetch_run, NULL},
    {"serve", "Print the settings of weir serve", wr_serve_run, NULL},
    {"warm", "Print the settings of weir warm", wr_warm_run, NULL},
};

static const struct wr_commands commands = {
    .who = "weir config",
    .about = "Prints the settings in force, and where each comes from: a flag, the environment, a\n"
             "file or the default. The output is a valid settings file.\n"
             "\n"
             "  weir config                                   settings of all commands\n"
             "  weir config crawl                             settings of weir crawl\n"
             "  weir config crawl --config weir.yaml --depth 3    settings with these options\n"
             "  weir config crawl --json                      settings as JSON\n"
             "  weir config check weir.yaml                   check a file",
    .list = list,
    .count = sizeof list / sizeof list[0],
};

struct config_settings {
    struct wr_sources sources;
    bool json;
};

static const struct wr_option options[] = {
    WR_CONFIG_OPTION(struct config_settings, sources, NULL),
    {"json", WR_FLAG(struct config_settings, json), .help = "Print JSON"},
};

/* Options of "weir config" itself, without a command. */
static const struct wr_usage usage = {
    .who = "weir config", .options = options, .count = sizeof options / sizeof options[0]};

static bool is_json; /* --json was given; holds for all commands of this run */

/* ---- check ---- */

/* Prints the result for a file as JSON. A message such as "weir.yaml:3:7: ..." is split into line,
 * column and problem; a position that is missing is left out. */
static void print_verdict(const char *path, int error, const char *why)
{
    unsigned line = 0, column = 0;
    int bytes = 0;
    const char *problem = error == 0 ? "" : why;
    if (error != 0 && strncmp(why, path, strlen(path)) == 0)
        problem = why + strlen(path);
    if (sscanf(problem, ":%u:%u: %n", &line, &column, &bytes) == 2)
        problem += bytes;
    else if (strncmp(problem, ": ", 2) == 0)
        problem += 2;
    wr_print("{\"file\": ");
    wr_print_json_string(wr_span_of(path));
    wr_print(", \"sound\": %s", error == 0 ? "true" : "false");
    if (line > 0)
        wr_print(", \"line\": %u, \"column\": %u", line, column);
    if (error != 0) {
        wr_print(", \"problem\": ");
        wr_print_json_string(wr_span_of(problem));
    }
    wr_print("}\n");
}

/* Adds an arbitrary rule, so that a file without rules passes the checks that hold for all
 * rules. */
static void add_placeholder_rule(struct wr_rules_settings *book)
{
    struct wr_rule_settings *rule = &book->rules[book->rule_count++];
    *rule = (struct wr_rule_settings){.name = "any", .limits = {"1/s"}, .limit_count = 1, .cost = 1};
}

/* Placeholder for a URL that weir serve reads from --store-file. */
static const char store_elsewhere[] = "unix:/";

/* Reads and checks the rules of the daemon. The other sections are skipped: wr_sources_check covers
 * them. */
static int read_daemon_rules(const char *path, struct wr_rules_settings *book, char *ret_why, size_t why_bytes)
{
    struct wr_config_field fields[SECTIONS_MAX] = {
        {"rules", WR_CONFIG_LIST(struct wr_rules_settings, rules, rule_count, &wr_rules_rule_field)},
        {"admission", WR_CONFIG_GROUP(&wr_rules_admission_schema)},
        {"pace", WR_CONFIG_OTHERS},
    };
    struct wr_config_schema schema = {
        .name = "the file", .bytes = sizeof *book, .fields = fields, .count = 3, .may_be_empty = true};
    for (size_t i = 0; wr_sections[i] != NULL; i++)
        fields[schema.count++] = (struct wr_config_field){.name = wr_sections[i]->section, WR_CONFIG_OTHERS};
    int error = wr_config_read(&schema, path, wr_allocator_or_system(NULL), book, ret_why, why_bytes);
    if (error != 0)
        return error;
    if (book->rule_count == 0)
        add_placeholder_rule(book);
    if (book->store.nodes > 0 && book->store.url[0] == '\0')
        memcpy(book->store.url, store_elsewhere, sizeof store_elsewhere);
    char why[WR_CONFIG_WHY_BYTES] = "";
    struct wr_buf buf;
    error = wr_rules_check(book, why, sizeof why);
    wr_buf_init_fixed(&buf, ret_why, why_bytes);
    wr_buf_append_string(&buf, path);
    wr_buf_append_string(&buf, ": ");
    wr_buf_append_string(&buf, why);
    return error;
}

static int check_daemon_rules(const char *path, char *ret_why, size_t why_bytes)
{
    /* The settings are too large for the stack: megabytes. */
    struct wr_rules_settings *book = malloc(sizeof *book);
    if (book == NULL) {
        snprintf(ret_why, why_bytes, "out of memory");
        return WEIR_E_NOMEM;
    }
    wr_rules_settings_init(book);
    int error = read_daemon_rules(path, book, ret_why, why_bytes);
    free(book);
    return error;
}

static int check_file(const char *path)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    int error = wr_sources_check(path, why, sizeof why);
    if (error == 0)
        error = check_daemon_rules(path, why, sizeof why);
    if (is_json)
        print_verdict(path, error, why);
    else if (error == 0)
        wr_print("%s is valid\n", path);
    if (error != 0 && !is_json)
        wr_complain("%s", why);
    return error == 0 ? WR_EXIT_OK : WR_EXIT_FAILED;
}

static int run_config_check(int argc, char **argv)
{
    static const struct wr_usage check_usage = {
        .who = "weir config check",
        .operands = "FILE",
        .operands_min = 1,
        .operands_max = 1,
        .about = "Checks a file of settings. Prints each error with its place and what would be right. Exits with\n"
                 "0 if the file is valid, else with 1.\n",
        .options = &options[1],
        .count = 1,
    };
    struct config_settings settings = {.json = false};
    int status;
    if (!wr_options_parse(&check_usage, &argc, argv, &settings, &status))
        return status;
    return check_file(argv[0]);
}

/* ---- printing ---- */

/* Prints the settings of all commands from the same file. */
static int show_all(int argc, char **argv)
{
    char *words[WORDS_MAX];
    int status = WR_EXIT_OK;
    for (size_t i = 1; i < commands.count && status == WR_EXIT_OK; i++) {
        /* A copy of the arguments, because the parser reorders them. */
        memcpy(words, argv, (size_t)argc * sizeof *argv);
        status = commands.list[i].run(argc, words);
    }
    return status;
}

/* Checks arguments that name no command: only options of "weir config" are allowed. Returns false
 * after printing an error. */
static bool args_ok(int argc, char **argv)
{
    struct config_settings settings = {.json = false};
    char *words[WORDS_MAX];
    if (argc > WORDS_MAX) {
        wr_complain("too many arguments; name a command first: \"weir config crawl --depth 3\"");
        return false;
    }
    memcpy(words, argv, (size_t)argc * sizeof *argv);
    return wr_options_read(&usage, &argc, words, &settings);
}

/* Removes --json from the arguments, at any position, and remembers it. It belongs to weir config;
 * a command may give --json another meaning. Returns the number of arguments left. */
static int take_json_flag(int argc, char **argv)
{
    int left = 0;
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else
            argv[left++] = argv[i];
    return left;
}

int wr_config_run(int argc, char **argv)
{
    wr_complain_as(commands.who);
    if (wr_completes() && argc > 0 && argv[0][0] == '-')
        wr_complete_option(&usage, argc, argv);
    else if (wr_completes())
        return wr_commands_run(&commands, argc, argv);
    if (wr_completes())
        return WR_EXIT_OK;
    argc = take_json_flag(argc, argv);
    wr_show_settings_begin(is_json);
    bool is_all = argc == 0 || strncmp(argv[0], "--config", strlen("--config")) == 0;
    int status = WR_EXIT_USAGE;
    if (!is_all)
        status = wr_commands_run(&commands, argc, argv);
    else if (args_ok(argc, argv))
        status = show_all(argc, argv);
    wr_show_settings_end();
    return status;
}
