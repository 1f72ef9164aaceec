/* SPDX-License-Identifier: MIT */
/* rules.h - the panel of a daemon: its rules, what each decided, and who asks most (shell/rulebook). */
#ifndef WR_SHELL_PANEL_RULES_H
#define WR_SHELL_PANEL_RULES_H

#include "shell/panel/panel.h"
#include "shell/rulebook/rulebook.h"

struct wr_panel_rules_options {
    struct wr_rulebook *book;
    const char *file; /* where the rules come from, to be shown; may be NULL */
    /* Reads them again; as wr_rulebook_reload. NULL: they cannot be. */
    int (*reload)(void *context, char *ret_why, size_t why_bytes);
    void *context;
};

struct wr_panel_rules;

/* The book must outlive it. WEIR_E_NOMEM. */
int wr_panel_rules_new(const struct wr_panel_rules_options *options, struct wr_panel_rules **ret_rules);

/* After its panel. NULL is fine. */
void wr_panel_rules_free(struct wr_panel_rules *rules);

const struct wr_panel_source *wr_panel_rules_source(const struct wr_panel_rules *rules);

#endif
