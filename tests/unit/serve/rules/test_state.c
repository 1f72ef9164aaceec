/* SPDX-License-Identifier: MIT */
/* test_state.c - tests that the usage of keys, permits in flight and reservations survive a
 * restart. */
#include "rig.h"

#include "lib/test.h"

#include <sys/stat.h>
#include <unistd.h>
#include <weir/time.h>

static char path[64];
static int64_t wall, since_start;
static const char *start; /* id of the machine's boot; "": unknown */
static weir_clock *slow;  /* clock that a save advances; NULL: a save takes no time */

/* Returns the times that the test has set. If `slow` is set, the save takes 30 s after it has read
 * them. */
static void moment_now(struct wr_moment *ret_moment)
{
    *ret_moment = (struct wr_moment){.wall_at = wall, .start_at = since_start};
    memcpy(ret_moment->start, start, strlen(start) + 1);
    if (slow != NULL) {
        assert_int_equal(weir_clock_fake_advance(slow, 30 * WEIR_SECOND), 0);
        wall += 30 * WEIR_SECOND;
    }
}

static void make_path(void)
{
    memcpy(path, "/tmp/weir-keys-XXXXXX", 22);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    wall = 1789000000 * WEIR_SECOND;
    since_start = WEIR_HOUR;
    start = "";
}

/* Replaces the rules by a new instance, as after a restart, and loads the file. Returns the result
 * of the load. */
static int restart(struct rules_fixture *rig, const char *yaml)
{
    struct wr_rules_settings *settings = settings_of(yaml);
    struct wr_rules_options options = {
        .clock = rig->clock, .allocator = &rig->memory.allocator, .moment_now = moment_now};

    wr_rules_free(rig->book);
    /* the monotonic clock starts over */
    assert_int_equal(weir_clock_fake_set(rig->clock, 7 * WEIR_SECOND), 0);
    assert_int_equal(wr_rules_new(settings, &options, &rig->book, rig->why, sizeof rig->why), 0);
    free(settings);
    return wr_rules_load_keys(rig->book, path, rig->why, sizeof rig->why);
}

static void begin(struct rules_fixture *rig, const char *yaml)
{
    make_path();
    rig_open(rig, yaml);
    assert_int_equal(restart(rig, yaml), 0); /* there is no file, which is no error */
}

static void save(struct rules_fixture *rig)
{
    if (wr_rules_save_keys(rig->book, path, rig->why, sizeof rig->why) != 0)
        fail_msg("%s", rig->why);
}

static void end(struct rules_fixture *rig)
{
    unlink(path);
    rig_close(rig);
}

static const char all_kinds[] = "rules:\n"
                                "  - {name: bucket, match: {path: /bucket}, limit: 10/s burst=100}\n"
                                "  - {name: fixed, match: {path: /fixed}, limit: 10/h fixed_window}\n"
                                "  - {name: sliding, match: {path: /sliding}, limit: 10/h sliding_window}\n"
                                "  - {name: log, match: {path: /log}, limit: 10/h sliding_log}\n"
                                "  - {name: leaky, match: {path: /leaky}, limit: 6/h leaky_bucket}\n"
                                "  - {name: flight, match: {path: /flight}, limit: concurrent=2}\n"
                                "  - {name: plan, limit: 5/h, plans: [{name: p, limit: 7/h, keys: [1.2.3.4]}]}\n";

static void usage_of_callers_survives_a_restart(void **state)
{
    (void)state;
    static const struct {
        const char *target, *peer;
        int before, later; /* requests granted of 1000, at first and 10 minutes later */
    } rows[] = {{"/bucket", "1.1.1.1", 100, 100}, {"/fixed", "1.1.1.1", 10, 0}, {"/sliding", "1.1.1.1", 10, 0},
                {"/log", "1.1.1.1", 10, 0},       {"/leaky", "1.1.1.1", 1, 1},  {"/flight", "1.1.1.1", 2, 2},
                {"/", "1.1.1.1", 5, 0},           {"/", "1.2.3.4", 7, 1}};
    struct rules_fixture rig;
    struct wr_rules_view view;
    begin(&rig, all_kinds);
    for (size_t i = 0; i < 8; i++) {
        struct call call = {.target = rows[i].target, .peer = rows[i].peer};
        assert_int_equal(rig_count(&rig, &call, 1000), rows[i].before);
    }
    save(&rig);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(restart(&rig, all_kinds), 0);
    wr_rules_view_get(rig.book, &view);
    /* permits in flight are not restored: no request would release them */
    assert_int_equal(view.restored, 7);
    for (size_t i = 0; i < 8; i++) {
        struct call call = {.target = rows[i].target, .peer = rows[i].peer};
        assert_int_equal(rig_count(&rig, &call, 1000), i == 5 ? 2 : 0);
    }
    wr_rules_tick(rig.book);
    rig_advance(&rig, 10 * WEIR_MINUTE);
    wr_rules_tick(rig.book);
    for (size_t i = 0; i < 8; i++) {
        struct call call = {.target = rows[i].target, .peer = rows[i].peer};
        if (rig_count(&rig, &call, 1000) != rows[i].later)
            fail_msg("%s", rows[i].target);
    }
    end(&rig);
}

static void duration_of_a_save_counts_once(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    static const char yaml[] = "rules:\n  - {name: a, limit: 100/m}\n";
    begin(&rig, yaml);
    assert_int_equal(rig_count(&rig, &call, 1000), 100);
    slow = rig.clock;
    save(&rig);
    slow = NULL;
    assert_int_equal(restart(&rig, yaml), 0);
    assert_int_equal(rig_count(&rig, &call, 1000), 50);
    end(&rig);
}

static void time_between_save_and_load_counts(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    static const char yaml[] = "rules:\n  - {name: a, limit: [100/m, 150/h fixed_window]}\n";
    begin(&rig, yaml);
    assert_int_equal(rig_count(&rig, &call, 1000), 100);
    save(&rig);
    wall += 30 * WEIR_SECOND;
    assert_int_equal(restart(&rig, yaml), 0);
    assert_int_equal(rig_count(&rig, &call, 1000), 50);
    save(&rig);
    wall += WEIR_HOUR - WEIR_MINUTE;
    assert_int_equal(restart(&rig, yaml), 0);
    /* the window that began an hour ago ends in 30 s */
    assert_int_equal(rig_count(&rig, &call, 1000), 0);
    rig_advance(&rig, 30 * WEIR_SECOND);
    assert_int_equal(rig_count(&rig, &call, 1000), 100);
    end(&rig);
}

static void wall_clock_jump_neither_locks_callers_out_nor_frees_them_early(void **state)
{
    (void)state;
    static const int64_t jumps[] = {-WEIR_HOUR, -1789000000 * WEIR_SECOND, 0};
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    static const char yaml[] = "rules:\n  - {name: a, limit: 60/m}\n";
    for (size_t i = 0; i < 3; i++) {
        begin(&rig, yaml);
        assert_int_equal(rig_count(&rig, &call, 1000), 60);
        save(&rig);
        wall += jumps[i];
        assert_int_equal(restart(&rig, yaml), 0);
        /* the clock went back: no permits are added */
        assert_int_equal(rig_count(&rig, &call, 1000), 0);
        rig_advance(&rig, WEIR_SECOND);
        assert_int_equal(rig_count(&rig, &call, 1000), 1); /* the caller is not locked out */
        end(&rig);
    }
    begin(&rig, yaml);
    assert_int_equal(rig_count(&rig, &call, 1000), 60);
    save(&rig);
    wall = INT64_MAX; /* so long after the save the limit is full */
    assert_int_equal(restart(&rig, yaml), 0);
    assert_int_equal(rig_count(&rig, &call, 1000), 60);
    end(&rig);
}

static void wall_clock_is_ignored_within_one_boot_of_the_machine(void **state)
{
    (void)state;
    static const int64_t jumps[] = {WEIR_DAY, -WEIR_DAY};
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    static const char yaml[] = "rules:\n  - {name: a, limit: 60/m}\n";
    for (size_t i = 0; i < 2; i++) {
        begin(&rig, yaml);
        start = "5d1f0c1e-8f0a-4f0e-9c57-0b8a4ad3c1d2";
        assert_int_equal(rig_count(&rig, &call, 1000), 60);
        save(&rig);
        wall += jumps[i];
        since_start += 10 * WEIR_SECOND;
        assert_int_equal(restart(&rig, yaml), 0);
        assert_int_equal(rig_count(&rig, &call, 1000), 10);
        save(&rig);
        /* after a reboot only the wall clock counts */
        start = "00000000-8f0a-4f0e-9c57-0b8a4ad3c1d2";
        wall += 20 * WEIR_SECOND;
        since_start = WEIR_DAY;
        assert_int_equal(restart(&rig, yaml), 0);
        assert_int_equal(rig_count(&rig, &call, 1000), 20);
        end(&rig);
    }
}

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void values_of_a_key_file_are_clamped(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"}; /* 312e312e312e31 in hex */
    static const char yaml[] = "rules:\n  - {name: a, limit: 60/m}\n  - {name: w, limit: 5/m fixed_window}\n";
    static const char *const lines[] = {"k 312e312e312e31 4294967295\n", "k 312e312e312e31 61/1152921504606846976\n"};
    for (size_t i = 0; i < 2; i++) {
        char text[256];
        begin(&rig, yaml);
        snprintf(text, sizeof text, "weir-keys 1 1789000000000000000\nr a\n%send 1\n", lines[i]);
        write_text(text);
        assert_int_equal(restart(&rig, yaml), 0);
        assert_int_equal(rig_count(&rig, &call, 1000), i == 0 ? 0 : 60);
        rig_advance(&rig, WEIR_MINUTE);
        assert_int_equal(rig_count(&rig, &call, 1000), 60); /* after one period the limit is full */
        end(&rig);
    }
    begin(&rig, yaml);
    write_text("weir-keys 1 1789000000000000000\nr gone\nk 31 5\np gone\nk 31 5\nr a\nk 31 5 5 5\nend 3\n");
    /* keys of unknown rules, or of another shape, are ignored */
    assert_int_equal(restart(&rig, yaml), 0);
    struct wr_rules_view view;
    wr_rules_view_get(rig.book, &view);
    assert_int_equal(view.restored, 0);
    end(&rig);
}

static void incomplete_key_file_is_refused_and_restores_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "x\n",
        "weir-keys 3 5\nend 0\n",
        "weir-keys 2 5 \nend 0\n",
        "weir-keys 2 5 5d1f0c1e-8f0a-4f0e-9c57-0b8a4ad3c1d2\nend 0\n",
        "weir-keys 2 5 5d1f0c1e-8f0a-4f0e-9c57-0b8a4ad3c1d2 x\nend 0\n",
        "weir-keys 2 5 5d1f0c1e-8f0a-4f0e-9c57-0b8a4ad3c1d2a 5\nend 0\n",
        "weir-keys 2 5 5d1f0c1e+8f0a-4f0e-9c57-0b8a4ad3c1d2 5\nend 0\n",
        "weir-keys 1 -5\nend 0\n",
        "weir-keys 1 5\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nend 2\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nend 1",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nend 1\nr a\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nk zz 1\nend 2\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nt 31 1\nend 1\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nh 5\nend 2\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nh 0 5\nend 2\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nh 9007199254740992 5\nend 2\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nh 5 5\nr a\nt 31 0\nend 2\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nh 5 5\nr a\nt 31 1 1\nend 2\n",
        "weir-keys 1 5\nr a\nk 312e312e312e31 60\nh 5 5\nr a\nt 31 1\nend 1\n",
    };
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    static const char yaml[] = "rules:\n  - {name: a, limit: 60/m}\n";
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        begin(&rig, yaml);
        write_text(texts[i]);
        wall = 5;
        assert_int_equal(restart(&rig, yaml), WEIR_E_INVAL);
        assert_non_null(strstr(rig.why, "not a complete file of keys, or of another version"));
        assert_int_equal(rig_count(&rig, &call, 100), 60);
        end(&rig);
    }
}

/* ---- reservations and permits in flight ---- */

static void save_all(struct rules_fixture *rig)
{
    struct wr_rules_copy copy = {false, 0};
    if (wr_rules_copy(rig->book, &copy, true, path, rig->why, sizeof rig->why) != 0)
        fail_msg("%s", rig->why);
}

static const char flights[] = "admission: {lease: 60s}\n"
                              "rules:\n"
                              "  - name: flight\n"
                              "    limit: [concurrent=2, 100/h fixed_window]\n"
                              "    plans: [{name: p, limit: [concurrent=3, 100/h fixed_window], keys: [1.2.3.4]}]\n";

static void permits_in_flight_can_be_ended_in_the_next_instance(void **state)
{
    (void)state;
    static const struct {
        const char *peer;
        int most;
    } rows[] = {{"1.1.1.1", 2}, {"1.2.3.4", 3}};
    struct rules_fixture rig;
    for (size_t i = 0; i < 2; i++) {
        struct call call = {.peer = rows[i].peer};
        begin(&rig, flights);
        assert_true(rig_try(&rig, &call));
        uint64_t hold = rig.verdict.hold;
        assert_int_equal(rig_count(&rig, &call, 9), rows[i].most - 1);
        save_all(&rig);
        wall += 10 * WEIR_SECOND;
        assert_int_equal(restart(&rig, flights), 0);
        assert_int_equal(rig_count(&rig, &call, 9), 0);
        assert_int_equal(wr_reservation_end(rig.book, hold), 0);
        assert_int_equal(wr_reservation_end(rig.book, hold), WEIR_E_ABSENT);
        assert_int_equal(rig_count(&rig, &call, 9), 1);
        rig_advance(&rig, 49 * WEIR_SECOND);
        wr_rules_tick(rig.book);
        assert_int_equal(rig_count(&rig, &call, 9), 0);
        rig_advance(&rig, WEIR_SECOND); /* all leases have ended except the last one */
        wr_rules_tick(rig.book);
        assert_int_equal(rig_count(&rig, &call, 9), rows[i].most - 1);
        end(&rig);
    }
}

static void reservation_moves_from_instance_to_instance(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    struct wr_rules_view view;
    begin(&rig, flights);
    assert_true(rig_try(&rig, &call));
    uint64_t hold = rig.verdict.hold;
    for (int i = 0; i < 3; i++) {
        save_all(&rig);
        assert_int_equal(restart(&rig, flights), 0);
        wr_rules_view_get(rig.book, &view);
        assert_int_equal(view.holds, 1);
        /* the reservations are of rules that were replaced */
        assert_int_equal(rig_reload(&rig, flights), 0);
    }
    assert_true(rig_try(&rig, &call));
    assert_false(rig_try(&rig, &call));
    assert_int_equal(wr_reservation_end(rig.book, hold), 0);
    assert_true(rig_try(&rig, &call));
    end(&rig);
}

static void lower_limits_of_the_next_instance_count_permits_in_flight(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    uint64_t holds[3];
    static const char three[] = "rules:\n  - {name: a, limit: concurrent=3}\n";
    begin(&rig, three);
    for (size_t i = 0; i < 3; i++) {
        assert_true(rig_try(&rig, &call));
        holds[i] = rig.verdict.hold;
    }
    save_all(&rig);
    assert_int_equal(restart(&rig, "rules:\n  - {name: a, limit: concurrent=2}\n"), 0);
    assert_int_equal(wr_reservation_end(rig.book, holds[0]), 0);
    assert_false(rig_try(&rig, &call));
    assert_int_equal(wr_reservation_end(rig.book, holds[1]), 0);
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    save_all(&rig);
    assert_int_equal(restart(&rig, "rules:\n  - {name: b, limit: concurrent=1}\n"), 0);
    /* its rule is gone, but the reservation is known */
    assert_int_equal(wr_reservation_end(rig.book, holds[2]), 0);
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    end(&rig);
}

static uint64_t reserve(struct rules_fixture *rig, const struct call *call)
{
    struct call_list list;
    weir_request request = request_of(call, &list);
    wr_rules_reserve(rig->book, &request, 0, &rig->verdict);
    return rig->verdict.hold;
}

static void reservations_can_be_settled_in_the_next_instance(void **state)
{
    (void)state;
    /* Two requests reserve 10 of 100 per hour each. After `pause` a new instance takes over. One
     * request is settled at 30, the other is cancelled. Permits that were refilled meanwhile are
     * not returned a second time. */
    static const struct {
        const char *algorithm;
        int64_t pause;
        int granted; /* requests granted afterwards, at 10 each */
    } rows[] = {
        {"burst=100", 0, 7},
        /* 15 used, 20 more charged, 5 of the cancelled 10 returned */
        {"burst=100", 3 * WEIR_MINUTE, 7},
        {"burst=100", 6 * WEIR_MINUTE, 7},
        {"burst=100", 30 * WEIR_MINUTE, 8},
        {"fixed_window", 0, 7},
        {"fixed_window", 30 * WEIR_MINUTE, 7},
        {"fixed_window", 61 * WEIR_MINUTE, 8}, /* both were charged in an earlier window */
        {"sliding_window", 0, 7},
        /* the time of the charge is unknown: none are returned */
        {"sliding_window", 30 * WEIR_MINUTE, 6},
        {"sliding_log", 0, 7},
        {"sliding_log", 30 * WEIR_MINUTE, 6},
        {"leaky_bucket", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rules_fixture rig;
        struct call call = {.peer = "1.1.1.1"};
        char yaml[128];
        snprintf(yaml, sizeof yaml, "rules:\n  - {name: a, limit: '100/h %s', cost: 10}\n", rows[i].algorithm);
        begin(&rig, yaml);
        uint64_t dear = reserve(&rig, &call), cheap = reserve(&rig, &call);
        rig_advance(&rig, rows[i].pause);
        save_all(&rig);
        assert_int_equal(restart(&rig, yaml), 0);
        (void)wr_reservation_commit(rig.book, dear, 30);
        (void)wr_reservation_cancel(rig.book, cheap);
        int granted = (int)rig_count(&rig, &call, 100);
        if (granted != rows[i].granted)
            fail_msg("%s after %d s: %d", rows[i].algorithm, (int)(rows[i].pause / WEIR_SECOND), granted);
        end(&rig);
    }
}

static void loaded_reservations_without_room_charge_nothing(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct call call = {.peer = "1.1.1.1"};
    static const char yaml[] = "admission: {holds: 2}\nrules:\n  - {name: a, limit: concurrent=2}\n";
    begin(&rig, yaml);
    write_text("weir-keys 1 1789000000000000000\n"
               "h 2097154 60000000000\nr a\nt 312e312e312e31 2\n" /* slot 2; the last one is 1 */
               "h 2097153 60000000000\nr a\nt 312e312e312e31 1\n"
               "h 4194305 60000000000\nr a\nt 312e312e312e31 1\n" /* slot 1 for the second time */
               "end 3\n");
    assert_int_equal(restart(&rig, yaml), 0);
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    assert_int_equal(wr_reservation_end(rig.book, 2097153), 0);
    assert_int_equal(wr_reservation_end(rig.book, 2097154), WEIR_E_ABSENT);
    assert_int_equal(rig_count(&rig, &call, 9), 1);
    end(&rig);
}

static void failed_save_leaves_the_old_key_file(void **state)
{
    (void)state;
    struct rules_fixture rig;
    begin(&rig, "rules:\n  - {name: a, limit: 60/m}\n");
    assert_int_equal(wr_rules_save_keys(rig.book, "/nowhere/keys", rig.why, sizeof rig.why), WEIR_E_SYSTEM);
    assert_string_equal(rig.why, "/nowhere/keys: No such file or directory");
    save(&rig);
    rig.memory.fail_at = 1;
    assert_int_equal(wr_rules_save_keys(rig.book, path, rig.why, sizeof rig.why), WEIR_E_NOMEM);
    rig.memory.fail_at = 0;
    assert_int_equal(wr_rules_load_keys(rig.book, path, rig.why, sizeof rig.why), 0);
    assert_int_equal(wr_rules_load_keys(rig.book, "/tmp", rig.why, sizeof rig.why), WEIR_E_INVAL);
    end(&rig);
}

WEIR_TESTS(test(usage_of_callers_survives_a_restart), test(duration_of_a_save_counts_once),
           test(time_between_save_and_load_counts),
           test(wall_clock_jump_neither_locks_callers_out_nor_frees_them_early),
           test(wall_clock_is_ignored_within_one_boot_of_the_machine), test(values_of_a_key_file_are_clamped),
           test(incomplete_key_file_is_refused_and_restores_nothing),
           test(permits_in_flight_can_be_ended_in_the_next_instance), test(reservation_moves_from_instance_to_instance),
           test(lower_limits_of_the_next_instance_count_permits_in_flight),
           test(reservations_can_be_settled_in_the_next_instance),
           test(loaded_reservations_without_room_charge_nothing), test(failed_save_leaves_the_old_key_file))
