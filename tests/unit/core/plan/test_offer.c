/* SPDX-License-Identifier: MIT */
/* test_offer.c - tests which URLs are accepted: duplicates, scope, depth, budgets, traps (A20), and
 * limits of memory (D3). */
#include "rig.h"

#include "core/plan/trap.h"

static void url_is_new_once_for_each_job(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_job(&rig, 2);
    assert_offer(rig_offer(&rig, 1, "http://a.example/"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/"), WR_ADD_URL_KNOWN);
    assert_offer(rig_offer(&rig, 2, "http://a.example/"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/b"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 3, "http://a.example/"), WR_ADD_URL_OVER);
    rig_release(&rig);
}

static bool only_a(void *context, uint32_t job, const struct wr_url *url)
{
    (void)context, (void)job;
    struct wr_span host = wr_url_host(url);
    return host.bytes == 9 && memcmp(host.data, "a.example", 9) == 0;
}

static void scope_depth_and_hops_refuse_urls_and_scope_no_seed(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.in_scope = only_a;
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .max_depth = 3}), 0);
    assert_offer(rig_offer_at(&rig, 1, "http://a.example/3", 3, 0), WR_ADD_URL_NEW);
    assert_offer(rig_offer_at(&rig, 1, "http://a.example/4", 4, 0), WR_ADD_URL_DEPTH);
    assert_offer(rig_offer_at(&rig, 1, "http://a.example/h", 1, 10), WR_ADD_URL_NEW);
    assert_offer(rig_offer_at(&rig, 1, "http://a.example/i", 1, 11), WR_ADD_URL_HOPS);
    assert_offer(rig_offer(&rig, 1, "http://b.example/"), WR_ADD_URL_SCOPE);
    char memory[WR_URL_ROOM];
    struct wr_url url;
    assert_int_equal(wr_url_parse(wr_span_of("http://b.example/"), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    struct wr_url_to_add seed = {.job = 1, .fingerprint = 77, .url = &url, .is_seed = true};
    assert_offer(wr_plan_check_url(rig.plan, &seed), WR_ADD_URL_NEW);
    assert_offer(wr_plan_add_url(rig.plan, &seed, rig.now), WR_ADD_URL_NEW);
    rig_release(&rig);
}

static void paths_that_repeat_themselves_are_a_trap(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool repeats;
    } table[] = {{"/", false},
                 {"/a/a/a", false},
                 {"/a/a/a/a", true},
                 {"/a/b/a/b/a/b", false},
                 {"/a/b/a/b/a/b/a/b", true},
                 {"/x/a/b/c/a/b/c/a/b/c/a/b/c/y", true},
                 {"/a/b/c/d/a/b/c/d/a/b/c/d/a/b/c/e", false},
                 {"/2024/01/01/2024/02/02", false},
                 {"////", true},
                 {"/a/b/c/d/a/b/c/d/a/b/c/d/a/b/c/d", true},
                 {"/a/b/c/d/a/b/c/d/a/b/c/d", false},
                 /* cycles of five segments are not detected */
                 {"/a/b/c/d/e/a/b/c/d/e/a/b/c/d/e/a/b/c/d/e", false},
                 {"/a//a//b", false}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (wr_path_repeats(wr_span_of(table[i].path), 3) != table[i].repeats)
            fail_msg("%s", table[i].path);
    char deep[300] = "";
    for (int i = 0; i < 64; i++)
        snprintf(deep + strlen(deep), sizeof deep - strlen(deep), "/%d", i);
    assert_true(wr_path_repeats(wr_span_of(deep), 3));
}

static void path_has_a_maximum_number_of_queries(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char url[64];
    rig_init(&rig);
    rig.options.max_variants = 50;
    rig_begin_job(&rig);
    for (int i = 0; i < 50; i++) {
        snprintf(url, sizeof url, "http://a.example/calendar?day=%d", i);
        assert_offer(rig_offer(&rig, 1, url), WR_ADD_URL_NEW);
    }
    assert_offer(rig_offer(&rig, 1, "http://a.example/calendar?day=50"), WR_ADD_URL_TRAP);
    assert_offer(rig_offer(&rig, 1, "http://a.example/calendar?day=1"), WR_ADD_URL_KNOWN);
    assert_offer(rig_offer(&rig, 1, "http://a.example/other?day=50"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://b.example/calendar?day=50"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/calendar"), WR_ADD_URL_NEW);
    rig_release(&rig);
}

static enum wr_add_url_verdict offer_sitemap(struct plan_store_fixture *rig, const char *text, uint64_t fingerprint)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    return wr_plan_add_url(
        rig->plan,
        &(struct wr_url_to_add){.job = 1, .fingerprint = fingerprint, .url = &url, .is_seed = true, .is_sitemap = true},
        rig->now);
}

static void host_has_a_maximum_number_of_sitemaps(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char url[64];
    rig_init(&rig);
    rig.options.max_sitemaps = 50;
    rig_begin_job(&rig);
    assert_offer(rig_offer(&rig, 1, "http://a.example/"), WR_ADD_URL_NEW); /* not a sitemap */
    for (uint64_t i = 0; i < 50; i++) {
        snprintf(url, sizeof url, "http://a.example/%d.xml", (int)i);
        assert_offer(offer_sitemap(&rig, url, 100 + i), WR_ADD_URL_NEW);
    }
    assert_offer(offer_sitemap(&rig, "http://a.example/50.xml", 150), WR_ADD_URL_TRAP);
    assert_offer(offer_sitemap(&rig, "http://b.example/50.xml", 151), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://a.example/page"), WR_ADD_URL_NEW);
    rig_release(&rig);
}

static void host_has_a_maximum_number_of_pages_independent_of_others(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .host_pages = 10}), 0);
    rig_offer_many(&rig, 1, "a.example", 10);
    assert_offer(rig_offer(&rig, 1, "http://a.example/more"), WR_ADD_URL_BUDGET);
    assert_offer(rig_offer(&rig, 1, "https://a.example/more"), WR_ADD_URL_BUDGET);
    assert_offer(rig_offer(&rig, 1, "http://a.example:81/more"), WR_ADD_URL_NEW);
    assert_offer(rig_offer(&rig, 1, "http://b.example/more"), WR_ADD_URL_NEW);
    rig_release(&rig);
}

/* The store knows the number of pages before a restart. */
static void the_pages_of_a_host_are_counted_across_restarts(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .host_pages = 10}), 0);
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("a.example"), 3, rig.now), 0);
    rig.store_is_slow = true;
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    wr_plan_restore_host(rig.plan, load.host, &(struct wr_plan_stored_host){.pace = NULL}, rig.now, 0);
    wr_plan_load_end(rig.plan, load.host, 1, true, 10, rig.now);
    assert_offer(rig_offer(&rig, 1, "http://a.example/more"), WR_ADD_URL_BUDGET);
    rig_release(&rig);
}

static void pages_are_drawn_in_chunks_until_the_ledger_is_empty(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig_begin(&rig);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .has_page_budget = true}), 0);
    assert_offer(rig_offer(&rig, 1, "http://a.example/"), WR_ADD_URL_LATER);
    struct wr_plan_action draw = rig_next(&rig);
    assert_kind(draw, WR_PLAN_TAKE_BUDGET);
    assert_int_equal(draw.draw, WR_BUDGET_PAGES);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_int_equal(wr_plan_grant_budget(rig.plan, 1, WR_BUDGET_PAGES, 3, true), 0);
    rig_offer_many(&rig, 1, "a.example", 3);
    assert_offer(rig_offer(&rig, 1, "http://a.example/more"), WR_ADD_URL_BUDGET);
    assert_offer(rig_offer(&rig, 1, "http://a.example/2"), WR_ADD_URL_KNOWN);
    assert_kind(rig_next(&rig), WR_PLAN_START);
    rig_release(&rig);
}

static void full_set_of_fingerprints_asks_the_store(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char url[64];
    int asked = 0;
    rig_init(&rig);
    rig.options.known_max = 8192;
    rig_begin_job(&rig);
    for (int i = 0; i < 7000; i++) {
        snprintf(url, sizeof url, "http://a.example/%d", i);
        enum wr_add_url_verdict verdict = rig_offer(&rig, 1, url);
        asked += verdict == WR_ADD_URL_ASK_STORE;
        assert_true(verdict == WR_ADD_URL_NEW || (verdict == WR_ADD_URL_ASK_STORE && i >= 6144));
        if (wr_plan_known_is_crowded(rig.plan))
            assert_int_equal(wr_plan_known_grow(rig.plan), 0);
    }
    assert_int_equal(asked, 7000 - 6145);
    assert_offer(rig_offer(&rig, 1, "http://a.example/17"), WR_ADD_URL_KNOWN);
    char memory[WR_URL_ROOM];
    struct wr_url parsed;
    assert_int_equal(wr_url_parse(wr_span_of(url), NULL, NULL, memory, sizeof memory, &parsed), WR_URL_OK);
    struct wr_url_to_add again = {.job = 1, .fingerprint = 99, .url = &parsed, .is_new = true};
    assert_offer(wr_plan_add_url(rig.plan, &again, rig.now), WR_ADD_URL_NEW);
    rig_release(&rig);
}

static enum wr_add_url_verdict offer_again(struct plan_store_fixture *rig, size_t i, bool is_new, bool is_stored)
{
    char memory[WR_URL_ROOM], text[64];
    struct wr_url url;
    snprintf(text, sizeof text, "http://a.example/%zu", i);
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    struct wr_url_to_add offer = {
        .job = 1, .fingerprint = 100000 + i, .url = &url, .is_new = is_new, .is_stored = is_stored};
    enum wr_add_url_verdict verdict = wr_plan_add_url(rig->plan, &offer, rig->now);
    if (verdict == WR_ADD_URL_NEW) {
        struct row *row = &rig->rows[rig->count++];
        *row = (struct row){.job = 1, .fingerprint = offer.fingerprint};
        memcpy(row->url, text, sizeof text);
    }
    return verdict;
}

/* A page may be loaded from the store before it is offered, and a full set does not contain it. */
static void url_that_is_in_the_window_is_known_though_the_set_is_full(void **state)
{
    (void)state;
    for (int is_new = 0; is_new < 2; is_new++) {
        static struct plan_store_fixture rig;
        rig_init(&rig);
        rig.options.known_max = 4096;
        rig_begin_job(&rig);
        for (uint64_t i = 1; i <= 4096; i++)
            wr_plan_add_known_url(rig.plan, 1, i);
        assert_offer(offer_again(&rig, 0, false, false), WR_ADD_URL_ASK_STORE);
        for (size_t i = 0; i < 3; i++)
            assert_offer(offer_again(&rig, i, true, false), WR_ADD_URL_NEW);
        (void)rig_page(&rig, rig.now); /* one is in flight, two are queued */
        for (size_t i = 0; i < 3; i++)
            assert_offer(offer_again(&rig, i, is_new == 1, is_new == 0), WR_ADD_URL_KNOWN);
        assert_offer(offer_again(&rig, 3, is_new == 1, is_new == 0),
                     is_new == 1 ? WR_ADD_URL_NEW : WR_ADD_URL_ASK_STORE);
        rig_release(&rig);
    }
}

/* D3: hosts beyond the limit sleep in the store, and the plan asks for them later. */
static void hosts_beyond_the_maximum_sleep_in_the_store_until_asked_for(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    char url[64];
    int fetched = 0;
    rig_init(&rig);
    rig.options.max_hosts = 10;
    rig_begin_job(&rig);
    for (int i = 0; i < 100; i++) {
        snprintf(url, sizeof url, "http://h%d.example/", i);
        assert_offer(rig_offer(&rig, 1, url), WR_ADD_URL_NEW);
    }
    for (;;) {
        struct wr_plan_action action = rig_wait(&rig, rig.now + 5 * S);
        struct wr_plan_stats stats;
        wr_plan_stats_get(rig.plan, &stats);
        assert_true(stats.hosts <= 10);
        if (action.kind == WR_PLAN_DRAINED)
            break;
        if (action.kind == WR_PLAN_START) {
            rig_fetch(&rig, &action, 200);
            fetched++;
            continue;
        }
        assert_kind(action, WR_PLAN_HOSTS);
        size_t i = (size_t)action.after.id;
        int error = 0;
        for (; i < 100 && error == 0; i++) {
            snprintf(url, sizeof url, "h%zu.example", i);
            if (!rig.rows[i].ended)
                error = wr_plan_hosts_row(rig.plan, 1, wr_span_of(url), 1, rig.now);
        }
        wr_plan_hosts_end(rig.plan, 1, (int64_t)i - (error != 0), i == 100 && error == 0, rig.now);
    }
    assert_int_equal(fetched, 100);
    rig_release(&rig);
}

/* Waits for the action HOSTS and answers it with b.example, which sleeps in the store. Returns how
 * long the plan waited for it. */
static int64_t wait_for_listing(struct plan_store_fixture *rig, int expected)
{
    int64_t from = rig->now;
    struct wr_plan_action action = rig_wait(rig, rig->now + M);
    while (action.kind == WR_PLAN_DRAINED)
        action = rig_wait(rig, rig->now + M);
    assert_kind(action, WR_PLAN_HOSTS);
    assert_int_equal(wr_plan_hosts_row(rig->plan, 1, wr_span_of("b.example"), 1, rig->now), expected);
    wr_plan_hosts_end(rig->plan, 1, 0, true, rig->now);
    return rig->now - from;
}

/* L2: each HOSTS action reads the store. When memory is available again, it is used within a
 * minute. */
static void store_is_asked_less_often_for_hosts_while_memory_is_short(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    int64_t waited = 0, last = 0;
    int looks = 0;
    rig_plain(&rig);
    rig.allocator.fail_for_ever = true;
    rig.allocator.fail_at = 1;
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("b.example"), 1, rig.now), WEIR_E_NOMEM);
    for (; rig.now < 60 * M; looks++) {
        waited = wait_for_listing(&rig, WEIR_E_NOMEM);
        assert_true(waited >= last && waited <= M);
        last = waited;
    }
    assert_int_equal(waited, M);
    assert_true(looks < 70);
    rig.allocator.fail_at = 0;
    rig.allocator.fail_for_ever = false;
    assert_int_equal(wait_for_listing(&rig, 0), M);
    /* after a successful pass the next follows at once */
    assert_true(wait_for_listing(&rig, 0) < S);
    rig_release(&rig);
}

/* Pages that were accepted while their host slept are loaded with the page that wakes it, however
 * small the window. */
static void all_tasks_of_a_sleeping_host_are_loaded_when_it_wakes(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.max_hosts = 1;
    rig.options.window = 4;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "x.example", 1);
    rig_offer_many(&rig, 1, "a.example", 11); /* no room for the host */
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    assert_url(action, "http://x.example/0");
    rig_fetch(&rig, &action, 200);
    rig.now += M;
    assert_offer(rig_offer(&rig, 1, "http://a.example/wakes"), WR_ADD_URL_NEW);
    for (int starts = 0; starts < 12;) {
        action = rig_wait(&rig, rig.now + 2 * S);
        if (action.kind == WR_PLAN_HOSTS) {
            wr_plan_hosts_end(rig.plan, 1, 0, true, rig.now); /* the plan has the host */
            continue;
        }
        assert_kind(action, WR_PLAN_START);
        rig_fetch(&rig, &action, 200);
        starts++;
    }
    assert_kind(rig_wait(&rig, rig.now + S), WR_PLAN_DRAINED);
    rig_release(&rig);
}

WEIR_TESTS(test(url_that_is_in_the_window_is_known_though_the_set_is_full),
           test(all_tasks_of_a_sleeping_host_are_loaded_when_it_wakes), test(url_is_new_once_for_each_job),
           test(scope_depth_and_hops_refuse_urls_and_scope_no_seed), test(paths_that_repeat_themselves_are_a_trap),
           test(path_has_a_maximum_number_of_queries), test(host_has_a_maximum_number_of_sitemaps),
           test(host_has_a_maximum_number_of_pages_independent_of_others),
           test(the_pages_of_a_host_are_counted_across_restarts),
           test(pages_are_drawn_in_chunks_until_the_ledger_is_empty), test(full_set_of_fingerprints_asks_the_store),
           test(hosts_beyond_the_maximum_sleep_in_the_store_until_asked_for),
           test(store_is_asked_less_often_for_hosts_while_memory_is_short))
