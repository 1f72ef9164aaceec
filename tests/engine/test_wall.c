/* SPDX-License-Identifier: MIT */
/* test_wall.c - tests of hosts whose firewall blocks the crawl: detected, reported, and not asked
 * any more (U10). */
#include "engine/rig.h"

#include <stdatomic.h>
#include <unistd.h>

#define WALL                                                                                                \
    (struct origin_reply)                                                                                   \
    {                                                                                                       \
        .status = 403, .fields = "Server: cloudflare\r\n",                                                  \
        .body = "<title>Attention Required! | Cloudflare</title><div id=\"cf-error-details\">blocked</div>" \
    }

/* Returns the home page of host 1 and the firewall's page for its other paths; other hosts are
 * open. */
static struct origin_reply answer_wall(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request))
        return (struct origin_reply){.status = 404};
    if (rig_host(request) == 1 && strcmp(request->path, "/") != 0)
        return WALL;
    if (rig_host(request) == 1) {
        char links[4096] = "";
        for (int i = 1; i <= 60; i++)
            (void)snprintf(links + strlen(links), sizeof links - strlen(links), "<a href=\"/%d\">x</a>", i);
        return rig_html(rig_text(rig, "%s", links));
    }
    return rig_tree(rig, request, 5, NULL);
}

static void on_job(void *context, const struct wr_store_row *row)
{
    *(enum wr_job_status *)context = row->job.status;
}

static enum wr_job_status status_of(const struct crawl_fixture *rig, int64_t job)
{
    struct wr_store *store;
    enum wr_job_status status = WR_JOB_PENDING;
    const struct wr_store_options options = {.path = rig->state};
    assert_int_equal(wr_store_open(&options, &store), 0);
    assert_int_equal(wr_store_read(store, &(struct wr_store_query){.what = WR_STORE_JOBS,
                                                                   .job = job,
                                                                   .after = WR_STORE_FIRST_POSITION,
                                                                   .row = on_job,
                                                                   .context = &status}),
                     0);
    wr_store_free(store);
    return status;
}

static void crawl(struct crawl_fixture *rig, int hosts)
{
    rig_start(rig);
    for (int host = 1; host <= hosts; host++)
        rig_seed(rig, "http://127.0.0.%d:%d/", host, rig->port);
    rig_finish(rig);
}

static void set_up(struct crawl_fixture *rig)
{
    rig_set_up(rig, answer_wall);
    rig_space(rig, 20 * MS); /* each request is answered before the next one */
}

static void host_whose_firewall_refuses_twice_is_blocked_with_its_job(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    set_up(&rig);
    crawl(&rig, 1);
    assert_int_equal(rig.result.end, WR_END_BLOCKED);
    assert_int_equal(status_of(&rig, 1), WR_JOB_BLOCKED);
    /* robots.txt, the first page, two refusals, and one more in flight. */
    assert_true(origin_requests(rig.origin) <= 5);
    assert_int_equal(rig.line_count, 61);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/"), "verdict"), "fetched");
    assert_int_equal(rig_verdicts(&rig, "blocked"), 60);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/60"), "error"), "firewall");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/60"), "error_text"),
                        "not sent: the site's firewall (Cloudflare) blocks the crawler");
    assert_int_equal(rig.result.stats.blocked, 60);
    assert_int_equal(rig.result.stats.blocked_hosts, 1);
    rig_check_store(&rig);
    rig_tear_down(&rig);
}

static void firewall_of_one_host_does_not_stop_the_others(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    set_up(&rig);
    rig.options.loops = 2;
    crawl(&rig, 4);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 1 + 3 * 5);
    assert_int_equal(rig_verdicts(&rig, "blocked"), 60);
    rig_tear_down(&rig);
}

static void blocked_host_is_skipped_for_a_day_unless_asks_blocked_is_set(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    set_up(&rig);
    crawl(&rig, 1);
    int asked = origin_requests(rig.origin);
    assert_int_equal(unlink(rig.out), 0);
    crawl(&rig, 1);
    assert_true(rig.is_new);
    assert_int_equal(rig.result.end, WR_END_BLOCKED);
    assert_int_equal(origin_requests(rig.origin), asked);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/"), "verdict"), "blocked");
    assert_int_equal(unlink(rig.out), 0);
    rig.options.asks_blocked = true;
    crawl(&rig, 1);
    assert_true(origin_requests(rig.origin) > asked);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/"), "verdict"), "fetched");
    assert_int_equal(rig.result.end, WR_END_BLOCKED); /* two more refusals, then no more requests */
    assert_true(origin_requests(rig.origin) <= asked + 5);
    rig_tear_down(&rig);
}

static atomic_bool is_open; /* true: the firewall is gone */

static struct origin_reply answer_once_open(void *context, const struct origin_request *request)
{
    return is_open ? rig_tree(context, request, 5, NULL) : answer_wall(context, request);
}

static void good_response_lifts_the_block_for_later_crawls(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    is_open = false;
    rig_set_up(&rig, answer_once_open);
    rig_space(&rig, 20 * MS);
    crawl(&rig, 1);
    assert_int_equal(rig.result.end, WR_END_BLOCKED);
    assert_int_equal(unlink(rig.out), 0);
    is_open = true;
    rig.options.asks_blocked = true;
    crawl(&rig, 1);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 5);
    assert_int_equal(unlink(rig.out), 0);
    rig.options.asks_blocked = false;
    crawl(&rig, 1);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 5);
    rig_check_store(&rig);
    rig_tear_down(&rig);
}

static struct origin_reply answer_now_and_then(void *context, const struct origin_request *request)
{
    if (!rig_is_robots(request) && strcmp(request->path, "/2") == 0)
        return WALL;
    return rig_tree(context, request, 12, NULL);
}

/* A firewall rule for one URL does not block the site. */
static void single_refused_page_does_not_block_its_host(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_now_and_then);
    rig.options.statuses = "403=permanent";
    crawl(&rig, 1);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/2"), "verdict"), "blocked");
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/2"), "error_text"),
                        "the site's firewall (Cloudflare) blocks the crawler");
    assert_int_equal(rig_verdicts(&rig, "blocked"), 1);
    assert_true(rig_verdicts(&rig, "fetched") > 5);
    rig_tear_down(&rig);
}

static struct origin_reply answer_all_with_wall(void *context, const struct origin_request *request)
{
    (void)context, (void)request;
    return WALL;
}

/* A response to robots.txt counts like any other. */
static void firewall_response_to_robots_txt_counts(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_all_with_wall);
    rig_space(&rig, 20 * MS);
    crawl(&rig, 1);
    assert_int_equal(rig.result.end, WR_END_BLOCKED);
    assert_int_equal(origin_requests(rig.origin), 2);
    assert_int_equal(rig_verdicts(&rig, "blocked"), 1);
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(host_whose_firewall_refuses_twice_is_blocked_with_its_job),
             test(firewall_of_one_host_does_not_stop_the_others),
             test(blocked_host_is_skipped_for_a_day_unless_asks_blocked_is_set),
             test(good_response_lifts_the_block_for_later_crawls), test(single_refused_page_does_not_block_its_host),
             test(firewall_response_to_robots_txt_counts))
