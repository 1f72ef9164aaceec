/* SPDX-License-Identifier: MIT */
/* regex.h - regular expressions, as in regex(7), whose work is bounded.
 *
 * The C library's take the square of the text's length, and keep every state that a text has led them to. URLs come
 * from strangers, so these are simulated: each byte of a text costs at most one step for each node, and nothing is
 * kept. Known are . [ ] ( ) | * + ? { } ^ $ and, of GNU, \w \W \s \S \b \B \< \>. There are no references back.
 */
#ifndef WR_SHELL_ENGINE_REGEX_H
#define WR_SHELL_ENGINE_REGEX_H

#include "base/span.h"

#include <weir/memory.h>

#define WR_REGEX_MAX 255        /* bytes of an expression */
#define WR_REGEX_COUNT_MAX 1000 /* of each count in {} */
#define WR_REGEX_NODES_MAX 2048 /* when the counts in {} are written out */

struct wr_regex;

/* WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_regex_new(const char *text, const weir_allocator *allocator, struct wr_regex **ret_regex);
void wr_regex_free(struct wr_regex *regex);

/* Whether the expression is found anywhere in the text. Any thread. */
bool wr_regex_fits(const struct wr_regex *regex, struct wr_span text);

#endif
