/* SPDX-License-Identifier: MIT */
/* scope.h - which links a crawl follows.
 *
 *     wr_scope_new(&(struct wr_scope_options){.kind = WR_SCOPE_HOST}, &scope);
 *     wr_scope_exclude(scope, "*?sort=*");
 *     wr_scope_add_seed(scope, &url);              also while others ask
 *     wr_scope_has(scope, &link);                  for every link of every page: takes no lock
 *
 * A link is followed if it is within what the seeds span (their hosts, domains or directories), its path does not end
 * like an image's or an archive's, it fits one of the patterns to include, if there are any, and none of those to
 * exclude.
 */
#ifndef WR_SHELL_ENGINE_SCOPE_H
#define WR_SHELL_ENGINE_SCOPE_H

#include "core/rules/url/url.h"

#include <weir/memory.h>

#define WR_SCOPE_SEEDS_MAX 16000000 /* hosts, domains or directories */
#define WR_SCOPE_PATTERNS_MAX 64    /* of each kind */
#define WR_SCOPE_FOLDERS_MAX 32     /* what lies deeper in a seed's path does not narrow the scope */

enum wr_scope_kind {
    WR_SCOPE_HOST,   /* host and port of a seed */
    WR_SCOPE_DOMAIN, /* its registrable domain, at any port; the host itself where there is none */
    WR_SCOPE_PREFIX, /* its host, port and directory: of "/a/b" that is "/a/" */
    WR_SCOPE_ANY,
};

struct wr_scope_options {
    enum wr_scope_kind kind;
    bool all_types; /* whatever a path ends with */
    const weir_allocator *allocator;
};

struct wr_scope;

/* WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_scope_new(const struct wr_scope_options *options, struct wr_scope **ret_scope);
void wr_scope_free(struct wr_scope *scope);

/* Patterns as in pattern.h; before anybody asks. WEIR_E_INVAL, WEIR_E_NOMEM. */
int wr_scope_include(struct wr_scope *scope, const char *pattern);
int wr_scope_exclude(struct wr_scope *scope, const char *pattern);

/* Any thread. WEIR_E_NOMEM, WEIR_E_FULL. */
int wr_scope_add_seed(struct wr_scope *scope, const struct wr_url *url);

/* `url` is canonical. Any thread. */
bool wr_scope_has(struct wr_scope *scope, const struct wr_url *url);

#endif
