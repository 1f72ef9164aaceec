/* SPDX-License-Identifier: MIT */
/* cache.h - tells from the header fields whether a response was served from a cache.
 *
 *     struct wr_cache cache = {0};
 *     wr_cache_field(&cache, name, value);           for each field of the response, in their order
 *     enum wr_cache_status status = wr_cache_result(&cache);
 *
 * Fields that are understood, ignoring case: Cache-Status (RFC 9211), CF-Cache-Status,
 * X-Vercel-Cache, CDN-Cache; X-Cache as sent by Fastly, CloudFront, Akamai, Azure, Squid and
 * others; X-Cache-Status and similar fields of nginx; those of LiteSpeed, Kinsta, Drupal and
 * Magento; cdn-cache in Server-Timing, X-Cache-Hits, X-Varnish, and Age.
 *
 * A response may have passed several caches. The nearest one counts, because what it has is not
 * requested from any other: the last element of a list, and of several fields that of the outermost
 * network. But a cache that does not store the response at all (BYPASS, DYNAMIC) counts only if no
 * other cache reports anything, because there is often a second cache behind such a network.
 */
#ifndef WR_CORE_WEB_HTTP_CACHE_H
#define WR_CORE_WEB_HTTP_CACHE_H

#include "base/span.h"

#include <stdint.h>

#define WR_CACHE_STATUSES(X)                                                             \
    X(WR_CACHE_UNKNOWN, "unknown") /* no field reports it */                             \
    X(WR_CACHE_HIT, "hit")                                                               \
    X(WR_CACHE_STALE, "stale")             /* from the cache, although expired */        \
    X(WR_CACHE_REVALIDATED, "revalidated") /* from the cache, confirmed by the origin */ \
    X(WR_CACHE_MISS, "miss")                                                             \
    X(WR_CACHE_EXPIRED, "expired") /* expired, so it came from the origin */             \
    X(WR_CACHE_BYPASS, "bypass")   /* the cache was told not to look */                  \
    X(WR_CACHE_DYNAMIC, "dynamic") /* content that is not cached */

enum wr_cache_status {
#define X(status, name) status,
    WR_CACHE_STATUSES(X)
#undef X
};

#define WR_CACHE_COUNT (WR_CACHE_DYNAMIC + 1)

/* Returns the name of a status: "hit", "miss", ... */
const char *wr_cache_name(enum wr_cache_status status);

/* Returns true if the response came from a cache: HIT, STALE, REVALIDATED. */
bool wr_cache_is_hit(enum wr_cache_status status);

/* The state while fields are read. All zero: no field read yet. */
struct wr_cache {
    uint8_t status; /* enum wr_cache_status of the field that counts so far */
    uint8_t source; /* index of that field in the table of cache.c, nearest cache first */
};

/* Reads one field. Fields that report nothing about caches are ignored. */
void wr_cache_field(struct wr_cache *cache, struct wr_span name, struct wr_span value);

enum wr_cache_status wr_cache_result(const struct wr_cache *cache);

#endif
