/* SPDX-License-Identifier: MIT */
/* compile.c - compiles the rules that apply into one block that is fast to match. */
#include "core/web/robots/robots_compiled.h"

#include <assert.h>

/* ---- patterns ---- */

const struct wr_percent_set wr_robots_encoded_bytes = WR_PERCENT_SET(
    WR_LOW_CONTROLS | WR_LOW(' ') | WR_LOW('"') | WR_LOW('<') | WR_LOW('>') | WR_LOW('*') | WR_LOW('$') | WR_LOW('%'),
    WR_HIGH_CONTROLS | WR_HIGH('\\') | WR_HIGH('^') | WR_HIGH('`') | WR_HIGH('{') | WR_HIGH('|') | WR_HIGH('}'));

/* Longest useful pattern. A path in normal form has at most three times WR_URL_MAX bytes, and a
 * pattern needs at most one '*' more than it matches bytes, so a longer pattern matches nothing. */
#define PATTERN_MAX UINT16_MAX

/* Returns true if the pattern is written in normal form. */
static bool is_normal(struct wr_span pattern)
{
    for (size_t i = 0; i < pattern.bytes; i++) {
        char c = pattern.data[i];
        if (!wr_percent_set_has(&wr_robots_encoded_bytes, c))
            continue;
        if (c != '*' || (i > 0 && pattern.data[i - 1] == '*'))
            return false;
    }
    return true;
}

/* Hashes a pattern up to its first '*' or byte that is not in normal form. Most patterns end there;
 * this takes half of the time for a large file. */
static void hash_prefix(struct wr_robots_draft *draft, struct wr_span pattern)
{
    const char *at = pattern.data, *end = pattern.data + pattern.bytes;
    uint64_t hash = 0;

    for (; at < end && !wr_percent_set_has(&wr_robots_encoded_bytes, *at); at++)
        hash = wr_robots_hash_add(hash, (unsigned char)*at);
    draft->is_normal = at == end || is_normal((struct wr_span){at, (size_t)(end - at)});
    if (pattern.bytes <= PATTERN_MAX) {
        draft->hash = wr_robots_hash_finish(hash);
        draft->pattern_bytes = (uint16_t)pattern.bytes;
        draft->prefix_bytes = (uint16_t)(at - pattern.data);
    }
}

static uint32_t hash_of(struct wr_span prefix)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < prefix.bytes; i++)
        hash = wr_robots_hash_add(hash, (unsigned char)prefix.data[i]);
    return wr_robots_hash_finish(hash);
}

/* Appends the pattern in the normal form of percent.h, with a run of '*' as one. */
static void append_pattern(struct wr_buf *buf, struct wr_span pattern)
{
    size_t start = buf->length;

    while (pattern.bytes > 0) {
        size_t piece = wr_span_find(pattern, '*');
        wr_percent_append_normal(buf, (struct wr_span){pattern.data, piece}, &wr_robots_encoded_bytes);
        pattern = wr_span_after(pattern, piece);
        if (pattern.bytes == 0)
            return;
        if (buf->length == start || buf->bytes[buf->length - 1] != '*')
            wr_buf_append_char(buf, '*');
        pattern = wr_span_after(pattern, 1);
    }
}

/* ---- strings ---- */

/* Returns the path without the '$' that anchors it to the end. */
static struct wr_span pattern_without_anchor(struct wr_span path, const struct wr_robots_draft *draft)
{
    path.bytes -= draft->is_anchored;
    return path;
}

static struct wr_span draft_path(const struct wr_robots_compile_input *plan, const struct wr_robots_draft *draft)
{
    return (struct wr_span){plan->text + draft->path_at, draft->path_bytes};
}

/* Computes the room for the paths as written, and for their normal form where it differs. */
static size_t strings_room(const struct wr_robots_compile_input *plan)
{
    size_t bytes = 1; /* for the '\0' of the buffer */

    for (uint32_t i = 0; i < plan->facts.rules; i++) {
        struct wr_robots_draft *draft = &plan->drafts[i];
        struct wr_span path = draft_path(plan, draft);
        draft->is_anchored = path.data[path.bytes - 1] == '$';
        hash_prefix(draft, pattern_without_anchor(path, draft));
        bytes += draft->is_normal ? path.bytes : 4 * path.bytes;
    }
    for (uint32_t i = 0; i < plan->facts.sitemaps; i++)
        bytes += plan->sitemaps[i].bytes;
    return bytes;
}

/* Appends the normal form if it differs from the written path. Returns false if it is too long. */
static bool append_normal(struct wr_buf *strings, struct wr_span pattern, struct wr_robots_draft *draft)
{
    append_pattern(strings, pattern);
    pattern = (struct wr_span){strings->bytes + draft->pattern_at, strings->length - draft->pattern_at};
    if (pattern.bytes > PATTERN_MAX)
        return false;
    draft->pattern_bytes = (uint16_t)pattern.bytes;
    draft->prefix_bytes = (uint16_t)wr_span_find(pattern, '*');
    draft->hash = hash_of((struct wr_span){pattern.data, draft->prefix_bytes});
    return true;
}

/* Appends one rule. Returns false, and appends nothing, if no path can match it. */
static bool append_rule_strings(struct wr_buf *strings, struct wr_span path, struct wr_robots_draft *draft)
{
    struct wr_span pattern = pattern_without_anchor(path, draft);

    draft->pattern_at = (uint32_t)strings->length;
    if (draft->is_normal ? pattern.bytes > PATTERN_MAX : !append_normal(strings, pattern, draft)) {
        wr_buf_cut(strings, draft->pattern_at);
        return false;
    }
    wr_buf_append_span(strings, path);
    return true;
}

static void fill_strings(struct wr_robots *robots, const struct wr_robots_compile_input *plan, size_t strings_bytes)
{
    struct wr_buf strings;
    uint32_t count = 0;

    wr_buf_init_fixed(&strings, robots->strings, strings_bytes);
    for (uint32_t i = 0; i < plan->facts.rules; i++) {
        struct wr_robots_draft draft = plan->drafts[i];
        if (append_rule_strings(&strings, draft_path(plan, &draft), &draft))
            plan->drafts[count++] = draft;
    }
    robots->facts.rules = count;
    for (uint32_t i = 0; i < plan->facts.sitemaps; i++) {
        robots->sitemaps[i] = (struct wr_span){strings.bytes + strings.length, plan->sitemaps[i].bytes};
        wr_buf_append_span(&strings, plan->sitemaps[i]);
    }
    assert(strings.error == 0);
}

/* ---- rules ---- */

/* Returns the traits that the parts after the prefix require. */
static uint64_t pattern_traits(const char *pattern, const struct wr_robots_draft *draft)
{
    uint64_t needs = 0;

    for (size_t i = draft->prefix_bytes; i < draft->pattern_bytes; i++) {
        unsigned char byte = (unsigned char)pattern[i];
        if (byte == '*')
            continue;
        needs |= wr_robots_trait(byte);
        if (pattern[i - 1] != '*')
            needs |= wr_robots_pair_trait((unsigned char)pattern[i - 1], byte);
    }
    return needs;
}

static void fill_match_rule(struct wr_robots *robots, uint32_t index, const struct wr_robots_draft *draft)
{
    robots->needs[index] = pattern_traits(robots->strings + draft->pattern_at, draft);
    robots->rules[index] = (struct wr_robots_compiled){
        .pattern_at = draft->pattern_at,
        .line = draft->line,
        .pattern_bytes = draft->pattern_bytes,
        .prefix_bytes = draft->prefix_bytes,
        .path_bytes = (uint16_t)(draft->path_bytes < UINT16_MAX ? draft->path_bytes : UINT16_MAX),
        .allows = draft->allows,
        .is_anchored = draft->is_anchored,
        .is_normal = draft->is_normal,
    };
}

/* Sorts the rules by slot: counts the rules of each slot, computes where each slot begins, and puts
 * each rule at the current end of its slot. The counts are stored two slots further on, so that in
 * the end slots[i] is the start of slot i. */
static void sort_rules_by_slot(struct wr_robots *robots, const struct wr_robots_draft *drafts)
{
    uint32_t *slots = robots->slots;
    size_t slot_count = (size_t)1 << robots->slot_bits;

    for (uint32_t i = 0; i < robots->facts.rules; i++)
        slots[wr_robots_slot(robots, drafts[i].hash) + 2]++;
    for (size_t i = 2; i < slot_count + 2; i++)
        slots[i] += slots[i - 1];
    for (uint32_t i = 0; i < robots->facts.rules; i++)
        fill_match_rule(robots, slots[wr_robots_slot(robots, drafts[i].hash) + 1]++, &drafts[i]);
}

static void fill_lengths(struct wr_robots *robots)
{
    uint64_t seen[(PATTERN_MAX + 1) / 64] = {0};

    for (uint32_t i = 0; i < robots->facts.rules; i++)
        seen[robots->rules[i].prefix_bytes / 64] |= UINT64_C(1) << robots->rules[i].prefix_bytes % 64;
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++)
        for (uint64_t left = seen[i]; left != 0; left &= left - 1)
            robots->lengths[robots->length_count++] = (uint16_t)(i * 64 + (size_t)__builtin_ctzll(left));
}

/* ---- the block ---- */

/* Returns the bits for as many slots as there are rules, or up to twice as many. */
static uint32_t slot_bits_for(uint32_t rules)
{
    uint32_t bits = 1;

    while (rules >> bits > 0)
        bits++;
    return bits;
}

static struct wr_robots *allocate_block(const struct wr_robots_facts *facts, size_t strings_bytes,
                                        const weir_allocator *allocator)
{
    uint32_t slot_bits = slot_bits_for(facts->rules);
    size_t needs_at = sizeof(struct wr_robots);
    size_t rules_at = needs_at + facts->rules * sizeof(uint64_t);
    size_t sitemaps_at = rules_at + facts->rules * sizeof(struct wr_robots_compiled);
    size_t slots_at = sitemaps_at + facts->sitemaps * sizeof(struct wr_span);
    size_t lengths_at = slots_at + (((size_t)1 << slot_bits) + 2) * sizeof(uint32_t);
    size_t strings_at = lengths_at + facts->rules * sizeof(uint16_t);
    size_t bytes = strings_at + strings_bytes;
    char *block = wr_alloc(allocator, bytes, _Alignof(struct wr_robots));

    if (block == NULL)
        return NULL;
    struct wr_robots *robots = (struct wr_robots *)block;
    *robots = (struct wr_robots){
        .allocator = allocator,
        .facts = *facts,
        .needs = (uint64_t *)(block + needs_at),
        .rules = (struct wr_robots_compiled *)(block + rules_at),
        .sitemaps = (struct wr_span *)(block + sitemaps_at),
        .slots = (uint32_t *)(block + slots_at),
        .lengths = (uint16_t *)(block + lengths_at),
        .strings = block + strings_at,
        .slot_bits = slot_bits,
    };
    robots->facts.block_bytes = bytes;
    return robots;
}

int wr_robots_compile(const struct wr_robots_compile_input *plan, const weir_allocator *allocator,
                      struct wr_robots **ret_robots)
{
    size_t strings_bytes = strings_room(plan);
    struct wr_robots *robots = allocate_block(&plan->facts, strings_bytes, allocator);

    if (robots == NULL)
        return WEIR_E_NOMEM;
    fill_strings(robots, plan, strings_bytes);
    sort_rules_by_slot(robots, plan->drafts);
    fill_lengths(robots);
    *ret_robots = robots;
    return 0;
}

void wr_robots_free(struct wr_robots *robots)
{
    if (robots != NULL)
        wr_free(robots->allocator, robots, robots->facts.block_bytes, _Alignof(struct wr_robots));
}

/* ---- queries ---- */

const struct wr_robots_facts *wr_robots_facts(const struct wr_robots *robots)
{
    return &robots->facts;
}

/* Returns the time between two requests by Request-rate, ns; 0 if the file sets none. */
static int64_t rate_interval_ns(const struct wr_robots_facts *facts)
{
    if (facts->rate_requests == 0)
        return 0;
    return facts->rate_period_ns / facts->rate_requests + (facts->rate_period_ns % facts->rate_requests != 0);
}

int64_t wr_robots_interval_ns(const struct wr_robots *robots)
{
    const struct wr_robots_facts *facts = &robots->facts;
    int64_t delay_ns = facts->delay_ns < 0 ? 0 : facts->delay_ns;
    return delay_ns > rate_interval_ns(facts) ? delay_ns : rate_interval_ns(facts);
}

uint32_t wr_robots_interval_line(const struct wr_robots *robots)
{
    const struct wr_robots_facts *facts = &robots->facts;
    return facts->delay_ns >= rate_interval_ns(facts) ? facts->delay_line : facts->rate_line;
}

struct wr_span wr_robots_sitemap(const struct wr_robots *robots, uint32_t index)
{
    assert(index < robots->facts.sitemaps);
    return robots->sitemaps[index];
}

struct wr_robots_rule wr_robots_rule(const struct wr_robots *robots, uint32_t index)
{
    assert(index < robots->facts.rules);
    const struct wr_robots_compiled *rule = &robots->rules[index];
    return (struct wr_robots_rule){
        .allows = rule->allows,
        .line = rule->line,
        .path = wr_robots_path(robots, rule),
    };
}
