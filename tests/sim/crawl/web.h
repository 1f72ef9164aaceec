/* SPDX-License-Identifier: MIT */
/* web.h - a small made-up web, drawn from a seed: pages that link, hosts with limits, outages, bans, robots.txt of
 * every kind, redirects within and between hosts, mazes and traps. What a URL answers follows from the URL, but for
 * limits and faults.
 *
 *     /p/N    a page with links          /x/N   one that some robots.txt forbid        /m/N   404
 *     /r/N    leads to a page            /c/N   leads to /c/N+1, for ever              /t?d=N leads on, for ever
 *     /l/l/…  a path that grows
 */
#ifndef WEIR_TEST_CRAWL_WEB_H
#define WEIR_TEST_CRAWL_WEB_H

#include "core/rules/url/url.h"
#include "sim/origin.h"

#define WEB_HOSTS_MAX 24
#define WEB_LINKS_MAX 6
#define WEB_URL 64

enum web_robots {
    WEB_ROBOTS_NONE,  /* 404 */
    WEB_ROBOTS_RULES, /* Disallow: /x/ and perhaps a Crawl-delay */
    WEB_ROBOTS_LATE,  /* 503 at first, then rules */
    WEB_ROBOTS_NEVER, /* 503 for ever */
    WEB_ROBOTS_TURNS, /* http leads to https, which has rules */
    WEB_ROBOTS_AWAY,  /* leads to the robots.txt of another host */
    WEB_ROBOTS_KINDS
};

struct web_host {
    uint32_t pages;
    bool is_https, has_both;
    enum web_robots robots;
    int64_t delay_ns; /* Crawl-delay, whole seconds */
    int64_t late_until;
    uint32_t away;
    struct wr_origin origin;
    struct wr_site site;
};

struct web {
    uint64_t seed;
    uint32_t count;
    struct web_host hosts[WEB_HOSTS_MAX];
};

void web_init(struct web *web, uint64_t seed);
void web_release(struct web *web);

/* Which host it is; the web has no others. */
uint32_t web_host_of(struct wr_span url);
bool web_is_https(struct wr_span url);
/* Its kind, 'p', 'x', …. */
char web_kind_of(struct wr_span url);

/* What comes back from a request that arrives now. */
struct web_answer {
    int status;
    int64_t at;             /* arrives here */
    int64_t retry_after_ns; /* -1: none */
    char location[WEB_URL]; /* "": none */
    char robots[WEB_URL];   /* of a robots.txt: its text */
};
void web_ask(struct web *web, struct wr_span url, int64_t now, struct web_answer *ret_answer);

/* The links of a page that answered 200. Returns how many. */
size_t web_links(const struct web *web, struct wr_span url, char ret_links[WEB_LINKS_MAX][WEB_URL]);
void web_seed_url(const struct web *web, uint32_t host, char ret_url[WEB_URL]);

#endif
