/* SPDX-License-Identifier: MIT */
/* scope.c - decides which links a crawl follows. */
#include "shell/engine/scope.h"

#include <weir/pace.h>

#include "base/alloc.h"
#include "base/error.h"
#include "shell/engine/group.h"
#include "shell/engine/names.h"
#include "shell/engine/pattern.h"
#include "shell/engine/types.h"
#include "shell/memory/memory.h"

/* Hosts remembered as being in scope, to save searches of the public suffix list. */
#define FAMILIAR_MAX 65536

struct patterns {
    struct wr_pattern *list[WR_SCOPE_PATTERNS_MAX];
    size_t count;
};

struct wr_scope {
    const weir_allocator *allocator;
    enum wr_scope_kind kind;
    bool all_types;
    struct wr_hash_key hash_key;
    struct wr_names names;    /* hosts, domains or directories of the seeds */
    struct wr_names familiar; /* DOMAIN: hosts that are known to be in scope */
    atomic_uint deepest;      /* PREFIX: number of folders of the deepest seed */
    struct patterns includes, excludes;
};

/* ---- creating and freeing ---- */

int wr_scope_new(const struct wr_scope_options *options, struct wr_scope **ret_scope)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    uint8_t secret[WR_HASH_SECRET_BYTES];
    struct wr_scope *scope = wr_take(allocator, sizeof *scope, _Alignof(struct wr_scope));
    if (scope == NULL)
        return WEIR_E_NOMEM;
    int error = wr_random(secret, sizeof secret);
    if (error != 0) {
        wr_give(allocator, scope, sizeof *scope, _Alignof(struct wr_scope));
        return error;
    }
    scope->allocator = allocator;
    scope->kind = options->kind;
    scope->all_types = options->all_types;
    wr_hash_key_init(&scope->hash_key, secret);
    wr_names_init(&scope->names, allocator, &scope->hash_key, WR_SCOPE_SEEDS_MAX);
    wr_names_init(&scope->familiar, allocator, &scope->hash_key, FAMILIAR_MAX);
    *ret_scope = scope;
    return 0;
}

static void free_patterns(struct wr_scope *scope, struct patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        wr_pattern_release(patterns->list[i]);
        wr_give(scope->allocator, patterns->list[i], sizeof(struct wr_pattern), _Alignof(struct wr_pattern));
    }
}

void wr_scope_free(struct wr_scope *scope)
{
    if (scope == NULL)
        return;
    free_patterns(scope, &scope->includes);
    free_patterns(scope, &scope->excludes);
    wr_names_release(&scope->names);
    wr_names_release(&scope->familiar);
    wr_give(scope->allocator, scope, sizeof *scope, _Alignof(struct wr_scope));
}

/* ---- patterns ---- */

static int add_pattern(struct wr_scope *scope, struct patterns *patterns, const char *text)
{
    if (patterns->count == WR_SCOPE_PATTERNS_MAX)
        return wr_invalid("there are more than 64 patterns");
    struct wr_pattern *pattern = wr_take(scope->allocator, sizeof *pattern, _Alignof(struct wr_pattern));
    if (pattern == NULL)
        return WEIR_E_NOMEM;
    int error = wr_pattern_init(pattern, text, scope->allocator);
    if (error == 0)
        patterns->list[patterns->count++] = pattern;
    else
        wr_give(scope->allocator, pattern, sizeof *pattern, _Alignof(struct wr_pattern));
    return error;
}

int wr_scope_include(struct wr_scope *scope, const char *pattern)
{
    return add_pattern(scope, &scope->includes, pattern);
}

int wr_scope_exclude(struct wr_scope *scope, const char *pattern)
{
    return add_pattern(scope, &scope->excludes, pattern);
}

static bool fits_one(const struct patterns *patterns, const char *url)
{
    for (size_t i = 0; i < patterns->count; i++)
        if (wr_pattern_fits(patterns->list[i], url))
            return true;
    return false;
}

/* ---- hosts, domains and directories of seeds ---- */

static size_t host_key(const struct wr_url *url, char *ret_key, size_t room)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_key, room);
    wr_url_append_key(&buf, url);
    return buf.length;
}

/* Returns the host without a dot at its end. */
static struct wr_span host_name(const struct wr_url *url)
{
    struct wr_span host = wr_url_host(url);
    if (host.bytes > 0 && host.data[host.bytes - 1] == '.')
        host.bytes--;
    return host;
}

/* Returns true if the host ends with a domain of the scope: a fast test that rejects most others.
 * It is not sufficient, because a name below that domain may belong to another owner
 * (s3.amazonaws.com is a public suffix). */
static bool ends_like_ours(struct wr_scope *scope, struct wr_span host)
{
    while (!wr_names_has(&scope->names, host.data, host.bytes)) {
        size_t dot = wr_span_find(host, '.');
        if (dot == host.bytes)
            return false;
        host = wr_span_after(host, dot + 1);
    }
    return true;
}

static bool domain_is_ours(struct wr_scope *scope, struct wr_span host)
{
    if (wr_names_has(&scope->familiar, host.data, host.bytes))
        return true;
    if (!ends_like_ours(scope, host))
        return false;
    struct wr_span domain = wr_group_domain(host);
    if (!wr_names_has(&scope->names, domain.data, domain.bytes))
        return false;
    /* A full set only costs another search. */
    (void)wr_names_add(&scope->familiar, host.data, host.bytes);
    return true;
}

/* The key of a host and its path up to the last '/', with a limited number of folders. */
struct place {
    char text[WEIR_PACE_KEY_MAX + WR_URL_ROOM];
    /* Lengths up to the root and up to each folder below it. */
    size_t ends[WR_SCOPE_FOLDERS_MAX + 1];
    size_t count;
};

static void find_place(const struct wr_url *url, size_t most, struct place *ret_place)
{
    size_t length = host_key(url, ret_place->text, WEIR_PACE_KEY_MAX + 1);
    ret_place->count = 0;
    for (size_t i = url->path_at; i < url->query_at && ret_place->count <= most; i++) {
        ret_place->text[length++] = url->text[i];
        if (url->text[i] == '/')
            ret_place->ends[ret_place->count++] = length;
    }
}

static bool prefix_is_ours(struct wr_scope *scope, const struct wr_url *url)
{
    struct place place;
    find_place(url, atomic_load_explicit(&scope->deepest, memory_order_acquire), &place);
    for (size_t i = 0; i < place.count; i++)
        if (wr_names_has(&scope->names, place.text, place.ends[i]))
            return true;
    return false;
}

static int add_prefix(struct wr_scope *scope, const struct wr_url *url)
{
    struct place place;
    find_place(url, WR_SCOPE_FOLDERS_MAX, &place);
    unsigned depth = (unsigned)place.count - 1, deepest = atomic_load(&scope->deepest);
    int error = wr_names_add(&scope->names, place.text, place.ends[depth]);
    while (error == 0 && depth > deepest && !atomic_compare_exchange_weak(&scope->deepest, &deepest, depth))
        continue;
    return error;
}

int wr_scope_add_seed(struct wr_scope *scope, const struct wr_url *url)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    struct wr_span domain;
    switch (scope->kind) {
    case WR_SCOPE_HOST:
        return wr_names_add(&scope->names, key, host_key(url, key, sizeof key));
    case WR_SCOPE_DOMAIN:
        domain = wr_group_domain(host_name(url));
        return wr_names_add(&scope->names, domain.data, domain.bytes);
    case WR_SCOPE_PREFIX:
        return add_prefix(scope, url);
    case WR_SCOPE_ANY:
        break;
    }
    return 0;
}

static bool is_spanned(struct wr_scope *scope, const struct wr_url *url)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    switch (scope->kind) {
    case WR_SCOPE_HOST:
        return wr_names_has(&scope->names, key, host_key(url, key, sizeof key));
    case WR_SCOPE_DOMAIN:
        return domain_is_ours(scope, host_name(url));
    case WR_SCOPE_PREFIX:
        return prefix_is_ours(scope, url);
    case WR_SCOPE_ANY:
        break;
    }
    return true;
}

bool wr_scope_has(struct wr_scope *scope, const struct wr_url *url)
{
    return is_spanned(scope, url) && (scope->all_types || !wr_type_is_skipped(url)) &&
           (scope->includes.count == 0 || fits_one(&scope->includes, url->text)) &&
           !fits_one(&scope->excludes, url->text);
}
