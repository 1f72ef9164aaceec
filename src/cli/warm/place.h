/* SPDX-License-Identifier: MIT */
/* place.h - classifies the operands of weir warm and decides which site a URL belongs to. */
#ifndef WR_CLI_WARM_PLACE_H
#define WR_CLI_WARM_PLACE_H

#include "core/rules/url/url.h"

enum wr_warm_place {
    WR_WARM_SITE, /* "example.org", "https://example.org/": all pages in its sitemaps */
    /* Named like a sitemap: "/news.xml", "/sitemap.php", "/list.txt", "/feed.rss" */
    WR_WARM_SITEMAP,
    WR_WARM_PAGE, /* any other URL: a page */
};

enum wr_warm_place wr_warm_place_of(const struct wr_url *url);

/* Returns true if a sitemap of `home` may list the URL: same registrable domain (same host if it
 * has none), and the port of `home` or of the scheme. */
bool wr_warm_is_at_home(const struct wr_url *home, const struct wr_url *url);

/* Usual sitemap paths, the most likely first. Ends with NULL. */
extern const char *const wr_warm_usual_places[];

#endif
