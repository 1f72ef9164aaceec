/* SPDX-License-Identifier: MIT */
/* test_copy.c - tests of copying the keys in parts while requests are decided, and of a new
 * instance that loads the parts. */
#include "rig.h"

#include "lib/test.h"

#include <unistd.h>
#include <weir/time.h>

#define PARTS 3

static char paths[PARTS][64];
static struct wr_rules_copy copy;
static uint32_t parts;

static void moment_now(struct wr_moment *ret_moment)
{
    *ret_moment = (struct wr_moment){.wall_at = 1789000000 * WEIR_SECOND};
}

static struct wr_rules *make_book(struct rules_fixture *rig, const struct wr_rules_settings *settings)
{
    struct wr_rules_options options = {
        .clock = rig->clock, .allocator = &rig->memory.allocator, .moment_now = moment_now};
    struct wr_rules *book;
    assert_int_equal(wr_rules_new(settings, &options, &book, rig->why, sizeof rig->why), 0);
    return book;
}

static void begin(struct rules_fixture *rig, const char *yaml)
{
    struct wr_rules_settings *settings = settings_of(yaml);
    static const char pattern[] = "/tmp/weir-copy-XXXXXX";
    for (uint32_t i = 0; i < PARTS; i++) {
        memcpy(paths[i], pattern, sizeof pattern);
        int fd = mkstemp(paths[i]);
        assert_true(fd >= 0);
        close(fd);
    }
    copy = (struct wr_rules_copy){false, 0};
    parts = 0;
    rig_open(rig, yaml);
    wr_rules_free(rig->book);
    rig->book = make_book(rig, settings);
    free(settings);
    rig_advance(rig, WEIR_MINUTE);
}

static void end(struct rules_fixture *rig)
{
    for (uint32_t i = 0; i < PARTS; i++)
        unlink(paths[i]);
    rig_close(rig);
}

/* Writes the next part of the copy, 5 s after the requests before it. Returns its number of keys
 * and reservations. */
static int write_part(struct rules_fixture *rig, bool is_last)
{
    char line[4096];
    int count = -1;
    rig_advance(rig, 5 * WEIR_SECOND);
    if (wr_rules_copy(rig->book, &copy, is_last, paths[parts], rig->why, sizeof rig->why) != 0)
        fail_msg("%s", rig->why);
    FILE *file = fopen(paths[parts++], "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        count = sscanf(line, "end %d", &count) == 1 ? count : -1;
    fclose(file);
    rig_advance(rig, 5 * WEIR_SECOND);
    return count;
}

/* Replaces the rules by a new instance that has loaded all parts. */
static void load_parts(struct rules_fixture *rig, const char *yaml)
{
    struct wr_rules_settings *settings = settings_of(yaml);
    struct wr_rules *old = rig->book;
    rig->book = make_book(rig, settings);
    assert_int_equal(wr_rules_adopt_secret(rig->book, settings, wr_rules_secret(old)), 0);
    wr_rules_free(old);
    free(settings);
    for (uint32_t i = 0; i < parts; i++)
        if (wr_rules_load_keys(rig->book, paths[i], rig->why, sizeof rig->why) != 0)
            fail_msg("%s", rig->why);
}

static uint64_t reserve(struct rules_fixture *rig, const struct call *call)
{
    struct call_list list;
    weir_request request = request_of(call, &list);
    wr_rules_reserve(rig->book, &request, WEIR_HOUR, &rig->verdict);
    return rig->verdict.hold;
}

static const char ten[] = "rules:\n  - {name: a, limit: 10/d}\n";

static const struct call idle = {.peer = "1.1.1.1"}, busy = {.peer = "1.1.1.2"}, reset = {.peer = "1.1.1.3"},
                         cancels = {.peer = "1.1.1.4"}, exceeds = {.peer = "1.1.1.5"}, late = {.peer = "1.1.1.6"};

static void parts_of_a_copy_together_have_all_keys(void **state)
{
    (void)state;
    struct rules_fixture rig;
    begin(&rig, ten);
    rig_count(&rig, &idle, 4);
    rig_count(&rig, &busy, 3);
    rig_count(&rig, &reset, 10);
    uint64_t cancelled = reserve(&rig, &cancels), dear = reserve(&rig, &exceeds);
    assert_int_equal(write_part(&rig, false), 5);
    rig_count(&rig, &busy, 2);
    assert_int_equal(wr_rules_reset_key(rig.book, "a", "1.1.1.3", 7), 0);
    assert_int_equal(wr_reservation_cancel(rig.book, cancelled), 0);
    /* only those that changed: busy, reset, cancels */
    assert_int_equal(write_part(&rig, false), 3);
    rig_count(&rig, &busy, 1);
    rig_count(&rig, &late, 2);
    assert_int_equal(wr_reservation_commit(rig.book, dear, 8), 0);
    uint64_t open = reserve(&rig, &late);
    assert_int_equal(write_part(&rig, true), 3 + 1); /* three keys and a reservation */
    load_parts(&rig, ten);
    assert_int_equal(rig_count(&rig, &idle, 20), 6);
    assert_int_equal(rig_count(&rig, &busy, 20), 4);
    assert_int_equal(rig_count(&rig, &reset, 20), 10);
    assert_int_equal(rig_count(&rig, &cancels, 20), 10);
    assert_int_equal(rig_count(&rig, &exceeds, 20), 2);
    assert_int_equal(rig_count(&rig, &late, 20), 7);
    assert_int_equal(wr_reservation_cancel(rig.book, open), 0);
    /* A cancel returns the permit less what was refilled since the reservation; a minute refills
     * the rest. */
    rig_advance(&rig, WEIR_MINUTE);
    assert_int_equal(rig_count(&rig, &late, 20), 1);
    end(&rig);
}

static void wake(void *woken)
{
    ++*(int *)woken;
}

static void request_granted_from_the_queue_between_two_parts_is_charged(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call_list list;
    struct wr_pending_request *turn;
    static struct wr_verdict verdict;
    int64_t wait_ns;
    int woken = 0;
    begin(&rig, "rules:\n  - {name: a, limit: 1/s}\n");
    assert_true(rig_try(&rig, &idle));
    weir_request request = request_of(&idle, &list);
    assert_int_equal(wr_rules_enqueue(rig.book, &request, WEIR_FOREVER, wake, &woken, &turn), 0);
    assert_false(wr_pending_request_poll(turn, &verdict, &wait_ns));
    (void)write_part(&rig, false);
    assert_true(wr_pending_request_poll(turn, &verdict, &wait_ns));
    assert_true(verdict.allowed);
    wr_pending_request_free(turn);
    /* The clock has not moved since the grant. */
    if (wr_rules_copy(rig.book, &copy, true, paths[parts++], rig.why, sizeof rig.why) != 0)
        fail_msg("%s", rig.why);
    load_parts(&rig, "rules:\n  - {name: a, limit: 1/s}\n");
    assert_false(rig_try(&rig, &idle));
    end(&rig);
}

static void instance_without_a_secret_knows_the_tokens_of_the_one_before(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *next;
        int left;
    } rows[] = {
        {"", "", 3},
        {"admission: {secret: old}\n", "", 3},
        {"", "admission: {secret: new}\n", 10}, /* the new secret changes all keys, as intended */
        {"admission: {secret: one}\n", "admission: {secret: one}\n", 3},
    };
    static const char rules[] = "rules:\n  - {name: a, key: 'token:authorization', limit: 10/d, deny_keys: [evil]}\n";
    struct call call = {.peer = "1.1.1.1", .headers = {"authorization", "sesame"}};
    struct call evil = {.peer = "1.1.1.1", .headers = {"authorization", "evil"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rules_fixture rig;
        char yaml[256];
        snprintf(yaml, sizeof yaml, "%s%s", rows[i].yaml, rules);
        begin(&rig, yaml);
        assert_int_equal(rig_count(&rig, &call, 7), 7);
        assert_false(rig_try(&rig, &evil));
        (void)write_part(&rig, true);
        snprintf(yaml, sizeof yaml, "%s%s", rows[i].next, rules);
        load_parts(&rig, yaml);
        assert_int_equal(rig_count(&rig, &call, 20), rows[i].left);
        assert_false(rig_try(&rig, &evil));
        assert_int_equal(rig.verdict.cause, WR_CAUSE_DENY_LIST);
        end(&rig);
    }
}

WEIR_TESTS(test(parts_of_a_copy_together_have_all_keys),
           test(request_granted_from_the_queue_between_two_parts_is_charged),
           test(instance_without_a_secret_knows_the_tokens_of_the_one_before))
