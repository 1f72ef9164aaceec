/* SPDX-License-Identifier: MIT */
/* test_lease.c - tests hosts that processes share: a host gets requests while it is leased, and is
 * dropped when the lease is lost. */
#include "core/plan/inspect.h"
#include "rig.h"

#define HOST "a.example"

static struct plan_store_fixture rig;

static void begin(void)
{
    rig_init(&rig);
    rig.options.leases = true;
    rig_begin_job(&rig);
}

static struct wr_plan_host *find(void)
{
    return wr_plan_host_find(rig.plan, wr_span_of(HOST));
}

/* Adds tasks to the store, as if any process had found them. */
static void store(int count)
{
    for (int i = 0; i < count; i++) {
        struct row *row = &rig.rows[rig.count++];
        *row = (struct row){.job = 1};
        int bytes = snprintf(row->url, sizeof row->url, "http://" HOST "/%d", i);
        row->fingerprint = wr_hash(&rig.key, row->url, (size_t)bytes);
    }
}

static struct wr_plan_host *claim(uint64_t token, int64_t until, int queued)
{
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of(HOST), (uint64_t)queued, rig.now), 0);
    struct wr_plan_host *host = find();
    wr_plan_host_lease(rig.plan, host, token, until, rig.now);
    return host;
}

/* Checks that the plan starts nothing until `until`. It may report that the job is drained. */
static void assert_still(int64_t until)
{
    for (;;) {
        struct wr_plan_action action = rig_next(&rig);
        if (action.kind == WR_PLAN_IDLE && (action.at > until || action.at == WEIR_FOREVER))
            break;
        if (action.kind == WR_PLAN_IDLE)
            rig.now = action.at;
        else
            assert_kind(action, WR_PLAN_DRAINED);
    }
    rig.now = until;
}

static void host_gets_requests_once_it_is_leased(void **state)
{
    (void)state;
    begin();
    store(2);
    struct wr_plan_host *host = claim(7, rig.now, 2);
    assert_still(rig.now + M);
    wr_plan_host_lease(rig.plan, host, 7, rig.now + M, rig.now);
    struct wr_plan_action action = rig_page(&rig, rig.now + M);
    (void)rig_fetch(&rig, &action, 200);
    assert_int_equal(wr_plan_host_lease_token(find()), 7);
    rig_release(&rig);
}

/* G5, V1: a request that still waits for its connection when the lease ends is not sent, either. */
static void nothing_is_sent_after_the_end_of_the_lease(void **state)
{
    (void)state;
    begin();
    store(3);
    struct wr_plan_host *host = claim(1, rig.now + 30 * S, 3);
    struct wr_plan_action first = rig_page(&rig, rig.now + 10 * S);
    (void)rig_fetch(&rig, &first, 200);
    struct wr_plan_action second = rig_page(&rig, rig.now + 10 * S);
    rig.now = 131 * S;
    weir_decision decision = wr_plan_may_send(rig.plan, second.task, rig.now);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(decision.wait_ns, WEIR_UNTIL_RELEASE);
    wr_plan_task_given_back(rig.plan, second.task, rig.now);
    assert_still(rig.now + M);
    /* the renewal was late, but the lease is still held */
    wr_plan_host_lease(rig.plan, host, 1, rig.now + 30 * S, rig.now);
    second = rig_page(&rig, rig.now + 10 * S);
    (void)rig_fetch(&rig, &second, 200);
    rig_release(&rig);
}

/* G6 */
static void lost_host_leaves_with_its_tasks_after_requests_in_flight(void **state)
{
    (void)state;
    begin();
    store(50);
    struct wr_plan_host *host = claim(1, rig.now + 30 * S, 50);
    struct wr_plan_action flight = rig_page(&rig, rig.now + 10 * S);
    rig_send(&rig, &flight);
    wr_plan_host_lease_lost(rig.plan, host, rig.now);
    assert_int_equal(wr_plan_host_lease_token(host), 0);
    assert_false(wr_plan_host_remove(rig.plan, host, rig.now)); /* a request is in flight */
    assert_true(wr_plan_host_is_busy(host));
    assert_still(rig.now + S);
    (void)rig_tell(&rig, &flight, 503); /* fails, and is not retried in this plan */
    assert_true(wr_plan_host_is_idle(host));
    assert_still(rig.now + M);
    assert_true(wr_plan_host_remove(rig.plan, host, rig.now));
    assert_null(find());
    rig_release(&rig);
}

static void load_of_a_lost_host_adds_no_tasks(void **state)
{
    (void)state;
    begin();
    store(5);
    rig.store_is_slow = true;
    struct wr_plan_host *host = claim(1, rig.now + 30 * S, 5);
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    assert_true(wr_plan_host_is_busy(host));
    wr_plan_host_lease_lost(rig.plan, host, rig.now);
    rig_answer_load(&rig, &load);
    assert_true(wr_plan_host_is_idle(host));
    assert_still(rig.now + M);
    assert_true(wr_plan_host_remove(rig.plan, host, rig.now));
    rig_release(&rig);
}

static void host_leased_again_is_asked_for_all_tasks_left(void **state)
{
    (void)state;
    begin();
    store(3);
    struct wr_plan_host *host = claim(1, rig.now + 30 * S, 3);
    struct wr_plan_action action = rig_page(&rig, rig.now + 10 * S);
    (void)rig_fetch(&rig, &action, 200);
    wr_plan_host_lease_lost(rig.plan, host, rig.now);
    assert_true(wr_plan_host_remove(rig.plan, host, rig.now));
    (void)claim(2, rig.now + 30 * S, 2);
    for (int i = 0; i < 2; i++) {
        action = rig_page(&rig, rig.now + 10 * S);
        assert_int_equal(wr_plan_host_lease_token(action.host), 2);
        (void)rig_fetch(&rig, &action, 200);
    }
    assert_still(rig.now + M);
    rig_release(&rig);
}

static void host_rests_when_it_has_no_tasks_left(void **state)
{
    (void)state;
    begin();
    store(1);
    struct wr_plan_host *host = claim(1, rig.now + M, 1);
    assert_false(wr_plan_host_is_idle(host));
    struct wr_plan_action action = rig_page(&rig, rig.now + 10 * S);
    rig_send(&rig, &action);
    assert_false(wr_plan_host_is_idle(host));
    (void)rig_tell(&rig, &action, 200);
    assert_still(rig.now + 2 * S);
    assert_true(wr_plan_host_is_idle(host));
    wr_plan_host_set_lease_seen(host, 5, rig.now);
    assert_int_equal(wr_plan_host_lease_beat(host), 5);
    assert_true(wr_plan_host_idle_since(host) == rig.now);
    rig_release(&rig);
}

/* Otherwise its lease would be renewed for ever without any request. */
static void leased_host_is_not_dropped_to_make_room(void **state)
{
    (void)state;
    rig_init(&rig);
    rig.options.leases = true;
    rig.options.max_hosts = 1;
    rig_begin_job(&rig);
    store(1);
    struct wr_plan_host *host = claim(1, rig.now + 30 * S, 1);
    struct wr_plan_action action = rig_page(&rig, rig.now + 10 * S);
    (void)rig_fetch(&rig, &action, 200);
    assert_still(rig.now + 3000 * M);
    wr_gate_saved(wr_plan_host_gate(host));
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("b.example"), 1, rig.now), WEIR_E_FULL);
    assert_ptr_equal(find(), host);
    wr_plan_host_lease_lost(rig.plan, host, rig.now);
    assert_true(wr_plan_host_remove(rig.plan, host, rig.now));
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("b.example"), 1, rig.now), 0);
    rig_release(&rig);
}

/* The end of a task must be stored before another process gets the host, or that process would
 * fetch it once more. */
static void host_with_an_unposted_end_does_not_rest(void **state)
{
    (void)state;
    begin();
    store(1);
    struct wr_plan_host *host = claim(1, rig.now + M, 1);
    struct wr_plan_action action = rig_page(&rig, rig.now + 10 * S);
    rig_send(&rig, &action);
    wr_plan_host_begin_post(host);
    (void)rig_tell(&rig, &action, 200);
    assert_still(rig.now + 2 * S);
    assert_false(wr_plan_host_is_idle(host));
    assert_true(wr_plan_host_is_busy(host));
    wr_plan_host_lease_lost(rig.plan, host, rig.now);
    assert_false(wr_plan_host_remove(rig.plan, host, rig.now));
    wr_plan_host_end_post(rig.plan, host, rig.now);
    assert_false(wr_plan_host_is_busy(host));
    assert_true(wr_plan_host_remove(rig.plan, host, rig.now));
    rig_release(&rig);
}

static enum wr_add_url_verdict offer(const char *path, bool is_stored)
{
    char text[64], memory[WR_URL_ROOM];
    struct wr_url url;
    int bytes = snprintf(text, sizeof text, "http://" HOST "/%s", path);
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, sizeof memory, &url), WR_URL_OK);
    const struct wr_url_to_add given = {.job = 1,
                                        .fingerprint = wr_hash(&rig.key, text, (size_t)bytes),
                                        .url = &url,
                                        .is_new = is_stored,
                                        .is_stored = is_stored};
    return wr_plan_add_url(rig.plan, &given, rig.now);
}

/* Pages in the store are counted by loads: an offer of a stored page is neither counted nor
 * refused. */
static void pages_of_a_host_are_counted_by_the_store_alone(void **state)
{
    (void)state;
    rig_init(&rig);
    rig.options.leases = true;
    rig_begin(&rig);
    wr_plan_set_known_incomplete(rig.plan);
    assert_int_equal(wr_plan_job_add(rig.plan, &(struct wr_plan_job){.id = 1, .host_pages = 10}), 0);
    rig.store_is_slow = true;
    struct wr_plan_host *host = claim(1, rig.now + M, 1);
    struct wr_plan_action load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    wr_plan_restore_host(rig.plan, host, &(struct wr_plan_stored_host){.pace = NULL}, rig.now, 0);
    wr_plan_load_end(rig.plan, host, 1, true, 9, rig.now);
    assert_int_equal(offer("eighth", true), WR_ADD_URL_NEW); /* one of the nine stored pages */
    assert_int_equal(offer("tenth", false), WR_ADD_URL_ASK_STORE);
    assert_int_equal(offer("tenth", true), WR_ADD_URL_NEW);
    load = rig_next(&rig);
    assert_kind(load, WR_PLAN_LOAD);
    wr_plan_load_end(rig.plan, host, 1, false, 10, rig.now);
    assert_int_equal(offer("more", false), WR_ADD_URL_BUDGET);
    /* a page that is stored already is accepted */
    assert_int_equal(offer("ninth", true), WR_ADD_URL_NEW);
    rig_release(&rig);
}

/* ---- resting hosts ---- */

static void answer_retry_after(const struct wr_plan_action *action, int64_t wait_ns)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = 503, .has_retry_after = true, .retry_after_ns = wait_ns};
    rig_send(&rig, action);
    (void)wr_plan_page_finished(rig.plan, action->task, &outcome, 0, rig.now);
}

static int64_t rests_until(struct wr_plan_host *host)
{
    int64_t held_ns;
    return wr_plan_host_releasable_until(rig.plan, host, rig.now, &held_ns);
}

static void host_that_waits_for_its_gate_rests_until_it_opens(void **state)
{
    (void)state;
    begin();
    store(3);
    struct wr_plan_host *host = claim(1, rig.now + WEIR_DAY, 3);
    assert_true(rests_until(host) == rig.now); /* its tasks are not loaded */
    struct wr_plan_action action = rig_page(&rig, rig.now + 10 * S);
    assert_true(rests_until(host) == rig.now); /* a request is in flight */
    int64_t told_at = rig.now;
    answer_retry_after(&action, 20 * M);
    assert_in_range(rests_until(host), told_at + 20 * M, told_at + 22 * M);
    wr_plan_host_pause(rig.plan, host, true, rig.now);
    assert_true(rests_until(host) == WEIR_FOREVER);
    wr_plan_host_pause(rig.plan, host, false, rig.now);
    wr_plan_host_lease(rig.plan, host, 1, rig.now, rig.now);
    assert_true(rests_until(host) == rig.now); /* the lease has ended */
    rig_release(&rig);
}

/* The gate of the group is in this process: another process that claimed the host would not know
 * it. */
static void host_that_waits_for_its_group_does_not_rest(void **state)
{
    (void)state;
    begin();
    store(2);
    struct wr_plan_host *host = claim(1, rig.now + WEIR_DAY, 2);
    assert_int_equal(wr_plan_hosts_row(rig.plan, 1, wr_span_of("b.example"), 1, rig.now), 0);
    struct wr_plan_host *other = wr_plan_host_find(rig.plan, wr_span_of("b.example"));
    wr_plan_host_lease(rig.plan, other, 2, rig.now + WEIR_DAY, rig.now);
    rig.rows[rig.count] = (struct row){.job = 1, .fingerprint = 1, .url = "http://b.example/"};
    rig.count++;
    assert_int_equal(wr_plan_host_group(rig.plan, host, wr_span_of("both"), rig.now), 0);
    assert_int_equal(wr_plan_host_group(rig.plan, other, wr_span_of("both"), rig.now), 0);
    struct wr_plan_action action = rig_page(&rig, rig.now);
    struct wr_plan_host *waits = action.host == host ? other : host;
    (void)rig_fetch(&rig, &action, 200);
    assert_kind(rig_next(&rig), WR_PLAN_IDLE);
    assert_true(rests_until(waits) == rig.now);
    rig_release(&rig);
}

/* If a process releases a host and another claims it, the time for which its tasks were held adds
 * up. */
static void time_held_before_a_rest_still_counts(void **state)
{
    (void)state;
    begin();
    store(3);
    int64_t held_ns;
    struct wr_plan_host *host = claim(1, rig.now + WEIR_DAY, 3);
    struct wr_plan_action action = rig_page(&rig, rig.now + 10 * S);
    int64_t told_at = rig.now;
    answer_retry_after(&action, 2 * WEIR_HOUR);
    rig.now += 10 * M;
    int64_t until = wr_plan_host_releasable_until(rig.plan, host, rig.now, &held_ns);
    assert_true(until <= told_at + 30 * M); /* its tasks expire after max_defer_ns */
    assert_in_range(held_ns, 10 * M - S, 10 * M + S);
    wr_plan_host_lease_lost(rig.plan, host, rig.now);
    assert_true(wr_plan_host_remove(rig.plan, host, rig.now));
    held_ns += until - rig.now;
    rig.now = until;
    host = claim(2, rig.now + WEIR_DAY, 3);
    wr_plan_host_was_released(host, held_ns);
    int64_t wall_now = 1700000000 * S + rig.now; /* the wall clock of rig_next */
    const weir_pace_memory memory = {.retry_wall_at = wall_now + WEIR_HOUR, .saved_wall_at = wall_now};
    rig.memory = &memory;
    for (int i = 0; i < 3; i++) {
        action = rig_wait(&rig, rig.now + S);
        assert_kind(action, WR_PLAN_END);
        assert_int_equal(action.reason, WEIR_REASON_RETRY_AFTER);
    }
    rig_release(&rig);
}

/* Returns how long a plan waits with the first page, if it claims the host while a window that a
 * server named has left_ns to run. */
static int64_t claim_within_window(bool leases, bool has_rested, int64_t left_ns)
{
    rig_init(&rig);
    rig.options.leases = leases;
    rig_begin_job(&rig);
    store(1);
    int64_t wall_now = 1700000000 * S + rig.now, began_at = rig.now;
    const weir_pace_memory memory = {.retry_wall_at = wall_now + left_ns, .saved_wall_at = wall_now - 20 * S};
    rig.memory = &memory;
    struct wr_plan_host *host = claim(1, rig.now + WEIR_DAY, 1);
    if (has_rested)
        wr_plan_host_was_released(host, 0);
    (void)rig_page(&rig, rig.now + 30 * S);
    int64_t waited_ns = rig.now - began_at;
    rig_release(&rig);
    return waited_ns;
}

/* V2, H5: each process compares its clock with the store's to the second, so another process waits
 * 2 s longer. */
static void window_stored_by_another_process_is_waited_for_2_s_longer(void **state)
{
    (void)state;
    int64_t alone_ns = claim_within_window(false, false, 10 * S);
    assert_in_range(alone_ns, 10 * S, 11 * S);
    assert_int_equal(claim_within_window(true, false, 10 * S) - alone_ns, 2 * S);
    assert_int_equal(claim_within_window(true, true, 10 * S) - alone_ns, 2 * S);
    /* the host rested by the clock of the store */
    assert_true(claim_within_window(true, true, -1) < S);
}

static void yielding_host_starts_nothing_and_ends_requests_in_flight(void **state)
{
    (void)state;
    begin();
    store(4);
    struct wr_plan_host *host = claim(1, rig.now + WEIR_DAY, 4);
    struct wr_plan_action first = rig_page(&rig, rig.now + 10 * S);
    rig_send(&rig, &first);
    wr_plan_host_yield_lease(rig.plan, host, true, rig.now);
    assert_true(wr_plan_host_yields_lease(host) && wr_plan_host_is_busy(host));
    assert_still(rig.now + M);
    (void)rig_tell(&rig, &first, 200);
    assert_false(wr_plan_host_is_busy(host));
    /* no other process wants the host any more */
    wr_plan_host_yield_lease(rig.plan, host, false, rig.now);
    first = rig_page(&rig, rig.now + 10 * S);
    (void)rig_fetch(&rig, &first, 200);
    rig_release(&rig);
}

/* ---- errands ---- */

static void give_errand(uint64_t tag)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    assert_int_equal(wr_url_parse(wr_span_of("http://" HOST "/rules"), NULL, NULL, memory, sizeof memory, &url),
                     WR_URL_OK);
    assert_int_equal(wr_plan_robots_hop_add(rig.plan, &url, tag, rig.now), 0);
}

/* V1: also for requests on behalf of another host. */
static void errands_wait_for_the_lease_of_their_host(void **state)
{
    (void)state;
    begin();
    give_errand(17);
    assert_still(rig.now + M);
    wr_plan_host_lease(rig.plan, find(), 1, rig.now + 30 * S, rig.now);
    struct wr_plan_action action = rig_wait(&rig, rig.now + 10 * S);
    assert_kind(action, WR_PLAN_ROBOTS_HOP);
    wr_plan_host_yield_lease(rig.plan, find(), true, rig.now);
    assert_int_equal(wr_plan_may_send(rig.plan, action.task, rig.now).verdict, WEIR_WAIT);
    wr_plan_task_given_back(rig.plan, action.task, rig.now);
    wr_plan_host_yield_lease(rig.plan, find(), true, rig.now);
    /* the errand is sent before the host is given away */
    assert_false(wr_plan_host_yields_lease(find()));
    wr_plan_host_lease_lost(rig.plan, find(), rig.now);
    assert_still(rig.now + M);
    assert_false(wr_plan_host_remove(rig.plan, find(), rig.now));
    assert_false(wr_plan_robots_hop_remove(rig.plan, find(), 18, rig.now));
    assert_true(wr_plan_robots_hop_remove(rig.plan, find(), 17, rig.now));
    assert_true(wr_plan_host_remove(rig.plan, find(), rig.now));
    rig_release(&rig);
}

WEIR_TESTS(test(host_that_waits_for_its_group_does_not_rest), test(host_gets_requests_once_it_is_leased),
           test(nothing_is_sent_after_the_end_of_the_lease),
           test(lost_host_leaves_with_its_tasks_after_requests_in_flight), test(load_of_a_lost_host_adds_no_tasks),
           test(host_leased_again_is_asked_for_all_tasks_left), test(host_rests_when_it_has_no_tasks_left),
           test(leased_host_is_not_dropped_to_make_room), test(host_with_an_unposted_end_does_not_rest),
           test(pages_of_a_host_are_counted_by_the_store_alone),
           test(host_that_waits_for_its_gate_rests_until_it_opens), test(time_held_before_a_rest_still_counts),
           test(window_stored_by_another_process_is_waited_for_2_s_longer),
           test(yielding_host_starts_nothing_and_ends_requests_in_flight),
           test(errands_wait_for_the_lease_of_their_host))
