/* SPDX-License-Identifier: MIT */
/* robots_check.c - weir robots check: reports whether robots.txt allows URLs. */
#include <inttypes.h>

#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/kit/given_url.h"
#include "cli/kit/sanitise.h"
#include "cli/robots/robots_command.h"

#define URLS_MAX 1000000

struct robots_check_settings {
    struct wr_robots_input source;
};

static const struct wr_option options[] = {
    WR_ROBOTS_INPUT_OPTIONS(struct robots_check_settings),
};

static const struct wr_usage usage = {
    .who = "weir robots check",
    .operands = "URL…",
    .operands_min = 1,
    .operands_max = URLS_MAX,
    .about = "Prints a line for each URL (or path, such as /a?b): allow or deny, the number of the line\n"
             "that decides or -, and the URL, separated by tabs. The file is applied to all URLs,\n"
             "whatever their hosts.\n"
             "\n"
             "With --url the robots.txt is fetched. A site without one (404) allows all URLs. If the\n"
             "server fails, the file counts as unreadable.\n"
             "\n"
             "Exits with 0 if all URLs are allowed, 1 if one is denied, and 2 if the file cannot be read\n"
             "or a URL is invalid.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static void print_answer(const struct wr_fetch_deliver_robots *answer, const char *input)
{
    wr_print("%s\t", answer->allowed ? "allow" : "deny");
    if (answer->line == 0)
        wr_print("-");
    else if (answer->gave_up)
        wr_print("%" PRIu32 ": too costly to match", answer->line);
    else {
        wr_print("%" PRIu32 ": %s: ", answer->line, answer->allowed ? "Allow" : "Disallow");
        wr_print_sanitised(answer->path);
    }
    wr_print("\t");
    wr_print_sanitised(wr_span_of(input));
    wr_print("\n");
}

/* Checks one URL. Returns the exit status for this URL alone. */
static int check_robots_url(const struct wr_robots *robots, const struct wr_url *base, const char *input)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    /* Only a path is resolved against the base: "example.org/a" means a host. */
    const struct wr_url *against = input[0] == '/' ? base : NULL;

    if (!wr_given_url("", input, against, memory, &url))
        return WR_EXIT_USAGE;
    struct wr_fetch_deliver_robots answer = wr_robots_match(robots, wr_url_target(&url));
    print_answer(&answer, input);
    return answer.allowed ? WR_EXIT_OK : WR_EXIT_FAILED;
}

int wr_robots_check_run(int argc, char **argv)
{
    struct robots_check_settings settings = {.source = {.agent = NULL}};
    char memory[WR_URL_ROOM];
    struct wr_url base; /* base URL for paths; its host has no influence */
    struct wr_robots *robots;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (!wr_robots_input_ok(&settings.source) || !wr_robots_load(&settings.source, &robots))
        return WR_EXIT_USAGE;
    status = WR_EXIT_OK;
    (void)wr_url_parse(wr_span_of("http://host.invalid/"), NULL, NULL, memory, sizeof memory, &base);
    for (int i = 0; i < argc; i++) {
        int one = check_robots_url(robots, &base, argv[i]);
        status = one > status ? one : status;
    }
    wr_robots_free(robots);
    return status;
}
