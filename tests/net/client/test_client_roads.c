/* SPDX-License-Identifier: MIT */
/* test_client_roads.c - a server behind a bad network: latency, loss and segments that never arrive
 * (E3). */
#include "rig.h"

#include "lib/road.h"

#define PAGES 40
#define PAGE_BYTES 20000

struct site {
    char pages[PAGES][PAGE_BYTES + 1];
};

static struct origin_reply serve(void *context, const struct origin_request *request)
{
    const struct site *site = context;
    long page = strtol(request->path + 1, NULL, 10);
    return (struct origin_reply){.body = site->pages[page % PAGES]};
}

static struct site *make_site(void)
{
    struct site *site = calloc(1, sizeof *site);
    for (int i = 0; i < PAGES; i++)
        memset(site->pages[i], 'a' + i % 26, PAGE_BYTES);
    return site;
}

/* Result of one page: reported exactly once, complete or as a failure. */
struct page {
    int number;
    atomic_int results;
    bool is_whole;
    weir_failure failure;
};

static void count_page(void *context, weir_response *response)
{
    struct page *page = context;
    page->failure = response->failure;
    if (response->status == 200 && response->failure == WEIR_FAILURE_NONE) {
        assert_int_equal(response->body_bytes, PAGE_BYTES);
        assert_false(response->truncated);
        for (size_t i = 0; i < PAGE_BYTES; i++)
            assert_int_equal(response->body[i], 'a' + page->number % 26);
        page->is_whole = true;
    }
    weir_response_free(response);
    atomic_fetch_add(&page->results, 1);
}

/* Fetches all pages and returns how many were complete. */
static int fetch_all(struct client_fixture *rig, int port, struct page *pages)
{
    int whole = 0;
    for (int i = 0; i < PAGES; i++) {
        char path[16];
        (void)snprintf(path, sizeof path, "/%d", i);
        pages[i] = (struct page){.number = i};
        assert_int_equal(weir_client_fetch_async(rig->client, url_at(port, path), NULL, count_page, &pages[i], NULL),
                         0);
    }
    int64_t until = monotonic() + WEIR_MINUTE;
    for (int i = 0; i < PAGES; i++) {
        while (pages[i].results == 0) {
            assert_true(monotonic() < until);
            sleep_ns(MS);
        }
        whole += pages[i].is_whole;
    }
    sleep_ns(50 * MS);
    for (int i = 0; i < PAGES; i++)
        assert_int_equal(pages[i].results, 1); /* no page is reported twice */
    return whole;
}

static void loss_of_half_the_segments_only_slows_fetches_down(void **state)
{
    (void)state;
    struct client_fixture rig;
    static struct page pages[PAGES];
    struct site *site = make_site();
    struct origin *origin = origin_new(serve, site, NULL);
    struct road *road =
        road_new(origin_port(origin), &(struct road_options){.latency_ns = 10 * MS, .lost = 0.5, .seed = 7});
    rig_init(&rig);
    rig.options.connect_timeout_ns = rig.options.first_byte_timeout_ns = 20 * WEIR_SECOND;
    rig.options.deadline_ns = WEIR_MINUTE;
    rig_start(&rig);
    assert_int_equal(fetch_all(&rig, road_port(road), pages), PAGES);
    assert_int_equal(origin_requests(origin), PAGES); /* loss does not cause a resend */
    rig_tear_down(&rig);
    road_free(road);
    origin_free(origin);
    free(site);
}

static void latency_of_two_seconds_is_within_the_default_timeouts(void **state)
{
    (void)state;
    struct client_fixture rig;
    struct site *site = make_site();
    struct origin *origin = origin_new(serve, site, NULL);
    struct road *road = road_new(origin_port(origin), &(struct road_options){.latency_ns = 2 * WEIR_SECOND});
    rig_set_up(&rig);
    weir_response *response = get(&rig, url_at(road_port(road), "/1"));
    assert_int_equal(response->status, 200);
    assert_true(response->latency_ns >= 4 * WEIR_SECOND - STAMP_SLACK_NS);
    assert_int_equal(response->attempts, 1);
    weir_response_free(response);
    rig_tear_down(&rig);
    road_free(road);
    origin_free(origin);
    free(site);
}

/* Segments that never arrive, as in a black hole for large packets: the time limits end the
 * attempt, and it is retried. */
static void lost_responses_are_retried_or_fail_in_time(void **state)
{
    (void)state;
    struct client_fixture rig;
    static struct page pages[PAGES];
    struct site *site = make_site();
    struct origin *origin = origin_new(serve, site, NULL);
    struct road *road = road_new(
        origin_port(origin), &(struct road_options){.latency_ns = 2 * MS, .lost = 0.2, .swallowed = 0.5, .seed = 3});
    rig_init(&rig);
    rig.pace.retry.base_ns = 10 * MS;
    rig.options.first_byte_timeout_ns = 500 * MS;
    rig.options.total_timeout_ns = WEIR_SECOND;
    rig.options.deadline_ns = 20 * WEIR_SECOND;
    rig_start(&rig);
    int whole = fetch_all(&rig, road_port(road), pages);
    assert_true(road_swallowed(road) > 0);
    assert_true(whole >= PAGES / 2); /* each page has three attempts */
    for (int i = 0; i < PAGES; i++)
        assert_true(pages[i].is_whole || pages[i].failure == WEIR_FAILURE_FIRST_BYTE_TIMEOUT ||
                    pages[i].failure == WEIR_FAILURE_TOTAL_TIMEOUT);
    rig_tear_down(&rig);
    road_free(road);
    origin_free(origin);
    free(site);
}

WEIR_TESTS(test(loss_of_half_the_segments_only_slows_fetches_down),
           test(latency_of_two_seconds_is_within_the_default_timeouts),
           test(lost_responses_are_retried_or_fail_in_time))
