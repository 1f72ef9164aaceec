/* SPDX-License-Identifier: MIT */
/* test_http_cache.c - tests detection of responses that came from a cache (U12). */
#include "lib/test.h"

#include "core/web/http/cache.h"
#include "core/web/http/field.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

struct row {
    const char *head; /* header lines, separated by LF */
    enum wr_cache_status status;
};

static enum wr_cache_status status_of(const char *head)
{
    struct wr_span rest = wr_span_of(head), name, value;
    struct wr_cache cache = {0};
    while (rest.bytes > 0) {
        size_t end = wr_span_find(rest, '\n');
        assert_true(wr_field_parse((struct wr_span){rest.data, end}, &name, &value));
        wr_cache_field(&cache, name, value);
        rest = wr_span_after(rest, end < rest.bytes ? end + 1 : end);
    }
    return wr_cache_result(&cache);
}

static void check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (status_of(rows[i].head) != rows[i].status)
            fail_msg("%s: %s, not %s", rows[i].head, wr_cache_name(status_of(rows[i].head)),
                     wr_cache_name(rows[i].status));
}

static void cache_headers_of_content_networks_are_parsed(void **state)
{
    static const struct row rows[] = {
        /* Cloudflare */
        {"CF-Cache-Status: HIT", WR_CACHE_HIT},
        {"cf-cache-status: MISS", WR_CACHE_MISS},
        {"CF-Cache-Status: EXPIRED", WR_CACHE_EXPIRED},
        {"CF-Cache-Status: STALE", WR_CACHE_STALE},
        {"CF-Cache-Status: UPDATING", WR_CACHE_STALE},
        {"CF-Cache-Status: REVALIDATED", WR_CACHE_REVALIDATED},
        {"CF-Cache-Status: BYPASS", WR_CACHE_BYPASS},
        {"CF-Cache-Status: DYNAMIC", WR_CACHE_DYNAMIC},
        {"CF-Cache-Status: NONE/UNKNOWN", WR_CACHE_UNKNOWN},
        /* Vercel, Next.js */
        {"X-Vercel-Cache: PRERENDER", WR_CACHE_HIT},
        {"X-Vercel-Cache: STALE", WR_CACHE_STALE},
        {"x-nextjs-cache: MISS", WR_CACHE_MISS},
        /* CloudFront */
        {"X-Cache: Hit from cloudfront", WR_CACHE_HIT},
        {"X-Cache: Miss from cloudfront", WR_CACHE_MISS},
        {"X-Cache: RefreshHit from cloudfront", WR_CACHE_REVALIDATED},
        {"X-Cache: OriginShieldHit from cloudfront", WR_CACHE_HIT},
        {"X-Cache: Error from cloudfront", WR_CACHE_UNKNOWN},
        {"X-Cache: LambdaGeneratedResponse from cloudfront", WR_CACHE_UNKNOWN},
        /* Fastly */
        {"X-Cache: MISS, HIT\nX-Cache-Hits: 0, 3", WR_CACHE_HIT},
        {"X-Cache: HIT, MISS\nX-Cache-Hits: 3, 0", WR_CACHE_MISS},
        {"X-Cache: MISS\nX-Cache: HIT", WR_CACHE_HIT},
        {"X-Cache-Hits: 0, 3", WR_CACHE_HIT},
        {"X-Cache-Hits: 3, 0", WR_CACHE_MISS},
        /* Akamai, Azure, Squid */
        {"X-Cache: TCP_MEM_HIT from a23-48.deploy.akamaitechnologies.com (AkamaiGHost/10) (-)", WR_CACHE_HIT},
        {"X-Cache: TCP_REFRESH_HIT from a23-48 (AkamaiGHost)", WR_CACHE_REVALIDATED},
        {"X-Cache: TCP_REFRESH_MISS from a23-48 (AkamaiGHost)", WR_CACHE_EXPIRED},
        {"X-Cache: TCP_EXPIRED_HIT from a23-48", WR_CACHE_STALE},
        {"X-Cache: TCP_REFRESH_FAIL_HIT from a23-48", WR_CACHE_STALE},
        {"X-Cache: TCP_CLIENT_REFRESH_MISS from a23-48", WR_CACHE_BYPASS},
        {"X-Cache: TCP_MISS from a23-48", WR_CACHE_MISS},
        {"X-Cache: TCP_DENIED from a23-48", WR_CACHE_UNKNOWN},
        {"X-Cache: TCP_REFRESH_UNMODIFIED", WR_CACHE_REVALIDATED},
        {"X-Cache: TCP_REFRESH_MODIFIED", WR_CACHE_EXPIRED},
        {"X-Cache: CONFIG_NOCACHE", WR_CACHE_BYPASS},
        {"X-Cache: PRIVATE_NOSTORE", WR_CACHE_DYNAMIC},
        {"X-Cache: HIT from miss.example.org:3128", WR_CACHE_HIT},
        {"Server-Timing: edge; dur=1, cdn-cache; desc=HIT", WR_CACHE_HIT},
        {"Server-Timing: cdn-cache; desc=\"MISS\", origin; dur=80", WR_CACHE_MISS},
        {"Server-Timing: db; dur=53, hit; dur=1", WR_CACHE_UNKNOWN},
    };

    (void)state;
    check(rows, COUNT(rows));
}

static void cache_headers_of_local_caches_are_parsed(void **state)
{
    static const struct row rows[] = {
        /* nginx and others */
        {"X-Cache-Status: EXPIRED", WR_CACHE_EXPIRED},
        {"X-Proxy-Cache: BYPASS", WR_CACHE_BYPASS},
        {"X-FastCGI-Cache: HIT", WR_CACHE_HIT},
        {"X-LiteSpeed-Cache: hit,private", WR_CACHE_HIT},
        {"X-Kinsta-Cache: MISS", WR_CACHE_MISS},
        {"X-Drupal-Cache: UNCACHEABLE (request policy)", WR_CACHE_DYNAMIC},
        {"X-Magento-Cache-Debug: HIT", WR_CACHE_HIT},
        {"CDN-Cache: HIT", WR_CACHE_HIT},
        /* Varnish, and responses with an Age only */
        {"X-Varnish: 32770", WR_CACHE_MISS},
        {"X-Varnish: 32770 3", WR_CACHE_HIT},
        {"X-Varnish: none", WR_CACHE_UNKNOWN},
        {"Age: 31", WR_CACHE_HIT},
        {"Age: 100", WR_CACHE_HIT},
        {"Age: 0", WR_CACHE_UNKNOWN},
        {"Age: -5", WR_CACHE_UNKNOWN},
        {"Content-Type: text/html", WR_CACHE_UNKNOWN},
        {"X-Cache:", WR_CACHE_UNKNOWN},
    };

    (void)state;
    check(rows, COUNT(rows));
}

/* RFC 9211 */
static void cache_status_header_is_parsed_by_its_grammar(void **state)
{
    static const struct row rows[] = {
        {"Cache-Status: ExampleCache; hit", WR_CACHE_HIT},
        {"Cache-Status: ExampleCache; hit; ttl=376", WR_CACHE_HIT},
        {"Cache-Status: ExampleCache; hit; ttl=-412", WR_CACHE_STALE},
        {"Cache-Status: ExampleCache; fwd=uri-miss", WR_CACHE_MISS},
        {"Cache-Status: ExampleCache; fwd=vary-miss; stored", WR_CACHE_MISS},
        {"Cache-Status: ExampleCache; fwd=stale", WR_CACHE_EXPIRED},
        {"Cache-Status: ExampleCache; fwd=stale; fwd-status=304", WR_CACHE_REVALIDATED},
        {"Cache-Status: ExampleCache; fwd=bypass", WR_CACHE_BYPASS},
        {"Cache-Status: ExampleCache; fwd=request", WR_CACHE_BYPASS},
        {"Cache-Status: OriginCache; hit; ttl=1100, \"CDN, Inc.\"; fwd=uri-miss", WR_CACHE_MISS},
        {"Cache-Status: OriginCache; fwd=miss, \"CDN, Inc.\"; hit; ttl=545", WR_CACHE_HIT},
        {"Cache-Status: \"Netlify Edge\"; fwd=miss\nCache-Status: \"Netlify Durable\"; hit", WR_CACHE_HIT},
        {"Cache-Status: ExampleCache; detail=\"hit\"", WR_CACHE_UNKNOWN},
        {"Cache-Status: HIT", WR_CACHE_HIT}, /* written before the RFC */
        {"Cache-Status: a; hit; =", WR_CACHE_UNKNOWN},
    };

    (void)state;
    check(rows, COUNT(rows));
}

static void the_nearest_cache_counts_unless_it_caches_nothing(void **state)
{
    static const struct row rows[] = {
        /* the MISS was stored with the page */
        {"CF-Cache-Status: HIT\nX-Cache: MISS", WR_CACHE_HIT},
        {"X-Cache: MISS\nCF-Cache-Status: HIT", WR_CACHE_HIT},
        {"CF-Cache-Status: MISS\nX-Cache: HIT\nAge: 7", WR_CACHE_MISS},
        {"CF-Cache-Status: DYNAMIC\nX-Cache: MISS", WR_CACHE_MISS},
        {"X-Cache: HIT\nCF-Cache-Status: DYNAMIC", WR_CACHE_HIT},
        {"CF-Cache-Status: DYNAMIC\nX-Proxy-Cache: BYPASS", WR_CACHE_DYNAMIC},
        {"X-Proxy-Cache: BYPASS\nCF-Cache-Status: DYNAMIC", WR_CACHE_DYNAMIC},
        {"X-Cache: Error from cloudfront\nAge: 3", WR_CACHE_HIT},
        {"X-Varnish: 5\nAge: 0\nX-Cache: HIT", WR_CACHE_HIT},
    };

    (void)state;
    check(rows, COUNT(rows));
}

static void hit_stale_and_revalidated_responses_are_cache_hits(void **state)
{
    (void)state;
    assert_true(wr_cache_is_hit(WR_CACHE_HIT) && wr_cache_is_hit(WR_CACHE_STALE));
    assert_true(wr_cache_is_hit(WR_CACHE_REVALIDATED));
    assert_false(wr_cache_is_hit(WR_CACHE_MISS) || wr_cache_is_hit(WR_CACHE_EXPIRED));
    assert_false(wr_cache_is_hit(WR_CACHE_BYPASS) || wr_cache_is_hit(WR_CACHE_DYNAMIC));
    assert_false(wr_cache_is_hit(WR_CACHE_UNKNOWN));
}

WEIR_TESTS(test(cache_headers_of_content_networks_are_parsed), test(cache_headers_of_local_caches_are_parsed),
           test(cache_status_header_is_parsed_by_its_grammar), test(the_nearest_cache_counts_unless_it_caches_nothing),
           test(hit_stale_and_revalidated_responses_are_cache_hits))
