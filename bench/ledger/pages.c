/* SPDX-License-Identifier: MIT */
/* pages.c - measures the work of a crawl for one page, without input and output: robots.txt is
 * matched, links are extracted, and the plan chooses the next URL. */
#include "cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cli/bench/bench_page.h"
#include "core/pace/pace_options.h"
#include "core/plan/plan.h"
#include "core/web/page/page.h"
#include "core/web/robots/robots.h"
#include "limiter/memory/memory.h"

#define MATCHES 1000
#define SCANS 40
#define PAGES 40

static char url_text[WR_URL_ROOM];
static struct wr_url url;
static struct wr_bench_page reference;

/* ---- robots.txt ---- */

#define RULES 100
#define WILD_EVERY 5 /* each fifth rule has a '*' */

#define TARGETS 300

static struct wr_robots *robots;
static char targets[TARGETS][64];

static void open_robots(void)
{
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WEIR_MINUTE};
    static char text[RULES * 64];
    int at = snprintf(text, sizeof text, "User-agent: *\n");
    for (int i = 0; i < RULES; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       i % WILD_EVERY == 0 ? "Disallow: /catalog/*?sort%d=\n" : "Disallow: /catalog/page-%d/\n", i);
    cost_need(wr_robots_parse((struct wr_span){text, (size_t)at}, &options, weir_allocator_system(), &robots) == 0,
              "no robots.txt");
    for (int i = 0; i < TARGETS; i++)
        (void)snprintf(targets[i], sizeof targets[i], "/catalog/page-%d/item.html?sort=price", i);
}

static void ask_robots(uint32_t number)
{
    (void)wr_robots_match(robots, wr_span_of(targets[number % TARGETS]));
}

static void close_robots(void)
{
    wr_robots_free(robots);
}

/* ---- links of a page ---- */

static void count_link(void *context, const struct wr_link *link)
{
    (void)link;
    ++*(uint32_t *)context;
}

static void open_reference(void)
{
    wr_bench_page_make(&reference);
}

static void scan_links(uint32_t number)
{
    static struct wr_links links;
    uint32_t found = 0;
    struct wr_links_options options = {.kinds = WR_LINKS_PAGES, .found = count_link, .context = &found};
    (void)number;
    wr_links_init(&links, &options);
    wr_links_feed(&links, reference.text, reference.bytes);
    cost_need(found > 30, "links of the page were not found");
}

static void close_reference(void)
{
}

/* ---- a page of a crawl ---- */

#define JOB 1
#define FIRST_FINGERPRINT 1000

static struct wr_plan *plan;
static struct wr_page page;
static struct wr_hash_key hash_key;

static void open_plan(void)
{
    static const unsigned char secret[WR_HASH_SECRET_BYTES] = {3};
    struct wr_plan_options options = {.ignores_robots = true, .allocator = weir_allocator_system()};
    struct wr_robots_lifecycle_options life = {.on_error = WR_ROBOTS_ON_ERROR_RFC9309};
    weir_pace_options pace;
    wr_hash_key_init(&hash_key, secret);
    options.hash_key = &hash_key;
    options.max_hosts = 1000;
    options.max_tasks = 100000;
    options.known_max = 100000;
    weir_pace_options_init(&pace);
    pace.min_interval_ns = WEIR_SECOND;
    cost_need(wr_pace_options_check(&pace, &options.pace) == 0 &&
                  wr_robots_lifecycle_options_check(&life, &options.robots) == 0 && wr_plan_new(&options, &plan) == 0 &&
                  wr_plan_job_add(plan, &(struct wr_plan_job){.id = JOB}) == 0,
              "no plan");
}

static void open_crawl(void)
{
    cost_need(wr_url_parse(wr_span_of("https://www.example.org/articles/"), NULL, NULL, url_text, sizeof url_text,
                           &url) == WR_URL_OK,
              "no URL");
    wr_bench_page_make(&reference);
    open_plan();
    wr_page_init(&page, wr_allocator_or_system(NULL));
}

/* All links of the page except the first are known already. */
static void offer_link(void *context, const struct wr_page_link *link)
{
    struct wr_url_to_add offer = {.job = JOB, .fingerprint = link->fingerprint, .url = &url};
    (void)context;
    if (!wr_plan_knows_url(plan, JOB, link->fingerprint))
        (void)wr_plan_add_url(plan, &offer, cost_clock.now);
}

static void load(const struct wr_plan_action *action, uint32_t number)
{
    struct wr_plan_row row = {.fingerprint = FIRST_FINGERPRINT + number, .position = {number + 1, 0}, .url = &url};
    if (action->wants_memory)
        wr_plan_restore_host(plan, action->host, &(struct wr_plan_stored_host){.pace = NULL}, cost_clock.now, 0);
    cost_need(wr_plan_load_row(plan, action->host, JOB, &row, cost_clock.now) == 0, "the plan takes no task");
    wr_plan_load_end(plan, action->host, JOB, true, 0, cost_clock.now);
}

static void fetch(const struct wr_plan_action *action)
{
    const weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = 50 * WEIR_MILLISECOND};
    cost_need(wr_plan_may_send(plan, action->task, cost_clock.now).verdict == WEIR_GO, "the plan changed its mind");
    wr_plan_sent(plan, action->task, cost_clock.now);
    wr_plan_page_finished(plan, action->task, &outcome, reference.bytes, cost_clock.now);
}

static void read_page(void)
{
    struct wr_page_options reading = {
        .url = &url, .key = &hash_key, .content_type = wr_span_of("text/html; charset=utf-8")};
    wr_page_begin(&page, &reading);
    wr_page_feed(&page, reference.text, reference.bytes);
    cost_need(wr_page_end(&page, offer_link, NULL) == 0, "the page was not read");
}

/* One URL: it is discovered, waits for its host, is fetched and parsed. */
static void crawl_page(uint32_t number)
{
    struct wr_url_to_add offer = {.job = JOB, .fingerprint = FIRST_FINGERPRINT + number, .url = &url};
    struct wr_plan_action action;
    cost_need(wr_plan_add_url(plan, &offer, cost_clock.now) == WR_ADD_URL_NEW, "the plan refuses a URL");
    for (;;) {
        wr_plan_next(plan, cost_clock.now, &action);
        if (action.kind == WR_PLAN_IDLE)
            cost_clock.now = action.at;
        else if (action.kind == WR_PLAN_LOAD)
            load(&action, number);
        else
            break;
    }
    cost_need(action.kind == WR_PLAN_START, "the plan has nothing to do");
    fetch(&action);
    read_page();
}

static void close_crawl(void)
{
    wr_page_release(&page);
    wr_plan_free(plan);
}

const struct cost_figure cost_pages[] = {
    {"robots_match", MATCHES, open_robots, ask_robots, close_robots},
    {"link_scan", SCANS, open_reference, scan_links, close_reference},
    {"crawl_page", PAGES, open_crawl, crawl_page, close_crawl},
    {.name = NULL},
};
