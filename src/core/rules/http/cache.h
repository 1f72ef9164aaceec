/* SPDX-License-Identifier: MIT */
/* cache.h - whether an answer came out of a cache, whichever of the many ways it says so.
 *
 *     struct wr_cache cache = {0};
 *     wr_cache_field(&cache, name, value);           for each field of the response, in their order
 *     enum wr_cache_status status = wr_cache_result(&cache);
 *
 * Read are, in any case of letters: Cache-Status (RFC 9211), CF-Cache-Status, X-Vercel-Cache, CDN-Cache, X-Cache as
 * Fastly, CloudFront, Akamai, Azure, Squid and others have it, X-Cache-Status and its like of nginx, those of
 * LiteSpeed, Kinsta, Drupal and Magento, Server-Timing's cdn-cache, X-Cache-Hits, X-Varnish, and Age.
 *
 * An answer may have passed several caches. The one that is nearest to us counts, for what it has nobody else is asked
 * for: of a list the last, of several fields that of the outer network. But one that does not cache this at all
 * (BYPASS, DYNAMIC) counts only if no other has something to say: behind a network that passes pages through there
 * often is a cache that has them.
 */
#ifndef WR_CORE_RULES_HTTP_CACHE_H
#define WR_CORE_RULES_HTTP_CACHE_H

#include "base/span.h"

#include <stdint.h>

#define WR_CACHE_STATUSES(X)                                                                         \
    X(WR_CACHE_UNKNOWN, "unknown") /* nothing tells */                                               \
    X(WR_CACHE_HIT, "hit")                                                                           \
    X(WR_CACHE_STALE, "stale")             /* out of the cache, although it was too old */           \
    X(WR_CACHE_REVALIDATED, "revalidated") /* out of the cache: the origin said it is still right */ \
    X(WR_CACHE_MISS, "miss")                                                                         \
    X(WR_CACHE_EXPIRED, "expired") /* it was too old, and came from the origin */                    \
    X(WR_CACHE_BYPASS, "bypass")   /* the cache was told not to look */                              \
    X(WR_CACHE_DYNAMIC, "dynamic") /* not of a kind that is cached */

enum wr_cache_status {
#define X(status, name) status,
    WR_CACHE_STATUSES(X)
#undef X
};

#define WR_CACHE_COUNT (WR_CACHE_DYNAMIC + 1)

/* "hit", "miss", …. */
const char *wr_cache_name(enum wr_cache_status status);

/* Whether the answer came out of a cache: HIT, STALE, REVALIDATED. */
bool wr_cache_is_hit(enum wr_cache_status status);

/* All zero: nothing was said yet. */
struct wr_cache {
    uint8_t status; /* enum wr_cache_status, of the field that counts so far */
    uint8_t source; /* which field that is, the nearest first */
};

/* One field; one that says nothing of caches is ignored. */
void wr_cache_field(struct wr_cache *cache, struct wr_span name, struct wr_span value);

enum wr_cache_status wr_cache_result(const struct wr_cache *cache);

#endif
