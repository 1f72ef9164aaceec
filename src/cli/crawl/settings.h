/* SPDX-License-Identifier: MIT */
/* settings.h - the options of weir crawl, and what they mean to the engine. */
#ifndef WR_CLI_CRAWL_SETTINGS_H
#define WR_CLI_CRAWL_SETTINGS_H

#include "cli/kit/pace.h"
#include "shell/engine/engine.h"
#include "shell/engine/scope.h"

#define WR_CRAWL_AGENT_MAX 1024

struct wr_crawl_settings {
    struct wr_sources sources;
    /* What is crawled. */
    const char *seeds_file;
    int scope; /* enum wr_scope_kind */
    struct wr_option_list includes, excludes;
    bool all_types, sitemaps;
    uint64_t depth, max_pages, host_pages, max_bytes;
    int64_t max_time;
    /* How fast. */
    struct wr_pace_flags pace;
    uint64_t concurrency, loops;
    int group; /* enum wr_engine_group */
    const char *global_rate;
    uint64_t bandwidth, cancel_after_429;
    /* As whom, and by which rules. */
    const char *user_agent, *contact, *proxy, *ca_file;
    struct wr_option_list headers;
    bool ignore_robots, follow_nofollow, allow_private, ask_blocked;
    int robots_on_error; /* enum wr_on_error */
    const char *statuses;
    int64_t max_defer, timeout, lease;
    uint64_t max_body, failure_threshold;
    int digest; /* enum wr_digest_kind */
    /* From where and to where. */
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

/* The defaults, some of which the environment has. False after a complaint. */
bool wr_crawl_settings_init(struct wr_crawl_settings *ret_settings);

/* Whether they go together. False after a complaint. */
bool wr_crawl_settings_fit(const struct wr_crawl_settings *settings);

/* What belongs to the engine's options and must stay as long as they are used. */
struct wr_crawl_texts {
    char agent[WR_CRAWL_AGENT_MAX + 1];
    const char *headers[WR_OPTION_LIST_MAX + 1];
};

/* All but the scope and the listeners. False after a complaint. */
bool wr_crawl_options_make(const struct wr_crawl_settings *settings, struct wr_crawl_texts *ret_texts,
                           struct wr_engine_options *ret_options);

/* False after a complaint. */
bool wr_crawl_scope_make(const struct wr_crawl_settings *settings, struct wr_scope **ret_scope);

#endif
