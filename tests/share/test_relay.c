/* SPDX-License-Identifier: MIT */
/* test_relay.c - two pacers share one gate through a real store. They use the same clock, so that
 * their times can be compared. */
#include "base/heap.h"
#include "cluster/gate/shared_gate.h"
#include "lib/test.h"
#include "share/rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define MS WEIR_MILLISECOND
#define PARTIES 2
#define THREADS 2
#define STARTS 6
#define INTERVAL (40 * MS)
#define PATIENCE (60 * WEIR_SECOND)

struct party {
    weir_pacer *pacer;
    struct wr_shared_gate *relay;
};

static void begin(struct party *party, const struct store *at, int64_t interval_ns)
{
    weir_pace_options pace;
    weir_pacer_options how;
    assert_int_equal(weir_pace_options_profile(&pace, WEIR_PROFILE_STRICT), 0);
    pace.min_interval_ns = interval_ns;
    weir_pacer_options_init(&how);
    how.clock = weir_clock_monotonic();
    assert_int_equal(weir_pacer_new(&pace, &how, &party->pacer), 0);
    struct wr_shared_gate_options options = {.wire = {.path = at->path, .timeout_ns = 30 * WEIR_SECOND}};
    assert_int_equal(wr_shared_gate_new(&options, party->pacer, &party->relay), 0);
}

static void end(struct party *party)
{
    wr_shared_gate_free(party->relay);
    weir_pacer_free(party->pacer);
}

static atomic_int lacks; /* number of coming allocations that fail */

int __real_wr_heap_reserve(struct wr_heap *heap, size_t count);
int __wrap_wr_heap_reserve(struct wr_heap *heap, size_t count);

int __wrap_wr_heap_reserve(struct wr_heap *heap, size_t count)
{
    if (atomic_fetch_sub(&lacks, 1) > 0)
        return WEIR_E_NOMEM;
    atomic_store(&lacks, 0);
    return __real_wr_heap_reserve(heap, count);
}

struct caller {
    struct party *party;
    pthread_t thread;
    int64_t sent_at[STARTS];
    int failed;
};

static void *run(void *context)
{
    struct caller *caller = context;
    for (int i = 0; i < STARTS; i++) {
        weir_permit permit;
        weir_outcome outcome = {.size = sizeof outcome, .status = 200};
        caller->failed |= weir_pacer_acquire(caller->party->pacer, "h", 1, 0, PATIENCE, NULL, &permit, NULL);
        caller->sent_at[i] = permit.held[0].sent_at;
        caller->failed |= weir_permit_finish(&permit, &outcome);
    }
    return NULL;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void starts_of_two_pacers_with_one_gate_are_an_interval_apart(void **state)
{
    (void)state;
    struct party parties[PARTIES];
    struct caller callers[PARTIES * THREADS];
    int64_t all[PARTIES * THREADS * STARTS];
    for (int i = 0; i < PARTIES; i++)
        begin(&parties[i], &store, INTERVAL);
    for (int i = 0; i < PARTIES * THREADS; i++) {
        callers[i] = (struct caller){.party = &parties[i % PARTIES]};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, run, &callers[i]), 0);
    }
    for (int i = 0; i < PARTIES * THREADS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_int_equal(callers[i].failed, 0);
        memcpy(all + i * STARTS, callers[i].sent_at, sizeof callers[i].sent_at);
    }
    qsort(all, PARTIES * THREADS * STARTS, sizeof all[0], by_time);
    for (int i = 1; i < PARTIES * THREADS * STARTS; i++)
        /* exact: both use one clock, and no write delays the start */
        assert_true(all[i] - all[i - 1] >= INTERVAL);
    for (int i = 0; i < PARTIES; i++) {
        struct wr_shared_gate_view view;
        wr_shared_gate_view_get(parties[i].relay, &view);
        assert_true(view.turns > 0);
        end(&parties[i]);
    }
}

static weir_permit acquire(struct party *party)
{
    weir_permit permit;
    assert_int_equal(weir_pacer_acquire(party->pacer, "named", 5, 0, PATIENCE, NULL, &permit, NULL), 0);
    return permit;
}

/* Returns true if a message to the host "named" was written and is read before the next start. */
static bool is_delivered(void)
{
    return store_say(&store, "EVAL local\th=redis.call('HMGET','weir:{pace\\32named}','first','last','holder')"
                             "return\th[2]and(tonumber(h[1]or\t1)>tonumber(h[2])or\tnot\th[3])and\t1 0") == 1;
}

static void retry_after_received_without_the_gate_reaches_its_holder(void **state)
{
    (void)state;
    struct party one, two;
    begin(&one, &store, 10 * MS);
    begin(&two, &store, 10 * MS);
    /* now the gate is at the second pacer */
    weir_permit first = acquire(&one), second = acquire(&two);
    weir_outcome outcome = {.size = sizeof outcome, .status = 429, .has_retry_after = true};
    outcome.retry_after_ns = 3 * WEIR_SECOND;
    int64_t told_at = weir_clock_now(weir_clock_monotonic());
    assert_int_equal(weir_permit_finish(&first, &outcome), 0);
    weir_permit_abandon(&second);
    while (!is_delivered())
        usleep(1000);
    weir_permit permit = acquire(&two);
    assert_true(permit.held[0].sent_at >= told_at + 3 * WEIR_SECOND);
    weir_permit_abandon(&permit);
    end(&one);
    end(&two);
}

/* The first pacer had the turn, was suspended before its write, and writes after the second had a
 * turn. */
static void late_send_keeps_other_pacers_an_interval_away(void **state)
{
    (void)state;
    struct party one, two;
    begin(&one, &store, WEIR_SECOND);
    begin(&two, &store, WEIR_SECOND);
    weir_permit first = acquire(&one), second = acquire(&two);
    weir_permit_abandon(&second);
    /* an interval after this time is later than an interval after the second start */
    int64_t late_at = second.held[0].sent_at + 300 * MS;
    while (weir_clock_now(weir_clock_monotonic()) < late_at)
        usleep(1000);
    late_at = weir_clock_now(weir_clock_monotonic());
    weir_permit_sent_late(&first);
    while (!is_delivered())
        usleep(1000);
    second = acquire(&two);
    assert_true(second.held[0].sent_at >= late_at + WEIR_SECOND);
    weir_permit_abandon(&first);
    weir_permit_abandon(&second);
    end(&one);
    end(&two);
}

static atomic_int notices;

static void notice(void *context, const char *why)
{
    (void)context, (void)why;
    (void)atomic_fetch_add(&notices, 1);
}

static void missing_store_is_reported_and_only_delays_callers(void **state)
{
    (void)state;
    struct party party;
    weir_permit permit;
    struct wr_shared_gate_options options = {.wire = {.path = "/nonexistent/s"}, .notice = notice};
    assert_int_equal(weir_pacer_new(NULL, NULL, &party.pacer), 0);
    assert_int_equal(wr_shared_gate_new(&options, party.pacer, &party.relay), 0);
    assert_int_equal(weir_pacer_acquire(party.pacer, "h", 1, 0, 300 * MS, NULL, &permit, NULL), WEIR_E_TIMEOUT);
    while (atomic_load(&notices) == 0)
        (void)weir_pacer_acquire(party.pacer, "h", 1, 0, MS, NULL, &permit, NULL);
    end(&party);
    options.prefix = "a{b}";
    assert_int_equal(weir_pacer_new(NULL, NULL, &party.pacer), 0);
    assert_int_equal(wr_shared_gate_new(&options, party.pacer, &party.relay), WEIR_E_INVAL);
    weir_pacer_free(party.pacer);
}

static int start(struct party *party, int64_t patience_ns)
{
    weir_permit permit;
    weir_outcome outcome = {.size = sizeof outcome, .status = 200};
    int error = weir_pacer_acquire(party->pacer, "h", 1, 0, patience_ns, NULL, &permit, NULL);
    return error != 0 ? error : weir_permit_finish(&permit, &outcome);
}

/* H3, V1: another process may have had the turn meanwhile. */
static void suspended_machine_starts_nothing_until_the_store_has_answered(void **state)
{
    (void)state;
    struct party party;
    begin(&party, &store, INTERVAL);
    assert_int_equal(start(&party, PATIENCE), 0);
    assert_int_equal(start(&party, PATIENCE), 0);
    assert_int_equal(kill(store.pid, SIGSTOP), 0);
    machine_sleeps(3600);
    assert_int_equal(start(&party, 5 * INTERVAL), WEIR_E_TIMEOUT);
    assert_int_equal(kill(store.pid, SIGCONT), 0);
    assert_int_equal(start(&party, PATIENCE), 0);
    end(&party);
}

/* No later call triggers it: there is one host and one waiting caller. */
static void host_that_lacked_memory_is_retried(void **state)
{
    (void)state;
    struct party party;
    weir_permit permit;
    weir_outcome outcome = {.size = sizeof outcome, .status = 200};
    begin(&party, &store, INTERVAL);
    atomic_store(&lacks, 3);
    assert_int_equal(weir_pacer_acquire(party.pacer, "m", 1, 0, PATIENCE, NULL, &permit, NULL), 0);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    assert_int_equal(atomic_load(&lacks), 0);
    end(&party);
}

WEIR_TESTS(served(suspended_machine_starts_nothing_until_the_store_has_answered),
           served(starts_of_two_pacers_with_one_gate_are_an_interval_apart),
           served(retry_after_received_without_the_gate_reaches_its_holder),
           served(late_send_keeps_other_pacers_an_interval_away), served(host_that_lacked_memory_is_retried),
           test(missing_store_is_reported_and_only_delays_callers))
