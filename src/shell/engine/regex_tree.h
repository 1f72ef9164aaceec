/* SPDX-License-Identifier: MIT */
/* regex_tree.h - the tree of a regular expression. Only regex*.c see it. */
#ifndef WR_SHELL_ENGINE_REGEX_TREE_H
#define WR_SHELL_ENGINE_REGEX_TREE_H

#include "shell/engine/regex.h"

#include <stdint.h>

#define WR_REGEX_PARTS_MAX (3 * WR_REGEX_MAX + 2) /* a byte of the text makes at most three */
#define WR_REGEX_SETS_MAX (WR_REGEX_MAX / 2 + 1)  /* "." and "\\w" are sets */
#define WR_REGEX_NO_END UINT16_MAX                /* of a count */

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

/* Of a part of the tree, and of a node. */
enum wr_regex_kind {
    WR_REGEX_EMPTY,
    WR_REGEX_BYTE,
    WR_REGEX_SET,
    WR_REGEX_BEGIN, /* from here to WORD_END: places, which take no byte */
    WR_REGEX_END,
    WR_REGEX_WORD_EDGE,
    WR_REGEX_NO_WORD_EDGE,
    WR_REGEX_WORD_BEGIN,
    WR_REGEX_WORD_END,
    WR_REGEX_JOIN, /* of the tree */
    WR_REGEX_EITHER,
    WR_REGEX_REPEAT,
    WR_REGEX_SPLIT, /* of the nodes */
    WR_REGEX_MATCH,
};

struct wr_regex_part {
    uint8_t kind;
    uint8_t byte;
    uint16_t set;
    uint16_t left, right;
    uint16_t least, most; /* WR_REGEX_NO_END: any number */
};

struct wr_regex_tree {
    struct wr_regex_part parts[WR_REGEX_PARTS_MAX];
    struct wr_regex_set sets[WR_REGEX_SETS_MAX];
    size_t part_count, set_count;
    uint16_t root;
};

/* WEIR_E_INVAL. */
int wr_regex_read(const char *text, struct wr_regex_tree *ret_tree);

#endif
