/* SPDX-License-Identifier: MIT */
/* scope.h - which links a crawl follows.
 *
 *     wr_scope_new(&(struct wr_scope_options){.kind = WR_SCOPE_HOST}, &scope);
 *     wr_scope_exclude(scope, "*?sort=*");
 *     wr_scope_add_seed(scope, &url);              also while other threads call wr_scope_has
 *     wr_scope_has(scope, &link);                  for every link of every page: takes no lock
 *
 * A link is followed if it is within the hosts, domains or directories of the seeds, its path does
 * not end like that of an image or an archive, it matches one of the patterns to include (if there
 * are any), and it matches no pattern to exclude.
 */
#ifndef WR_CRAWL_ENGINE_SCOPE_H
#define WR_CRAWL_ENGINE_SCOPE_H

#include "core/web/url/url.h"

#include <weir/memory.h>

#define WR_SCOPE_SEEDS_MAX 16000000 /* maximum of hosts, domains or directories */
#define WR_SCOPE_PATTERNS_MAX 64    /* maximum of patterns to include, and of those to exclude */
/* Folders of a seed's path that count; deeper ones do not narrow the scope. */
#define WR_SCOPE_FOLDERS_MAX 32

enum wr_scope_kind {
    WR_SCOPE_HOST,   /* host and port of a seed */
    WR_SCOPE_DOMAIN, /* registrable domain of a seed, at any port; the host itself if it has none */
    WR_SCOPE_PREFIX, /* host, port and directory of a seed: "/a/" for "/a/b" */
    WR_SCOPE_ANY,
};

struct wr_scope_options {
    enum wr_scope_kind kind;
    bool all_types; /* follow a link whatever its path ends with */
    const weir_allocator *allocator;
};

struct wr_scope;

/* Creates a scope. Returns 0, WEIR_E_NOMEM or WEIR_E_SYSTEM. */
int wr_scope_new(const struct wr_scope_options *options, struct wr_scope **ret_scope);
void wr_scope_free(struct wr_scope *scope);

/* Adds a pattern (pattern.h), before other threads use the scope. Returns 0, WEIR_E_INVAL or
 * WEIR_E_NOMEM. */
int wr_scope_include(struct wr_scope *scope, const char *pattern);
int wr_scope_exclude(struct wr_scope *scope, const char *pattern);

/* Extends the scope by a seed; from any thread. Returns 0, WEIR_E_NOMEM or WEIR_E_FULL. */
int wr_scope_add_seed(struct wr_scope *scope, const struct wr_url *url);

/* Returns true if the link is followed. `url` is canonical. Any thread may call it. */
bool wr_scope_has(struct wr_scope *scope, const struct wr_url *url);

#endif
