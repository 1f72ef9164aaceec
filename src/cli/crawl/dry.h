/* SPDX-License-Identifier: MIT */
/* dry.h - weir crawl --dry-run: reports which URLs would be fetched, at which pace, and what
 * robots.txt excludes.
 *
 * Fetches robots.txt from each host, as a crawl does first, unless the state file has a copy of the
 * last 24 hours. Fetches no pages and writes nothing. Hosts that are paused, blocked the crawler or
 * named a time to wait for are not asked. With --offline no host is asked.
 */
#ifndef WR_CLI_CRAWL_DRY_H
#define WR_CLI_CRAWL_DRY_H

#include "cli/crawl/crawl_settings.h"
#include "cli/crawl/seeds.h"
#include "core/web/robots/robots.h"

/* Maximum number of hosts to examine; URLs of further hosts are only counted. */
#define WR_DRY_HOSTS 100
/* Maximum URLs per host to match against robots.txt; further ones are only counted. */
#define WR_DRY_URLS 1000
#define WR_DRY_DENIED 3 /* maximum denied URLs per host in the text output */

enum wr_dry_robots {
    WR_DRY_FETCHED,
    WR_DRY_STORED,
    WR_DRY_NONE,    /* the host has no robots.txt: all URLs are allowed */
    WR_DRY_UNKNOWN, /* robots.txt could not be read; `why` has the reason */
    WR_DRY_IGNORED,
};

/* Scheme, host and port: the unit to which a robots.txt applies. */
struct wr_dry_host {
    char *key, *robots_url;
    char **urls; /* URLs to match against robots.txt */
    size_t url_count;
    uint64_t pages; /* number of seeds and queued URLs */
    uint64_t allowed, denied;
    enum wr_dry_robots source;
    char why[128];
    struct wr_robots *robots; /* parsed robots.txt; NULL: no rules */
    bool is_known;            /* the state file has a learned pace for this host */
    bool is_paused;           /* a user has paused the host */
    bool is_held;             /* the server named a time to wait for that has not passed */
    bool is_blocked;          /* the host's firewall blocked the crawler; it is not asked */
    int64_t interval_ns;      /* initial time between two requests, ns */
    int64_t seconds_ns;       /* time for all pages at the initial pace, ns */
};

struct wr_dry {
    const struct wr_crawl_settings *settings;
    const struct wr_engine_options *options;
    struct wr_dry_host hosts[WR_DRY_HOSTS];
    size_t count;
    uint64_t left_out; /* number of URLs of further hosts */
    bool is_short;     /* memory ran out; the result is incomplete */
};

/* Runs --dry-run and returns an exit status. `job` is the job to resume; 0: a new one. */
int wr_dry_run(const struct wr_crawl_settings *settings, const struct wr_engine_options *options,
               struct wr_seeds *seeds, int64_t job);

/* Prints the result to standard output, as text or JSON. Defined in dry_text.c. */
void wr_dry_print(const struct wr_dry *dry);

#endif
