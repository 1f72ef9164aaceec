/* SPDX-License-Identifier: MIT */
/* robots_show.c - weir robots show: prints what a robots.txt says to an agent. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/kit/sanitise.h"
#include "cli/robots/robots_command.h"

struct robots_show_settings {
    struct wr_robots_input source;
    bool json;
};

static const struct wr_option options[] = {
    WR_ROBOTS_INPUT_OPTIONS(struct robots_show_settings),
    {"json", WR_FLAG(struct robots_show_settings, json),
     .help = "Print JSON with crawl_delay, request_rate, sitemaps and rules"},
};

static const struct wr_usage usage = {
    .who = "weir robots show",
    .about = "Prints what a robots.txt says to an agent: the rules that apply to it in the order of the\n"
             "file, the delay between requests, and all sitemaps.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static void print_seconds(int64_t ns)
{
    char memory[64];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append_number(&buf, (double)ns / WEIR_SECOND);
    wr_print("%s", memory);
}

/* ---- rules ---- */

static int by_line(const void *left, const void *right)
{
    const struct wr_robots_rule *a = left, *b = right;
    return (a->line > b->line) - (a->line < b->line);
}

/* Returns the rules in the order of the file; NULL if there are no rules or no memory. */
static struct wr_robots_rule *sorted_rules(const struct wr_robots *robots)
{
    uint32_t count = wr_robots_facts(robots)->rules;
    struct wr_robots_rule *rules = count == 0 ? NULL : calloc(count, sizeof *rules);

    for (uint32_t i = 0; rules != NULL && i < count; i++)
        rules[i] = wr_robots_rule(robots, i);
    if (rules != NULL)
        qsort(rules, count, sizeof *rules, by_line);
    return rules;
}

/* ---- JSON ---- */

static void print_robots_pace_json(const struct wr_robots_facts *facts)
{
    wr_print("{\"crawl_delay\": ");
    if (facts->delay_ns < 0)
        wr_print("null");
    else
        print_seconds(facts->delay_ns);
    wr_print(", \"request_rate\": ");
    if (facts->rate_requests == 0) {
        wr_print("null");
        return;
    }
    wr_print("{\"requests\": %" PRIu32 ", \"seconds\": ", facts->rate_requests);
    print_seconds(facts->rate_period_ns);
    wr_print("}");
}

static void print_robots_json(const struct wr_robots *robots, const struct wr_robots_rule *rules)
{
    const struct wr_robots_facts *facts = wr_robots_facts(robots);

    print_robots_pace_json(facts);
    wr_print(", \"sitemaps\": [");
    for (uint32_t i = 0; i < facts->sitemaps; i++) {
        wr_print("%s", i > 0 ? ", " : "");
        wr_print_json_string(wr_robots_sitemap(robots, i));
    }
    wr_print("], \"rules\": [");
    for (uint32_t i = 0; i < facts->rules; i++) {
        wr_print("%s\n  {\"line\": %" PRIu32 ", \"allow\": %s, \"path\": ", i > 0 ? "," : "", rules[i].line,
                 rules[i].allows ? "true" : "false");
        wr_print_json_string(rules[i].path);
        wr_print("}");
    }
    wr_print("]}\n");
}

/* ---- text ---- */

static void print_robots_pace(const struct wr_robots_facts *facts)
{
    wr_print("crawl_delay   ");
    if (facts->delay_ns < 0)
        wr_print("-");
    else
        print_seconds(facts->delay_ns);
    wr_print("\nrequest_rate  ");
    if (facts->rate_requests == 0)
        wr_print("-");
    else {
        wr_print("%" PRIu32 "/", facts->rate_requests);
        print_seconds(facts->rate_period_ns);
    }
    wr_print("\n");
}

static void print_robots_text(const struct wr_robots *robots, const struct wr_robots_rule *rules)
{
    const struct wr_robots_facts *facts = wr_robots_facts(robots);

    print_robots_pace(facts);
    for (uint32_t i = 0; i < facts->sitemaps; i++) {
        wr_print("sitemap       ");
        wr_print_sanitised(wr_robots_sitemap(robots, i));
        wr_print("\n");
    }
    if (facts->rules == 0)
        wr_print("rules         none: all is allowed\n");
    for (uint32_t i = 0; i < facts->rules; i++) {
        wr_print("%6" PRIu32 ": %s: ", rules[i].line, rules[i].allows ? "Allow" : "Disallow");
        wr_print_sanitised(rules[i].path);
        wr_print("\n");
    }
}

/* ---- the command ---- */

/* Reports which values of the file were limited. */
static void complain_of_bounds(const struct wr_robots_facts *facts)
{
    if (facts->is_clamped)
        wr_complain("its delay between requests is longer than a day; one day is used");
    if (facts->is_cut)
        wr_complain("it is longer than 1 MiB; the rest is not read");
}

int wr_robots_show_run(int argc, char **argv)
{
    struct robots_show_settings settings = {.source = {.agent = NULL}};
    struct wr_robots *robots;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (!wr_robots_input_ok(&settings.source))
        return WR_EXIT_USAGE;
    if (!wr_robots_load(&settings.source, &robots))
        return WR_EXIT_FAILED;
    struct wr_robots_rule *rules = sorted_rules(robots);
    if (rules == NULL && wr_robots_facts(robots)->rules > 0) {
        wr_complain("%s", weir_error_text(WEIR_E_NOMEM));
        status = WR_EXIT_FAILED;
    } else {
        complain_of_bounds(wr_robots_facts(robots));
        (settings.json ? print_robots_json : print_robots_text)(robots, rules);
        status = WR_EXIT_OK;
    }
    free(rules);
    wr_robots_free(robots);
    return status;
}
