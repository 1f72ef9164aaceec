/* SPDX-License-Identifier: MIT */
/* compile_rule.h - converts rules from their settings to the forms that requests are compared
 * with. */
#ifndef WR_SERVE_RULES_COMPILE_RULE_H
#define WR_SERVE_RULES_COMPILE_RULE_H

#include "core/admit/request_headers.h"
#include "serve/rules/rules_internal.h"

/* Reads the settings for all rules. Returns WEIR_E_INVAL on failure. */
int wr_compile_admission(const struct wr_rules_settings *settings, struct wr_rules_snapshot *snapshot);

/* Reads match, key, lists and limits of a rule. Normalises the listed keys in `written`, and keeps
 * the pointer. Returns WEIR_E_INVAL on failure. */
int wr_compile_rule(struct wr_rules_snapshot *snapshot, struct wr_rule_settings *written,
                    struct wr_compiled_rule *rule);

#endif
