/* SPDX-License-Identifier: MIT */
/* dry.h - weir crawl --dry-run: what would be fetched, at which pace, and what robots.txt excludes.
 *
 * Asks each host for its robots.txt, as the crawl would at first, unless the state file has one of the last day; pages
 * are not asked for, and nothing is written. Hosts that are paused, or want to be left alone for now, are not asked.
 * With --offline nobody is asked at all.
 */
#ifndef WR_CLI_CRAWL_DRY_H
#define WR_CLI_CRAWL_DRY_H

#include "cli/crawl/seeds.h"
#include "cli/crawl/settings.h"
#include "core/rules/robots/robots.h"

#define WR_DRY_HOSTS 100 /* that are looked at; more are counted */
#define WR_DRY_URLS 1000 /* of each that are judged; more are counted */
#define WR_DRY_DENIED 3  /* of each that are named in words */

enum wr_dry_robots {
    WR_DRY_FETCHED,
    WR_DRY_STORED,
    WR_DRY_NONE,    /* there is none: all is allowed */
    WR_DRY_UNKNOWN, /* see why */
    WR_DRY_IGNORED,
};

/* What shares a robots.txt: scheme, host and port. */
struct wr_dry_host {
    char *key, *robots_url;
    char **urls; /* to judge */
    size_t url_count;
    uint64_t pages; /* seeds, or queued */
    uint64_t allowed, denied;
    enum wr_dry_robots source;
    char why[128];
    struct wr_robots *robots; /* NULL: no rules */
    bool is_known;            /* by the state file */
    bool is_paused;           /* by somebody */
    bool is_held;             /* by a time that it named itself */
    bool is_blocked;          /* its firewall does not let us in, and it is not asked */
    int64_t interval_ns;      /* that it would begin with */
    int64_t seconds_ns;       /* for the pages, at that pace */
};

struct wr_dry {
    const struct wr_crawl_settings *settings;
    const struct wr_engine_options *options;
    struct wr_dry_host hosts[WR_DRY_HOSTS];
    size_t count;
    uint64_t left_out; /* URLs of further hosts */
    bool is_short;     /* of memory */
};

/* The whole: an exit status. `job`: that is gone on with; 0: a new one. */
int wr_dry_run(const struct wr_crawl_settings *settings, const struct wr_engine_options *options,
               struct wr_seeds *seeds, int64_t job);

/* dry_text.c: on standard output, as words or JSON. */
void wr_dry_print(const struct wr_dry *dry);

#endif
