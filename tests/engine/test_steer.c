/* SPDX-License-Identifier: MIT */
/* test_steer.c - tests of inspecting and controlling a crawl while it runs, judged by the next
 * requests to the servers. */
#include "crawl/engine/crawl_inspect.h"
#include "engine/rig.h"

#include <stdio.h>

#define PAGES 300
#define SPACE (20 * MS)

static struct origin_reply answer_plain(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, PAGES, NULL);
}

static struct wr_span key_of(const struct crawl_fixture *rig, int host)
{
    static char keys[4][64];
    static unsigned next;
    char *key = keys[next++ % 4];
    (void)snprintf(key, sizeof keys[0], "127.0.0.%d:%d", host, rig->port);
    return wr_span_of(key);
}

static struct wr_host_view look_at(const struct crawl_fixture *rig, int host)
{
    struct wr_host_view seen;
    assert_int_equal(wr_engine_inspect_host(rig->engine, key_of(rig, host), &seen), 0);
    return seen;
}

static int arrived_after(const struct crawl_fixture *rig, int host, int64_t at)
{
    int count, after = 0;
    int64_t *times = rig_arrivals(rig, host, &count);
    for (int i = 0; i < count; i++)
        after += times[i] > at;
    free(times);
    return after;
}

static int64_t last_arrival(const struct crawl_fixture *rig, int host)
{
    int count;
    int64_t *times = rig_arrivals(rig, host, &count);
    int64_t last = count > 0 ? times[count - 1] : 0;
    free(times);
    return last;
}

static void await_arrivals(const struct crawl_fixture *rig, int host, int64_t at, int count)
{
    for (int64_t until = monotonic() + WEIR_MINUTE; arrived_after(rig, host, at) < count; sleep_ns(MS))
        assert_true(monotonic() < until);
}

/* Waits for the first arrival after `at` and returns its time. */
static int64_t next_arrival(const struct crawl_fixture *rig, int host, int64_t at)
{
    await_arrivals(rig, host, at, 1);
    int count;
    int64_t found = 0, *times = rig_arrivals(rig, host, &count);
    for (int i = 0; i < count && found == 0; i++)
        found = times[i] > at ? times[i] : 0;
    free(times);
    return found;
}

static void begin(struct crawl_fixture *rig, origin_answer *answer, uint32_t loops, int hosts)
{
    rig_set_up(rig, answer);
    rig->options.loops = loops;
    rig_space(rig, SPACE);
    rig_start(rig);
    for (int host = 1; host <= hosts; host++)
        rig_seed(rig, "%s", rig_url(rig, host, "/"));
    rig_seeded(rig);
}

static void end(struct crawl_fixture *rig)
{
    wr_engine_stop(rig->engine);
    rig_finish(rig);
    rig_tear_down(rig);
}

/* ---- pausing ---- */

static void pausing_a_host_stops_its_starts_at_once_and_no_others(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_plain, 2, 4);
    rig_await_requests(&rig, 40);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 1), true), 0);
        int64_t paused_at = monotonic();
        sleep_ns(200 * MS);
        assert_int_equal(arrived_after(&rig, 1, paused_at + STAMP_SLACK_NS), 0);
        await_arrivals(&rig, 2, paused_at, 1);
        struct wr_host_view seen = look_at(&rig, 1);
        assert_int_equal(seen.state, WR_HOST_PAUSED);
        assert_true(seen.is_paused && seen.why.reason == WEIR_REASON_PAUSED && seen.queued > 0);
        assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 1), false), 0);
        assert_true(next_arrival(&rig, 1, paused_at + STAMP_SLACK_NS) > 0);
        assert_int_equal(look_at(&rig, 1).is_paused, false);
    }
    end(&rig);
}

/* Without intervals all connections are busy: requests that are about to be written are held,
 * too. */
static void pausing_stops_starts_of_hosts_that_are_not_paced(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig.options.loops = 2;
    rig.options.pace.max_in_flight = 8;
    rig_start(&rig);
    for (int host = 1; host <= 20; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_await_requests(&rig, 100);
    assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 1), true), 0);
    int64_t paused_at = monotonic();
    rig_seeded(&rig);
    rig_await_requests(&rig, 19 * (PAGES + 1));
    assert_int_equal(arrived_after(&rig, 1, paused_at + STAMP_SLACK_NS), 0);
    assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 1), false), 0);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, 20, PAGES);
    rig_tear_down(&rig);
}

/* The pause also applies to a host that is added later, and in a later crawl. */
static void pause_applies_to_hosts_that_are_added_later(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_plain, 2, 1);
    assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 2), true), 0);
    assert_int_equal(wr_engine_set_pace(rig.engine, key_of(&rig, 2), 300 * MS), 0);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    wr_engine_free(rig.engine);
    rig.engine = NULL;
    rig.options.has_seeds = true;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 2, "/"));
    rig_seed(&rig, "%s", rig_url(&rig, 3, "/"));
    rig_seeded(&rig);
    (void)next_arrival(&rig, 3, 0);
    sleep_ns(300 * MS);
    assert_int_equal(arrived_after(&rig, 2, 0), 0);
    assert_true(look_at(&rig, 2).is_paused && look_at(&rig, 2).set_interval_ns == 300 * MS);
    assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 2), false), 0);
    (void)next_arrival(&rig, 2, next_arrival(&rig, 2, 0));
    rig_assert_spaced(&rig, 2, 300 * MS);
    end(&rig);
}

/* ---- pace ---- */

static void set_pace_applies_to_the_next_start(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_plain, 2, 2);
    rig_await_requests(&rig, 20);
    assert_int_equal(wr_engine_set_pace(rig.engine, key_of(&rig, 1), 400 * MS), 0);
    int64_t set_at = monotonic(), before = last_arrival(&rig, 1);
    int64_t next = next_arrival(&rig, 1, before > set_at ? before : set_at + STAMP_SLACK_NS);
    assert_true(next - before >= 400 * MS - STAMP_SLACK_NS);
    assert_true(look_at(&rig, 1).set_interval_ns == 400 * MS && look_at(&rig, 1).interval_ns == 400 * MS);
    await_arrivals(&rig, 2, set_at, 11); /* the other host keeps its pace */
                                         /* The pace can be set back: the next start comes before
                                          * the hour is over. */

    assert_int_equal(wr_engine_set_pace(rig.engine, key_of(&rig, 1), WEIR_HOUR), 0);
    int slow = arrived_after(&rig, 1, 0);
    assert_int_equal(wr_engine_set_pace(rig.engine, key_of(&rig, 1), 0), 0);
    await_arrivals(&rig, 1, 0, slow + 5);
    end(&rig);
}

/* A host may be set to a shorter interval than that of the crawl. */
static void a_pace_may_be_set_faster_than_that_of_the_crawl(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig_space(&rig, WEIR_HOUR);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, 1);
    assert_int_equal(wr_engine_set_pace(rig.engine, key_of(&rig, 1), 20 * MS), 0);
    rig_await_requests(&rig, 30);
    rig_assert_spaced(&rig, 1, 20 * MS);
    end(&rig);
}

static struct origin_reply answer_strict(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request))
        return (struct origin_reply){
            .body = rig_host(request) == 1 ? "User-agent: *\nDisallow: /299\nCrawl-delay: 0.4\n" : "", .status = 200};
    if (rig_host(request) == 2 && request->path[1] == '1' && rig_asked_before(rig, request) == 0)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 2\r\n", .body = ""};
    return rig_tree(rig, request, PAGES, NULL);
}

/* V2: a Crawl-delay or a Retry-After of the server cannot be overridden. */
static void set_pace_never_goes_below_crawl_delay_or_retry_after(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_strict, 1, 2);
    int64_t until = monotonic() + WEIR_MINUTE;
    while (look_at(&rig, 2).retry_after_ns == 0 || look_at(&rig, 1).robots_delay_ns == 0)
        assert_true(monotonic() < until);
    int64_t last = last_arrival(&rig, 2);
    for (int host = 1; host <= 2; host++) {
        assert_int_equal(wr_engine_set_pace(rig.engine, key_of(&rig, host), MS), 0);
        assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, host), true), 0);
        assert_int_equal(wr_engine_forget(rig.engine, key_of(&rig, host)), 0);
        assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, host), false), 0);
    }
    assert_true(next_arrival(&rig, 2, last) - last >= 2 * WEIR_SECOND - STAMP_SLACK_NS);
    assert_int_equal(look_at(&rig, 1).robots_delay_ns, 400 * MS);
    sleep_ns(WEIR_SECOND);
    rig_assert_spaced(&rig, 1, 400 * MS);
    end(&rig);
}

/* ---- inspecting ---- */

static void await_none_in_flight(const struct crawl_fixture *rig)
{
    int64_t until = monotonic() + WEIR_MINUTE;
    for (uint32_t in_flight = 1; in_flight > 0; sleep_ns(MS)) {
        struct wr_host_views *look;
        assert_int_equal(
            wr_engine_inspect_hosts(rig->engine, &(struct wr_host_view_query){.sort = WR_SORT_NAME}, &look), 0);
        in_flight = 0;
        for (size_t i = 0; i < look->count; i++)
            in_flight += (uint32_t)look->hosts[i].in_flight;
        wr_host_views_free(look);
        assert_true(monotonic() < until);
    }
}

static void inspection_agrees_with_the_servers_log(void **state)
{
    struct crawl_fixture rig;
    struct wr_host_views *look;
    (void)state;
    begin(&rig, answer_plain, 2, 8);
    rig_await_requests(&rig, 200);
    for (int host = 1; host <= 8; host++)
        assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, host), true), 0);
    await_none_in_flight(&rig);
    assert_int_equal(wr_engine_inspect_hosts(rig.engine, &(struct wr_host_view_query){.sort = WR_SORT_NAME}, &look), 0);
    assert_int_equal(look->count, 8);
    assert_int_equal(look->sums.matched, 8);
    assert_int_equal(look->sums.states[WR_HOST_PAUSED], 8);
    for (int i = 0; i < 8; i++) {
        const struct wr_host_view *seen = &look->hosts[i];
        uint32_t lately = 0;
        assert_string_equal(seen->key, key_of(&rig, i + 1).data);
        assert_int_equal(seen->requests, arrived_after(&rig, i + 1, 0));
        assert_int_equal(seen->ok, seen->requests); /* an absent robots.txt is no failure */
        assert_true(seen->in_flight == 0 && seen->rejected == 0 && seen->interval_ns == SPACE);
        for (int slice = 0; slice < WR_PLAN_SLICES; slice++)
            lately += seen->starts[slice];
        assert_int_equal(lately, seen->requests);
        assert_true(seen->rate > 0 && seen->rate <= (double)seen->requests);
    }
    wr_host_views_free(look);
    end(&rig);
}

static size_t count_of(const struct crawl_fixture *rig, struct wr_host_view_query query)
{
    struct wr_host_views *look;
    assert_int_equal(wr_engine_inspect_hosts(rig->engine, &query, &look), 0);
    size_t count = look->count;
    wr_host_views_free(look);
    return count;
}

static struct wr_host_view first_of(const struct crawl_fixture *rig, struct wr_host_view_query query)
{
    struct wr_host_views *look;
    assert_int_equal(wr_engine_inspect_hosts(rig->engine, &query, &look), 0);
    assert_true(look->count > 0);
    struct wr_host_view first = look->hosts[0];
    wr_host_views_free(look);
    return first;
}

static void inspected_hosts_are_sorted_filtered_and_limited(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_plain, 2, 12);
    rig_await_requests(&rig, 100);
    assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 7), true), 0);
    assert_string_equal(first_of(&rig, (struct wr_host_view_query){.sort = WR_SORT_WAIT}).key, key_of(&rig, 7).data);
    char first[64], last[64];
    (void)snprintf(first, sizeof first, "127.0.0.10:%d", rig.port);
    (void)snprintf(last, sizeof last, "127.0.0.9:%d", rig.port);
    assert_string_equal(first_of(&rig, (struct wr_host_view_query){.sort = WR_SORT_NAME, .most = 1}).key,
                        key_of(&rig, 10).data);
    assert_string_equal(first_of(&rig, (struct wr_host_view_query){.sort = WR_SORT_NAME, .is_reversed = true}).key,
                        last);
    assert_int_equal(count_of(&rig, (struct wr_host_view_query){.most = 5}), 5);
    /* 1, 10, 11, 12 */
    assert_int_equal(count_of(&rig, (struct wr_host_view_query){.filter = wr_span_of("0.0.1")}), 4);
    assert_int_equal(count_of(&rig, (struct wr_host_view_query){.filter = wr_span_of("nowhere")}), 0);
    for (int i = 0; wr_host_view_sort_name((enum wr_host_view_sort)i) != NULL; i++)
        assert_int_equal(count_of(&rig, (struct wr_host_view_query){.sort = (enum wr_host_view_sort)i}), 12);
    sleep_ns(500 * MS);
    assert_string_not_equal(first_of(&rig, (struct wr_host_view_query){.sort = WR_SORT_RATE}).key,
                            key_of(&rig, 7).data);
    end(&rig);
}

/* More hosts than one step of the inspection covers, while hosts are added. */
static void inspection_shows_each_host_once_while_hosts_are_added(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig.options.loops = 2;
    rig_space(&rig, 60 * WEIR_SECOND);
    rig_start(&rig);
    for (int host = 1; host <= 900; host++) {
        rig_seed(&rig, "http://127.0.%d.%d:%d/", host / 250, host % 250 + 1, rig.port);
        if (host % 20 == 0)
            (void)count_of(&rig, (struct wr_host_view_query){.sort = WR_SORT_NAME, .most = WR_HOST_VIEWS_MAX});
    }
    rig_seeded(&rig);
    rig_await_requests(&rig, 900);
    struct wr_host_views *look;
    assert_int_equal(
        wr_engine_inspect_hosts(rig.engine,
                                &(struct wr_host_view_query){.sort = WR_SORT_NAME, .most = WR_HOST_VIEWS_MAX}, &look),
        0);
    assert_int_equal(look->count, 900);
    for (size_t i = 1; i < look->count; i++)
        assert_true(strcmp(look->hosts[i - 1].key, look->hosts[i].key) < 0);
    wr_host_views_free(look);
    end(&rig);
}

/* ---- explanations of a URL ---- */

static struct wr_why why_of(const struct crawl_fixture *rig, const char *text)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    struct wr_why why;
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    assert_int_equal(wr_engine_why(rig->engine, &url, &why), 0);
    return why;
}

static const struct wr_plan_bound *bound_of(const struct wr_why *why, weir_reason reason)
{
    for (size_t i = 0; i < why->bound_count; i++)
        if (why->bounds[i].reason == reason)
            return &why->bounds[i];
    fail_msg("no limit %s", weir_reason_name(reason));
    return NULL;
}

/* Returns the time of the first request for a path, or 0. */
static int64_t asked_at(const struct crawl_fixture *rig, int host, const char *path)
{
    for (int i = 0; i < origin_requests(rig->origin); i++) {
        struct origin_request request = origin_request(rig->origin, i);
        if (rig_host(&request) == host && strcmp(request.path, path) == 0)
            return request.at;
    }
    return 0;
}

static void explanation_of_a_url_names_each_limit_with_source_and_start_time(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_strict, 1, 1);
    int64_t until = monotonic() + WEIR_MINUTE;
    while (why_of(&rig, rig_url(&rig, 1, "/6")).seat.kind != WR_TASK_PLACE_QUEUED)
        assert_true(monotonic() < until);
    int64_t now = monotonic();
    struct wr_why why = why_of(&rig, rig_url(&rig, 1, "/6"));
    assert_true(why.has_host && why.in_scope);
    assert_int_equal(why.ruling.decision.verdict, WEIR_GO);
    const struct wr_plan_bound *delay = bound_of(&why, WEIR_REASON_ROBOTS_DELAY);
    assert_int_equal(delay->source, WR_BOUND_FROM_ROBOTS);
    assert_int_equal(delay->line, 3);
    assert_int_equal(delay->value_ns, 400 * MS);
    const struct wr_plan_bound *pace = bound_of(&why, WEIR_REASON_PACE);
    assert_true(pace->source == WR_BOUND_FROM_OPTIONS && pace->value_ns == SPACE);
    assert_true(bound_of(&why, WEIR_REASON_RETRY_AFTER)->wait_ns == 0);
    assert_true(why.expected_ns >= 0 && why.expected_ns <= 400 * MS * (why.seat.before + 1));
    while (asked_at(&rig, 1, "/6") == 0)
        assert_true(monotonic() < until);
    assert_true(asked_at(&rig, 1, "/6") >= now + why.expected_ns - STAMP_SLACK_NS);
    why = why_of(&rig, rig_url(&rig, 1, "/299"));
    assert_true(why.ruling.decision.verdict == WEIR_DENY && why.ruling.line == 2);
    assert_string_equal(why.rule, "/299");
    assert_true(why.seat.kind == WR_TASK_PLACE_NONE && why.expected_ns == -1);
    end(&rig);
}

static void explanation_of_a_url_reports_the_retry_after_and_its_time(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_strict, 1, 2);
    int64_t until = monotonic() + WEIR_MINUTE;
    while (look_at(&rig, 2).retry_after_ns == 0)
        assert_true(monotonic() < until);
    struct wr_why why = why_of(&rig, rig_url(&rig, 2, "/2"));
    const struct wr_plan_bound *named = bound_of(&why, WEIR_REASON_RETRY_AFTER);
    assert_int_equal(named->source, WR_BOUND_FROM_HEADER);
    assert_true(named->has_since);
    assert_true(named->wait_ns > 0 && named->wait_ns <= 3 * WEIR_SECOND);
    assert_int_equal(why.host.why.reason, WEIR_REASON_RETRY_AFTER);
    assert_int_equal(why.host.state, WR_HOST_HELD);
    assert_true(why.expected_ns >= named->wait_ns - 100 * MS);
    end(&rig);
}

/* ---- events ---- */

static void events_can_be_read_from_a_number_on(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_event events[WR_EVENTS_KEPT];
    (void)state;
    begin(&rig, answer_strict, 1, 2);
    int64_t until = monotonic() + WEIR_MINUTE;
    while (look_at(&rig, 2).rejected == 0)
        assert_true(monotonic() < until);
    size_t count = wr_engine_events(rig.engine, 0, events, WR_EVENTS_KEPT);
    assert_true(count >= 2);
    bool was_rejected = false, has_time = false;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(events[i].number, i + 1);
        assert_string_equal(events[i].key, key_of(&rig, 2).data);
        was_rejected |= events[i].kind == WR_EVENT_REJECTED && events[i].status == 429;
        has_time |= events[i].kind == WR_EVENT_RETRY_AFTER && events[i].wait_ns > WEIR_SECOND;
    }
    assert_true(was_rejected && has_time);
    uint64_t last = events[count - 1].number;
    assert_int_equal(wr_engine_events(rig.engine, last, events, WR_EVENTS_KEPT), 0);
    for (int i = 0; i < WR_EVENTS_KEPT; i++)
        assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 1), i % 2 == 0), 0);
    assert_int_equal(wr_engine_forget(rig.engine, wr_span_of("nowhere.example")), WEIR_E_ABSENT);
    assert_int_equal(wr_engine_pause(rig.engine, wr_span_of("nowhere.example"), false), 0);
    assert_int_equal(wr_engine_events(rig.engine, 0, events, WR_EVENTS_KEPT), WR_EVENTS_KEPT);
    assert_true(events[0].number >= last); /* the numbers show that earlier events are gone */
    assert_int_equal(wr_engine_events(rig.engine, events[WR_EVENTS_KEPT - 2].number, events, 5), 1);
    assert_string_equal(wr_event_name(events[0].kind), "resumed");
    end(&rig);
}

/* ---- the end ---- */

static void refused_commands_cause_no_event(void **state)
{
    struct wr_engine_event events[WR_EVENTS_KEPT];
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_plain, 1, 1);
    rig_await_requests(&rig, 3);
    assert_int_equal(wr_engine_forget(rig.engine, wr_span_of("nobody.example")), WEIR_E_ABSENT);
    assert_int_equal(wr_engine_set_pace(rig.engine, key_of(&rig, 1), WEIR_FOREVER), WEIR_E_INVAL);
    assert_int_equal(wr_engine_events(rig.engine, 0, events, WR_EVENTS_KEPT), 0);
    assert_int_equal(wr_engine_forget(rig.engine, key_of(&rig, 1)), 0);
    assert_int_equal(wr_engine_events(rig.engine, 0, events, WR_EVENTS_KEPT), 1);
    assert_int_equal(events[0].kind, WR_EVENT_FORGOTTEN);
    end(&rig);
}

static void cancelled_job_cannot_be_resumed(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    begin(&rig, answer_plain, 2, 4);
    rig_await_requests(&rig, 40);
    wr_engine_cancel(rig.engine);
    int64_t cancelled_at = monotonic();
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_CANCELLED);
    assert_int_equal(arrived_after(&rig, -1, cancelled_at + 100 * MS + STAMP_SLACK_NS), 0);
    rig_check_store(&rig);
    struct wr_engine_job job;
    assert_int_equal(wr_engine_open(&(struct wr_engine_open_options){.state_path = rig.state}, &rig.engine), 0);
    assert_int_equal(wr_engine_find_job(rig.engine, 0, &job), WEIR_E_ABSENT);
    assert_int_equal(wr_engine_find_job(rig.engine, rig.result.job, &job), 0);
    assert_true(job.status == WR_JOB_CANCELLED && job.queued > 0);
    rig_tear_down(&rig);
}

static void *inspect_until_closed(void *context)
{
    const struct crawl_fixture *rig = context;
    struct wr_host_views *look;
    uint64_t looks = 0;
    while (wr_engine_inspect_hosts(rig->engine, &(struct wr_host_view_query){.sort = WR_SORT_QUEUE}, &look) == 0) {
        wr_host_views_free(look);
        looks++;
    }
    print_message("%llu inspections\n", (unsigned long long)looks);
    return NULL;
}

static void constant_inspection_does_not_keep_a_crawl_from_ending(void **state)
{
    struct crawl_fixture rig;
    pthread_t watcher;
    struct wr_host_view seen;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig.options.loops = 2;
    rig_start(&rig);
    for (int host = 1; host <= 5; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    assert_int_equal(pthread_create(&watcher, NULL, inspect_until_closed, &rig), 0);
    rig_seeded(&rig);
    assert_true(rig_await_end(&rig, 60 * WEIR_SECOND));
    assert_int_equal(pthread_join(watcher, NULL), 0);
    assert_int_equal(wr_engine_inspect_host(rig.engine, key_of(&rig, 1), &seen), WEIR_E_CLOSED);
    assert_int_equal(wr_engine_pause(rig.engine, key_of(&rig, 1), true), WEIR_E_CLOSED);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, 5, PAGES);
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(pausing_a_host_stops_its_starts_at_once_and_no_others),
             test(pausing_stops_starts_of_hosts_that_are_not_paced), test(pause_applies_to_hosts_that_are_added_later),
             test(set_pace_applies_to_the_next_start), test(a_pace_may_be_set_faster_than_that_of_the_crawl),
             test(set_pace_never_goes_below_crawl_delay_or_retry_after), test(inspection_agrees_with_the_servers_log),
             test(inspected_hosts_are_sorted_filtered_and_limited),
             test(inspection_shows_each_host_once_while_hosts_are_added),
             test(explanation_of_a_url_names_each_limit_with_source_and_start_time),
             test(explanation_of_a_url_reports_the_retry_after_and_its_time), test(events_can_be_read_from_a_number_on),
             test(refused_commands_cause_no_event), test(cancelled_job_cannot_be_resumed),
             test(constant_inspection_does_not_keep_a_crawl_from_ending))
