/* SPDX-License-Identifier: MIT */
/* hosts.h - the hosts of the demo web: their behaviour and their pages.
 *
 * The limit, latency and faults of a host are an origin of `weir simulate` (sim/origin.h), here on
 * real sockets and in real time. So the true behaviour of each host is known exactly.
 */
#ifndef WEIR_DEMO_HOSTS_H
#define WEIR_DEMO_HOSTS_H

#include "base/buf.h"
#include "sim/origin.h"

enum shape {
    SHAPE_TREE, /* `pages` pages; each links to some further ones, and back */
    SHAPE_MAZE, /* redirects: chains, loops, and a chain that is too long */
    SHAPE_TRAP, /* endless calendar, session ids, paths that repeat themselves */
    SHAPE_HUGE, /* a tree, and one page of HUGE_BYTES */
};

#define HUGE_BYTES 50000000
#define RESET (-1) /* in place of a status: the connection is reset */

struct host_kind {
    const char *name;
    const char *truth; /* description of the limit */
    double rate;       /* limit in requests per second; 0: no limit */
    struct wr_origin origin;
    enum shape shape;
    uint32_t pages;
    uint32_t crawl_delay_s;
    uint32_t reset_every;   /* every N-th request gets a reset of its connection; 0: never */
    uint32_t outage_after;  /* request at which the outage begins; 0: no outage */
    int64_t outage_ns;      /* length of the outage, during which the host answers 503 */
    int64_t robots_down_ns; /* time from the first request during which robots.txt answers 503 */
};

/* Returns kind number `index`, or NULL after the last one. `is_short`: a web for tests, whose crawl
 * takes some ten seconds. */
const struct host_kind *host_kind_at(size_t index, bool is_short);

/* The content of a path. The status is 200, 404, or that of a redirect, whose target is in
 * `body`. */
struct page {
    int status;
    bool is_plain; /* text/plain instead of HTML */
    bool is_huge;  /* the body is HUGE_BYTES of filler */
    struct wr_buf *body;
};
void page_write(const struct host_kind *kind, const char *path, struct page *page);

/* Returns whether robots.txt allows this path. */
bool page_is_allowed(const char *path);

#endif
