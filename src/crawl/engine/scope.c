/* SPDX-License-Identifier: MIT */
/* scope.c - decides which links a crawl follows. */
#include "crawl/engine/scope.h"

#include <weir/pace.h>

#include "base/alloc.h"
#include "base/error.h"
#include "crawl/engine/pattern.h"
#include "crawl/engine/registrable_domain.h"
#include "crawl/engine/skipped_types.h"
#include "crawl/engine/string_set.h"
#include "limiter/memory/memory.h"

/* Hosts remembered as being in scope, to save searches of the public suffix list. */
#define FAMILIAR_MAX 65536

struct scope_patterns {
    struct wr_pattern *list[WR_SCOPE_PATTERNS_MAX];
    size_t count;
};

struct wr_scope {
    const weir_allocator *allocator;
    enum wr_scope_kind kind;
    bool all_types;
    struct wr_hash_key hash_key;
    struct wr_string_set names;    /* hosts, domains or directories of the seeds */
    struct wr_string_set familiar; /* DOMAIN: hosts that are known to be in scope */
    atomic_uint deepest;           /* PREFIX: number of folders of the deepest seed */
    struct scope_patterns includes, excludes;
};

/* ---- creating and freeing ---- */

int wr_scope_new(const struct wr_scope_options *options, struct wr_scope **ret_scope)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    uint8_t secret[WR_HASH_SECRET_BYTES];
    struct wr_scope *scope = wr_alloc(allocator, sizeof *scope, _Alignof(struct wr_scope));
    if (scope == NULL)
        return WEIR_E_NOMEM;
    int error = wr_random(secret, sizeof secret);
    if (error != 0) {
        wr_free(allocator, scope, sizeof *scope, _Alignof(struct wr_scope));
        return error;
    }
    scope->allocator = allocator;
    scope->kind = options->kind;
    scope->all_types = options->all_types;
    wr_hash_key_init(&scope->hash_key, secret);
    wr_string_set_init(&scope->names, allocator, &scope->hash_key, WR_SCOPE_SEEDS_MAX);
    wr_string_set_init(&scope->familiar, allocator, &scope->hash_key, FAMILIAR_MAX);
    *ret_scope = scope;
    return 0;
}

static void free_scope_patterns(struct wr_scope *scope, struct scope_patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        wr_pattern_release(patterns->list[i]);
        wr_free(scope->allocator, patterns->list[i], sizeof(struct wr_pattern), _Alignof(struct wr_pattern));
    }
}

void wr_scope_free(struct wr_scope *scope)
{
    if (scope == NULL)
        return;
    free_scope_patterns(scope, &scope->includes);
    free_scope_patterns(scope, &scope->excludes);
    wr_string_set_release(&scope->names);
    wr_string_set_release(&scope->familiar);
    wr_free(scope->allocator, scope, sizeof *scope, _Alignof(struct wr_scope));
}

/* ---- patterns ---- */

static int add_pattern(struct wr_scope *scope, struct scope_patterns *patterns, const char *text)
{
    if (patterns->count == WR_SCOPE_PATTERNS_MAX)
        return wr_invalid("there are more than 64 patterns");
    struct wr_pattern *pattern = wr_alloc(scope->allocator, sizeof *pattern, _Alignof(struct wr_pattern));
    if (pattern == NULL)
        return WEIR_E_NOMEM;
    int error = wr_pattern_init(pattern, text, scope->allocator);
    if (error == 0)
        patterns->list[patterns->count++] = pattern;
    else
        wr_free(scope->allocator, pattern, sizeof *pattern, _Alignof(struct wr_pattern));
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

static bool matches_any_pattern(const struct scope_patterns *patterns, const char *url)
{
    for (size_t i = 0; i < patterns->count; i++)
        if (wr_pattern_matches(patterns->list[i], url))
            return true;
    return false;
}

/* ---- hosts, domains and directories of seeds ---- */

static size_t url_host_key(const struct wr_url *url, char *ret_key, size_t room)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_key, room);
    wr_url_append_key(&buf, url);
    return buf.length;
}

/* Returns the host without a dot at its end. */
static struct wr_span host_without_final_dot(const struct wr_url *url)
{
    struct wr_span host = wr_url_host(url);
    if (host.bytes > 0 && host.data[host.bytes - 1] == '.')
        host.bytes--;
    return host;
}

/* Returns true if the host ends with a domain of the scope: a fast test that rejects most others.
 * It is not sufficient, because a name below that domain may belong to another owner
 * (s3.amazonaws.com is a public suffix). */
static bool has_suffix_in_scope(struct wr_scope *scope, struct wr_span host)
{
    while (!wr_string_set_has(&scope->names, host.data, host.bytes)) {
        size_t dot = wr_span_find(host, '.');
        if (dot == host.bytes)
            return false;
        host = wr_span_after(host, dot + 1);
    }
    return true;
}

static bool is_domain_in_scope(struct wr_scope *scope, struct wr_span host)
{
    if (wr_string_set_has(&scope->familiar, host.data, host.bytes))
        return true;
    if (!has_suffix_in_scope(scope, host))
        return false;
    struct wr_span domain = wr_registrable_domain(host);
    if (!wr_string_set_has(&scope->names, domain.data, domain.bytes))
        return false;
    /* A full set only costs another search. */
    (void)wr_string_set_add(&scope->familiar, host.data, host.bytes);
    return true;
}

/* The key of a host and its path up to the last '/', with a limited number of folders. */
struct seed_path {
    char text[WEIR_PACE_KEY_MAX + WR_URL_ROOM];
    /* Lengths up to the root and up to each folder below it. */
    size_t ends[WR_SCOPE_FOLDERS_MAX + 1];
    size_t count;
};

static void find_seed_path(const struct wr_url *url, size_t most, struct seed_path *ret_place)
{
    size_t length = url_host_key(url, ret_place->text, WEIR_PACE_KEY_MAX + 1);
    ret_place->count = 0;
    for (size_t i = url->path_at; i < url->query_at && ret_place->count <= most; i++) {
        ret_place->text[length++] = url->text[i];
        if (url->text[i] == '/')
            ret_place->ends[ret_place->count++] = length;
    }
}

static bool is_prefix_in_scope(struct wr_scope *scope, const struct wr_url *url)
{
    struct seed_path place;
    find_seed_path(url, atomic_load_explicit(&scope->deepest, memory_order_acquire), &place);
    for (size_t i = 0; i < place.count; i++)
        if (wr_string_set_has(&scope->names, place.text, place.ends[i]))
            return true;
    return false;
}

static int add_prefix(struct wr_scope *scope, const struct wr_url *url)
{
    struct seed_path place;
    find_seed_path(url, WR_SCOPE_FOLDERS_MAX, &place);
    unsigned depth = (unsigned)place.count - 1, deepest = atomic_load(&scope->deepest);
    int error = wr_string_set_add(&scope->names, place.text, place.ends[depth]);
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
        return wr_string_set_add(&scope->names, key, url_host_key(url, key, sizeof key));
    case WR_SCOPE_DOMAIN:
        domain = wr_registrable_domain(host_without_final_dot(url));
        return wr_string_set_add(&scope->names, domain.data, domain.bytes);
    case WR_SCOPE_PREFIX:
        return add_prefix(scope, url);
    case WR_SCOPE_ANY:
        break;
    }
    return 0;
}

static bool is_in_seed_scope(struct wr_scope *scope, const struct wr_url *url)
{
    char key[WEIR_PACE_KEY_MAX + 1];
    switch (scope->kind) {
    case WR_SCOPE_HOST:
        return wr_string_set_has(&scope->names, key, url_host_key(url, key, sizeof key));
    case WR_SCOPE_DOMAIN:
        return is_domain_in_scope(scope, host_without_final_dot(url));
    case WR_SCOPE_PREFIX:
        return is_prefix_in_scope(scope, url);
    case WR_SCOPE_ANY:
        break;
    }
    return true;
}

bool wr_scope_has(struct wr_scope *scope, const struct wr_url *url)
{
    return is_in_seed_scope(scope, url) && (scope->all_types || !wr_url_has_skipped_type(url)) &&
           (scope->includes.count == 0 || matches_any_pattern(&scope->includes, url->text)) &&
           !matches_any_pattern(&scope->excludes, url->text);
}
