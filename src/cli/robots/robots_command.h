/* SPDX-License-Identifier: MIT */
/* robots_command.h - weir robots: shows how weir reads a robots.txt. */
#ifndef WR_CLI_ROBOTS_ROBOTS_COMMAND_H
#define WR_CLI_ROBOTS_ROBOTS_COMMAND_H

#include <weir/client.h>

#include "core/web/robots/robots.h"

/* Each function returns an exit status of enum wr_exit; `check` gives some of them its own
 * meaning. */
int wr_robots_run(int argc, char **argv);
int wr_robots_check_run(int argc, char **argv);
int wr_robots_show_run(int argc, char **argv);

/* Options that both commands have. */
struct wr_robots_input {
    const char *agent;
    const char *file; /* file to read; "-": standard input */
    const char *url;  /* any URL of the site */
    bool allow_private;
};

/* The options for struct wr_robots_input, which must be the member `source` of the settings. */
#define WR_ROBOTS_INPUT_OPTIONS(settings)                                                                            \
    {"agent", WR_STRING(settings, source.agent), .value = "NAME",                                                    \
     .help = "Product token of the crawler, such as weir"},                                                          \
        {"file", WR_STRING(settings, source.file), .value = "FILE",                                                  \
         .help = "Read robots.txt from FILE (-: standard input)"},                                                   \
        {"url", WR_STRING(settings, source.url), .value = "URL", .help = "Fetch the robots.txt of the site of URL"}, \
    {                                                                                                                \
        "allow-private", WR_FLAG(settings, source.allow_private),                                                    \
            .help = "Connect also to private and loopback addresses"                                                 \
    }

/* Returns true if there are an agent and exactly one source; otherwise prints an error. */
bool wr_robots_input_ok(const struct wr_robots_input *source);

/* Reads or fetches robots.txt and parses it for the agent. Returns false after printing an
 * error. */
bool wr_robots_load(const struct wr_robots_input *source, struct wr_robots **ret_robots);

/* Fetches the robots.txt of the site; an empty text if the site has none. The caller frees the
 * text. Returns false after printing an error. */
bool wr_robots_fetch_text(const struct wr_robots_input *source, char **ret_text, size_t *ret_bytes);

/* Returns true if the response means that the site has no robots.txt, so that all URLs are allowed
 * (RFC 9309 2.3.1.3). */
bool wr_robots_is_absent(const weir_response *response);

#endif
