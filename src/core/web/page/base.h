/* SPDX-License-Identifier: MIT */
/* base.h - resolves the links of one page to canonical URLs.
 *
 * Most links on most pages lead to the page's own host and are simple: "/a/b?c", "b.html",
 * "https://example.org/a". They are not parsed: after one check of each byte they are appended to
 * the known start of the URL. All other links go through wr_url_parse and wr_url_canonical, with
 * the same result.
 */
#ifndef WR_CORE_WEB_PAGE_BASE_H
#define WR_CORE_WEB_PAGE_BASE_H

#include "core/web/url/url.h"

/* The base URL for the links of a page. The caller provides the memory; the members are private to
 * base.c. */
struct wr_base {
    struct wr_url url;       /* the base URL as given */
    struct wr_url canonical; /* canonical form of `url`, in `memory` */
    /* length of the canonical URL up to the last '/' of its path; 0: it has no canonical form */
    size_t folder_end;
    const struct wr_idna *idna;
    char memory[WR_URL_ROOM];
};

/* Initializes the base from the URL of the page or of its <base>. The text of `url` must outlive
 * the base. `idna` may be NULL. */
void wr_base_init(struct wr_base *ret_base, const struct wr_url *url, const struct wr_idna *idna);

/* Resolves `link` against the base and makes it canonical. The text of the result is in `memory` or
 * in the base. Returns the same faults as wr_url_parse. */
enum wr_url_fault wr_base_resolve(const struct wr_base *base, struct wr_span link, char memory[WR_URL_ROOM],
                                  struct wr_url *ret_url);

#endif
