/* SPDX-License-Identifier: MIT */
/* reading.h - converts rules from their settings to the forms that requests are compared with. */
#ifndef WR_SHELL_RULEBOOK_READING_H
#define WR_SHELL_RULEBOOK_READING_H

#include "core/admit/request.h"
#include "shell/rulebook/book.h"

/* Reads the settings for all rules. Returns WEIR_E_INVAL on failure. */
int wr_read_admission(const struct wr_rulebook_settings *settings, struct wr_edition *edition);

/* Reads match, key, lists and limits of a rule. Normalises the listed keys in `written`, and keeps
 * the pointer. Returns WEIR_E_INVAL on failure. */
int wr_read_rule(struct wr_edition *edition, struct wr_book_rule *written, struct wr_edition_rule *rule);

#endif
