/* SPDX-License-Identifier: MIT */
/* regex_program.h - the compiled form of a regular expression, for regex*.c only.
 *
 * A node takes a byte, tests a position, or leads to two other nodes. Links between nodes are
 * distances, so that the nodes of a part can be moved and copied unchanged. A part of an expression
 * ends where the next one begins.
 */
#ifndef WR_CRAWL_ENGINE_REGEX_PROGRAM_H
#define WR_CRAWL_ENGINE_REGEX_PROGRAM_H

#include "crawl/engine/regex.h"

#include <stdint.h>

#define WR_REGEX_SETS_MAX (WR_REGEX_MAX / 2 + 1) /* "." and "\w" are sets, too */

struct wr_regex_set {
    uint64_t bits[4];
};

static inline void wr_regex_set_add(struct wr_regex_set *set, unsigned char byte)
{
    set->bits[byte / 64] |= UINT64_C(1) << byte % 64;
}

static inline bool wr_regex_set_has(const struct wr_regex_set *set, unsigned char byte)
{
    return (set->bits[byte / 64] >> byte % 64 & 1) != 0;
}

enum wr_regex_kind {
    WR_REGEX_BYTE,
    WR_REGEX_SET,
    WR_REGEX_BEGIN, /* BEGIN to WORD_END test a position and take no byte */
    WR_REGEX_END,
    WR_REGEX_WORD_EDGE,
    WR_REGEX_NO_WORD_EDGE,
    WR_REGEX_WORD_BEGIN,
    WR_REGEX_WORD_END,
    WR_REGEX_SPLIT,
    WR_REGEX_MATCH,
};

struct wr_regex_node {
    uint8_t kind;
    uint8_t byte;
    uint16_t set;
    int16_t next, other; /* distances to the next nodes; only a split has `other` */
};

struct wr_regex_program {
    struct wr_regex_node nodes[WR_REGEX_NODES_MAX];
    struct wr_regex_set sets[WR_REGEX_SETS_MAX];
    size_t node_count, set_count;
};

/* Compiles an expression to nodes. Returns 0 or WEIR_E_INVAL. */
int wr_regex_compile(const char *text, struct wr_regex_program *ret_program);

#endif
