/* SPDX-License-Identifier: MIT */
/* robots.h - what a robots.txt says to one crawler, by RFC 9309.
 *
 *     error = wr_robots_parse(text, &options, allocator, &robots);
 *     answer = wr_robots_match(robots, wr_url_target(&url));
 *     if (!answer.allowed)
 *         the rule in line answer.line says no
 *     wr_robots_free(robots);
 *
 * To the letter: the groups that name our product token, in any case of letters and merged, or else those of '*'; of
 * all rules that match the one with most octets, and of equals the one that allows; '*' and '$'; percent-encoding that
 * makes no difference makes none (2.2.2); "/robots.txt" itself is always allowed.
 *
 * And as lenient as the large parsers where sites need it: a byte order mark or UTF-16, any line ending, a missing
 * colon, "Disalow" and its like. A page of HTML in place of rules holds none. Crawl-delay, Request-rate and Sitemap are
 * read too; Crawl-delay speaks to the agents named before it and ends no group.
 *
 * Bounded: WR_ROBOTS_MAX bytes of text are read; compiled it is one block, of at most 38 bytes per rule and four times
 * the rules' text; and matching takes at most WR_ROBOTS_WORK_MAX steps, beyond which the answer is no.
 */
#ifndef WR_CORE_RULES_ROBOTS_ROBOTS_H
#define WR_CORE_RULES_ROBOTS_ROBOTS_H

#include "base/span.h"

#include <stdint.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/time.h>

#define WR_ROBOTS_MAX ((size_t)1 << 20)   /* bytes; RFC 9309 2.5 asks for 500 KiB. What follows is not read */
#define WR_ROBOTS_SITEMAPS_MAX 1000       /* further ones are left out */
#define WR_ROBOTS_DELAY_MAX_NS (WEIR_DAY) /* the usual delay_max_ns */
#define WR_ROBOTS_WORK_MAX 1000000        /* steps of about a ns: only files made to be slow come near */

struct wr_robots_options {
    struct wr_span agent; /* "weir", or "weir/1.0 (+https://…)": the product token is what counts */
    int64_t delay_max_ns; /* a longer Crawl-delay or Request-rate is taken for this; at least 0 */
};

struct wr_robots; /* one block; does not change once parsed, so any thread may ask it */

/* Reads at most WR_ROBOTS_MAX bytes of `text`, which is not kept; a line that this cuts is left out. Any bytes are
 * sound. WEIR_E_NOMEM. */
int wr_robots_parse(struct wr_span text, const struct wr_robots_options *options, const weir_allocator *allocator,
                    struct wr_robots **ret_robots);

/* NULL is fine. */
void wr_robots_free(struct wr_robots *robots);

struct wr_robots_answer {
    bool allowed;
    bool gave_up;        /* WR_ROBOTS_WORK_MAX was reached: not allowed, for want of an answer */
    uint32_t line;       /* of the rule that decided, from 1; 0: no rule did */
    struct wr_span path; /* that rule's, as written; lives as long as the robots */
};

/* `target` is path and query, as wr_url_target has it: at most WR_URL_MAX bytes. Takes no memory. */
struct wr_robots_answer wr_robots_match(const struct wr_robots *robots, struct wr_span target);

/* What it says beside rules. */
struct wr_robots_facts {
    int64_t delay_ns;       /* Crawl-delay, the longest of several; -1: it says none */
    int64_t rate_period_ns; /* Request-rate: so many requests in so much time, the slowest of several; 0: none */
    uint32_t rate_requests;
    uint32_t delay_line, rate_line; /* that say so */
    uint32_t rules, sitemaps;
    bool is_clamped; /* a delay or rate was slower than delay_max_ns */
    bool is_cut;     /* there was more than WR_ROBOTS_MAX */
    size_t block_bytes;
};

const struct wr_robots_facts *wr_robots_facts(const struct wr_robots *robots);

/* At least so long between two requests, by Crawl-delay and Request-rate; 0: it does not say. */
int64_t wr_robots_interval_ns(const struct wr_robots *robots);
/* The line that says so; 0: none. */
uint32_t wr_robots_interval_line(const struct wr_robots *robots);

/* As written: it may name any scheme or host, so treat it like a link (B12). `index` is below facts.sitemaps. */
struct wr_span wr_robots_sitemap(const struct wr_robots *robots, uint32_t index);

struct wr_robots_rule {
    bool allows;
    uint32_t line;
    struct wr_span path; /* as written */
};

/* The rules that apply, in no particular order. `index` is below facts.rules. */
struct wr_robots_rule wr_robots_rule(const struct wr_robots *robots, uint32_t index);

#endif
