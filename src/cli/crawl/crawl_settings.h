/* SPDX-License-Identifier: MIT */
/* crawl_settings.h - the options of weir crawl and their translation into engine options. */
#ifndef WR_CLI_CRAWL_CRAWL_SETTINGS_H
#define WR_CLI_CRAWL_CRAWL_SETTINGS_H

#include "cli/kit/pace_flags.h"
#include "crawl/engine/engine.h"
#include "crawl/engine/scope.h"

#define WR_CRAWL_AGENT_MAX 1024

struct wr_crawl_settings {
    struct wr_sources sources;
    /* Options that select the URLs. */
    const char *seeds_file;
    int scope; /* value of enum wr_scope_kind */
    struct wr_option_list includes, excludes;
    bool all_types, sitemaps;
    uint64_t depth, max_pages, host_pages, max_bytes;
    int64_t max_time;
    /* Options that limit the pace and the load. */
    struct wr_pace_flags pace;
    uint64_t concurrency, loops;
    int group; /* value of enum wr_engine_group */
    const char *global_rate;
    uint64_t bandwidth, cancel_after_429;
    /* Options for identity, robots.txt and the treatment of responses. */
    const char *user_agent, *contact, *proxy, *ca_file;
    struct wr_option_list headers;
    bool ignore_robots, follow_nofollow, allow_private, ask_blocked;
    int robots_on_error; /* value of enum wr_robots_on_error */
    const char *statuses;
    int64_t max_defer, timeout, lease;
    uint64_t max_body, failure_threshold;
    int digest; /* value of enum wr_digest_kind */
    /* Options for input and output. */
    const char *state, *out, *report, *diff, *log, *warc, *save_bodies;
    uint64_t warc_size;
    const char *listen, *token_file;
    struct wr_option_list listen_names;
    uint64_t listen_hosts;
    int view;
    bool append, resume, recrawl, due, quiet, json, dry_run, offline;
    uint64_t job;
};

extern const struct wr_usage wr_crawl_usage;

/* Sets the defaults, some of which come from the environment. Returns false after printing an
 * error. */
bool wr_crawl_settings_init(struct wr_crawl_settings *ret_settings);

/* Checks that the options fit together. Returns false after printing an error. */
bool wr_crawl_settings_fit(const struct wr_crawl_settings *settings);

/* Texts that the engine options point to; must live as long as these are used. */
struct wr_crawl_texts {
    char agent[WR_CRAWL_AGENT_MAX + 1];
    const char *headers[WR_OPTION_LIST_MAX + 1];
};

/* Fills in the engine options except the scope and the listeners. Returns false after printing an
 * error. */
bool wr_crawl_options_make(const struct wr_crawl_settings *settings, struct wr_crawl_texts *ret_texts,
                           struct wr_engine_options *ret_options);

/* Creates the scope from the options. Returns false after printing an error. */
bool wr_crawl_scope_make(const struct wr_crawl_settings *settings, struct wr_scope **ret_scope);

#endif
