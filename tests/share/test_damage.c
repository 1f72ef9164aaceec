/* SPDX-License-Identifier: MIT */
/* test_damage.c - foreign data in the keys of the store: memberships, turns, and how nodes handle
 * it. */
#include "lib/test.h"
#include "share/nodes.h"

#include <hiredis/hiredis.h>
#include <unistd.h>

#define START_US INT64_C(1700000000000000)
#define LEASE_US INT64_C(2000000)

static redisContext *redis;

static int open_damaged(void **state)
{
    (void)open_store(state);
    redis = redisConnectUnix(store.path);
    assert_true(redis != NULL && redis->err == 0);
    return 0;
}

static int close_damaged(void **state)
{
    redisFree(redis);
    return close_store(state);
}
#define damaged(function) cmocka_unit_test_setup_teardown(function, open_damaged, close_damaged)

static long long say(int count, const char *const words[])
{
    redisReply *reply = redisCommandArgv(redis, count, (const char **)(uintptr_t)words, NULL);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", words[0], reply->str);
    long long number = reply->integer;
    freeReplyObject(reply);
    return number;
}
#define SAY(...) say((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)), (const char *[]){__VA_ARGS__})

/* ---- memberships ----------------------------------------------------------------------------- */

static void damaged_membership_data_blocks_no_node(void **state)
{
    (void)state;
    static const char *const since[] = {"x", "-5", "1e999", "99999999999999999999", ""};
    struct bench bench;

    bench_open(&bench, &store, PATIENT);
    SAY("SET", "seats", "x");
    assert_int_equal(bench_seat(&bench, "a", "1", "1000"), 0);
    assert_int_equal(bench.number, 1);
    SAY("DEL", "seats");
    SAY("ZADD", "seats", "9e300", "nobody");
    assert_int_equal(bench_seat(&bench, "a", "1", "1000"), 0);
    assert_int_equal(bench.number, 1);
    SAY("DEL", "seats:since");
    SAY("LPUSH", "seats:since", "x");
    assert_int_equal(bench_seat(&bench, "a", "1", "1000"), 0);
    assert_int_equal(bench.number, 1);
    for (size_t i = 0; i < sizeof since / sizeof since[0]; i++) {
        SAY("SET", "seats:since", since[i]);
        assert_int_equal(bench_seat(&bench, "a", "1", "1000"), 0);
        assert_int_equal(bench.number, 1);
    }
    bench_close(&bench);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static const char KEY[] = "weir:{rule\nk}";

/* A damaged key is no outage: other keys are decided as before, and the damaged one recovers by its
 * limit. */
static void damaged_key_refuses_only_its_own_requests_and_is_counted(void **state)
{
    (void)state;
    struct node one, two;
    struct wr_shared_limit_view view;
    struct wr_redis_client_view redis_client;

    node_join(&one, 2, hourly(10), 0, WR_FALLBACK_OPEN);
    node_join(&two, 2, hourly(10), 0, WR_FALLBACK_OPEN);
    assert_int_equal(ask_often(one.budget, 4), 4);
    SAY("DEL", KEY);
    SAY("RPUSH", KEY, "1");
    /* the second node does not know of the four permits and admits none */
    assert_int_equal(ask_often(two.budget, 10), 0);
    assert_int_equal(ask_often(one.budget, 10), 0);
    assert_int_equal(ask(two.budget, "other", 10).decision.verdict, WEIR_GO);
    wr_shared_limit_view_get(two.budget, &view);
    assert_int_equal(view.damaged, 1);
    wr_redis_client_view_get(two.redis_client, &redis_client);
    assert_false(redis_client.wire.down);
    /* an operator who cannot wait may reset the key */
    assert_int_equal(wr_shared_limit_reset(one.budget, "k", 1), 0);
    while (ask(two.budget, "k", 1).decision.verdict != WEIR_GO)
        usleep(1000);
    node_leave(&one);
    node_leave(&two);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static char *script;

/* Calls the script for `who`. Returns true if `who` has the turn; ret_token is its token,
 * ret_letters the number of messages to it. */
static bool call_baton(const char *who, const char *verb, const char *token, const char *read, const char *letter,
                       int64_t *ret_token, size_t *ret_letters)
{
    const char *waits = strcmp(verb, "want") == 0 ? "1" : "0", *gate = strcmp(verb, "hold") == 0 ? "gate" : "";
    const char *words[] = {"EVAL", script, "1",    "weir:{pace h}", who, verb, token, token, waits,
                           "0",    "2000", "1500", "4000",          "0", read, gate,  letter};
    redisReply *reply = redisCommandArgv(redis, sizeof words / sizeof words[0], words, NULL);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    for (size_t i = 0; i < 8; i++)
        assert_true(reply->element[i]->type == REDIS_REPLY_INTEGER && reply->element[i]->integer >= 0);
    bool is_ours = reply->element[0]->integer == 1;
    *ret_token = reply->element[1]->integer;
    *ret_letters = (reply->elements - 9) / 3;
    freeReplyObject(reply);
    return is_ours;
}

static bool wants(const char *who)
{
    int64_t token;
    size_t letters;
    return call_baton(who, "want", "0", "0", "", &token, &letters);
}

static bool holds(const char *who, int64_t token, const char *read, size_t *ret_letters)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)token);
    return call_baton(who, "hold", digits, read, "", &token, ret_letters);
}

/* Gives the turn to a, in a store that is old enough to give turns. */
static int64_t give_turn_to_a(void)
{
    int64_t token;
    size_t letters;
    SAY("FLUSHALL");
    set_clock(redis, START_US - LEASE_US);
    assert_false(wants("a")); /* a store that has just started gives no turn */
    SAY("DEL", "weir:{pace h}");
    set_clock(redis, START_US);
    assert_true(call_baton("a", "want", "0", "0", "", &token, &letters));
    assert_true(holds("a", token, "0", &letters));
    return token;
}

static void turn_never_has_two_holders_whatever_data_is_in_its_key(void **state)
{
    (void)state;
    static const char *const fields[] = {"token", "until", "holder", "pass", "saved", "first", "last",
                                         "l:b",   "l:z",   "f:z",    "m:1",  "gate",  NULL};
    static const char *const values[] = {"",
                                         "x",
                                         "-1",
                                         "1e999",
                                         "99999999999999999999",
                                         "9007199254740993",
                                         "4503599627370495",
                                         "1 99999999999999999999",
                                         "0 0",
                                         "x y",
                                         NULL};
    size_t letters;

    script = script_on_set_clock(WR_SCRIPT_GATE_LEASE);
    for (size_t i = 0; fields[i] != NULL; i++) {
        for (size_t j = 0; values[j] != NULL; j++) {
            int64_t token = give_turn_to_a();
            SAY("HSET", "weir:{pace h}", fields[i], values[j]);
            if (wants("b") || wants("c"))
                fail_msg("%s is \"%s\": a has the turn, and another process, too", fields[i], values[j]);
            set_clock(redis, START_US + LEASE_US / 2);
            bool is_held = holds("a", token, "0", &letters);
            if (is_held && wants("b"))
                fail_msg("%s is \"%s\": two processes have the turn", fields[i], values[j]);
            bool is_had = false; /* a has crashed */
            for (int64_t us = LEASE_US / 2; us <= 5 * LEASE_US && !is_had; us += LEASE_US / 4) {
                set_clock(redis, START_US + us);
                is_had = wants("b");
            }
            if (!is_had)
                fail_msg("%s is \"%s\": no process gets a turn any more", fields[i], values[j]);
        }
    }
    give_turn_to_a();
    SAY("SET", "weir:{pace h}", "x");
    assert_false(wants("b"));
    set_clock(redis, START_US + LEASE_US);
    assert_true(wants("b"));
    free(script);
}

/* Stored times count as just now, so that no process waits until the old time is reached again. */
static void store_clock_that_went_back_blocks_no_process(void **state)
{
    (void)state;
    script = script_on_set_clock(WR_SCRIPT_GATE_LEASE);
    give_turn_to_a();
    set_clock(redis, START_US - 1000 * LEASE_US);
    assert_false(wants("b"));
    set_clock(redis, START_US - 999 * LEASE_US);
    assert_true(wants("b"));
    free(script);
}

/* The holder continues in an emptied store and reads messages written there, although it had read
 * higher numbers. */
static void holder_that_continues_in_an_emptied_store_reads_its_messages(void **state)
{
    (void)state;
    int64_t token, ignored;
    size_t letters;

    script = script_on_set_clock(WR_SCRIPT_GATE_LEASE);
    token = give_turn_to_a();
    SAY("FLUSHALL");
    set_clock(redis, START_US + 1);
    (void)call_baton("b", "write", "0", "0", "one", &ignored, &letters);
    /* b seems to have written before the store noticed that it was new */
    SAY("HDEL", "weir:{pace h}", "token", "holder", "until");
    assert_true(holds("a", token, "37", &letters));
    assert_int_equal(letters, 1);
    (void)call_baton("b", "write", "0", "0", "two", &ignored, &letters);
    assert_true(holds("a", token, "38", &letters));
    assert_int_equal(letters, 1);
    free(script);
}

/* The replica that took over has missed the last changes of the store that gave the turn. */
static void holder_of_the_turn_continues_in_a_replica_that_took_over(void **state)
{
    (void)state;
    int64_t token;
    size_t letters;

    script = script_on_set_clock(WR_SCRIPT_GATE_LEASE);
    for (int is_asked_first = 0; is_asked_first < 2; is_asked_first++) {
        token = give_turn_to_a();
        SAY("SET", "weir:born", "1 0123456789abcdef");
        SAY("HSET", "weir:{pace h}", "token", "0", "until", "1", "gate", "old");
        if (is_asked_first)
            assert_false(wants("b")); /* the replica does not know that a has the turn */
        assert_true(holds("a", token, "0", &letters));
        redisReply *reply = redisCommand(redis, "HGET %s gate", "weir:{pace h}");
        assert_string_equal(reply->str, "gate");
        freeReplyObject(reply);
        set_clock(redis, START_US + LEASE_US - 1);
        assert_false(wants("b"));
        set_clock(redis, START_US + LEASE_US);
        assert_true(wants("b"));
        assert_false(holds("a", token, "0", &letters));
    }
    free(script);
}

/* A program that is no store may send any times in a reply. */
static void times_in_a_store_reply_are_clamped(void **state)
{
    (void)state;
    enum {
        ITEMS = 9
    };
    redisReply items[ITEMS], *list[ITEMS], reply = {.type = REDIS_REPLY_ARRAY, .elements = ITEMS, .element = list};
    struct wr_charge_reply told;
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = (redisReply){.type = REDIS_REPLY_INTEGER, .integer = 1};
        list[i] = &items[i];
    }
    items[7] = (redisReply){.type = REDIS_REPLY_STRING, .str = (char[]){"b 1 1 1 1 1 1"}, .len = 13};
    items[2].integer = items[3].integer = items[5].integer = items[6].integer = INT64_MAX;
    assert_int_equal(wr_charge_read(&reply, &told), 0);
    assert_true(told.reply.wait_ns == WEIR_UNTIL_RELEASE && told.reply.full_wait_ns == WEIR_UNTIL_RELEASE);
    /* the time is added to the present time */
    assert_true(told.quota.reset_ns == WEIR_DURATION_MAX);
}

WEIR_TESTS(test(times_in_a_store_reply_are_clamped), damaged(damaged_membership_data_blocks_no_node),
           damaged(damaged_key_refuses_only_its_own_requests_and_is_counted),
           damaged(turn_never_has_two_holders_whatever_data_is_in_its_key),
           damaged(store_clock_that_went_back_blocks_no_process),
           damaged(holder_that_continues_in_an_emptied_store_reads_its_messages),
           damaged(holder_of_the_turn_continues_in_a_replica_that_took_over))
