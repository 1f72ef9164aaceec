/* SPDX-License-Identifier: MIT */
/* rules_source.h - the dashboard of a daemon: its rules, their decisions, and their top keys
 * (serve/rules). */
#ifndef WR_WATCH_DASHBOARD_RULES_SOURCE_H
#define WR_WATCH_DASHBOARD_RULES_SOURCE_H

#include "serve/rules/rules.h"
#include "watch/dashboard/dashboard.h"

struct wr_dashboard_rules_options {
    struct wr_rules *book;
    const char *file; /* name of the configuration file, to be shown; may be NULL */
    /* Reloads the rules; errors are those of wr_rules_reload. NULL: they cannot be reloaded. */
    int (*reload)(void *context, char *ret_why, size_t why_bytes);
    void *context;
};

struct wr_dashboard_rules;

/* Creates the data source; `book` must outlive it. Returns WEIR_E_NOMEM on failure. */
int wr_dashboard_rules_new(const struct wr_dashboard_rules_options *options, struct wr_dashboard_rules **ret_rules);

/* Call it after the dashboard was freed. Accepts NULL. */
void wr_dashboard_rules_free(struct wr_dashboard_rules *rules);

const struct wr_dashboard_source *wr_dashboard_rules_source(const struct wr_dashboard_rules *rules);

#endif
