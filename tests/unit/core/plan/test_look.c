/* SPDX-License-Identifier: MIT */
/* test_look.c - tests views of a plan while it runs, and commands that steer it. */
#include "core/plan/inspect.h"
#include "rig.h"

static struct wr_plan_host *host_of(const struct plan_store_fixture *rig, const char *key)
{
    struct wr_plan_host *host = wr_plan_host_find(rig->plan, wr_span_of(key));
    assert_non_null(host);
    return host;
}

static struct wr_plan_host_view look_at(const struct plan_store_fixture *rig, const char *key)
{
    struct wr_plan_host_view look;
    wr_plan_host_view(rig->plan, host_of(rig, key), 1, rig->now, &look);
    return look;
}

static struct wr_plan_host_brief glance_at(const struct plan_store_fixture *rig, const char *key)
{
    struct wr_plan_host_brief glance;
    wr_plan_host_brief(rig->plan, host_of(rig, key), rig->now, &glance);
    return glance;
}

static void short_and_full_host_views_agree(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 5);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_fetch(&rig, &action, 200);
    (void)rig_next(&rig);
    struct wr_plan_host_brief glance = glance_at(&rig, "a.example");
    struct wr_plan_host_view look = look_at(&rig, "a.example");
    assert_int_equal(look.state, WR_HOST_ACTIVE);
    assert_int_equal(look.why.reason, WEIR_REASON_PACE);
    assert_int_equal(look.why.wait_ns, S - 10 * MS);
    assert_int_equal(glance.reason, WEIR_REASON_PACE);
    assert_int_equal(glance.wait_ns, look.why.wait_ns);
    assert_true(glance.queued == 4 && look.queued == 4 && glance.recent == 1);
    assert_true(look.interval_ns == S && glance.interval_ns == S && look.report.now.delay_ns == S);
    assert_int_equal(look.report.requests, 1);
    rig_release(&rig);
}

/* U5, R28: starts are counted in slices of time. */
static void starts_are_counted_in_slices_of_time(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 200);
    rig.now = (rig.now / WR_PLAN_SLICE_NS + 1) * WR_PLAN_SLICE_NS;
    for (int i = 0; i < 7; i++) { /* one a second: 5 in the first slice, 2 in the second */
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        rig_fetch(&rig, &action, 200);
    }
    struct wr_plan_host_view look = look_at(&rig, "a.example");
    assert_int_equal(look.starts[WR_PLAN_SLICES - 1], 2);
    assert_int_equal(look.starts[WR_PLAN_SLICES - 2], 5);
    assert_true(look.rate > 0.9 && look.rate < 1.2);
    rig.now += 10 * WR_PLAN_SLICE_NS;
    look = look_at(&rig, "a.example");
    assert_int_equal(look.starts[0], 5);
    assert_int_equal(look.starts[1], 2);
    assert_true(look.rate == 0);
    rig.now += 2 * WR_PLAN_SLICE_NS;
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_fetch(&rig, &action, 200);
    look = look_at(&rig, "a.example");
    for (int i = 0; i < WR_PLAN_SLICES; i++)
        assert_int_equal(look.starts[i], i == WR_PLAN_SLICES - 1);
    rig_release(&rig);
}

static void assert_rate(const struct plan_store_fixture *rig, double count, int64_t over_ns)
{
    double wanted = count * (double)S / (double)over_ns, rate = look_at(rig, "a.example").rate;
    assert_true(rate > wanted - 1e-9 && rate < wanted + 1e-9);
}

/* A rate over less than a second would be a guess. */
static void host_rate_covers_six_slices_or_the_time_since_the_first_start(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 200);
    rig.now = (rig.now / WR_PLAN_SLICE_NS + 1) * WR_PLAN_SLICE_NS;
    int64_t first_at = rig.now;
    for (int i = 0; i < 100; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        rig_fetch(&rig, &action, 200);
        int64_t slice_at = rig.now / WR_PLAN_SLICE_NS * WR_PLAN_SLICE_NS, from = slice_at - 5 * WR_PLAN_SLICE_NS;
        if (i == 0)
            assert_rate(&rig, 1, S);
        else if (from <= first_at)
            assert_rate(&rig, i + 1, rig.now - first_at);
        else
            assert_rate(&rig, (double)((rig.now - from) / S + 1), rig.now - from);
    }
    rig_release(&rig);
}

static void short_host_view_counts_the_starts_of_all_slices(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 100);
    rig.now = (rig.now / WR_PLAN_SLICE_NS + 1) * WR_PLAN_SLICE_NS;
    for (int i = 0; i < 80; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + S);
        rig_send(&rig, &action);
        assert_int_equal(glance_at(&rig, "a.example").in_flight, 1);
        assert_int_equal(glance_at(&rig, "a.example").recent, i < 60 ? i + 1 : 56 + i % 5);
        rig_tell(&rig, &action, i % 2 == 0 ? 200 : 404);
    }
    assert_int_equal(glance_at(&rig, "a.example").interval_ns, S);
    assert_int_equal(glance_at(&rig, "a.example").in_flight, 0);
    rig_release(&rig);
}

static void user_set_pace_binds_at_once_until_it_is_withdrawn(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 5);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    struct wr_plan_host *host = action.host;
    int64_t sent_at = rig.now;
    rig_fetch(&rig, &action, 200);
    assert_int_equal(wr_plan_host_pace(rig.plan, host, 7 * S, rig.now), 0);
    assert_int_equal(look_at(&rig, "a.example").set_interval_ns, 7 * S);
    assert_int_equal(look_at(&rig, "a.example").interval_ns, 7 * S);
    assert_true(wr_plan_host_options(rig.plan, host)->min_interval_ns == 7 * S);
    (void)wr_plan_bounds(rig.plan, host, rig.now, bounds);
    assert_true(bounds[0].source == WR_BOUND_FROM_USER && bounds[0].value_ns == 7 * S);
    struct wr_plan_action idle = rig_next(&rig);
    assert_kind(idle, WR_PLAN_IDLE);
    assert_true(idle.at == sent_at + 7 * S);
    assert_int_equal(wr_plan_host_pace(rig.plan, host, 0, rig.now), 0);
    assert_int_equal(look_at(&rig, "a.example").set_interval_ns, 0);
    (void)wr_plan_bounds(rig.plan, host, rig.now, bounds);
    assert_true(bounds[0].source == WR_BOUND_FROM_OPTIONS && bounds[0].value_ns == S);
    idle = rig_next(&rig);
    assert_kind(idle, WR_PLAN_IDLE);
    assert_true(idle.at == sent_at + S);
    rig_release(&rig);
}

/* A pace that a user sets replaces that of the options, even if it is faster. */
static void user_set_pace_may_be_faster_than_the_options(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    weir_pace_options pace;
    rig_init(&rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED);
    pace.max_rate = 0.5;
    assert_int_equal(wr_pace_options_check(&pace, &rig.options.pace), 0);
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    int64_t sent_at = rig.now;
    rig_fetch(&rig, &action, 200);
    assert_true(rig_next(&rig).at == sent_at + 2 * S);
    assert_int_equal(wr_plan_host_pace(rig.plan, action.host, 100 * MS, rig.now), 0);
    assert_int_equal(rig_next(&rig).at, sent_at + 100 * MS);
    rig_release(&rig);
}

static void pace_is_unchanged_if_setting_it_lacks_memory(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_stats before, after;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    int64_t sent_at = rig.now;
    rig_fetch(&rig, &action, 200);
    wr_plan_stats_get(rig.plan, &before);
    rig.allocator.fail_at = 1;
    assert_int_equal(wr_plan_host_pace(rig.plan, action.host, 7 * S, rig.now), WEIR_E_NOMEM);
    assert_int_equal(look_at(&rig, "a.example").set_interval_ns, 0);
    assert_true(rig_next(&rig).at == sent_at + S);
    assert_int_equal(wr_plan_host_pace(rig.plan, action.host, 7 * S, rig.now), 0);
    rig.allocator.fail_at = 1; /* the host has its own options by now */
    assert_int_equal(wr_plan_host_pace(rig.plan, action.host, 8 * S, rig.now), 0);
    rig.allocator.fail_at = 0;
    wr_plan_stats_get(rig.plan, &after);
    assert_int_equal(after.memory_bytes - before.memory_bytes, sizeof(weir_pace_options));
    assert_int_equal(wr_plan_host_pace(rig.plan, action.host, 0, rig.now), 0);
    assert_int_equal(wr_plan_host_pace(rig.plan, action.host, 0, rig.now), 0);
    wr_plan_stats_get(rig.plan, &after);
    assert_int_equal(after.memory_bytes, before.memory_bytes);
    rig_release(&rig);
}

static void paused_host_starts_nothing_and_sends_no_reserved_page(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    rig_offer_many(&rig, 1, "b.example", 1);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    assert_memory_equal(wr_plan_host_key(action.host).data, "a.example", 9);
    wr_plan_host_pause(rig.plan, host_of(&rig, "a.example"), true, rig.now);
    assert_int_equal(wr_plan_may_send(rig.plan, action.task, rig.now).reason, WEIR_REASON_PAUSED);
    wr_plan_task_given_back(rig.plan, action.task, rig.now);
    action = rig_page(&rig, rig.now + M); /* a page of the other host */
    assert_memory_equal(wr_plan_host_key(action.host).data, "b.example", 9);
    rig_fetch(&rig, &action, 200);
    action = rig_next(&rig);
    assert_kind(action, WR_PLAN_IDLE);
    assert_true(action.at == WEIR_FOREVER);
    assert_int_equal(look_at(&rig, "a.example").state, WR_HOST_PAUSED);
    assert_true(glance_at(&rig, "a.example").wait_ns == WEIR_UNTIL_RELEASE);
    rig.now += WEIR_DAY; /* the paused task does not expire */
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    wr_plan_host_pause(rig.plan, host_of(&rig, "a.example"), false, rig.now);
    action = rig_page(&rig, rig.now + S);
    assert_url(action, "http://a.example/0");
    assert_true(wr_plan_ok(rig.plan));
    rig_release(&rig);
}

/* A value that a user sets while the store is asked is newer than the stored one. */
static void values_set_while_the_store_is_asked_are_kept(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const weir_pace_memory known = {.saved_wall_at = 1, .rate = 1};
    rig_init(&rig);
    rig.memory = &known;
    rig.store_is_slow = true;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 3);
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    wr_plan_host_pause(rig.plan, load.host, true, rig.now);
    wr_plan_host_pace(rig.plan, load.host, 7 * S, rig.now);
    rig_answer_load(&rig, &load);
    assert_true(look_at(&rig, "a.example").is_paused);
    assert_int_equal(look_at(&rig, "a.example").set_interval_ns, 7 * S);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    rig_release(&rig);
}

static void a_task_is_found_with_its_place_in_the_queue(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 4);
    struct wr_plan_action first = rig_page(&rig, rig.now);
    const struct wr_plan_host *host = host_of(&rig, "a.example");
    struct wr_plan_task_place seat = wr_plan_task_place(rig.plan, host, 1, first.fingerprint, rig.now);
    assert_true(seat.kind == WR_TASK_PLACE_IN_FLIGHT && !seat.was_sent);
    rig_send(&rig, &first);
    rig.now += 5 * MS;
    seat = wr_plan_task_place(rig.plan, host, 1, first.fingerprint, rig.now);
    assert_true(seat.was_sent && seat.sent_ns == 5 * MS);
    for (uint32_t i = 1; i < 4; i++) {
        seat = wr_plan_task_place(rig.plan, host, 1, rig.rows[i].fingerprint, rig.now);
        assert_true(seat.kind == WR_TASK_PLACE_QUEUED && seat.before == i - 1 && seat.not_before_ns == 0);
    }
    rig_tell(&rig, &first, 500); /* it is retried after a backoff */
    seat = wr_plan_task_place(rig.plan, host, 1, first.fingerprint, rig.now);
    assert_true(seat.kind == WR_TASK_PLACE_QUEUED && seat.not_before_ns > 0 && seat.attempts == 1);
    seat = wr_plan_task_place(rig.plan, host, 1, 4711, rig.now);
    assert_true(seat.kind == WR_TASK_PLACE_NONE && seat.before == 4);
    rig_release(&rig);
}

static void tasks_of_both_schemes_wait_in_order_of_arrival(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const char *const urls[] = {"http://a.example/0", "https://a.example/1", "http://a.example/2",
                                       "https://a.example/3", "http://a.example/4"};
    rig_plain(&rig);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(rig_offer(&rig, 1, urls[i]), WR_ADD_URL_NEW);
    struct wr_plan_action first = rig_page(&rig, rig.now);
    const struct wr_plan_host *host = host_of(&rig, "a.example");
    assert_int_equal(first.fingerprint, rig.rows[0].fingerprint);
    for (uint32_t i = 1; i < 5; i++) {
        struct wr_plan_task_place seat = wr_plan_task_place(rig.plan, host, 1, rig.rows[i].fingerprint, rig.now);
        assert_int_equal(seat.kind, WR_TASK_PLACE_QUEUED);
        assert_int_equal(seat.before, i - 1);
    }
    assert_int_equal(wr_plan_task_place(rig.plan, host, 1, 4711, rig.now).before, 4);
    assert_int_equal(wr_plan_task_place(rig.plan, host, 2, 4711, rig.now).kind, WR_TASK_PLACE_NONE);
    rig_release(&rig);
}

static uint32_t heard;

static void hear(void *context, const struct wr_plan_host *host, uint32_t news, int status, int64_t now)
{
    (void)context, (void)host, (void)status, (void)now;
    heard |= news;
}

static void bounds_are_listed_with_their_source_and_age(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    rig_init(&rig);
    rig.options.ignores_robots = false;
    rig.options.news = hear;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 4);
    struct wr_plan_action action = rig_wait(&rig, rig.now);
    rig_robots(&rig, &action, 200, "User-agent: *\nDisallow: /3\nRequest-rate: 1/2\n");
    action = rig_page(&rig, rig.now + 5 * S);
    rig_send(&rig, &action);
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true, .retry_after_ns = 60 * S};
    wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
    assert_true((heard & WR_GATE_CHANGE_REJECTED) != 0 && (heard & WR_GATE_CHANGE_RETRY_AFTER) != 0);
    rig.now += 10 * S;
    wr_plan_host_pace(rig.plan, host_of(&rig, "a.example"), 3 * S, rig.now);
    size_t count = wr_plan_bounds(rig.plan, host_of(&rig, "a.example"), rig.now, bounds);
    assert_true(count >= 7);
    assert_true(bounds[0].reason == WEIR_REASON_PACE && bounds[0].source == WR_BOUND_FROM_USER);
    assert_int_equal(bounds[0].value_ns, 3 * S);
    for (size_t i = 1; i < count; i++) {
        if (bounds[i].reason == WEIR_REASON_ROBOTS_DELAY)
            assert_true(bounds[i].line == 3 && bounds[i].value_ns == 2 * S && bounds[i].source == WR_BOUND_FROM_ROBOTS);
        if (bounds[i].reason == WEIR_REASON_RETRY_AFTER) {
            assert_int_equal(bounds[i].source, WR_BOUND_FROM_HEADER);
            /* the wait includes jitter */
            assert_true(bounds[i].wait_ns >= 50 * S && bounds[i].wait_ns <= 56 * S);
            assert_true(bounds[i].has_since && bounds[i].since_ns >= 10 * S && bounds[i].since_ns < 11 * S);
        }
        if (bounds[i].reason == WEIR_REASON_CONCURRENCY)
            assert_true(bounds[i].count == 4 && bounds[i].source == WR_BOUND_FROM_OPTIONS);
    }
    struct wr_span rule;
    struct wr_robots_decision ruling =
        wr_plan_ruling(rig.plan, host_of(&rig, "a.example"), false, wr_span_of("/3"), rig.now, &rule);
    assert_true(ruling.decision.verdict == WEIR_DENY && ruling.line == 2 && wr_span_is(rule, "/3"));
    rig_release(&rig);
}

static const struct wr_plan_bound *bound_of(const struct plan_store_fixture *rig, weir_reason reason,
                                            enum wr_bound_source source)
{
    static struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    size_t count = wr_plan_bounds(rig->plan, host_of(rig, "a.example"), rig->now, bounds);
    for (size_t i = 0; i < count; i++)
        if (bounds[i].reason == reason && bounds[i].source == source)
            return &bounds[i];
    fail_msg("no bound of reason %d and source %s", (int)reason, wr_bound_source_name(source));
    return NULL;
}

static void begin_learned(struct plan_store_fixture *rig)
{
    weir_pace_options pace;
    rig_init(rig);
    weir_pace_options_profile(&pace, WEIR_PROFILE_LEARNED);
    assert_int_equal(wr_pace_options_check(&pace, &rig->options.pace), 0);
    rig_begin_job(rig);
    rig_offer_many(rig, 1, "a.example", 40);
}

static void learned_bound_has_the_age_of_its_last_change(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin_learned(&rig);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    assert_false(bound_of(&rig, WEIR_REASON_PACE, WR_BOUND_FROM_LEARNING)->has_since);
    assert_false(bound_of(&rig, WEIR_REASON_BREAKER, WR_BOUND_FROM_LEARNING)->has_since);
    rig_send(&rig, &action);
    rig.now += S;
    rig_tell(&rig, &action, 429);
    int64_t learned_at = rig.now / S * S;
    rig.now += 3 * S;
    const struct wr_plan_bound *bound = bound_of(&rig, WEIR_REASON_PACE, WR_BOUND_FROM_LEARNING);
    assert_true(bound->has_since && bound->since_ns == rig.now - learned_at);
    assert_true(bound->value_ns > 0);
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    size_t count = wr_plan_bounds(rig.plan, host_of(&rig, "a.example"), rig.now, bounds);
    for (size_t i = 0; i < count; i++)
        assert_true(bounds[i].source == WR_BOUND_FROM_LEARNING || !bounds[i].has_since);
    assert_false(bound_of(&rig, WEIR_REASON_BREAKER, WR_BOUND_FROM_LEARNING)->has_since);
    assert_false(bound_of(&rig, WEIR_REASON_RETRY_AFTER, WR_BOUND_FROM_HEADER)->has_since);
    wr_plan_host_forget_learned(rig.plan, host_of(&rig, "a.example"), rig.now);
    assert_false(bound_of(&rig, WEIR_REASON_PACE, WR_BOUND_FROM_LEARNING)->has_since);
    rig_release(&rig);
}

static void open_breaker_has_an_age_and_is_forgotten_with_learned_values(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    begin_learned(&rig);
    struct wr_plan_host_view look;
    int64_t told_at = 0;
    for (int i = 0; i < 20 && look_at(&rig, "a.example").report.now.breaker == WEIR_BREAKER_CLOSED; i++) {
        struct wr_plan_action action = rig_page(&rig, rig.now + 10 * M);
        rig_fetch(&rig, &action, 500);
        told_at = rig.now;
    }
    look = look_at(&rig, "a.example");
    assert_int_equal(look.report.now.breaker, WEIR_BREAKER_OPEN);
    assert_int_equal(glance_at(&rig, "a.example").breaker, WEIR_BREAKER_OPEN);
    rig.now += 2 * S;
    const struct wr_plan_bound *bound = bound_of(&rig, WEIR_REASON_BREAKER, WR_BOUND_FROM_LEARNING);
    assert_true(bound->wait_ns > 0 && look_at(&rig, "a.example").breaker_ns == bound->wait_ns);
    assert_true(bound->has_since && bound->since_ns == rig.now - told_at / S * S);
    wr_plan_host_forget_learned(rig.plan, host_of(&rig, "a.example"), rig.now);
    assert_false(bound_of(&rig, WEIR_REASON_BREAKER, WR_BOUND_FROM_LEARNING)->has_since);
    rig_release(&rig);
}

static void server_named_time_has_an_age_only_while_it_holds(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    rig_send(&rig, &action);
    weir_outcome outcome = {.size = sizeof outcome, .status = 503, .has_retry_after = true, .retry_after_ns = 9 * S};
    wr_plan_page_finished(rig.plan, action.task, &outcome, 0, rig.now);
    int64_t heard_at = rig.now / S * S;
    rig.now += 4 * S;
    const struct wr_plan_bound *bound = bound_of(&rig, WEIR_REASON_RETRY_AFTER, WR_BOUND_FROM_HEADER);
    assert_true(bound->has_since && bound->since_ns == rig.now - heard_at);
    assert_int_equal(look_at(&rig, "a.example").retry_after_ns, bound->wait_ns);
    rig.now += bound->wait_ns - 1;
    assert_true(bound_of(&rig, WEIR_REASON_RETRY_AFTER, WR_BOUND_FROM_HEADER)->has_since);
    rig.now++;
    assert_false(bound_of(&rig, WEIR_REASON_RETRY_AFTER, WR_BOUND_FROM_HEADER)->has_since);
    assert_int_equal(look_at(&rig, "a.example").retry_after_ns, 0);
    rig_release(&rig);
}

/* R28: a job may be paused by a user or by its limit. */
static void bound_of_a_paused_job_names_its_source(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_plain(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    (void)rig_page(&rig, rig.now);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_JOB_LIMIT), 0);
    assert_int_equal(bound_of(&rig, WEIR_REASON_JOB_LIMIT, WR_BOUND_FROM_OPTIONS)->wait_ns, WEIR_UNTIL_RELEASE);
    assert_int_equal(wr_plan_job_pause(rig.plan, 1, WEIR_REASON_PAUSED), 0);
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    size_t count = wr_plan_bounds(rig.plan, host_of(&rig, "a.example"), rig.now, bounds);
    const struct wr_plan_bound *last = &bounds[count - 1];
    assert_true(last->reason == WEIR_REASON_PAUSED && last->source == WR_BOUND_FROM_USER);
    assert_int_equal(last->wait_ns, WEIR_UNTIL_RELEASE);
    rig_release(&rig);
}

static void limits_over_all_hosts_are_bounds_while_they_hold(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    rig_init(&rig);
    rig.options.max_in_flight = 1;
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 2);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    assert_int_equal(bound_of(&rig, WEIR_REASON_GLOBAL, WR_BOUND_FROM_OPTIONS)->wait_ns, WEIR_UNTIL_RELEASE);
    rig_fetch(&rig, &action, 200);
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    size_t before = wr_plan_bounds(rig.plan, host_of(&rig, "a.example"), rig.now, bounds);
    wr_plan_hold_starts(rig.plan, rig.now + 5 * S);
    assert_int_equal(wr_plan_bounds(rig.plan, host_of(&rig, "a.example"), rig.now, bounds), before + 1);
    assert_int_equal(bound_of(&rig, WEIR_REASON_GLOBAL, WR_BOUND_FROM_OPTIONS)->wait_ns, 5 * S);
    rig.now += 5 * S;
    assert_int_equal(wr_plan_bounds(rig.plan, host_of(&rig, "a.example"), rig.now, bounds), before);
    rig_release(&rig);
}

static void due_retries_go_before_tasks_that_were_never_tried(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    static const char *const urls[] = {"http://a.example/0", "https://a.example/1", "http://a.example/2",
                                       "https://a.example/3"};
    rig_plain(&rig);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(rig_offer(&rig, 1, urls[i]), WR_ADD_URL_NEW);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    const struct wr_plan_host *host = host_of(&rig, "a.example");
    struct wr_task_outcome fate = rig_fetch(&rig, &action, 500);
    for (uint32_t i = 1; i < 4; i++) /* until the retry is due, the others go first */
        assert_int_equal(wr_plan_task_place(rig.plan, host, 1, rig.rows[i].fingerprint, rig.now).before, i - 1);
    struct wr_plan_task_place seat = wr_plan_task_place(rig.plan, host, 1, rig.rows[0].fingerprint, rig.now);
    assert_true(seat.before == 0 && seat.not_before_ns == fate.at - rig.now);
    for (uint32_t i = 1; i < 4; i++) /* when it is due, it goes first */
        assert_int_equal(wr_plan_task_place(rig.plan, host, 1, rig.rows[i].fingerprint, fate.at).before, i);
    assert_int_equal(wr_plan_task_place(rig.plan, host, 1, rig.rows[0].fingerprint, fate.at).not_before_ns, 0);
    rig_release(&rig);
}

static void firewall_block_is_a_bound_while_it_lasts(void **state)
{
    (void)state;
    static struct plan_store_fixture rig;
    struct wr_plan_bound bounds[WR_PLAN_BOUNDS_MAX];
    rig_init(&rig);
    rig_begin_job(&rig);
    rig_offer_many(&rig, 1, "a.example", 1);
    (void)rig_wait(&rig, rig.now);
    struct wr_plan_host *host = host_of(&rig, "a.example");
    size_t before = wr_plan_bounds(rig.plan, host, rig.now, bounds);
    for (int i = 1; i <= WR_PLAN_FIREWALL_PAGES; i++)
        assert_int_equal(wr_plan_firewall_seen(rig.plan, host, 1, rig.now), i == WR_PLAN_FIREWALL_PAGES);
    size_t count = wr_plan_bounds(rig.plan, host, rig.now + S, bounds);
    assert_int_equal(count, before + 1);
    const struct wr_plan_bound *last = &bounds[count - 1];
    assert_true(last->reason == WEIR_REASON_BREAKER && last->source == WR_BOUND_FROM_LEARNING);
    assert_int_equal(last->wait_ns, WR_PLAN_BLOCKED_NS - S);
    assert_int_equal(wr_plan_bounds(rig.plan, host, rig.now + WR_PLAN_BLOCKED_NS, bounds), before);
    rig_release(&rig);
}

WEIR_TESTS(test(host_rate_covers_six_slices_or_the_time_since_the_first_start),
           test(short_host_view_counts_the_starts_of_all_slices),
           test(user_set_pace_binds_at_once_until_it_is_withdrawn), test(user_set_pace_may_be_faster_than_the_options),
           test(pace_is_unchanged_if_setting_it_lacks_memory), test(learned_bound_has_the_age_of_its_last_change),
           test(open_breaker_has_an_age_and_is_forgotten_with_learned_values),
           test(server_named_time_has_an_age_only_while_it_holds), test(bound_of_a_paused_job_names_its_source),
           test(limits_over_all_hosts_are_bounds_while_they_hold),
           test(due_retries_go_before_tasks_that_were_never_tried),
           test(tasks_of_both_schemes_wait_in_order_of_arrival), test(firewall_block_is_a_bound_while_it_lasts),
           test(short_and_full_host_views_agree), test(starts_are_counted_in_slices_of_time),
           test(paused_host_starts_nothing_and_sends_no_reserved_page),
           test(values_set_while_the_store_is_asked_are_kept), test(a_task_is_found_with_its_place_in_the_queue),
           test(bounds_are_listed_with_their_source_and_age))
