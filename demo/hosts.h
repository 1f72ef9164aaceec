/* SPDX-License-Identifier: MIT */
/* hosts.h - the hosts of the demo web: what each is like, and what is on its pages.
 *
 * How a host answers, with which limit, latency and faults, is an origin of `weir simulate` (sim/origin.h), here on
 * real sockets and in real time. So the truth about each host is known exactly.
 */
#ifndef WEIR_DEMO_HOSTS_H
#define WEIR_DEMO_HOSTS_H

#include "base/buf.h"
#include "sim/origin.h"

enum shape {
    SHAPE_TREE, /* `pages` pages; each leads to a few further ones, and back */
    SHAPE_MAZE, /* redirects: chains, loops, and a chain that is too long */
    SHAPE_TRAP, /* a calendar without end, session ids, paths that repeat themselves */
    SHAPE_HUGE, /* a tree, and a page of HUGE_BYTES */
};

#define HUGE_BYTES 50000000
#define RESET (-1) /* instead of a status: the connection is reset */

struct host_kind {
    const char *name;
    const char *truth; /* the limit in words */
    double rate;       /* and as requests a second; 0: none */
    struct wr_origin origin;
    enum shape shape;
    uint32_t pages;
    uint32_t crawl_delay_s;
    uint32_t reset_every;   /* request: its connection is reset; 0: none */
    uint32_t outage_after;  /* requests; 0: none */
    int64_t outage_ns;      /* 503 for so long then */
    int64_t robots_down_ns; /* robots.txt answers 503 for so long from the first request on */
};

/* The index-th kind, or NULL. Short: a web for a test, that takes some ten seconds. */
const struct host_kind *host_kind_at(size_t index, bool is_short);

/* What a path holds. The status is 200, 404, or that of a redirect; then `body` gets its target. */
struct page {
    int status;
    bool is_plain; /* text/plain, not HTML */
    bool is_huge;  /* HUGE_BYTES of anything */
    struct wr_buf *body;
};
void page_write(const struct host_kind *kind, const char *path, struct page *page);

/* Whether robots.txt allows it. */
bool page_is_allowed(const char *path);

#endif
