/* SPDX-License-Identifier: MIT */
/* parts.h - how robots.txt is taken apart, and what it is compiled to.
 *
 *     text ── text.c ── lines ── line.c, parse.c ── drafts ── compile.c ── block ── match.c ── answer
 *
 * The block:
 *     struct wr_robots | needs | rules | sitemaps | slots | lengths | strings
 *
 * A rule's prefix is its pattern up to the first '*'. It hangs in the slot of its prefix's hash, and `lengths` are
 * those that prefixes have. Whoever asks hashes the path byte by byte and looks into a slot at each of these lengths:
 * the work depends on the path, not on how many rules there are. The hash needs no secret: whoever writes rules that
 * collide only gets himself denied (WR_ROBOTS_WORK_MAX).
 */
#ifndef WR_CORE_RULES_ROBOTS_PARTS_H
#define WR_CORE_RULES_ROBOTS_PARTS_H

#include "base/alloc.h"
#include "base/buf.h"
#include "core/rules/robots/robots.h"
#include "core/rules/url/percent.h"

/* ---- text ---- */

/* The text as UTF-8 without a byte order mark, cut at WR_ROBOTS_MAX, or nothing if it is a page. Memory comes from
 * `buf`, if it has to be transcoded. WEIR_E_NOMEM. */
int wr_robots_read(struct wr_span text, struct wr_buf *buf, struct wr_span *ret_text, bool *ret_cut);

/* ---- lines ---- */

enum wr_robots_key {
    WR_ROBOTS_OTHER,
    WR_ROBOTS_AGENT,
    WR_ROBOTS_ALLOW,
    WR_ROBOTS_DISALLOW,
    WR_ROBOTS_DELAY,
    WR_ROBOTS_RATE,
    WR_ROBOTS_SITEMAP,
};

struct wr_robots_lines {
    struct wr_span text;
    size_t at;
    size_t lf_at, cr_at, hash_at; /* where the next of them is; the end if there is none */
    uint32_t number;              /* of the line last read, from 1 */
};

void wr_robots_lines_init(struct wr_robots_lines *ret_lines, struct wr_span text);

/* False at the end. The line comes without comment and blanks. */
bool wr_robots_lines_next(struct wr_robots_lines *lines, struct wr_span *ret_line);

/* What kind of line it is, and its value. */
enum wr_robots_key wr_robots_line_split(struct wr_span line, struct wr_span *ret_value);

/* The product token at the start of `text`; may be empty. */
struct wr_span wr_robots_token(struct wr_span text);

/* "1.5" to ns, rounded up; INT64_MAX if it is more. False: not a number of at least 0. */
bool wr_robots_delay_parse(struct wr_span value, int64_t *ret_delay_ns);

/* "1/5", "1/10m", "2/1h 0600-0845". */
bool wr_robots_rate_parse(struct wr_span value, uint32_t *ret_requests, int64_t *ret_period_ns);

/* ---- compiled ---- */

/* A rule that applies. Small, because a large file has many, and memory that is fresh costs more than reading. */
struct wr_robots_draft {
    uint32_t path_at; /* in the text, which may have 2 MiB */
    uint32_t line;
    uint32_t path_bytes : 29; /* not 0 */
    uint32_t allows : 1;
    uint32_t is_anchored : 1;
    uint32_t is_normal : 1; /* as written it is in normal form */
    uint32_t hash;          /* of the prefix; this and what follows is by wr_robots_compile */
    uint32_t pattern_at;    /* in strings */
    uint16_t pattern_bytes;
    uint16_t prefix_bytes;
};

struct wr_robots_compiled {
    uint32_t pattern_at; /* in strings: the path in normal form, '*' for any, without a '$' at the end. The path as
                            written follows it, if it is another */
    uint32_t line;
    uint16_t pattern_bytes;
    uint16_t prefix_bytes;
    uint16_t path_bytes; /* cut at UINT16_MAX */
    bool allows : 1;
    bool is_anchored : 1; /* '$': matches at the path's end only */
    bool is_normal : 1;   /* as written it is in normal form */
};

struct wr_robots {
    const weir_allocator *allocator;
    struct wr_robots_facts facts;
    uint64_t *needs; /* traits of each rule's pieces; apart, because most rules fail by them */
    struct wr_robots_compiled *rules;
    struct wr_span *sitemaps; /* into strings */
    uint32_t
        *slots; /* where the rules of each begin, and at [2^slot_bits] where the last end; one more for compiling */
    uint16_t *lengths; /* of prefixes, from the shortest */
    char *strings;
    uint32_t length_count;
    uint32_t slot_bits;
};

/* What is to be compiled. */
struct wr_robots_plan {
    struct wr_robots_facts facts; /* say how many drafts and sitemaps there are */
    const char *text;
    struct wr_robots_draft *drafts;
    const struct wr_span *sitemaps;
};

/* WEIR_E_NOMEM. */
int wr_robots_compile(const struct wr_robots_plan *plan, const weir_allocator *allocator,
                      struct wr_robots **ret_robots);

/* What stays itself in a path in normal form: unreserved and reserved characters of RFC 3986, but for '*' and '$',
 * which mean something else in a pattern. The rest is percent-encoded. */
extern const struct wr_percent_set wr_robots_odd;

static inline struct wr_span wr_robots_path(const struct wr_robots *robots, const struct wr_robots_compiled *rule)
{
    uint32_t path_at = rule->pattern_at + (rule->is_normal ? 0 : rule->pattern_bytes);
    return (struct wr_span){robots->strings + path_at, rule->path_bytes};
}

/* Traits are what the pieces between '*' need a path to have, as bits of hashes: each byte, and each two in a row. A
 * path that lacks one need not be searched. */
static inline uint64_t wr_robots_trait(unsigned char byte)
{
    return UINT64_C(1) << (byte & 63);
}

static inline uint64_t wr_robots_pair_trait(unsigned char before, unsigned char byte)
{
    return UINT64_C(1) << ((before * 37u + byte) & 63);
}

/* Of a prefix, byte by byte, in two cycles each: bytes meet in the same bits only 64 apart. What is missing in the way
 * of mixing comes when it is finished. Its highest bits are the slot. */
static inline uint64_t wr_robots_hash_add(uint64_t hash, unsigned char byte)
{
    return (hash << 7 | hash >> 57) + byte;
}

static inline uint32_t wr_robots_hash_finish(uint64_t hash)
{
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

static inline uint32_t wr_robots_slot(const struct wr_robots *robots, uint32_t hash)
{
    return hash >> (32 - robots->slot_bits);
}

#endif
