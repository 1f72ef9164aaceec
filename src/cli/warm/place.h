/* SPDX-License-Identifier: MIT */
/* place.h - what an operand of weir warm means, and whose a URL is. */
#ifndef WR_CLI_WARM_PLACE_H
#define WR_CLI_WARM_PLACE_H

#include "core/rules/url/url.h"

enum wr_warm_place {
    WR_WARM_SITE,    /* "example.org", "https://example.org/": all that its sitemaps list */
    WR_WARM_SITEMAP, /* its name says so: "/news.xml", "/sitemap.php", "/list.txt", "/feed.rss" */
    WR_WARM_PAGE,    /* anything else */
};

enum wr_warm_place wr_warm_place_of(const struct wr_url *url);

/* Whether a sitemap of `home` may list it: the same registrable domain (or the same host, where there is none), at
 * home's port or that of the scheme. */
bool wr_warm_is_at_home(const struct wr_url *home, const struct wr_url *url);

/* Where sitemaps usually are, from the likeliest on; NULL behind the last. */
extern const char *const wr_warm_usual_places[];

#endif
