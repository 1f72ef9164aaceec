/* SPDX-License-Identifier: MIT */
/* robots.h - parses a robots.txt and answers what it allows one crawler (RFC 9309).
 *
 *     error = wr_robots_parse(text, &options, allocator, &robots);
 *     answer = wr_robots_match(robots, wr_url_target(&url));
 *     if (!answer.allowed)
 *         the rule in line answer.line disallows it
 *     wr_robots_free(robots);
 *
 * Strict by the RFC: the merged groups that name our product token (ignoring case), or else those
 * of '*'; of all matching rules the one with most octets, and of equals the one that allows; '*'
 * and '$'; equivalent percent-encodings are equal (2.2.2); "/robots.txt" itself is always allowed.
 *
 * Lenient like the large parsers where sites need it: a byte order mark or UTF-16, any line ending,
 * a missing colon, misspellings such as "Disalow". An HTML page in place of rules has no rules.
 * Crawl-delay, Request-rate and Sitemap are parsed as well; a Crawl-delay applies to the agents
 * named before it and ends no group.
 *
 * Bounds: WR_ROBOTS_MAX bytes of text are read. The compiled form is one block of at most 38 bytes
 * per rule and four times the text of the rules. Matching takes at most WR_ROBOTS_WORK_MAX steps;
 * beyond them the answer is no.
 */
#ifndef WR_CORE_WEB_ROBOTS_ROBOTS_H
#define WR_CORE_WEB_ROBOTS_ROBOTS_H

#include "base/span.h"

#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/time.h>

#define WR_ROBOTS_MAX ((size_t)1 << 20)   /* bytes that are read; RFC 9309 2.5 asks for 500 KiB */
#define WR_ROBOTS_SITEMAPS_MAX 1000       /* further sitemaps are ignored */
#define WR_ROBOTS_DELAY_MAX_NS (WEIR_DAY) /* default of delay_max_ns */
#define WR_ROBOTS_WORK_MAX 1000000        /* steps of about 1 ns; only malicious files come near */

struct wr_robots_options {
    struct wr_span agent; /* the product token counts: "weir", or "weir/1.0 (+https://...)" */
    /* maximum of Crawl-delay and of the interval of Request-rate, ns; at least 0 */
    int64_t delay_max_ns;
};

struct wr_robots; /* one immutable block, which any thread may use */

/* Parses at most WR_ROBOTS_MAX bytes of `text`, which is not kept; a line cut at that limit is
 * ignored. Any bytes are valid input. Returns WEIR_E_NOMEM if memory is short. */
int wr_robots_parse(struct wr_span text, const struct wr_robots_options *options, const weir_allocator *allocator,
                    struct wr_robots **ret_robots);

/* Frees the rules. `robots` may be NULL. */
void wr_robots_free(struct wr_robots *robots);

struct wr_fetch_deliver_robots {
    bool allowed;
    bool gave_up;        /* WR_ROBOTS_WORK_MAX was reached, so the answer is no */
    uint32_t line;       /* line of the deciding rule, from 1; 0: no rule decided */
    struct wr_span path; /* path of that rule as written; valid as long as `robots` */
};

/* Answers whether `target` may be fetched. It is path and query as of wr_url_target, at most
 * WR_URL_MAX bytes. Allocates nothing. */
struct wr_fetch_deliver_robots wr_robots_match(const struct wr_robots *robots, struct wr_span target);

/* The contents other than rules. */
struct wr_robots_facts {
    int64_t delay_ns;       /* longest Crawl-delay, ns; -1: none */
    int64_t rate_period_ns; /* slowest Request-rate: `rate_requests` per this time, ns; 0: none */
    uint32_t rate_requests;
    uint32_t delay_line, rate_line; /* lines of the delay and of the rate */
    uint32_t rules, sitemaps;
    bool is_clamped; /* a delay or rate was slower than delay_max_ns */
    bool is_cut;     /* the text was longer than WR_ROBOTS_MAX */
    size_t block_bytes;
};

const struct wr_robots_facts *wr_robots_facts(const struct wr_robots *robots);

/* Returns the minimum time between two requests by Crawl-delay and Request-rate, ns; 0 if the file
 * sets none. */
int64_t wr_robots_interval_ns(const struct wr_robots *robots);
/* Returns the line that sets the interval, 0 if no line does. */
uint32_t wr_robots_interval_line(const struct wr_robots *robots);

/* Returns a sitemap URL as written. It may have any scheme or host, so treat it like a link.
 * `index` is below facts.sitemaps. */
struct wr_span wr_robots_sitemap(const struct wr_robots *robots, uint32_t index);

struct wr_robots_rule {
    bool allows;
    uint32_t line;
    struct wr_span path; /* path as written */
};

/* Returns one of the rules that apply, in no particular order. `index` is below facts.rules. */
struct wr_robots_rule wr_robots_rule(const struct wr_robots *robots, uint32_t index);

#endif
