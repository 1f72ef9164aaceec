/* SPDX-License-Identifier: MIT */
/* robots_compiled.h - the stages of parsing robots.txt, and the compiled form.
 *
 *     text -> robots_text.c: lines -> robots_line.c, robots_parse.c: drafts -> compile.c: block -> robots_match.c:
 * answer
 *
 * The compiled block:
 *     struct wr_robots | needs | rules | sitemaps | slots | lengths | strings
 *
 * The prefix of a rule is its pattern up to the first '*'. Rules are stored in hash slots by their
 * prefix, and `lengths` lists the lengths of all prefixes. Matching hashes the path byte by byte
 * and looks into one slot at each of these lengths: the work depends on the path, not on the number
 * of rules. The hash needs no secret: a site whose rules collide only makes weir deny its pages
 * (WR_ROBOTS_WORK_MAX).
 */
#ifndef WR_CORE_WEB_ROBOTS_ROBOTS_COMPILED_H
#define WR_CORE_WEB_ROBOTS_ROBOTS_COMPILED_H

#include "base/alloc.h"
#include "base/buf.h"
#include "core/web/robots/robots.h"
#include "core/web/url/percent.h"

/* ---- text ---- */

/* Converts `text` to UTF-8 without a byte order mark, cut at WR_ROBOTS_MAX; an HTML page becomes
 * empty. Uses `buf` if the text must be transcoded. Returns WEIR_E_NOMEM if that fails. */
int wr_robots_to_utf8(struct wr_span text, struct wr_buf *buf, struct wr_span *ret_text, bool *ret_cut);

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
    /* offset of the next LF, CR and '#'; the length of the text if it is absent */
    size_t lf_at, cr_at, hash_at;
    uint32_t number; /* number of the last line, from 1 */
};

void wr_robots_lines_init(struct wr_robots_lines *ret_lines, struct wr_span text);

/* Returns the next line without comment and surrounding blanks; false at the end. */
bool wr_robots_lines_next(struct wr_robots_lines *lines, struct wr_span *ret_line);

/* Returns the key of a line, and its value. */
enum wr_robots_key wr_robots_line_split(struct wr_span line, struct wr_span *ret_value);

/* Returns the product token at the start of `text`; may be empty. */
struct wr_span wr_robots_token(struct wr_span text);

/* Parses a delay in seconds such as "1.5" to ns, rounded up, at most INT64_MAX. Returns false if it
 * is not a number of at least 0. */
bool wr_robots_delay_parse(struct wr_span value, int64_t *ret_delay_ns);

/* Parses a rate: "1/5", "1/10m", "2/1h 0600-0845". */
bool wr_robots_rate_parse(struct wr_span value, uint32_t *ret_requests, int64_t *ret_period_ns);

/* ---- compiled form ---- */

/* A rule before compilation. Small, because large files have many rules, and touching fresh memory
 * costs more than parsing. */
struct wr_robots_draft {
    uint32_t path_at; /* offset of the path in the text, which has at most 2 MiB */
    uint32_t line;
    uint32_t path_bytes : 29; /* length of the path, never 0 */
    uint32_t allows : 1;
    uint32_t is_anchored : 1;
    uint32_t is_normal : 1; /* the written path is in normal form */
    /* hash of the prefix; this and the following members are set by wr_robots_compile */
    uint32_t hash;
    uint32_t pattern_at; /* offset of the pattern in `strings` */
    uint16_t pattern_bytes;
    uint16_t prefix_bytes;
};

struct wr_robots_compiled {
    /* Offset in `strings` of the path in normal form, with '*' for any text and without a trailing
     * '$'. The path as written follows if it differs. */
    uint32_t pattern_at;
    uint32_t line;
    uint16_t pattern_bytes;
    uint16_t prefix_bytes;
    uint16_t path_bytes; /* at most UINT16_MAX, longer paths are cut */
    bool allows : 1;
    bool is_anchored : 1; /* '$': matches at the end of the path only */
    bool is_normal : 1;   /* the written path is in normal form */
};

struct wr_robots {
    const weir_allocator *allocator;
    struct wr_robots_facts facts;
    /* traits that each rule needs; in an array of their own, because most rules fail by them */
    uint64_t *needs;
    struct wr_robots_compiled *rules;
    struct wr_span *sitemaps; /* sitemap URLs, as spans of `strings` */
    /* slots[i]: first rule of slot i; slots[2^slot_bits]: end of the last slot. One more entry is
     * used while compiling. */
    uint32_t *slots;
    uint16_t *lengths; /* lengths of the prefixes, ascending */
    char *strings;
    uint32_t length_count;
    uint32_t slot_bits;
};

/* The input of wr_robots_compile. */
struct wr_robots_compile_input {
    /* `rules` and `sitemaps` are the numbers of drafts and sitemaps */
    struct wr_robots_facts facts;
    const char *text;
    struct wr_robots_draft *drafts;
    const struct wr_span *sitemaps;
};

/* Compiles the rules. Returns WEIR_E_NOMEM if that fails. */
int wr_robots_compile(const struct wr_robots_compile_input *plan, const weir_allocator *allocator,
                      struct wr_robots **ret_robots);

/* The bytes that a path in normal form percent-encodes: everything except the unreserved and
 * reserved characters of RFC 3986; also '*' and '$', which have a meaning in patterns. */
extern const struct wr_percent_set wr_robots_encoded_bytes;

static inline struct wr_span wr_robots_path(const struct wr_robots *robots, const struct wr_robots_compiled *rule)
{
    uint32_t path_at = rule->pattern_at + (rule->is_normal ? 0 : rule->pattern_bytes);
    return (struct wr_span){robots->strings + path_at, rule->path_bytes};
}

/* Traits are what the parts between '*' require of a path, as bits of hashes: each byte, and each
 * pair of bytes. A path that lacks a trait need not be searched. */
static inline uint64_t wr_robots_trait(unsigned char byte)
{
    return UINT64_C(1) << (byte & 63);
}

static inline uint64_t wr_robots_pair_trait(unsigned char before, unsigned char byte)
{
    return UINT64_C(1) << ((before * 37u + byte) & 63);
}

/* Adds one byte to the hash of a prefix, in two cycles: bytes overlap only 64 apart.
 * wr_robots_hash_finish does the rest of the mixing; the highest bits of its result select the
 * slot. */
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
