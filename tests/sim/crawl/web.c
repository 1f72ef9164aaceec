/* SPDX-License-Identifier: MIT */
/* web.c - a small simulated web. */
#include "sim/crawl/web.h"

#include <stdio.h>
#include <stdlib.h>
#include <weir/memory.h>

#define RTT_NS (20 * WEIR_MILLISECOND)
#define DURATION_NS (12 * WEIR_HOUR)

/* ---- random hosts ---- */

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    struct wr_rng rng;
    wr_rng_init(&rng, a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xbf58476d1ce4e5b9) ^ c);
    return wr_rng_next(&rng);
}

static void draw_limit(struct wr_origin *origin, struct wr_rng *rng)
{
    origin->limiter.kind = (enum wr_limiter_kind)wr_rng_below(rng, WR_LIMITER_CONCURRENCY + 1);
    origin->limiter.rate = 0.5 + (double)wr_rng_below(rng, 20);
    origin->limiter.burst = 1 + (double)wr_rng_below(rng, 10);
    origin->limiter.quota = (uint32_t)(3 + wr_rng_below(rng, 40));
    origin->limiter.window_ns = (int64_t)(1 + wr_rng_below(rng, 20)) * WEIR_SECOND;
    origin->limiter.ban_ns = (int64_t)(5 + wr_rng_below(rng, 60)) * WEIR_SECOND;
    origin->limiter.status = wr_rng_below(rng, 2) == 0 ? 403 : 429;
    origin->limiter.max = (uint32_t)(1 + wr_rng_below(rng, 4));
    origin->reject.status = wr_rng_below(rng, 3) == 0 ? 503 : 429;
    origin->reject.retry_after = wr_rng_below(rng, 2) == 0;
}

static void draw_host(struct web *web, struct web_host *host, struct wr_rng *rng)
{
    struct wr_scenario scenario;
    wr_scenario_init(&scenario);
    host->pages = (uint32_t)(1 + wr_rng_below(rng, wr_rng_below(rng, 4) == 0 ? 120 : 25));
    host->is_https = wr_rng_below(rng, 2) == 0;
    host->has_both = wr_rng_below(rng, 4) == 0;
    host->robots = (enum web_robots)wr_rng_below(rng, WEB_ROBOTS_KINDS);
    if (host->robots == WEB_ROBOTS_NEVER && wr_rng_below(rng, 2) == 0)
        host->robots = WEB_ROBOTS_RULES;
    host->delay_ns = wr_rng_below(rng, 3) == 0 ? (int64_t)(1 + wr_rng_below(rng, 4)) * WEIR_SECOND : 0;
    host->late_until = (int64_t)wr_rng_below(rng, 90) * WEIR_SECOND;
    host->away = (uint32_t)wr_rng_below(rng, web->count);
    host->origin = scenario.origin;
    host->origin.service.mean_ns = (int64_t)(1 + wr_rng_below(rng, 400)) * WEIR_MILLISECOND;
    draw_limit(&host->origin, rng);
    host->origin.errors.p500 = wr_rng_below(rng, 3) == 0 ? 0.1 : 0;
    host->origin.errors.p503 = wr_rng_below(rng, 4) == 0 ? 0.05 : 0;
    if (wr_rng_below(rng, 4) == 0) {
        host->origin.outage.from_ns = (int64_t)wr_rng_below(rng, 60) * WEIR_SECOND;
        host->origin.outage.to_ns = host->origin.outage.from_ns + (int64_t)wr_rng_below(rng, 100) * WEIR_SECOND;
    }
}

void web_init(struct web *web, uint64_t seed)
{
    struct wr_rng rng;
    wr_rng_init(&rng, seed);
    *web = (struct web){.seed = seed, .count = (uint32_t)(1 + wr_rng_below(&rng, WEB_HOSTS_MAX))};
    for (uint32_t i = 0; i < web->count; i++) {
        draw_host(web, &web->hosts[i], &rng);
        if (wr_sim_origin_init(&web->hosts[i].site, &web->hosts[i].origin, DURATION_NS, seed * 100 + i,
                               weir_allocator_system()) != 0)
            abort();
    }
}

void web_release(struct web *web)
{
    for (uint32_t i = 0; i < web->count; i++)
        wr_sim_origin_release(&web->hosts[i].site);
}

/* ---- URLs: "http://h12.example/p/34" ---- */

struct place {
    uint32_t host, number;
    bool is_https;
    char kind;
    size_t path_bytes;
};

static struct place place_of(struct wr_span url)
{
    char text[WEB_URL * 2];
    struct place place = {.kind = '?'};
    snprintf(text, sizeof text, "%.*s", (int)url.bytes, url.data);
    place.is_https = text[4] == 's';
    char *end;
    place.host = (uint32_t)strtoul(text + (place.is_https ? 9 : 8), &end, 10);
    const char *path = end + strlen(".example");
    place.path_bytes = strlen(path);
    if (strcmp(path, "/robots.txt") == 0) {
        place.kind = 'R';
        return place;
    }
    place.kind = path[1];
    const char *digits = path + strcspn(path, "0123456789");
    place.number = (uint32_t)strtoul(digits, NULL, 10);
    return place;
}

uint32_t web_host_of(struct wr_span url)
{
    return place_of(url).host;
}

bool web_is_https(struct wr_span url)
{
    return place_of(url).is_https;
}

char web_kind_of(struct wr_span url)
{
    return place_of(url).kind;
}

static void write_url(const struct web *web, uint32_t index, char kind, uint64_t number, uint64_t chance,
                      char ret_url[WEB_URL])
{
    const struct web_host *host = &web->hosts[index];
    bool is_https = host->is_https != (host->has_both && chance % 2 == 0);
    const char *scheme = is_https ? "https" : "http";
    if (kind == 't')
        snprintf(ret_url, WEB_URL, "%s://h%u.example/t?d=%u", scheme, index, (unsigned)number);
    else if (kind == 'l')
        snprintf(ret_url, WEB_URL, "%s://h%u.example/l/l", scheme, index);
    else
        snprintf(ret_url, WEB_URL, "%s://h%u.example/%c/%u", scheme, index, kind, (unsigned)number);
}

void web_seed_url(const struct web *web, uint32_t host, char ret_url[WEB_URL])
{
    write_url(web, host, 'p', 0, 1, ret_url);
}

static void draw_link(const struct web *web, const struct place *from, uint64_t i, char ret_link[WEB_URL])
{
    static const char kinds[] = "ppppppppppppppxxrrrmtlc";
    uint64_t chance = mix(web->seed, (uint64_t)from->host << 32 | from->number, i);
    uint32_t host = chance % 5 == 0 ? (uint32_t)(chance / 5 % web->count) : from->host;
    char kind = kinds[chance / 1000 % (sizeof kinds - 1)];
    uint64_t number = kind == 't' || kind == 'c' ? 0 : chance / 1000000 % web->hosts[host].pages;
    write_url(web, host, kind, number, chance / 7, ret_link);
}

size_t web_links(const struct web *web, struct wr_span url, char ret_links[WEB_LINKS_MAX][WEB_URL])
{
    struct place from = place_of(url);
    if (from.kind == 'l') {
        snprintf(ret_links[0], WEB_URL, "%.*s/l", (int)(url.bytes < 50 ? url.bytes : 50), url.data);
        return 1;
    }
    if (from.kind == 't') {
        write_url(web, from.host, 't', from.number + 1, 1, ret_links[0]);
        write_url(web, from.host, 't', from.number + 2, 1, ret_links[1]);
        return 2;
    }
    if (from.kind != 'p')
        return 0;
    size_t count = 1 + from.number % WEB_LINKS_MAX;
    for (size_t i = 0; i < count; i++)
        draw_link(web, &from, i, ret_links[i]);
    return count;
}

/* ---- responses ---- */

static void answer_robots(const struct web *web, const struct place *place, int64_t now, struct web_answer *answer)
{
    const struct web_host *host = &web->hosts[place->host];
    bool is_late = host->robots == WEB_ROBOTS_LATE && now < host->late_until;
    if (host->robots == WEB_ROBOTS_NONE) {
        answer->status = 404;
    } else if (host->robots == WEB_ROBOTS_NEVER || is_late) {
        answer->status = 503;
    } else if (host->robots == WEB_ROBOTS_TURNS && !place->is_https) {
        answer->status = 301;
        snprintf(answer->location, WEB_URL, "https://h%u.example/robots.txt", place->host);
    } else if (host->robots == WEB_ROBOTS_AWAY) {
        answer->status = 302;
        snprintf(answer->location, WEB_URL, "http://h%u.example/robots.txt", host->away);
    } else if (host->delay_ns > 0) {
        snprintf(answer->robots, WEB_URL, "User-agent: *\nDisallow: /x/\nCrawl-delay: %d\n",
                 (int)(host->delay_ns / WEIR_SECOND));
    } else {
        snprintf(answer->robots, WEB_URL, "User-agent: *\nDisallow: /x/\n");
    }
}

static void answer_page(const struct web *web, const struct place *place, struct web_answer *answer)
{
    uint64_t chance = mix(web->seed, (uint64_t)place->host << 32 | place->number, 99);
    uint32_t to = chance % 3 == 0 ? (uint32_t)(chance / 3 % web->count) : place->host;
    if (place->kind == 'm')
        answer->status = 404;
    if (place->kind == 'r') {
        answer->status = 302;
        write_url(web, to, 'p', chance / 100 % web->hosts[to].pages, chance / 7, answer->location);
    }
    if (place->kind == 'c') {
        answer->status = 301;
        write_url(web, place->host, 'c', place->number + 1, 1, answer->location);
    }
}

void web_ask(struct web *web, struct wr_span url, int64_t now, struct web_answer *ret_answer)
{
    struct place place = place_of(url);
    struct wr_sim_reply reply;
    wr_sim_origin_arrive(&web->hosts[place.host].site, now, &reply);
    *ret_answer = (struct web_answer){
        .status = reply.status, .at = reply.done_at + RTT_NS, .retry_after_ns = reply.retry_after_ns};
    if (reply.status != 200)
        return;
    if (place.kind == 'R')
        answer_robots(web, &place, now, ret_answer);
    else
        answer_page(web, &place, ret_answer);
}
