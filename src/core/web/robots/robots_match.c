/* SPDX-License-Identifier: MIT */
/* robots_match.c - decides whether a path may be fetched. */
#include "core/web/robots/robots_compiled.h"

#include "core/web/url/url.h"

#include <assert.h>

#define NORMAL_ROOM (3 * WR_URL_MAX + 1)

struct match_query {
    const struct wr_robots *robots;
    struct wr_span path; /* path in normal form */
    uint64_t has;        /* traits of the path */
    uint64_t work;       /* steps so far, at most about WR_ROBOTS_WORK_MAX */
};

/* ---- one rule ---- */

/* Returns the first offset of `piece` in `text`, text.bytes if it is not found. First and last byte
 * are compared before calling memcmp, which would take most of the time. A step is one byte, or
 * several within memcmp. */
static size_t find_piece(struct match_query *question, struct wr_span text, struct wr_span piece)
{
    char first = piece.data[0], last = piece.data[piece.bytes - 1];
    size_t starts = text.bytes < piece.bytes ? 0 : text.bytes - piece.bytes + 1;

    for (size_t at = 0; at < starts; at++) {
        const char *here = text.data + at;
        question->work++;
        if (here[0] != first || here[piece.bytes - 1] != last)
            continue;
        question->work += 4 + piece.bytes / 16;
        if (memcmp(here, piece.data, piece.bytes) == 0)
            return at;
        if (question->work >= WR_ROBOTS_WORK_MAX)
            break;
    }
    return text.bytes;
}

/* Matches each part at its first occurrence. If that fails, later occurrences fail as well, so no
 * offset is tried twice. */
static bool pieces_match(struct match_query *question, struct wr_span path, struct wr_span pieces)
{
    while (pieces.bytes > 0) {
        pieces = wr_span_after(pieces, 1); /* skips the '*' */
        struct wr_span piece = {pieces.data, wr_span_find(pieces, '*')};
        pieces = wr_span_after(pieces, piece.bytes);
        if (piece.bytes == 0)
            continue;
        size_t at = find_piece(question, path, piece);
        if (at == path.bytes)
            return false;
        path = wr_span_after(path, at + piece.bytes);
    }
    return true;
}

/* Matches the last part of an anchored rule at the end of the path, and removes it from both. */
static bool take_tail(struct wr_span *path, struct wr_span *pieces)
{
    size_t star = pieces->bytes;

    while (pieces->data[star - 1] != '*')
        star--;
    struct wr_span tail = wr_span_after(*pieces, star);
    if (tail.bytes > path->bytes || memcmp(path->data + path->bytes - tail.bytes, tail.data, tail.bytes) != 0)
        return false;
    path->bytes -= tail.bytes;
    pieces->bytes = star - 1;
    return true;
}

/* Returns true if the rest of the rule matches. The prefix is known to match. */
static bool rule_matches(struct match_query *question, const struct wr_robots_compiled *rule)
{
    const char *pattern = question->robots->strings + rule->pattern_at;
    struct wr_span pieces = {pattern + rule->prefix_bytes, (size_t)rule->pattern_bytes - rule->prefix_bytes};
    struct wr_span path = wr_span_after(question->path, rule->prefix_bytes);

    if (pieces.bytes == 0)
        return !rule->is_anchored || path.bytes == 0;
    question->work += 16;
    return (!rule->is_anchored || take_tail(&path, &pieces)) && pieces_match(question, path, pieces);
}

static size_t rule_octets(const struct wr_robots_compiled *rule)
{
    return (size_t)rule->pattern_bytes + (rule->is_anchored ? 1 : 0);
}

/* Returns true if `rule` has precedence (RFC 9309 2.2.2): more octets, then allowing, then the
 * earlier line, so that the result is deterministic. */
static bool is_stronger(const struct wr_robots_compiled *rule, const struct wr_robots_compiled *than)
{
    if (than == NULL)
        return true;
    if (rule_octets(rule) != rule_octets(than))
        return rule_octets(rule) > rule_octets(than);
    return rule->allows != than->allows ? rule->allows : rule->line < than->line;
}

/* ---- all rules ---- */

/* Returns the strongest of `best` and the matching rules in a slot whose prefix has `length` bytes.
 * At the work limit it returns the rule that was being checked. */
static const struct wr_robots_compiled *find_in_slot(struct match_query *question, uint32_t slot, size_t length,
                                                     const struct wr_robots_compiled *best)
{
    const struct wr_robots *robots = question->robots;
    uint32_t end = robots->slots[slot + 1];

    question->work += end - robots->slots[slot];
    for (uint32_t i = robots->slots[slot]; i < end; i++) {
        const struct wr_robots_compiled *rule = &robots->rules[i];
        if ((robots->needs[i] & ~question->has) != 0 || rule->prefix_bytes != length || !is_stronger(rule, best))
            continue;
        if (memcmp(robots->strings + rule->pattern_at, question->path.data, length) == 0 &&
            rule_matches(question, rule))
            best = rule;
        if (question->work >= WR_ROBOTS_WORK_MAX)
            return rule;
    }
    return best;
}

static const struct wr_robots_compiled *find_strongest_rule(struct match_query *question)
{
    const struct wr_robots *robots = question->robots;
    const struct wr_robots_compiled *best = NULL;
    uint64_t hash = 0;
    size_t at = 0;

    for (uint32_t i = 0; i < robots->length_count && question->work < WR_ROBOTS_WORK_MAX; i++) {
        size_t length = robots->lengths[i];
        if (length > question->path.bytes)
            break;
        for (; at < length; at++)
            hash = wr_robots_hash_add(hash, (unsigned char)question->path.data[at]);
        best = find_in_slot(question, wr_robots_slot(robots, wr_robots_hash_finish(hash)), length, best);
    }
    return best;
}

/* ---- the path ---- */

/* Records the traits of the path. Returns false if it is not in normal form. */
static bool note_traits(struct match_query *question)
{
    struct wr_span path = question->path;
    unsigned char before = 0;
    uint64_t has = 0;
    bool is_odd = false;

    for (size_t i = 0; i < path.bytes; i++) {
        unsigned char byte = (unsigned char)path.data[i];
        has |= wr_robots_trait(byte) | wr_robots_pair_trait(before, byte);
        is_odd |= wr_percent_set_has(&wr_robots_encoded_bytes, path.data[i]);
        before = byte;
    }
    question->has = has;
    return !is_odd;
}

static struct wr_fetch_deliver_robots make_answer(const struct match_query *question,
                                                  const struct wr_robots_compiled *rule)
{
    if (rule == NULL)
        return (struct wr_fetch_deliver_robots){.allowed = true};
    bool gave_up = question->work >= WR_ROBOTS_WORK_MAX;
    return (struct wr_fetch_deliver_robots){
        .allowed = rule->allows && !gave_up,
        .gave_up = gave_up,
        .line = rule->line,
        .path = wr_robots_path(question->robots, rule),
    };
}

/* robots.txt itself is always allowed (RFC 9309 2.2.2), because crawlers must be able to read
 * it. */
static bool is_rules_file(struct wr_span path)
{
    static const char name[] = "/robots.txt";
    return path.bytes == sizeof name - 1 && memcmp(path.data, name, path.bytes) == 0;
}

static struct wr_fetch_deliver_robots answer_question(struct match_query *question)
{
    return make_answer(question, is_rules_file(question->path) ? NULL : find_strongest_rule(question));
}

/* Matches a path after converting it to normal form on the stack. */
__attribute__((noinline)) static struct wr_fetch_deliver_robots answer_after_normalizing(const struct wr_robots *robots,
                                                                                         struct wr_span path)
{
    char memory[NORMAL_ROOM];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_percent_append_normal(&buf, path, &wr_robots_encoded_bytes);
    assert(buf.error == 0);
    struct match_query question = {.robots = robots, .path = {memory, buf.length}};
    note_traits(&question);
    return answer_question(&question);
}

struct wr_fetch_deliver_robots wr_robots_match(const struct wr_robots *robots, struct wr_span target)
{
    struct match_query question = {.robots = robots, .path = target};

    assert(target.bytes <= WR_URL_MAX);
    if (robots->facts.rules == 0)
        return (struct wr_fetch_deliver_robots){.allowed = true};
    return note_traits(&question) ? answer_question(&question) : answer_after_normalizing(robots, target);
}
