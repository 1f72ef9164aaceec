/* SPDX-License-Identifier: MIT */
/* web.h - a small random web: pages with links, hosts with limits, outages, bans, robots.txt of
 * every kind, redirects within and between hosts, mazes and traps. The answer of a URL depends on
 * the URL alone, except for limits and faults.
 *
 *     /p/N       a page with links
 *     /x/N       a page that a robots.txt may deny
 *     /m/N       404
 *     /r/N       redirects to a page
 *     /c/N       redirects to /c/N+1, for ever
 *     /t?d=N     links to /t?d=N+1, for ever
 *     /l/l/...   a path that grows */
#ifndef WEIR_TEST_CRAWL_WEB_H
#define WEIR_TEST_CRAWL_WEB_H

#include "core/web/url/url.h"
#include "sim/origin.h"

#define WEB_HOSTS_MAX 24
#define WEB_LINKS_MAX 6
#define WEB_URL 64

enum web_robots {
    WEB_ROBOTS_NONE,  /* 404 */
    WEB_ROBOTS_RULES, /* Disallow: /x/ and perhaps a Crawl-delay */
    WEB_ROBOTS_LATE,  /* 503 at first, then rules */
    WEB_ROBOTS_NEVER, /* 503 for ever */
    WEB_ROBOTS_TURNS, /* http redirects to https, which has rules */
    WEB_ROBOTS_AWAY,  /* redirects to the robots.txt of another host */
    WEB_ROBOTS_KINDS
};

struct web_host {
    uint32_t pages;
    bool is_https, has_both;
    enum web_robots robots;
    int64_t delay_ns; /* Crawl-delay in whole seconds */
    int64_t late_until;
    uint32_t away;
    struct wr_origin origin;
    struct wr_sim_origin site;
};

struct web {
    uint64_t seed;
    uint32_t count;
    struct web_host hosts[WEB_HOSTS_MAX];
};

void web_init(struct web *web, uint64_t seed);
void web_release(struct web *web);

/* Returns the index of the host. Every URL of this web has one. */
uint32_t web_host_of(struct wr_span url);
bool web_is_https(struct wr_span url);
/* Returns the kind of the URL: 'p', 'x' and so on. */
char web_kind_of(struct wr_span url);

/* The answer to a request that arrives now. */
struct web_answer {
    int status;
    int64_t at;             /* time of arrival at the client */
    int64_t retry_after_ns; /* -1: no Retry-After */
    char location[WEB_URL]; /* "": no Location */
    char robots[WEB_URL];   /* text of a robots.txt */
};
void web_ask(struct web *web, struct wr_span url, int64_t now, struct web_answer *ret_answer);

/* Stores the links of a page with status 200, and returns their number. */
size_t web_links(const struct web *web, struct wr_span url, char ret_links[WEB_LINKS_MAX][WEB_URL]);
void web_seed_url(const struct web *web, uint32_t host, char ret_url[WEB_URL]);

#endif
