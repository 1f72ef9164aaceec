/* SPDX-License-Identifier: MIT */
/* rules.h - the dashboard of a daemon: its rules, their decisions, and their top keys
 * (shell/rulebook). */
#ifndef WR_SHELL_PANEL_RULES_H
#define WR_SHELL_PANEL_RULES_H

#include "shell/panel/panel.h"
#include "shell/rulebook/rulebook.h"

struct wr_panel_rules_options {
    struct wr_rulebook *book;
    const char *file; /* name of the configuration file, to be shown; may be NULL */
    /* Reloads the rules; errors are those of wr_rulebook_reload. NULL: they cannot be reloaded. */
    int (*reload)(void *context, char *ret_why, size_t why_bytes);
    void *context;
};

struct wr_panel_rules;

/* Creates the data source; `book` must outlive it. Returns WEIR_E_NOMEM on failure. */
int wr_panel_rules_new(const struct wr_panel_rules_options *options, struct wr_panel_rules **ret_rules);

/* Call it after the dashboard was freed. Accepts NULL. */
void wr_panel_rules_free(struct wr_panel_rules *rules);

const struct wr_panel_source *wr_panel_rules_source(const struct wr_panel_rules *rules);

#endif
