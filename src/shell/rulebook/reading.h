/* SPDX-License-Identifier: MIT */
/* reading.h - from what is written to what is compared. */
#ifndef WR_SHELL_RULEBOOK_READING_H
#define WR_SHELL_RULEBOOK_READING_H

#include "core/admit/request.h"
#include "shell/rulebook/book.h"

/* What holds for all rules. WEIR_E_INVAL. */
int wr_read_admission(const struct wr_rulebook_settings *settings, struct wr_edition *edition);

/* Match, key, lists and limits; keys that are listed are rewritten as they are kept. Keeps `written`. WEIR_E_INVAL. */
int wr_read_rule(struct wr_edition *edition, struct wr_book_rule *written, struct wr_edition_rule *rule);

#endif
