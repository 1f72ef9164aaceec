/* SPDX-License-Identifier: MIT */
/* base.h - from the links of one page to canonical URLs.
 *
 * Most links of most pages lead to their own host and are written as simply as can be: "/a/b?c", "b.html",
 * "https://example.org/a". These take no parsing, only a look at each byte: what is in front of them is known. All
 * others go through wr_url_parse and wr_url_canonical, with the same result.
 */
#ifndef WR_CORE_RULES_PAGE_BASE_H
#define WR_CORE_RULES_PAGE_BASE_H

#include "core/rules/url/url.h"

/* What the links of a page are resolved against. The caller's memory; its content is base.c's. */
struct wr_base {
    struct wr_url url;       /* as it was given */
    struct wr_url canonical; /* in `memory` */
    size_t folder_end;       /* of the canonical one, behind the last '/' of its path; 0: it has no canonical form */
    const struct wr_idna *idna;
    char memory[WR_URL_ROOM];
};

/* `url` is the page's own or that of its <base>; its text must stay. `idna` may be NULL. */
void wr_base_init(struct wr_base *ret_base, const struct wr_url *url, const struct wr_idna *idna);

/* The canonical URL that `link` leads to from here; its text is in `memory`, or in the base. The same faults as of
 * wr_url_parse. */
enum wr_url_fault wr_base_resolve(const struct wr_base *base, struct wr_span link, char memory[WR_URL_ROOM],
                                  struct wr_url *ret_url);

#endif
