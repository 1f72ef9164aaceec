/* SPDX-License-Identifier: MIT */
/* line.h - what became of one URL, as one line of JSON.
 *
 *     {"url": "https://example.org/", "final_url": "https://example.org/", "status": 200, "bytes": 12112,
 *      "digest": "xxh128:…", "body": null, "content_type": "text/html", "title": "Weirs", "depth": 0,
 *      "referrer": null, "attempts": 1, "links": 34, "verdict": "fetched", "error": null, "error_text": null,
 *      "wait_ms": {"pace": 100, "queue": 2}, "dns_ms": 0.012, "connect_ms": 1.5, "first_byte_ms": 20.25,
 *      "total_ms": 21.8}
 *
 * Always these members, in this order; null where nothing is known. Printable ASCII, whatever strangers wrote, and no
 * user or password of a URL (V10).
 */
#ifndef WR_SHELL_ENGINE_LINE_H
#define WR_SHELL_ENGINE_LINE_H

#include "base/buf.h"

#include <weir/limit.h>

#define WR_VERDICTS(X)                                                                 \
    X(WR_VERDICT_FETCHED, "fetched")                                                   \
    X(WR_VERDICT_ROBOTS, "robots")     /* robots.txt forbids it */                     \
    X(WR_VERDICT_SCOPE, "scope")       /* it leads out of what is to be crawled */     \
    X(WR_VERDICT_DEPTH, "depth")       /* too many links from a seed */                \
    X(WR_VERDICT_HOPS, "hops")         /* too many redirects one after the other */    \
    X(WR_VERDICT_BUDGET, "budget")     /* the job, or this host, has all its pages */  \
    X(WR_VERDICT_TRAP, "trap")         /* a URL such as only traps have */             \
    X(WR_VERDICT_REDIRECT, "redirect") /* it led to another, which has its own line */ \
    X(WR_VERDICT_FAILED, "failed")                                                     \
    X(WR_VERDICT_EXPIRED, "expired")     /* it was kept waiting for too long */        \
    X(WR_VERDICT_BLOCKED, "blocked")     /* an address that must not be asked */       \
    X(WR_VERDICT_TOO_LARGE, "too_large") /* what was read of it counts */              \
    X(WR_VERDICT_CANCELLED, "cancelled")                                               \
    X(WR_VERDICT_DAMAGED, "damaged")     /* what the store had of it was no task */    \
    X(WR_VERDICT_UNCHANGED, "unchanged") /* it is as an earlier job saw it */          \
    X(WR_VERDICT_NOT_DUE, "not_due")     /* it is not likely to have changed */        \
    X(WR_VERDICT_ABSENT, "absent")       /* a sitemap that is not there */

enum wr_verdict {
#define X(verdict, name) verdict,
    WR_VERDICTS(X)
#undef X
};

/* "fetched", …; NULL for a number that is none. */
const char *wr_verdict_name(enum wr_verdict verdict);

/* What was not to be fetched has not failed. */
bool wr_verdict_is_failure(enum wr_verdict verdict);

/* Texts: unknown without data; where it says so, also if they are empty. */
struct wr_line {
    struct wr_span url;
    struct wr_span final_url;    /* or empty */
    int status;                  /* 0: unknown */
    uint64_t bytes;              /* of the body */
    struct wr_span digest;       /* or empty */
    struct wr_span body;         /* the file that it is in; or empty */
    struct wr_span content_type; /* or empty */
    struct wr_span title;
    uint32_t depth;
    struct wr_span referrer; /* or empty */
    uint32_t attempts;
    int64_t links; /* negative: unknown */
    enum wr_verdict verdict;
    struct wr_span error;                                /* a word for programs: "timeout", "http_404"; or empty */
    struct wr_span error_text;                           /* words for people; or empty */
    const uint32_t *waited;                              /* ms by weir_reason, WEIR_REASON_QUEUE the last; NULL: none */
    int64_t dns_ns, connect_ns, first_byte_ns, total_ns; /* negative: unknown */
};

/* With its newline. */
void wr_line_append(struct wr_buf *buf, const struct wr_line *line);

struct wr_store_task;
/* The same of what the store knows of a URL that has ended; the rest is null. */
void wr_line_append_task(struct wr_buf *buf, const struct wr_store_task *task);

#endif
