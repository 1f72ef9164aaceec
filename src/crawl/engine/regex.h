/* SPDX-License-Identifier: MIT */
/* regex.h - regular expressions as in regex(7), with bounded work.
 *
 * The C library needs time by the square of the text's length, and keeps every state that a text
 * has led to. URLs are untrusted input, so these expressions are simulated: each byte of a text
 * costs at most one step per node, and nothing is kept. They have . [ ] ( ) | * + ? { } ^ $ and the
 * GNU escapes \w \W \s \S \b \B \< \>, but no back-references.
 */
#ifndef WR_CRAWL_ENGINE_REGEX_H
#define WR_CRAWL_ENGINE_REGEX_H

#include "base/span.h"

#include <weir/memory.h>

#define WR_REGEX_MAX 255        /* maximum length of an expression, bytes */
#define WR_REGEX_COUNT_MAX 1000 /* maximum of a count in {} */
#define WR_REGEX_NODES_MAX 2048 /* maximum number of nodes, with counts in {} written out */

struct wr_regex;

/* Compiles an expression. Returns 0, WEIR_E_INVAL or WEIR_E_NOMEM. */
int wr_regex_new(const char *text, const weir_allocator *allocator, struct wr_regex **ret_regex);
void wr_regex_free(struct wr_regex *regex);

/* Returns true if the expression is found anywhere in the text. Any thread may call it. */
bool wr_regex_matches(const struct wr_regex *regex, struct wr_span text);

#endif
