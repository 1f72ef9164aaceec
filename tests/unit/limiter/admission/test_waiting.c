/* SPDX-License-Identifier: MIT */
/* test_waiting.c - tests of callers that wait until the rules allow their request (S3-21). */
#include "unit/limiter/admission/rig.h"

#include "lib/worker.h"

/* A thread that makes one blocking call. */
struct caller {
    pthread_t thread;
    struct admission_fixture *rig;
    const char *key; /* NULL: the request of the fixture */
    int64_t timeout_ns;
    weir_cancel *cancel;
    atomic_int *finished;
    int place, result;
    weir_admission_result admission;
};

static void *call(void *context)
{
    struct caller *caller = context;
    struct admission_fixture *rig = caller->rig;

    if (caller->key == NULL)
        caller->result =
            weir_admission_acquire(rig->counter, &rig->request, caller->timeout_ns, caller->cancel, &caller->admission);
    else
        caller->result = weir_admission_acquire_key(rig->counter, 0, caller->key, strlen(caller->key), 0,
                                                    caller->timeout_ns, caller->cancel, &caller->admission);
    caller->place = atomic_fetch_add(caller->finished, 1);
    return NULL;
}

static struct caller *caller_start(struct admission_fixture *rig, const char *key, int64_t timeout_ns,
                                   weir_cancel *cancel, atomic_int *finished)
{
    struct caller *caller = calloc(1, sizeof *caller);

    assert_non_null(caller);
    caller->rig = rig;
    caller->key = key;
    caller->timeout_ns = timeout_ns;
    caller->cancel = cancel;
    caller->finished = finished;
    assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
    return caller;
}

/* Joins the thread, frees the caller and returns the result of its call. */
static int caller_end(struct caller *caller)
{
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    int result = caller->result;
    assert_int_equal(caller->admission.allowed, result == 0);
    free(caller);
    return result;
}

static void allowed_request_does_not_wait(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(2));
    rig_open(rig);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, WEIR_FOREVER, NULL, &rig->admission), 0);
    assert_int_equal(weir_admission_acquire_key(rig->counter, 0, "203.0.113.7", 11, 0, 0, NULL, &rig->admission), 0);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 0);
    assert_true(rig->admission.rulings[0].reserved);
    rig_free(rig);
}

static void acquire_with_zero_timeout_is_refused_at_once(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(1));
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, &rig->admission), WEIR_E_TIMEOUT);
    assert_false(rig->admission.allowed);
    assert_int_equal(rig->admission.rulings[0].outcome, WEIR_OUTCOME_REFUSED);
    assert_int_equal(rig->admission.rulings[0].error, WEIR_E_TIMEOUT);
    assert_int_equal(rig->admission.retry_after_s, 60);
    assert_int_equal(weir_admission_result_status(&rig->admission), 429);
    rig_free(rig);
}

/* S3-21 */
static void a_caller_waits_until_its_time_has_come(void **state)
{
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    struct caller *caller = caller_start(rig, "alice", WEIR_FOREVER, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    assert_true(rig_try_key(rig, 0, "bob")); /* other keys do not wait for "alice" */
    assert_int_equal(weir_clock_fake_advance(rig->clock, WEIR_MINUTE), 0);
    assert_int_equal(caller_end(caller), 0);
    assert_int_equal(rig_left(rig, 0, "alice"), 0);
    rig_free(rig);
}

/* S3-21 */
static void a_caller_gives_up_at_its_deadline(void **state)
{
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(1));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "alice"));
    struct caller *caller = caller_start(rig, "alice", WEIR_SECOND, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    assert_int_equal(weir_clock_fake_advance(rig->clock, WEIR_SECOND), 0);
    assert_int_equal(caller_end(caller), WEIR_E_TIMEOUT);
    rig_free(rig);
}

static void a_release_lets_the_next_caller_in(void **state)
{
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "at once", WEIR_KEY_IP, at_once(1));
    rig_open(rig);
    assert_true(rig_try(rig));
    struct caller *caller = caller_start(rig, NULL, WEIR_FOREVER, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    assert_int_equal(weir_admission_release(rig->counter, &rig->admission), 0);
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    assert_int_equal(caller->result, 0);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 0);
    assert_int_equal(weir_admission_release(rig->counter, &caller->admission), 0);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 1);
    free(caller);
    rig_free(rig);
}

static void waiting_callers_fail_when_cancelled_or_when_the_table_closes(void **state)
{
    struct admission_fixture *rig = rig_new();
    weir_cancel *cancel;
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "at once", WEIR_KEY_IP, at_once(1));
    rig_open(rig);
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    assert_true(rig_try(rig));
    struct caller *first = caller_start(rig, NULL, WEIR_FOREVER, cancel, &finished);
    test_await_waiters(rig->clock, 1);
    weir_cancel_fire(cancel);
    assert_int_equal(caller_end(first), WEIR_E_CANCELLED);
    assert_int_equal(weir_admission_acquire_key(rig->counter, 0, "free", 4, 0, 0, cancel, &rig->admission),
                     WEIR_E_CANCELLED);

    struct caller *second = caller_start(rig, NULL, WEIR_FOREVER, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    weir_table_close(rig->tables[0]);
    assert_int_equal(caller_end(second), WEIR_E_CLOSED);
    assert_false(rig_try(rig));
    assert_int_equal(rig->admission.rulings[0].error, WEIR_E_CLOSED);
    weir_cancel_free(cancel);
    rig_free(rig);
}

/* A request is charged by all rules or by none, also after a wait. */
static void a_caller_that_gives_up_leaves_earlier_rules_uncharged(void **state)
{
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "window", WEIR_KEY_IP, window(5));
    rig_add(rig, "at once", WEIR_KEY_IP, at_once(1));
    rig_open(rig);
    assert_true(rig_try(rig));
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 4);
    struct caller *caller = caller_start(rig, NULL, WEIR_SECOND, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 3); /* a permit is held during the wait */
    assert_int_equal(weir_clock_fake_advance(rig->clock, WEIR_SECOND), 0);
    assert_int_equal(caller_end(caller), WEIR_E_TIMEOUT);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 4);
    rig_free(rig);
}

/* The first rule grants in its second window. The caller then times out while it waits for the
 * second rule. */
static void permits_return_to_a_rule_if_a_later_one_refuses_after_a_wait(void **state)
{
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "window", WEIR_KEY_IP, window(1));
    rig_add(rig, "at once", WEIR_KEY_IP, at_once(1));
    rig_open(rig);
    assert_true(rig_try(rig));
    struct caller *caller = caller_start(rig, NULL, 90 * WEIR_SECOND, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    /* the first rule grants */
    assert_int_equal(weir_clock_fake_advance(rig->clock, WEIR_MINUTE), 0);
    /* The first rule's permit is taken before the wait for the second rule begins. */
    while (rig_left(rig, 0, "203.0.113.7") != 0 || weir_clock_fake_waiters(rig->clock) != 1)
        assert_int_equal(atomic_load(&finished), 0);
    assert_int_equal(weir_clock_fake_advance(rig->clock, 30 * WEIR_SECOND), 0);
    assert_int_equal(caller_end(caller), WEIR_E_TIMEOUT);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 1);
    rig_free(rig);
}

/* The key store of the second rule fails after the first rule has granted. */
static void permits_return_to_a_rule_if_a_later_one_fails_after_a_wait(void **state)
{
    struct script script = {.error = WEIR_E_NOMEM};
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "window", WEIR_KEY_IP, window(1));
    rig_add_store(rig, "broken", WEIR_KEY_IP, script_repository(&script));
    rig_open(rig);
    assert_true(rig_try_key(rig, 0, "203.0.113.7"));
    struct caller *caller = caller_start(rig, NULL, WEIR_FOREVER, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    assert_int_equal(weir_clock_fake_advance(rig->clock, WEIR_MINUTE), 0);
    assert_int_equal(caller_end(caller), WEIR_E_NOMEM);
    assert_int_equal(script.asked, 1);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 1);
    rig_free(rig);
}

static void request_that_waited_can_be_settled_and_cancelled(void **state)
{
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(2))->permits = 2;
    rig_open(rig);
    assert_true(rig_try(rig));
    for (int cancels = 0; cancels < 2; cancels++) {
        struct caller *caller = caller_start(rig, NULL, WEIR_FOREVER, NULL, &finished);
        test_await_waiters(rig->clock, 1);
        assert_int_equal(weir_clock_fake_advance(rig->clock, WEIR_MINUTE), 0);
        assert_int_equal(pthread_join(caller->thread, NULL), 0);
        assert_int_equal(caller->result, 0);
        assert_true(caller->admission.rulings[0].reserved);
        assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 0);
        if (cancels == 0)
            assert_int_equal(weir_admission_settle(rig->counter, &caller->admission, 0, 1), 0);
        else
            assert_int_equal(weir_admission_cancel(rig->counter, &caller->admission), 0);
        assert_int_equal(rig_left(rig, 0, "203.0.113.7"), cancels == 0 ? 1 : 2);
        free(caller);
    }
    rig_free(rig);
}

static void a_store_that_cannot_settle_is_not_asked_for_a_receipt(void **state)
{
    struct script script = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "r", WEIR_KEY_IP, script_repository(&script));
    rig->repositories[0].settle = NULL;
    rig_open(rig);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, &rig->admission), 0);
    assert_false(rig->admission.rulings[0].reserved);
    assert_int_equal(weir_admission_settle(rig->counter, &rig->admission, 0, 0), WEIR_E_INVAL);
    assert_int_equal(weir_admission_cancel(rig->counter, &rig->admission), 0);
    assert_int_equal(script.released, 1);
    rig_free(rig);
}

/* One timeout covers all rules: 40 s of 60 have passed when the wait for the second rule begins. */
static void one_deadline_covers_all_rules(void **state)
{
    struct admission_fixture *rig = rig_new();
    atomic_int finished = 0;

    (void)state;
    rig_add(rig, "first", WEIR_KEY_IP, at_once(1));
    rig_add(rig, "second", WEIR_KEY_IP, at_once(1));
    rig_open(rig);
    assert_true(rig_try(rig));
    struct caller *caller = caller_start(rig, NULL, WEIR_MINUTE, NULL, &finished);
    test_await_waiters(rig->clock, 1);
    assert_int_equal(weir_clock_fake_advance(rig->clock, 40 * WEIR_SECOND), 0);
    /* the first rule grants */
    assert_int_equal(weir_table_release(rig->tables[0], "203.0.113.7", 11, 1), 0);
    /* The first rule's permit is taken before the wait for the second rule begins. */
    while (rig_left(rig, 0, "203.0.113.7") != 0 || weir_clock_fake_waiters(rig->clock) != 1)
        assert_int_equal(atomic_load(&finished), 0);
    assert_int_equal(weir_clock_fake_advance(rig->clock, 20 * WEIR_SECOND), 0);
    assert_int_equal(caller_end(caller), WEIR_E_TIMEOUT);
    assert_int_equal(rig_left(rig, 0, "203.0.113.7"), 1); /* the permit was given back */
    rig_free(rig);
}

static void acquire_of_more_permits_than_the_limit_does_not_wait(void **state)
{
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add(rig, "ip", WEIR_KEY_IP, window(5))->permits = 6;
    rig_open(rig);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, WEIR_FOREVER, NULL, &rig->admission),
                     WEIR_E_NEVER);
    rig_free(rig);
}

static void errors_of_a_wait_are_returned(void **state)
{
    static const struct {
        int error;
        weir_ruling_outcome outcome;
    } cases[] = {{WEIR_E_FULL, WEIR_OUTCOME_REFUSED},
                 {WEIR_E_NEVER, WEIR_OUTCOME_REFUSED},
                 {WEIR_E_CANCELLED, WEIR_OUTCOME_REFUSED},
                 {WEIR_E_TIMEOUT, WEIR_OUTCOME_REFUSED},
                 {WEIR_E_NOMEM, WEIR_OUTCOME_FAILED}};
    struct script script = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "r", WEIR_KEY_IP, script_repository(&script));
    rig_open(rig);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        script.error = cases[i].error;
        assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, &rig->admission), cases[i].error);
        assert_int_equal(rig->admission.rulings[0].outcome, cases[i].outcome);
    }
    rig_free(rig);
}

static void invalid_acquire_calls_are_refused(void **state)
{
    struct script script = {0};
    struct admission_fixture *rig = rig_new();

    (void)state;
    rig_add_store(rig, "r", WEIR_KEY_IP, script_repository(&script));
    rig_open(rig);
    assert_int_equal(weir_admission_acquire(NULL, &rig->request, 0, NULL, &rig->admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_acquire(rig->counter, NULL, 0, NULL, &rig->admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, -1, NULL, &rig->admission), WEIR_E_INVAL);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, WEIR_DURATION_MAX + 1, NULL, &rig->admission),
                     WEIR_E_INVAL);
    assert_int_equal(script.asked, 0);
    weir_admission_free(rig->counter);
    rig->counter = NULL;
    rig->repositories[0].acquire = NULL;
    rig_open(rig);
    assert_int_equal(weir_admission_acquire(rig->counter, &rig->request, 0, NULL, &rig->admission), WEIR_E_INVAL);
    assert_non_null(strstr(weir_error_detail(), "acquire"));
    assert_true(rig_try(rig));
    rig_free(rig);
}

WEIR_TESTS(test(allowed_request_does_not_wait), test(acquire_with_zero_timeout_is_refused_at_once),
           test(a_caller_waits_until_its_time_has_come), test(a_caller_gives_up_at_its_deadline),
           test(a_release_lets_the_next_caller_in), test(waiting_callers_fail_when_cancelled_or_when_the_table_closes),
           test(a_caller_that_gives_up_leaves_earlier_rules_uncharged),
           test(permits_return_to_a_rule_if_a_later_one_refuses_after_a_wait),
           test(permits_return_to_a_rule_if_a_later_one_fails_after_a_wait),
           test(request_that_waited_can_be_settled_and_cancelled),
           test(a_store_that_cannot_settle_is_not_asked_for_a_receipt), test(one_deadline_covers_all_rules),
           test(acquire_of_more_permits_than_the_limit_does_not_wait), test(errors_of_a_wait_are_returned),
           test(invalid_acquire_calls_are_refused))
