/* SPDX-License-Identifier: MIT */
/* test_script.c - the script in the store against the limits of the library, on random timelines.
 *
 * The script runs in a real store, but where it asks for the time it reads a key that the test
 * sets. So time is virtual, and logs do not expire by the real clock.
 */
#include "base/rng.h"
#include "cluster/limit/script.h"
#include "lib/test.h"
#include "share/rig.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>

#define STEPS 1500
#define US 1000
#define START_US INT64_C(1700000000000000)

static redisContext *redis;
static char *script;

static int open_script(void **state)
{
    (void)open_store(state);
    redis = redisConnectUnix(store.path);
    assert_true(redis != NULL && redis->err == 0);
    script = script_on_set_clock(WR_SCRIPT_CHARGE);
    for (int i = 0; i < 2; i++)
        /* other state that expires is restored from what the node has seen */
        script = changed(script, "'PEXPIRE'", "'EXISTS'");
    return 0;
}

static int close_script(void **state)
{
    free(script);
    redisFree(redis);
    return close_store(state);
}

/* Runs the script for this charge. Its arithmetic does not depend on the kind of clock. */
static void say(const struct wr_charge_limits *charge_limits, const struct wr_charge *charge,
                struct wr_charge_reply *ret_told)
{
    static uint64_t bill;
    const uint64_t given[] = {charge->permits,
                              charge->extra,
                              charge->owed,
                              0,
                              charge->back,
                              (uint64_t)charge->charged_at,
                              0,
                              charge->held,
                              charge->message,
                              0,
                              charge->bill > 0 ? charge->bill : ++bill};
    const char *argv[4 + WR_REDIS_ARGS_MAX] = {"EVAL", script, "1", "key"};
    char numbers[11][24];
    int count = 4;

    for (int i = 0; i < 11; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%llu", (unsigned long long)given[i]);
        argv[count++] = numbers[i];
    }
    argv[7] = charge->seen; /* the state of the last reply, or nothing */
    argv[10] = charge->who != NULL ? charge->who : "";
    for (int i = 0; i < charge_limits->count; i++)
        argv[count++] = charge_limits->words[i];
    redisReply *reply = redisCommandArgv(redis, count, argv, NULL);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    assert_int_equal(wr_charge_read(reply, ret_told), 0);
    freeReplyObject(reply);
}

static void charge(const struct wr_charge_limits *charge_limits, uint32_t permits, uint32_t extra, const char *seen,
                   struct wr_charge_reply *ret_told)
{
    const struct wr_charge one = {.permits = permits, .extra = extra, .seen = seen};
    say(charge_limits, &one, ret_told);
}

/* Returns how many more permits the library would grant now. */
static uint32_t room_of(const weir_stack *stack, const void *state, int64_t now)
{
    uint32_t low = 0, high = UINT32_MAX;
    for (uint32_t i = 0; i < stack->count; i++)
        high = stack->limits[i].permits < high ? stack->limits[i].permits : high;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (weir_stack_ask(stack, state, now, middle).verdict == WEIR_GO)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void compare(const weir_limit *limits, size_t count, uint32_t permits_most)
{
    static _Alignas(8) unsigned char state[65536];
    struct wr_rng rng;
    weir_stack stack;
    struct wr_charge_limits charge_limits;
    struct wr_charge_reply told = {.seen = ""};
    int64_t us = START_US;
    uint64_t granted = 0, refused = 0;

    wr_rng_init(&rng, weir_test_seed());
    assert_int_equal(weir_stack_init(&stack, limits, count), 0);
    assert_true(stack.state_bytes <= sizeof state);
    assert_int_equal(wr_charge_limits_make(&stack, &charge_limits), 0);
    memset(state, 0, sizeof state);
    /* the store starts with the first request, which is the first step */
    weir_stack_start(&stack, state, us * US);
    for (int step = 0; step < STEPS; step++) {
        bool pauses = wr_rng_below(&rng, 50) == 0;
        us += step > 0 ? (int64_t)wr_rng_below(&rng, pauses ? 3000000 : 8000) : 0;
        uint32_t permits = 1 + (uint32_t)wr_rng_below(&rng, permits_most);
        uint32_t extra = wr_rng_below(&rng, 4) == 0 ? (uint32_t)wr_rng_below(&rng, 5) : 0;
        weir_decision decision = weir_stack_try(&stack, state, us * US, permits, NULL);
        uint32_t given = 0, room = decision.verdict == WEIR_GO && extra > 0 ? room_of(&stack, state, us * US) : 0;
        given = room < extra ? room : extra;
        if (given > 0)
            assert_int_equal(weir_stack_try(&stack, state, us * US, given, NULL).verdict, WEIR_GO);
        char seen[WR_KEY_STATE_BYTES];
        memcpy(seen, told.seen, sizeof seen);
        set_clock(redis, us);
        charge(&charge_limits, permits, extra, seen, &told);
        if (told.reply.granted != (decision.verdict == WEIR_GO) || told.reply.extra != given)
            fail_msg("step %d at %lld us: %u and %u: %d, %u instead of %d, %u", step, (long long)(us - START_US),
                     permits, extra, told.reply.granted, told.reply.extra, decision.verdict == WEIR_GO, given);
        if (!told.reply.granted) /* both report the wait, the store in us */
            assert_in_range(told.reply.wait_ns, decision.wait_ns, decision.wait_ns + US);
        granted += told.reply.granted;
        refused += !told.reply.granted;
    }
    assert_true(granted > STEPS / 50 && refused > STEPS / 50);
}

static void token_bucket_behaves_the_same_in_the_store(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 50, 333, WEIR_SECOND), 0);
    compare(&limit, 1, 6);
}

static void stepped_bucket_behaves_the_same_in_the_store(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_stepped_bucket(&limit, 50, 20, 70 * WEIR_MILLISECOND, 50), 0);
    compare(&limit, 1, 4);
}

static void fixed_window_behaves_the_same_in_the_store(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_fixed_window(&limit, 100, 500 * WEIR_MILLISECOND), 0);
    compare(&limit, 1, 5);
}

static void sliding_window_behaves_the_same_in_the_store(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_sliding_window(&limit, 100, 500 * WEIR_MILLISECOND), 0);
    compare(&limit, 1, 5);
}

static void sliding_log_behaves_the_same_in_the_store(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_sliding_log(&limit, 100, 500 * WEIR_MILLISECOND), 0);
    compare(&limit, 1, 5);
}

static void leaky_bucket_behaves_the_same_in_the_store(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_leaky_bucket(&limit, 5, 6 * WEIR_MILLISECOND), 0);
    compare(&limit, 1, 1);
}

static void stack_of_limits_behaves_the_same_in_the_store(void **state)
{
    (void)state;
    weir_limit limits[3];
    assert_int_equal(weir_limit_token_bucket(&limits[0], 20, 400, WEIR_SECOND), 0);
    assert_int_equal(weir_limit_sliding_log(&limits[1], 60, 300 * WEIR_MILLISECOND), 0);
    assert_int_equal(weir_limit_fixed_window(&limits[2], 400, 2 * WEIR_SECOND), 0);
    compare(limits, 3, 3);
}

/* ---- time ------------------------------------------------------------------------------------ */

static const int64_t HOUR_US = INT64_C(3600000000);

/* Makes tariffs of ten permits per hour, one of each kind; the last is a leaky bucket. */
static void make_kinds(struct wr_charge_limits tariffs[6])
{
    weir_limit limits[6];
    weir_stack stack;

    weir_limit_token_bucket(&limits[0], 10, 10, WEIR_HOUR);
    weir_limit_stepped_bucket(&limits[1], 10, 10, WEIR_HOUR, 10);
    weir_limit_fixed_window(&limits[2], 10, WEIR_HOUR);
    weir_limit_sliding_window(&limits[3], 10, WEIR_HOUR);
    weir_limit_sliding_log(&limits[4], 10, WEIR_HOUR);
    weir_limit_leaky_bucket(&limits[5], 10, WEIR_HOUR / 10);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(weir_stack_init(&stack, &limits[i], 1), 0);
        assert_int_equal(wr_charge_limits_make(&stack, &tariffs[i]), 0);
    }
}

static void forget_all(void)
{
    freeReplyObject(redisCommand(redis, "FLUSHALL"));
}

/* As after a fail-over to a machine whose clock is behind: no extra permits, and no endless
 * wait. */
static void store_clock_going_back_only_delays(void **state)
{
    (void)state;
    static const int64_t steps[] = {-1, -HOUR_US / 2, -HOUR_US, -48 * HOUR_US};
    struct wr_charge_limits tariffs[6];

    make_kinds(tariffs);
    for (int kind = 0; kind < 6; kind++) {
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            struct wr_charge_reply told;
            uint32_t most = kind == 5 ? 1 : 10;
            int64_t us = START_US + steps[i];
            forget_all();
            set_clock(redis, START_US);
            charge(&tariffs[kind], most, 0, "", &told);
            assert_true(told.reply.granted);
            set_clock(redis, us);
            charge(&tariffs[kind], 1, 0, told.seen, &told);
            assert_false(told.reply.granted);
            us += 3 * HOUR_US;
            set_clock(redis, us);
            charge(&tariffs[kind], most, 0, told.seen, &told);
            if (!told.reply.granted)
                fail_msg("kind %d, back by %lld us: it still waits", kind, (long long)-steps[i]);
        }
    }
}

/* Ten permits are charged and six of them returned: they are available at once, but never more than
 * those. */
static void returned_permits_are_those_not_refilled_meanwhile(void **state)
{
    (void)state;
    static const struct {
        int64_t after_us;
        int left[6]; /* permits left, by kind */
    } cases[] = {
        {0, {6, 6, 6, 6, 6, 0}},
        /* a bucket has refilled five by itself, so that only one of the six is added */
        {HOUR_US / 2, {6, 6, 6, 6, 6, 0}},
        /* in a sliding window nearly all of the four used permits still count */
        {HOUR_US + 1, {10, 10, 10, 7, 10, 0}},
    };
    struct wr_charge_limits tariffs[6];

    make_kinds(tariffs);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int kind = 0; kind < 5; kind++) {
            struct wr_charge_reply told;
            forget_all();
            set_clock(redis, START_US);
            charge(&tariffs[kind], 10, 0, "", &told);
            char before[WR_KEY_STATE_BYTES];
            memcpy(before, told.seen, sizeof before);
            const struct wr_charge back = {.back = 6, .charged_at = told.at, .seen = ""};
            set_clock(redis, START_US + cases[i].after_us);
            say(&tariffs[kind], &back, &told);
            if ((int)told.quota.remaining != cases[i].left[kind])
                fail_msg("kind %d after %lld us: %u are left", kind, (long long)cases[i].after_us,
                         told.quota.remaining);
            /* an older state seen by another node undoes nothing */
            charge(&tariffs[kind], told.quota.remaining, 0, before, &told);
            assert_true(told.reply.granted);
        }
    }
}

/* Two nodes, one of which has seen more than the other, charge a store that lost its data:
 * everything counts once, in either order. */
static void seen_and_owed_permits_add_up_after_a_data_loss(void **state)
{
    (void)state;
    struct wr_charge_limits tariffs[6];

    make_kinds(tariffs);
    for (int kind = 0; kind < 4; kind++) {
        for (int order = 0; order < 2; order++) {
            struct wr_charge_reply seen[2], told;
            forget_all();
            set_clock(redis, START_US);
            charge(&tariffs[kind], 2, 0, "", &seen[0]);
            /* seen by the second node; the first has seen two permits */
            charge(&tariffs[kind], 3, 0, "", &seen[1]);
            forget_all();
            set_clock(redis, START_US + 1000);
            for (int i = 0; i < 4; i++) { /* each charge twice, as if the first reply was lost */
                int who = (i + order) % 2;
                const struct wr_charge one = {.owed = i < 2 ? 1 : 0, .seen = seen[who].seen};
                say(&tariffs[kind], &one, &told);
            }
            if (told.quota.remaining != 3)
                fail_msg("kind %d, order %d: %u of 10 are left, not 3", kind, order, told.quota.remaining);
            charge(&tariffs[kind], 3, 0, told.seen, &told);
            assert_true(told.reply.granted && told.quota.remaining == 0);
            forget_all();
            /* the old charges no longer matter, and nothing is stored of them */
            set_clock(redis, START_US + 3 * HOUR_US);
            charge(&tariffs[kind], 1, 0, told.seen, &told);
            redisReply *reply = redisCommand(redis, "EXISTS key:was");
            assert_true(told.quota.remaining == 9 && reply->integer == 0);
            freeReplyObject(reply);
        }
    }
}

/* A bill is repeated if its reply was lost. Each node numbers its own bills; a higher number is a
 * new bill. */
static void repeated_bill_is_charged_once(void **state)
{
    (void)state;
    struct wr_charge_limits tariffs[6];
    struct wr_charge_reply told;

    make_kinds(tariffs);
    for (int kind = 0; kind < 4; kind++) {
        forget_all();
        set_clock(redis, START_US);
        for (int i = 0; i < 3; i++)
            say(&tariffs[kind], &(struct wr_charge){.owed = 2, .bill = 7, .who = "one", .seen = ""}, &told);
        assert_int_equal(told.quota.remaining, 8);
        say(&tariffs[kind], &(struct wr_charge){.owed = 3, .bill = 7, .who = "two", .seen = ""}, &told);
        assert_int_equal(told.quota.remaining, 5);
        say(&tariffs[kind], &(struct wr_charge){.owed = 1, .bill = 9, .who = "one", .seen = ""}, &told);
        say(&tariffs[kind], &(struct wr_charge){.owed = 2, .bill = 7, .who = "one", .seen = ""},
            &told); /* a repetition that was delayed */
        assert_int_equal(told.quota.remaining, 4);
    }
}

/* A node that is silent for ten seconds has crashed. A message that was overtaken changes nothing,
 * and the clocks of the nodes need not agree. */
static void requests_in_flight_expire_with_their_node_and_count_in_order(void **state)
{
    (void)state;
    struct wr_charge_limits charge_limits;
    struct wr_charge_reply told;
    weir_limit limit;
    weir_stack stack;

    assert_int_equal(weir_limit_concurrency(&limit, 10), 0);
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    assert_int_equal(wr_charge_limits_make(&stack, &charge_limits), 0);
    static const struct {
        int64_t at_us;
        const char *who;
        uint64_t held, message;
        uint32_t permits;
        bool granted;
        uint32_t left;
    } steps[] = {
        {0, "a", 0, 1000, 6, true, 4},
        {0, "b", 0, 7, 5, false, 4},
        {0, "b", 0, 8, 4, true, 0},
        /* overtaken: its number is lower than that of the first message */
        {1000000, "a", 0, 999, 0, true, 0},
        {1000000, "a", 2, 1001, 0, true, 4},
        /* the same message again */
        {1000000, "a", 6, 1001, 1, false, 4},
        {9000000, "a", 2, 1002, 0, true, 4},
        /* b has been silent for ten seconds */
        {10000001, "c", 0, 1, 8, true, 0},
        {10000002, "a", 2, 1003, 1, false, 0},
        {10000003, "c", 0, 2, 0, true, 8},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const struct wr_charge one = {.who = steps[i].who,
                                      .held = steps[i].held,
                                      .message = steps[i].message,
                                      .permits = steps[i].permits,
                                      .seen = ""};
        set_clock(redis, START_US + steps[i].at_us);
        say(&charge_limits, &one, &told);
        if (told.reply.granted != steps[i].granted || told.quota.remaining != steps[i].left)
            fail_msg("step %zu: %d, %u are left", i, told.reply.granted, told.quota.remaining);
        if (!told.reply.granted)
            assert_true(told.reply.wait_ns == WEIR_UNTIL_RELEASE);
    }
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void command(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    redisReply *reply = redisvCommand(redis, format, list);
    va_end(list);
    assert_true(reply != NULL && reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

/* The key has foreign data: nothing is admitted, the damage is reported, and later the key works
 * again. */
static void assert_used_up(const struct wr_charge_limits *charge_limits, int64_t us, uint32_t most, const char *what)
{
    struct wr_charge_reply told;
    charge(charge_limits, 1, 0, "", &told);
    if (told.reply.granted || !told.damaged)
        fail_msg("%s: granted %d, noticed %d", what, told.reply.granted, told.damaged);
    charge(charge_limits, 1, 0, "", &told);
    assert_false(told.reply.granted || told.damaged); /* the damage is reported once */
    set_clock(redis, us + 3 * HOUR_US);
    charge(charge_limits, most, 0, "", &told);
    if (!told.reply.granted)
        fail_msg("%s: the key does not recover", what);
    charge(charge_limits, 1, 0, "", &told);
    assert_false(told.reply.granted);
}

static void keys_with_foreign_data_count_as_used_up_and_recover(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "x",
                                        "b",
                                        "b 1 1 0",
                                        "b 1 1 0 -1 0 0",
                                        "b 1 1 0 x 0 0",
                                        "b 1 1 0 99999999999999999999 0 0",
                                        "b 1 1 0 9999999999999999 0 0",
                                        "b 1 1 0 1 1 1 1",
                                        "b 1 1 0 1e9 0 0",
                                        "b 1 1 0 nan 0 0",
                                        "b 1 1 0 \xff 0 0"};
    struct wr_charge_limits tariffs[6];

    make_kinds(tariffs);
    for (int kind = 0; kind < 6; kind++) {
        struct wr_charge_reply told;
        uint32_t most = kind == 5 ? 1 : 10;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0] + 2; i++) {
            forget_all();
            set_clock(redis, START_US);
            charge(&tariffs[kind], 1, 0, "", &told);
            if (i < sizeof texts / sizeof texts[0])
                command("SET key %s", texts[i]);
            else
                command("DEL key");
            if (i == sizeof texts / sizeof texts[0])
                command("LPUSH key 1");
            else if (i > sizeof texts / sizeof texts[0])
                command("HSET key a b");
            assert_used_up(&tariffs[kind], START_US, most,
                           i < sizeof texts / sizeof texts[0] ? texts[i] : "something else");
        }
    }
}

/* One number of the state is replaced by another: each request gets a reply, and no wait is
 * endless. */
static void changed_numbers_of_a_state_block_no_request_for_ever(void **state)
{
    (void)state;
    static const char *const numbers[] = {"0", "1", "4503599627370495", "9007199254740991", "1700000000000001"};
    struct wr_charge_limits tariffs[6];

    make_kinds(tariffs);
    for (int kind = 0; kind < 6; kind++) {
        for (int word = 1; word < 7; word++) {
            for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
                struct wr_charge_reply told;
                char text[WR_KEY_STATE_BYTES + 32];
                forget_all();
                set_clock(redis, START_US);
                charge(&tariffs[kind], 1, 0, "", &told);
                const char *from = told.seen;
                for (int at = 0; at < word; at++)
                    from = strchr(from, ' ') + 1;
                const char *rest = from + strcspn(from, " ");
                snprintf(text, sizeof text, "%.*s%s%s", (int)(from - told.seen), told.seen, numbers[i], rest);
                command("SET key %s", text); /* without an expiry, too */
                charge(&tariffs[kind], 1, 0, "", &told);
                assert_true(told.reply.granted || told.reply.wait_ns <= 2 * WEIR_HOUR);
                set_clock(redis, START_US + 3 * HOUR_US);
                charge(&tariffs[kind], 1, 0, told.seen, &told);
                if (!told.reply.granted)
                    fail_msg("kind %d, word %d is %s: it still waits", kind, word, numbers[i]);
                redisReply *reply = redisCommand(redis, "PTTL key");
                assert_in_range(reply->integer, 1, 4 * 3600000); /* the key has an expiry again */
                freeReplyObject(reply);
            }
        }
    }
}

/* A log of the wrong type counts as full; an entry that would never expire is dropped. */
static void damaged_logs_count_as_full_and_recover(void **state)
{
    (void)state;
    struct wr_charge_limits tariffs[6];
    struct wr_charge_reply told;

    make_kinds(tariffs);
    set_clock(redis, START_US);
    charge(&tariffs[4], 1, 0, "", &told);
    command("SET key:1 x");
    assert_used_up(&tariffs[4], START_US, 10, "a log that is text");
    forget_all();
    set_clock(redis, START_US);
    charge(&tariffs[4], 1, 0, "", &told);
    command("ZADD key:1 9e300 never +inf ever -inf before");
    charge(&tariffs[4], 9, 0, "", &told);
    assert_true(told.reply.granted);
}

static void invalid_records_of_requests_in_flight_expire(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_noticed;
    } cases[] = {{"x", true},
                 {"5", true},
                 {"-1 1 1", true},
                 {"9 99999999999999999999 1", false},
                 {"99999999999999999999999999 1700000009000000 1", false}};
    struct wr_charge_limits charge_limits;
    struct wr_charge_reply told;
    weir_limit limit;
    weir_stack stack;
    struct wr_charge one = {.who = "a", .permits = 5, .message = 1, .seen = ""};

    assert_int_equal(weir_limit_concurrency(&limit, 10), 0);
    assert_int_equal(weir_stack_init(&stack, &limit, 1), 0);
    assert_int_equal(wr_charge_limits_make(&stack, &charge_limits), 0);
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; i++) {
        bool is_text = i == sizeof cases / sizeof cases[0];
        forget_all();
        set_clock(redis, START_US);
        if (is_text)
            command("SET key:1 x");
        else
            command("HSET key:1 b %s", cases[i].text);
        say(&charge_limits, &one, &told);
        assert_false(told.reply.granted);
        assert_int_equal(told.damaged, is_text || cases[i].is_noticed);
        set_clock(redis, START_US + 10000001);
        one.message++;
        say(&charge_limits, &one, &told);
        if (!told.reply.granted)
            fail_msg("%s: it still counts", is_text ? "text" : cases[i].text);
    }
}

#define scripted(function) cmocka_unit_test_setup_teardown(function, open_script, close_script)

WEIR_TESTS(scripted(token_bucket_behaves_the_same_in_the_store), scripted(stepped_bucket_behaves_the_same_in_the_store),
           scripted(fixed_window_behaves_the_same_in_the_store), scripted(sliding_window_behaves_the_same_in_the_store),
           scripted(sliding_log_behaves_the_same_in_the_store), scripted(leaky_bucket_behaves_the_same_in_the_store),
           scripted(stack_of_limits_behaves_the_same_in_the_store), scripted(store_clock_going_back_only_delays),
           scripted(returned_permits_are_those_not_refilled_meanwhile),
           scripted(seen_and_owed_permits_add_up_after_a_data_loss), scripted(repeated_bill_is_charged_once),
           scripted(requests_in_flight_expire_with_their_node_and_count_in_order),
           scripted(keys_with_foreign_data_count_as_used_up_and_recover),
           scripted(changed_numbers_of_a_state_block_no_request_for_ever),
           scripted(damaged_logs_count_as_full_and_recover), scripted(invalid_records_of_requests_in_flight_expire))
