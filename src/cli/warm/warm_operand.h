/* SPDX-License-Identifier: MIT */
/* warm_operand.h - classifies the operands of weir warm and decides which site a URL belongs to. */
#ifndef WR_CLI_WARM_WARM_OPERAND_H
#define WR_CLI_WARM_WARM_OPERAND_H

#include "core/web/url/url.h"

enum wr_warm_operand {
    WR_WARM_SITE, /* "example.org", "https://example.org/": all pages in its sitemaps */
    /* Named like a sitemap: "/news.xml", "/sitemap.php", "/list.txt", "/feed.rss" */
    WR_WARM_SITEMAP,
    WR_WARM_PAGE, /* any other URL: a page */
};

enum wr_warm_operand wr_warm_operand_kind(const struct wr_url *url);

/* Returns true if a sitemap of `home` may list the URL: same registrable domain (same host if it
 * has none), and the port of `home` or of the scheme. */
bool wr_warm_is_same_site(const struct wr_url *home, const struct wr_url *url);

/* Usual sitemap paths, the most likely first. Ends with NULL. */
extern const char *const wr_warm_usual_sitemaps[];

#endif
