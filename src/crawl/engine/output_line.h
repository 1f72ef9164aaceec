/* SPDX-License-Identifier: MIT */
/* output_line.h - the outcome of one URL, as one line of JSON.
 *
 *     {"url": "https://example.org/", "final_url": "https://example.org/", "status": 200,
 *      "bytes": 12112, "digest": "xxh128:...", "body": null, "content_type": "text/html",
 *      "title": "Weirs", "depth": 0, "referrer": null, "attempts": 1, "links": 34,
 *      "verdict": "fetched", "error": null, "error_text": null,
 *      "wait_ms": {"pace": 100, "queue": 2}, "dns_ms": 0.012, "connect_ms": 1.5,
 *      "first_byte_ms": 20.25, "total_ms": 21.8}
 *
 * A line always has these members, in this order; null means unknown. It is printable ASCII,
 * whatever servers send, and has no user or password of a URL.
 */
#ifndef WR_CRAWL_ENGINE_OUTPUT_LINE_H
#define WR_CRAWL_ENGINE_OUTPUT_LINE_H

#include "base/buf.h"

#include <weir/limit.h>

#define WR_VERDICTS(X)                                                                         \
    X(WR_VERDICT_FETCHED, "fetched")                                                           \
    X(WR_VERDICT_ROBOTS, "robots")     /* robots.txt forbids the URL */                        \
    X(WR_VERDICT_SCOPE, "scope")       /* the URL is out of scope */                           \
    X(WR_VERDICT_DEPTH, "depth")       /* too many links away from a seed */                   \
    X(WR_VERDICT_HOPS, "hops")         /* too many redirects in a row */                       \
    X(WR_VERDICT_BUDGET, "budget")     /* a page limit of the job or host is reached */        \
    X(WR_VERDICT_TRAP, "trap")         /* the URL looks like that of a trap */                 \
    X(WR_VERDICT_REDIRECT, "redirect") /* a redirect; its target has its own line */           \
    X(WR_VERDICT_FAILED, "failed")                                                             \
    X(WR_VERDICT_EXPIRED, "expired")     /* its host held it for too long */                   \
    X(WR_VERDICT_BLOCKED, "blocked")     /* forbidden address, or a firewall */                \
    X(WR_VERDICT_TOO_LARGE, "too_large") /* the body was cut; the part that was read counts */ \
    X(WR_VERDICT_CANCELLED, "cancelled")                                                       \
    X(WR_VERDICT_DAMAGED, "damaged")     /* the stored task was damaged */                     \
    X(WR_VERDICT_UNCHANGED, "unchanged") /* the page is as an earlier job saw it */            \
    X(WR_VERDICT_NOT_DUE, "not_due")     /* the page has probably not changed */               \
    X(WR_VERDICT_ABSENT, "absent")       /* the sitemap does not exist */

enum wr_page_verdict {
#define X(verdict, name) verdict,
    WR_VERDICTS(X)
#undef X
};

/* Returns "fetched", ...; NULL for an invalid number. */
const char *wr_page_verdict_name(enum wr_page_verdict verdict);

/* Returns true for failures; a URL that was not to be fetched has not failed. */
bool wr_page_verdict_is_failure(enum wr_page_verdict verdict);

/* The contents of a line. Texts without data become null; where noted, empty ones, too. */
struct wr_output_line {
    struct wr_span url;
    struct wr_span final_url;    /* target of a redirect, or `url`; empty: null */
    int status;                  /* HTTP status; 0: null */
    uint64_t bytes;              /* bytes of the body */
    struct wr_span digest;       /* digest of the body; empty: null */
    struct wr_span body;         /* file of the saved body; empty: null */
    struct wr_span content_type; /* value of Content-Type; empty: null */
    struct wr_span title;
    uint32_t depth;
    struct wr_span referrer; /* URL that led here; empty: null */
    uint32_t attempts;
    int64_t links; /* number of links; negative: null */
    enum wr_page_verdict verdict;
    struct wr_span error;      /* word for programs, such as "http_404"; empty: null */
    struct wr_span error_text; /* words for people; empty: null */
    const uint32_t *waited;    /* waits in ms by weir_reason, up to QUEUE; NULL: none */
    /* Durations; negative: null. */
    int64_t dns_ns, connect_ns, first_byte_ns, total_ns;
};

/* Appends the line, with its newline. */
void wr_output_line_append(struct wr_buf *buf, const struct wr_output_line *line);

struct wr_store_task;
/* Appends the line of a URL that has ended, from its stored task; other members are null. */
void wr_output_line_append_task(struct wr_buf *buf, const struct wr_store_task *task);

#endif
