/* SPDX-License-Identifier: MIT */
/* cache.c - tells from the header fields whether a response was served from a cache. */
#include "core/web/http/cache.h"

#include "base/ascii.h"
#include "core/web/http/field.h"
#include "core/web/http/structured.h"

static const char *const names[] = {
#define X(status, name) name,
    WR_CACHE_STATUSES(X)
#undef X
};

const char *wr_cache_name(enum wr_cache_status status)
{
    return names[status];
}

bool wr_cache_is_hit(enum wr_cache_status status)
{
    return status == WR_CACHE_HIT || status == WR_CACHE_STALE || status == WR_CACHE_REVALIDATED;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool starts_with_word(struct wr_span word, const char *with)
{
    size_t bytes = strlen(with);
    return word.bytes >= bytes && wr_field_is((struct wr_span){word.data, bytes}, with);
}

static bool ends_with_word(struct wr_span word, const char *with)
{
    size_t bytes = strlen(with);
    return word.bytes >= bytes && wr_field_is(wr_span_after(word, word.bytes - bytes), with);
}

/* Translates a word of Squid, also used by Akamai and Azure: TCP_MEM_HIT, TCP_REFRESH_MISS, ... */
static enum wr_cache_status squid_status(struct wr_span word)
{
    if (starts_with_word(word, "TCP_CLIENT_REFRESH"))
        return WR_CACHE_BYPASS;
    if (ends_with_word(word, "_HIT")) {
        if (starts_with_word(word, "TCP_EXPIRED") || starts_with_word(word, "TCP_REFRESH_FAIL") ||
            starts_with_word(word, "TCP_STALE"))
            return WR_CACHE_STALE;
        return starts_with_word(word, "TCP_REFRESH") ? WR_CACHE_REVALIDATED : WR_CACHE_HIT;
    }
    if (ends_with_word(word, "_UNMODIFIED"))
        return WR_CACHE_REVALIDATED;
    if (ends_with_word(word, "_MISS") || ends_with_word(word, "_MODIFIED"))
        return starts_with_word(word, "TCP_REFRESH") || starts_with_word(word, "TCP_EXPIRED") ? WR_CACHE_EXPIRED
                                                                                              : WR_CACHE_MISS;
    return WR_CACHE_UNKNOWN;
}

static enum wr_cache_status word_status(struct wr_span word)
{
    static const struct {
        const char *word;
        enum wr_cache_status status;
    } words[] = {
        {"hit", WR_CACHE_HIT},
        {"miss", WR_CACHE_MISS},
        {"expired", WR_CACHE_EXPIRED},
        {"stale", WR_CACHE_STALE},
        /* nginx, Cloudflare: stale, while another request refreshes it */
        {"updating", WR_CACHE_STALE},
        {"revalidated", WR_CACHE_REVALIDATED},
        {"bypass", WR_CACHE_BYPASS},
        {"dynamic", WR_CACHE_DYNAMIC},
        {"pass", WR_CACHE_BYPASS},             /* sent by Varnish, Fastly */
        {"refreshhit", WR_CACHE_REVALIDATED},  /* sent by CloudFront */
        {"originshieldhit", WR_CACHE_HIT},     /* sent by CloudFront */
        {"prerender", WR_CACHE_HIT},           /* sent by Vercel */
        {"uncacheable", WR_CACHE_DYNAMIC},     /* sent by Drupal, Google */
        {"config_nocache", WR_CACHE_BYPASS},   /* sent by Azure */
        {"private_nostore", WR_CACHE_DYNAMIC}, /* sent by Azure */
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (wr_field_is(word, words[i].word))
            return words[i].status;
    return starts_with_word(word, "TCP_") ? squid_status(word) : WR_CACHE_UNKNOWN;
}

/* Returns the status of the first known word: "Hit from cloudfront", "TCP_HIT from a23-1
 * (AkamaiGHost)". */
static enum wr_cache_status text_status(struct wr_span text)
{
    while (text.bytes > 0) {
        struct wr_span word = {text.data, 0};
        while (word.bytes < text.bytes && (wr_ascii_is_alnum(text.data[word.bytes]) || text.data[word.bytes] == '_'))
            word.bytes++;
        enum wr_cache_status status = word_status(word);
        if (status != WR_CACHE_UNKNOWN)
            return status;
        text = wr_span_after(text, word.bytes < text.bytes ? word.bytes + 1 : word.bytes);
    }
    return WR_CACHE_UNKNOWN;
}

/* Removes and returns the text up to the next comma. */
static struct wr_span take_list_element(struct wr_span *rest)
{
    size_t comma = wr_span_find(*rest, ',');
    struct wr_span part = {rest->data, comma};
    *rest = wr_span_after(*rest, comma < rest->bytes ? comma + 1 : comma);
    return wr_span_trim(part);
}

/* Parses a list such as "MISS, HIT", to which each cache appends its own status. The last one
 * counts. */
static enum wr_cache_status list_status(struct wr_span value)
{
    enum wr_cache_status status = WR_CACHE_UNKNOWN;
    while (value.bytes > 0) {
        enum wr_cache_status next = text_status(take_list_element(&value));
        status = next != WR_CACHE_UNKNOWN ? next : status;
    }
    return status;
}

/* ---- other forms ----------------------------------------------------------------------------- */

/* One member of Cache-Status, as collected from its parameters (RFC 9211 2). */
struct cache_status_member {
    bool is_hit, is_stale_hit, is_validated;
    enum wr_cache_status forward; /* reason for asking the origin */
};

static enum wr_cache_status forward_status(struct wr_span why)
{
    if (wr_span_is(why, "uri-miss") || wr_span_is(why, "vary-miss") || wr_span_is(why, "miss") ||
        wr_span_is(why, "partial"))
        return WR_CACHE_MISS;
    if (wr_span_is(why, "stale"))
        return WR_CACHE_EXPIRED;
    return wr_span_is(why, "bypass") || wr_span_is(why, "method") || wr_span_is(why, "request") ? WR_CACHE_BYPASS
                                                                                                : WR_CACHE_UNKNOWN;
}

static void read_cache_status_parameter(struct cache_status_member *member, struct wr_span name,
                                        const struct wr_sf_value *value)
{
    if (wr_span_is(name, "hit"))
        member->is_hit = true;
    else if (wr_span_is(name, "ttl"))
        member->is_stale_hit = value->kind == WR_SF_INTEGER && value->number < 0;
    else if (wr_span_is(name, "fwd") && value->kind == WR_SF_TOKEN)
        member->forward = forward_status(value->text);
    else if (wr_span_is(name, "fwd-status"))
        member->is_validated = value->kind == WR_SF_INTEGER && value->number == 304;
}

static enum wr_cache_status member_status(const struct cache_status_member *member, const struct wr_sf_value *cache)
{
    if (member->is_hit)
        return member->is_stale_hit ? WR_CACHE_STALE : WR_CACHE_HIT;
    if (member->forward == WR_CACHE_EXPIRED && member->is_validated)
        return WR_CACHE_REVALIDATED;
    if (member->forward == WR_CACHE_UNKNOWN &&
        cache->kind == WR_SF_TOKEN) /* a bare token such as "Cache-Status: HIT" predates RFC 9211 */
        return word_status(cache->text);
    return member->forward;
}

/* Parses Cache-Status, such as `ExampleCache; hit; ttl=376, "CDN Company"; fwd=uri-miss; stored`.
 * The last member is the nearest cache. */
static enum wr_cache_status structured_status(struct wr_span value)
{
    enum wr_cache_status status = WR_CACHE_UNKNOWN;
    struct wr_sf sf = {.rest = value};
    struct wr_sf_value cache, parameter;
    struct wr_span name;
    int more;
    while ((more = wr_sf_member(&sf, &cache)) > 0) {
        struct cache_status_member member = {.forward = WR_CACHE_UNKNOWN};
        while ((more = wr_sf_parameter(&sf, &name, &parameter)) > 0)
            read_cache_status_parameter(&member, name, &parameter);
        if (more < 0)
            return WR_CACHE_UNKNOWN;
        enum wr_cache_status next = member_status(&member, &cache);
        status = next != WR_CACHE_UNKNOWN ? next : status;
    }
    return more < 0 ? WR_CACHE_UNKNOWN : status;
}

/* Parses Server-Timing of Akamai: cdn-cache; desc=HIT, edge; dur=1. */
static enum wr_cache_status timing_status(struct wr_span value)
{
    while (value.bytes > 0) {
        struct wr_span part = take_list_element(&value);
        size_t end = wr_span_find(part, ';');
        struct wr_span name = wr_span_trim((struct wr_span){part.data, end});
        if (wr_field_is(name, "cdn-cache"))
            return text_status(wr_span_after(part, end));
    }
    return WR_CACHE_UNKNOWN;
}

static bool has_digit(struct wr_span text, char least)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (wr_ascii_is_digit(text.data[i]) && text.data[i] >= least)
            return true;
    return false;
}

/* Parses X-Cache-Hits: "0, 3" counts the earlier hits of each cache. */
static enum wr_cache_status hits_status(struct wr_span value)
{
    struct wr_span last = {NULL, 0};
    while (value.bytes > 0)
        last = take_list_element(&value);
    if (has_digit(last, '1'))
        return WR_CACHE_HIT;
    return has_digit(last, '0') ? WR_CACHE_MISS : WR_CACHE_UNKNOWN;
}

/* Parses X-Varnish: "1180" (number of the request), or "1180 1024" with the request that filled the
 * cache. */
static enum wr_cache_status varnish_status(struct wr_span value)
{
    size_t first = 0;
    while (first < value.bytes && wr_ascii_is_digit(value.data[first]))
        first++;
    if (first == 0)
        return WR_CACHE_UNKNOWN;
    return has_digit(wr_span_after(value, first), '0') ? WR_CACHE_HIT : WR_CACHE_MISS;
}

/* Parses Age. The value 0 is not taken for a hit, because the origin may have sent it. */
static enum wr_cache_status age_status(struct wr_span value)
{
    for (size_t i = 0; i < value.bytes; i++)
        if (!wr_ascii_is_digit(value.data[i]))
            return WR_CACHE_UNKNOWN;
    return has_digit(value, '1') ? WR_CACHE_HIT : WR_CACHE_UNKNOWN;
}

/* ---- precedence of the fields ---------------------------------------------------------------- */

static const struct {
    const char *name;
    enum wr_cache_status (*read)(struct wr_span value);
} sources[] = {
    /* networks, which are the nearest caches */
    {"CF-Cache-Status", list_status},
    {"X-Vercel-Cache", list_status},
    {"CDN-Cache", list_status}, /* sent by Bunny */
    {"X-Sucuri-Cache", list_status},
    {"Fly-Cache-Status", list_status},
    {"X-QC-Cache", list_status}, /* sent by QUIC.cloud */
    {"Cache-Status", structured_status},
    {"Server-Timing", timing_status},
    {"X-Cache", list_status},
    /* caches run by the site */
    {"X-Cache-Status", list_status},
    {"X-Proxy-Cache", list_status},
    {"X-Proxy-Cache-Status", list_status},
    {"X-Nginx-Cache", list_status},
    {"X-Nginx-Cache-Status", list_status},
    {"X-FastCGI-Cache", list_status},
    {"X-Kinsta-Cache", list_status},
    {"X-LiteSpeed-Cache", list_status},
    {"X-Varnish-Cache", list_status},
    {"X-Srcache-Fetch-Status", list_status},
    {"X-Nextjs-Cache", list_status},
    {"X-Magento-Cache-Debug", list_status},
    {"X-Drupal-Cache", list_status},
    /* fields that only hint at a hit */
    {"X-Cache-Hits", hits_status},
    {"X-Varnish", varnish_status},
    {"Age", age_status},
};

/* Returns the weight of a status: 2 if the cache stores or would store the response, 1 if it does
 * not store it, 0 if nothing is known. */
static int status_weight(enum wr_cache_status status)
{
    if (status == WR_CACHE_UNKNOWN)
        return 0;
    return status == WR_CACHE_BYPASS || status == WR_CACHE_DYNAMIC ? 1 : 2;
}

void wr_cache_field(struct wr_cache *cache, struct wr_span name, struct wr_span value)
{
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (!wr_field_is(name, sources[i].name))
            continue;
        enum wr_cache_status status = sources[i].read(wr_span_trim(value));
        int said = status_weight(status), known = status_weight((enum wr_cache_status)cache->status);
        if (said > known || (said == known && said > 0 && i <= cache->source))
            *cache = (struct wr_cache){.status = (uint8_t)status, .source = (uint8_t)i};
        return;
    }
}

enum wr_cache_status wr_cache_result(const struct wr_cache *cache)
{
    return (enum wr_cache_status)cache->status;
}
