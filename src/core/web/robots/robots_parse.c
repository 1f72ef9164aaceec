/* SPDX-License-Identifier: MIT */
/* robots_parse.c - selects the lines of a robots.txt that apply to this crawler.
 *
 * A group is one or more User-agent lines and the rules after them. The next User-agent line after
 * a rule begins a new group (RFC 9309 2.2.1). One pass collects the rules of the groups that name
 * this crawler and of those for '*' as drafts that point into the text. Then it is known which
 * rules apply, how many there are and how long they are, and one block is allocated for them.
 */
#include "core/web/robots/robots_compiled.h"

#include "base/ascii.h"
#include "base/bits.h"

enum rules_owner {
    OWNER_ALL,   /* the group of "User-agent: *" */
    OWNER_NAMED, /* the groups that name this crawler */
    OWNERS,
};

struct robots_parser {
    const weir_allocator *allocator;
    struct wr_span text;
    struct wr_span agent;
    int64_t delay_max_ns;
    /* rules for '*', and only the named ones once a group names us */
    struct wr_robots_draft *drafts;
    size_t count, room;
    struct wr_robots_facts facts[OWNERS];
    struct wr_span sitemaps[WR_ROBOTS_SITEMAPS_MAX];
    uint32_t sitemap_count;
    unsigned group; /* set of enum rules_owner: whom the current group applies to */
    bool has_rules; /* the current group has rules */
    bool is_named;  /* some group names this crawler */
};

/* ---- lines ---- */

static bool is_star(struct wr_span agent)
{
    return agent.bytes > 0 && agent.data[0] == '*' && (agent.bytes == 1 || (unsigned char)agent.data[1] <= ' ');
}

static bool names_us(const struct robots_parser *parser, struct wr_span agent)
{
    struct wr_span token = wr_robots_token(agent);
    return token.bytes > 0 && token.bytes == parser->agent.bytes &&
           wr_ascii_same(token.data, parser->agent.data, token.bytes);
}

static void add_agent(struct robots_parser *parser, struct wr_span agent)
{
    if (parser->has_rules) {
        parser->group = 0;
        parser->has_rules = false;
    }
    if (is_star(agent))
        parser->group |= 1u << OWNER_ALL;
    else if (names_us(parser, agent)) {
        parser->group |= 1u << OWNER_NAMED;
        if (!parser->is_named)
            parser->count = 0; /* the rules for '*' no longer apply */
        parser->is_named = true;
    }
}

/* The first allocation suffices for a file with nothing but rules of usual length for this
 * crawler. */
static int grow_drafts(struct robots_parser *parser)
{
    size_t room = parser->room == 0 ? 16 + parser->text.bytes / 24 : parser->room * 2;
    struct wr_robots_draft *drafts =
        wr_alloc_array(parser->allocator, room, sizeof *drafts, _Alignof(struct wr_robots_draft));

    if (drafts == NULL)
        return WEIR_E_NOMEM;
    if (parser->count > 0)
        memcpy(drafts, parser->drafts, parser->count * sizeof *drafts);
    wr_free(parser->allocator, parser->drafts, parser->room * sizeof *drafts, _Alignof(struct wr_robots_draft));
    parser->drafts = drafts;
    parser->room = room;
    return 0;
}

static bool group_applies_to(const struct robots_parser *parser, enum rules_owner owner)
{
    return (parser->group & 1u << owner) != 0;
}

/* Adds a rule. An empty path matches nothing, but is a rule after which a group ends. */
static int add_draft(struct robots_parser *parser, bool allows, struct wr_span path, uint32_t line)
{
    parser->has_rules = true;
    if (path.bytes == 0 || !group_applies_to(parser, parser->is_named ? OWNER_NAMED : OWNER_ALL))
        return 0;
    if (parser->count == parser->room) {
        int error = grow_drafts(parser);
        if (error != 0)
            return error;
    }
    parser->drafts[parser->count++] = (struct wr_robots_draft){
        .path_at = (uint32_t)(path.data - parser->text.data),
        .path_bytes = (uint32_t)path.bytes & 0x1fffffff,
        .line = line,
        .allows = allows,
    };
    return 0;
}

/* Records a Crawl-delay. The longest of several counts. */
static void add_delay(struct robots_parser *parser, struct wr_span value, uint32_t line)
{
    int64_t delay_ns;

    if (!wr_robots_delay_parse(value, &delay_ns))
        return;
    bool is_clamped = delay_ns > parser->delay_max_ns;
    delay_ns = is_clamped ? parser->delay_max_ns : delay_ns;
    for (enum rules_owner owner = 0; owner < OWNERS; owner++) {
        struct wr_robots_facts *facts = &parser->facts[owner];
        if (!group_applies_to(parser, owner))
            continue;
        facts->is_clamped |= is_clamped;
        if (delay_ns > facts->delay_ns) {
            facts->delay_ns = delay_ns;
            facts->delay_line = line;
        }
    }
}

static bool is_slower(int64_t period_ns, uint32_t requests, const struct wr_robots_facts *than)
{
    return than->rate_requests == 0 ||
           (wr_u128)period_ns * than->rate_requests > (wr_u128)than->rate_period_ns * requests;
}

/* Records a Request-rate. The slowest of several counts; it is at least one request per
 * delay_max_ns. */
static void add_rate(struct robots_parser *parser, struct wr_span value, uint32_t line)
{
    uint32_t requests;
    int64_t period_ns;

    if (!wr_robots_rate_parse(value, &requests, &period_ns))
        return;
    wr_u128 longest_ns = (wr_u128)parser->delay_max_ns * requests;
    bool is_clamped = (wr_u128)period_ns > longest_ns;
    period_ns = is_clamped ? (int64_t)longest_ns : period_ns;
    for (enum rules_owner owner = 0; owner < OWNERS; owner++) {
        struct wr_robots_facts *facts = &parser->facts[owner];
        if (!group_applies_to(parser, owner))
            continue;
        facts->is_clamped |= is_clamped;
        if (is_slower(period_ns, requests, facts)) {
            facts->rate_period_ns = period_ns;
            facts->rate_requests = requests;
            facts->rate_line = line;
        }
    }
}

static void note_sitemap(struct robots_parser *parser, struct wr_span value)
{
    if (value.bytes > 0 && parser->sitemap_count < WR_ROBOTS_SITEMAPS_MAX)
        parser->sitemaps[parser->sitemap_count++] = value;
}

static int read_robots_line(struct robots_parser *parser, struct wr_span line, uint32_t number)
{
    struct wr_span value;

    switch (wr_robots_line_split(line, &value)) {
    case WR_ROBOTS_AGENT:
        add_agent(parser, value);
        return 0;
    case WR_ROBOTS_ALLOW:
        return add_draft(parser, true, value, number);
    case WR_ROBOTS_DISALLOW:
        return add_draft(parser, false, value, number);
    case WR_ROBOTS_DELAY:
        add_delay(parser, value, number);
        return 0;
    case WR_ROBOTS_RATE:
        add_rate(parser, value, number);
        return 0;
    case WR_ROBOTS_SITEMAP:
        note_sitemap(parser, value);
        return 0;
    case WR_ROBOTS_OTHER:
        break;
    }
    return 0;
}

static int read_robots_lines(struct robots_parser *parser)
{
    struct wr_robots_lines lines;
    struct wr_span line;
    int error = 0;

    wr_robots_lines_init(&lines, parser->text);
    while (error == 0 && wr_robots_lines_next(&lines, &line))
        if (line.bytes > 0)
            error = read_robots_line(parser, line, lines.number);
    return error;
}

static int compile_drafts(const struct robots_parser *parser, bool is_cut, struct wr_robots **ret_robots)
{
    struct wr_robots_compile_input plan = {
        .facts = parser->facts[parser->is_named ? OWNER_NAMED : OWNER_ALL],
        .text = parser->text.data,
        .drafts = parser->drafts,
        .sitemaps = parser->sitemaps,
    };

    plan.facts.is_cut = is_cut;
    plan.facts.rules = (uint32_t)parser->count;
    plan.facts.sitemaps = parser->sitemap_count;
    return wr_robots_compile(&plan, parser->allocator, ret_robots);
}

int wr_robots_parse(struct wr_span text, const struct wr_robots_options *options, const weir_allocator *allocator,
                    struct wr_robots **ret_robots)
{
    struct robots_parser parser = {
        .allocator = allocator,
        .agent = wr_robots_token(options->agent),
        .delay_max_ns = options->delay_max_ns,
        .facts = {{.delay_ns = -1}, {.delay_ns = -1}},
    };
    struct wr_buf transcoded;
    bool is_cut;

    /* two bytes of UTF-16 become at most three */
    wr_buf_init(&transcoded, allocator, 2 * WR_ROBOTS_MAX);
    int error = wr_robots_to_utf8(text, &transcoded, &parser.text, &is_cut);
    if (error == 0)
        error = read_robots_lines(&parser);
    if (error == 0)
        error = compile_drafts(&parser, is_cut, ret_robots);
    wr_free(allocator, parser.drafts, parser.room * sizeof *parser.drafts, _Alignof(struct wr_robots_draft));
    wr_buf_release(&transcoded);
    return error;
}
