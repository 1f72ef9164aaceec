/* SPDX-License-Identifier: MIT */
/* regex.c - matches regular expressions by a simulation of their nodes.
 *
 * The simulation is Thompson's: it reads a text once, with a list of all nodes that the text so far
 * leads to.
 */
#include "crawl/engine/regex.h"

#include <string.h>

#include "base/alloc.h"
#include "base/ascii.h"
#include "base/error.h"
#include "crawl/engine/regex_program.h"

struct wr_regex {
    const weir_allocator *allocator;
    size_t bytes;              /* size of this allocation, bytes */
    struct wr_regex_set first; /* bytes that a match may begin with */
    bool may_be_anywhere;      /* an empty match is possible, so a match may begin at any byte */
    uint16_t node_count;
    const struct wr_regex_node *nodes;
    struct wr_regex_set sets[]; /* followed in memory by the nodes */
};

/* ---- simulation ---- */

/* Nodes that the text so far leads to, and that take a byte. */
struct regex_node_list {
    uint16_t count;
    uint16_t nodes[WR_REGEX_NODES_MAX];
};

struct regex_run {
    const struct wr_regex *regex;
    struct wr_span text;
    /* For each node: 1 + the position at which it was added last; 0: never. */
    size_t seen[WR_REGEX_NODES_MAX];
};

static bool is_word_byte(struct wr_span text, size_t at)
{
    return at < text.bytes && (wr_ascii_is_alnum(text.data[at]) || text.data[at] == '_');
}

/* Returns true if a node that takes no byte can be passed at this position. */
static bool is_regex_position(const struct regex_run *run, enum wr_regex_kind kind, size_t at)
{
    bool before = at > 0 && is_word_byte(run->text, at - 1), after = is_word_byte(run->text, at);
    switch (kind) {
    case WR_REGEX_BEGIN:
        return at == 0;
    case WR_REGEX_END:
        return at == run->text.bytes;
    case WR_REGEX_WORD_EDGE:
        return before != after;
    case WR_REGEX_NO_WORD_EDGE:
        return before == after;
    case WR_REGEX_WORD_BEGIN:
        return !before && after;
    case WR_REGEX_WORD_END:
        return before && !after;
    default:
        return true;
    }
}

/* Adds a node, or the nodes that it leads to at this position. Returns true if one is a match. */
static bool add_reached_nodes(struct regex_run *run, struct regex_node_list *list, uint16_t node, size_t at)
{
    uint16_t waiting[WR_REGEX_NODES_MAX + 1], count = 0;
    waiting[count++] = node;
    while (count > 0) {
        const struct wr_regex_node *next = &run->regex->nodes[waiting[--count]];
        size_t index = (size_t)(next - run->regex->nodes);
        if (run->seen[index] == at + 1)
            continue;
        run->seen[index] = at + 1;
        if (next->kind == WR_REGEX_MATCH)
            return true;
        if (next->kind == WR_REGEX_BYTE || next->kind == WR_REGEX_SET) {
            list->nodes[list->count++] = (uint16_t)index;
            continue;
        }
        if (next->kind == WR_REGEX_SPLIT)
            waiting[count++] = (uint16_t)((int)index + next->other);
        if (is_regex_position(run, (enum wr_regex_kind)next->kind, at))
            waiting[count++] = (uint16_t)((int)index + next->next);
    }
    return false;
}

static bool takes_byte(const struct wr_regex *regex, const struct wr_regex_node *node, char byte)
{
    return node->kind == WR_REGEX_BYTE ? node->byte == (unsigned char)byte
                                       : wr_regex_set_has(&regex->sets[node->set], (unsigned char)byte);
}

bool wr_regex_matches(const struct wr_regex *regex, struct wr_span text)
{
    struct regex_run run;
    struct regex_node_list lists[2], *now = &lists[0], *next = &lists[1];

    run.regex = regex;
    run.text = text;
    memset(run.seen, 0, regex->node_count * sizeof run.seen[0]);
    now->count = 0;
    for (size_t at = 0; at <= text.bytes; at++) {
        bool may_begin = regex->may_be_anywhere ||
                         (at < text.bytes && wr_regex_set_has(&regex->first, (unsigned char)text.data[at]));
        if (may_begin && add_reached_nodes(&run, now, 0, at))
            return true;
        next->count = 0;
        for (uint16_t i = 0; at < text.bytes && i < now->count; i++) {
            const struct wr_regex_node *node = &regex->nodes[now->nodes[i]];
            if (takes_byte(regex, node, text.data[at]) &&
                add_reached_nodes(&run, next, (uint16_t)(now->nodes[i] + 1), at + 1))
                return true;
        }
        struct regex_node_list *swap = now;
        now = next;
        next = swap;
    }
    return false;
}

/* ---- creating and freeing ---- */

/* Finds the bytes that a match may begin with, as if all position tests succeeded. */
static void find_first_bytes(struct wr_regex *regex)
{
    bool seen[WR_REGEX_NODES_MAX] = {false};
    uint16_t waiting[WR_REGEX_NODES_MAX + 1], count = 0;
    waiting[count++] = 0;
    while (count > 0) {
        uint16_t index = waiting[--count];
        const struct wr_regex_node *node = &regex->nodes[index];
        if (seen[index])
            continue;
        seen[index] = true;
        if (node->kind == WR_REGEX_BYTE)
            wr_regex_set_add(&regex->first, node->byte);
        for (size_t i = 0; node->kind == WR_REGEX_SET && i < 4; i++)
            regex->first.bits[i] |= regex->sets[node->set].bits[i];
        regex->may_be_anywhere |= node->kind == WR_REGEX_MATCH;
        if (node->kind == WR_REGEX_SPLIT)
            waiting[count++] = (uint16_t)(index + node->other);
        if (node->kind >= WR_REGEX_BEGIN && node->kind != WR_REGEX_MATCH)
            waiting[count++] = (uint16_t)(index + node->next);
    }
}

static int make_regex(const struct wr_regex_program *program, const weir_allocator *allocator,
                      struct wr_regex **ret_regex)
{
    size_t sets_bytes = program->set_count * sizeof program->sets[0],
           nodes_bytes = program->node_count * sizeof program->nodes[0];
    size_t bytes = sizeof(struct wr_regex) + sets_bytes + nodes_bytes;
    struct wr_regex *regex = wr_alloc(allocator, bytes, _Alignof(struct wr_regex));

    if (regex == NULL)
        return WEIR_E_NOMEM;
    struct wr_regex_node *nodes = (struct wr_regex_node *)(void *)((char *)regex->sets + sets_bytes);
    memcpy(regex->sets, program->sets, sets_bytes);
    memcpy(nodes, program->nodes, nodes_bytes);
    regex->allocator = allocator;
    regex->bytes = bytes;
    regex->node_count = (uint16_t)program->node_count;
    regex->nodes = nodes;
    find_first_bytes(regex);
    *ret_regex = regex;
    return 0;
}

int wr_regex_new(const char *text, const weir_allocator *allocator, struct wr_regex **ret_regex)
{
    struct wr_regex_program program;
    int error = wr_regex_compile(text, &program);
    return error != 0 ? error : make_regex(&program, allocator, ret_regex);
}

void wr_regex_free(struct wr_regex *regex)
{
    if (regex != NULL)
        wr_free(regex->allocator, regex, regex->bytes, _Alignof(struct wr_regex));
}
