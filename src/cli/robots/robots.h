/* SPDX-License-Identifier: MIT */
/* robots.h - weir robots: one robots.txt, the way weir reads it. */
#ifndef WR_CLI_ROBOTS_ROBOTS_H
#define WR_CLI_ROBOTS_ROBOTS_H

#include <weir/client.h>

#include "core/rules/robots/robots.h"

/* Exit statuses, of enum wr_exit; `check` has some of its own. */
int wr_robots_run(int argc, char **argv);
int wr_robots_check_run(int argc, char **argv);
int wr_robots_show_run(int argc, char **argv);

/* What both commands are given. */
struct wr_robots_source {
    const char *agent;
    const char *file; /* "-": standard input */
    const char *url;  /* any of the site */
    bool allow_private;
};

/* The options for that, where the settings have it as `source`. */
#define WR_ROBOTS_SOURCE_OPTIONS(settings)                                                                           \
    {"agent", WR_STRING(settings, source.agent), .value = "NAME",                                                    \
     .help = "Product token of the crawler, such as weir"},                                                          \
        {"file", WR_STRING(settings, source.file), .value = "FILE",                                                  \
         .help = "Read robots.txt from FILE (-: standard input)"},                                                   \
        {"url", WR_STRING(settings, source.url), .value = "URL", .help = "Fetch the robots.txt of the site of URL"}, \
    {                                                                                                                \
        "allow-private", WR_FLAG(settings, source.allow_private),                                                    \
            .help = "Connect also to private and loopback addresses"                                                 \
    }

/* Whether there is an agent, and one place to read from; else complains. */
bool wr_robots_source_ok(const struct wr_robots_source *source);

/* Reads the file, or fetches it, for the agent. False, after a complaint, if that cannot be done. */
bool wr_robots_load(const struct wr_robots_source *source, struct wr_robots **ret_robots);

/* The robots.txt of the source's site, to be freed; nothing, if there is none. False after a complaint. */
bool wr_robots_fetch_text(const struct wr_robots_source *source, char **ret_text, size_t *ret_bytes);

/* RFC 9309 2.3.1.3: there is none, so all is allowed. */
bool wr_robots_is_absent(const weir_response *response);

#endif
