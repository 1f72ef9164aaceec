/* SPDX-License-Identifier: MIT */
/* test_batches.c - when changes are written: in batches, in order and in time. On a fake clock. */
#include "crawl/store/backend.h"
#include "lib/worker.h"
#include "store/rig.h"

#include <pthread.h>

/* Opens a store on a fake clock. */
static weir_clock *open_on_fake_clock(struct store_fixture *rig)
{
    weir_clock *clock;

    assert_int_equal(weir_clock_fake_new(WEIR_DAY, NULL, &clock), 0);
    rig->options.clock = clock;
    rig->options.batch_ns = 20 * WEIR_MILLISECOND;
    rig->options.check_ns = -1;
    rig_open(rig);
    return clock;
}

static void close_on_fake_clock(struct store_fixture *rig, weir_clock *clock)
{
    rig_close(rig);
    weir_clock_fake_free(clock);
}

static void advance(weir_clock *clock, int64_t by_ns)
{
    assert_int_equal(weir_clock_fake_advance(clock, by_ns), 0);
}

static struct wr_store_stats stats_of(struct store_fixture *rig)
{
    struct wr_store_stats stats;

    wr_store_stats_get(rig->store, &stats);
    return stats;
}

static struct wr_store_change numbered(struct store_fixture *rig, int64_t job, int number)
{
    static _Thread_local char url[64];

    snprintf(url, sizeof url, "https://h/%06d", number);
    return rig_found(rig, job, "h", url, NULL);
}

static struct wr_store_host host_with_delay(const char *key, int64_t delay_ns)
{
    return (struct wr_store_host){.key = wr_span_of(key), .memory = {.delay_ns = delay_ns}};
}

static int64_t stored_delay(struct store_fixture *rig, const char *key)
{
    size_t count;
    struct wr_store_query query = {.what = WR_STORE_ONE_HOST, .key = wr_span_of(key)};
    struct rig_row *rows = rig_read(rig, query, &count);
    int64_t delay_ns = count == 1 ? rows[0].row.host.memory.delay_ns : -1;

    free(rows);
    return delay_ns;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void posts_wait_for_others_and_share_a_transaction(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        uint64_t before = stats_of(rig).commits;
        for (int i = 0; i < 10; i++)
            assert_int_equal(rig_post_later(rig, numbered(rig, job, i)), 0);
        advance(clock, 20 * WEIR_MILLISECOND - 1);
        test_await_waiters(clock, 1);
        assert_int_equal(atomic_load(&rig->done), 0);
        advance(clock, 1);
        test_await_number(&rig->done, 10);
        assert_int_equal(stats_of(rig).commits - before, 1);
        close_on_fake_clock(rig, clock);
    }
}

static void full_batch_is_written_without_waiting(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig->options.batch_changes = 8;
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        for (int i = 0; i < 8; i++)
            assert_int_equal(rig_post_later(rig, numbered(rig, job, i)), 0);
        test_await_number(&rig->done, 8);
        close_on_fake_clock(rig, clock);
    }
}

static void blocking_post_writes_the_waiting_ones_at_once(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        assert_int_equal(rig_post_later(rig, numbered(rig, job, 1)), 0);
        rig_post(rig, numbered(rig, job, 2)); /* returns although the clock stands still */
        assert_int_equal(atomic_load(&rig->done), 1);
        close_on_fake_clock(rig, clock);
    }
}

struct poster {
    struct store_fixture *rig;
    int64_t job;
    int from;
    pthread_t thread;
};

static void *post_many(void *context)
{
    struct poster *poster = context;

    for (int i = poster->from; i < poster->from + 500; i++)
        while (rig_post_later(poster->rig, numbered(poster->rig, poster->job, i)) == WEIR_E_FULL)
            assert_int_equal(wr_store_post(poster->rig->store, NULL, 0, NULL, NULL), 0);
    return NULL;
}

static void posts_of_each_thread_are_stored_in_order(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        struct poster posters[4];
        size_t count;
        int last[4] = {-1, -1, -1, -1};
        rig->options.queue_changes = 64;
        rig->options.batch_changes = 16;
        rig_open(rig);
        int64_t job = rig_job(rig, "");
        for (int i = 0; i < 4; i++) {
            posters[i] = (struct poster){.rig = rig, .job = job, .from = i * 1000};
            assert_int_equal(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]), 0);
        }
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
        rig_reopen(rig);
        assert_int_equal(atomic_load(&rig->done), 2000);
        struct wr_store_query query = {
            .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION};
        struct rig_row *rows = rig_read(rig, query, &count);
        assert_int_equal(count, 2000);
        for (size_t i = 0; i < count; i++) {
            int number = (int)strtol(rows[i].row.task.url.data + strlen("https://h/"), NULL, 10);
            assert_true(number > last[number / 1000]);
            last[number / 1000] = number;
        }
        free(rows);
        rig_check(rig);
    }
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* U4, S2-10: a host that changes often is written once per interval, with its last values. */
static void only_the_last_values_of_a_host_are_written(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_clock *clock = open_on_fake_clock(rig);
        uint64_t before = stats_of(rig).changes;
        for (int i = 1; i <= 1000; i++) {
            struct wr_store_host host = host_with_delay("h", i * WEIR_MILLISECOND);
            assert_int_equal(wr_store_note_host(rig->store, &host), 0);
        }
        assert_int_equal(stats_of(rig).queue_changes, 1);
        assert_int_equal(stored_delay(rig, "h"), -1);
        advance(clock, WEIR_SECOND);
        test_await_waiters(clock, 1);
        assert_int_equal(stored_delay(rig, "h"), 1000 * WEIR_MILLISECOND);
        assert_int_equal(stats_of(rig).changes - before, 1);
        close_on_fake_clock(rig, clock);
    }
}

/* U7: an earlier debounce lost the final write. */
static void last_values_of_a_host_are_written_when_the_store_closes(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig->options.hosts_ns = WEIR_HOUR;
        rig_open(rig);
        for (int i = 1; i <= 100; i++) {
            struct wr_store_host host = host_with_delay("h", i * WEIR_MILLISECOND);
            assert_int_equal(wr_store_note_host(rig->store, &host), 0);
        }
        rig_reopen(rig);
        assert_int_equal(stored_delay(rig, "h"), 100 * WEIR_MILLISECOND);
    }
}

static void *note_many(void *context)
{
    struct poster *poster = context;
    char key[16];

    for (int i = 1; i <= 2000; i++) {
        snprintf(key, sizeof key, "h%d", poster->from + i % 3);
        struct wr_store_host host = host_with_delay(key, i * WEIR_MILLISECOND);
        while (wr_store_note_host(poster->rig->store, &host) == WEIR_E_FULL)
            assert_int_equal(wr_store_post(poster->rig->store, NULL, 0, NULL, NULL), 0);
    }
    return NULL;
}

static void last_values_of_a_host_are_not_lost_while_others_are_written(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        struct poster posters[3];
        char key[16];
        rig->options.hosts_ns = 1; /* changed hosts are always due */
        rig_open(rig);
        for (int i = 0; i < 3; i++) {
            posters[i] = (struct poster){.rig = rig, .from = i * 10};
            assert_int_equal(pthread_create(&posters[i].thread, NULL, note_many, &posters[i]), 0);
        }
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
        rig_reopen(rig);
        for (int i = 0; i < 9; i++) {
            snprintf(key, sizeof key, "h%d", i / 3 * 10 + i % 3);
            int last = i % 3 == 0 ? 1998 : i % 3 == 1 ? 1999 : 2000;
            assert_int_equal(stored_delay(rig, key), last * WEIR_MILLISECOND);
        }
    }
}

/* V2, R23: a Retry-After time is not held back like other host values. */
static void retry_after_time_is_written_at_once(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_clock *clock = open_on_fake_clock(rig);
        struct wr_store_host host = host_with_delay("h", WEIR_SECOND);
        assert_int_equal(wr_store_note_host(rig->store, &host), 0);
        test_await_waiters(clock, 1);
        uint64_t before = stats_of(rig).commits;
        host.memory.retry_wall_at = weir_wall_now() + WEIR_HOUR;
        assert_int_equal(wr_store_note_host(rig->store, &host), 0);
        for (int tries = 0; stored_delay(rig, "h") < 0 && tries < 1000; tries++)
            ; /* the thread that writes answers each read */
        assert_int_equal(stats_of(rig).commits - before, 1);
        assert_int_equal(stored_delay(rig, "h"), WEIR_SECOND);
        close_on_fake_clock(rig, clock);
    }
}

static void many_changed_hosts_are_written_before_their_time(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        static const char *const keys[] = {"a", "b", "c", "d"};
        rig->options.batch_changes = 4;
        weir_clock *clock = open_on_fake_clock(rig);
        uint64_t before = stats_of(rig).changes;
        for (size_t i = 0; i < 4; i++) {
            struct wr_store_host host = host_with_delay(keys[i], WEIR_SECOND);
            assert_int_equal(wr_store_note_host(rig->store, &host), 0);
        }
        test_await_waiters(clock, 1);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(stored_delay(rig, keys[i]), WEIR_SECOND);
        assert_int_equal(stats_of(rig).changes - before, 4);
        close_on_fake_clock(rig, clock);
    }
}

/* ---- full queues ----------------------------------------------------------------------------- */

/* I3: a full queue is an error, and the callback reports room. */
static void full_store_queue_and_later_room_are_reported(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig->options.queue_changes = 4;
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        struct wr_store_host host = host_with_delay("other", WEIR_SECOND);
        for (int i = 0; i < 4; i++)
            assert_int_equal(rig_post_later(rig, numbered(rig, job, i)), 0);
        assert_int_equal(rig_post_later(rig, numbered(rig, job, 4)), WEIR_E_FULL);
        assert_int_equal(wr_store_note_host(rig->store, &host), WEIR_E_FULL);
        assert_int_equal(atomic_load(&rig->rooms), 0);
        advance(clock, 20 * WEIR_MILLISECOND);
        test_await_number(&rig->rooms, 1);
        assert_int_equal(atomic_load(&rig->done), 4);
        assert_int_equal(rig_post_later(rig, numbered(rig, job, 4)), 0);
        rig_post_all(rig, NULL, 0);
        assert_int_equal(atomic_load(&rig->done), 5);
        assert_int_equal(atomic_load(&rig->rooms), 1);
        assert_int_equal(rig_look_job(rig, job).queued, 5);
        close_on_fake_clock(rig, clock);
    }
}

static void large_texts_fill_the_queue_and_one_may_be_larger_than_it(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        char *text = calloc(1, WR_STORE_ROBOTS_MAX);
        assert_non_null(text);
        struct wr_store_change change = {
            .kind = WR_STORE_ROBOTS,
            .robots = {.url = wr_span_of("https://h/robots.txt"), .text = {text, WR_STORE_ROBOTS_MAX}}};
        rig->options.queue_bytes = WR_STORE_ROBOTS_MAX / 2;
        weir_clock *clock = open_on_fake_clock(rig);
        assert_int_equal(rig_post_later(rig, change), 0);
        assert_int_equal(rig_post_later(rig, change), WEIR_E_FULL);
        advance(clock, 20 * WEIR_MILLISECOND);
        test_await_number(&rig->rooms, 1);
        assert_int_equal(atomic_load(&rig->done), 1);
        close_on_fake_clock(rig, clock);
        free(text);
    }
}

/* ---- outputs --------------------------------------------------------------------------------- */

static void output_is_synced_before_its_length_is_stored(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig->options.retry_ns = WEIR_MINUTE;
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        size_t count;
        rig_post(rig, numbered(rig, job, 1));
        assert_int_equal(atomic_load(&rig->syncs), 0); /* no output had changed */
        atomic_store(&rig->sync_error, WEIR_E_FULL);
        const struct wr_store_change changes[] = {rig_ended(rig, job, "https://h/000001", false, "fetched"),
                                                  numbered(rig, job, 2), rig_output(job, "crawl.jsonl", 55)};
        assert_int_equal(wr_store_post(rig->store, changes, 3, rig_count, rig), 0);
        advance(clock, 20 * WEIR_MILLISECOND);
        test_await_number(&rig->paused, 1);
        assert_int_equal(atomic_load(&rig->syncs), 1);
        assert_int_equal(atomic_load(&rig->done), 0);
        /* reads are answered without the unwritten changes */
        assert_int_equal(rig_look_job(rig, job).done, 0);
        struct wr_store_query query = {.what = WR_STORE_OUTPUTS, .job = job};
        free(rig_read(rig, query, &count));
        assert_int_equal(count, 0);
        atomic_store(&rig->sync_error, 0);
        test_await_waiters(clock, 1);
        advance(clock, WEIR_MINUTE);
        test_await_number(&rig->done, 1);
        assert_int_equal(rig_look_job(rig, job).done, 1);
        assert_int_equal(stats_of(rig).state, WR_STORE_RUNNING);
        close_on_fake_clock(rig, clock);
    }
}

/* F6: after a failure each post is stored completely or not at all. */
static void failure_of_a_store_is_final_and_no_post_is_half_stored(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        rig_post(rig, numbered(rig, job, 1));
        atomic_store(&rig->sync_error, WEIR_E_SYSTEM);
        const struct wr_store_change changes[] = {rig_ended(rig, job, "https://h/000001", false, "fetched"),
                                                  numbered(rig, job, 2), rig_output(job, "crawl.jsonl", 55)};
        assert_int_equal(wr_store_post(rig->store, changes, 3, rig_count, rig), 0);
        assert_int_equal(rig_post_later(rig, numbered(rig, job, 3)), 0);
        advance(clock, 20 * WEIR_MILLISECOND);
        test_await_number(&rig->failed, 2);
        assert_true(strlen(rig->why) > 0);
        atomic_store(&rig->sync_error, 0);
        struct wr_store_host host = host_with_delay("h", WEIR_SECOND);
        assert_int_equal(stats_of(rig).state, WR_STORE_FAILED);
        assert_int_equal(rig_post_later(rig, numbered(rig, job, 4)), WEIR_E_SYSTEM);
        assert_int_equal(wr_store_post(rig->store, changes, 3, NULL, NULL), WEIR_E_SYSTEM);
        assert_int_equal(wr_store_note_host(rig->store, &host), WEIR_E_SYSTEM);
        assert_int_equal(atomic_load(&rig->done), 0);
        rig_reopen(rig);
        assert_int_equal(rig_look_job(rig, job).queued, 1);
        assert_int_equal(rig_look_job(rig, job).done, 0);
        rig_check(rig);
        close_on_fake_clock(rig, clock);
    }
}

static void freeing_a_paused_store_reports_its_unwritten_posts(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        atomic_store(&rig->sync_error, WEIR_E_FULL);
        assert_int_equal(rig_post_later(rig, rig_output(job, "crawl.jsonl", 55)), 0);
        advance(clock, 20 * WEIR_MILLISECOND);
        test_await_number(&rig->paused, 1);
        assert_int_equal(rig_post_later(rig, numbered(rig, job, 1)), 0);
        rig_close(rig);
        assert_int_equal(atomic_load(&rig->failed), 2);
        assert_int_equal(atomic_load(&rig->done), 0);
        weir_clock_fake_free(clock);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A crawl that loads no more tasks goes to sleep, so a load must see everything posted before. */
static void load_sees_earlier_posts_before_they_are_due(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        uint64_t before = stats_of(rig).commits;
        for (int i = 1; i <= 3; i++) {
            assert_int_equal(rig_post_later(rig, numbered(rig, job, i)), 0);
            struct wr_store_query query = {
                .what = WR_STORE_TASKS, .job = job, .key = wr_span_of("h"), .after = WR_STORE_FIRST_POSITION};
            size_t count;
            free(rig_read(rig, query, &count));
            assert_int_equal(count, i);
            query.what = WR_STORE_HOSTS;
            query.after.id = 0;
            free(rig_read(rig, query, &count));
            assert_int_equal(count, 1);
        }
        bool needs_commit = rig->backend->kind->needs_commit;
        /* the clock stands still: only a backend that needs it has committed */
        assert_int_equal(atomic_load(&rig->done), needs_commit ? 3 : 0);
        assert_int_equal(stats_of(rig).commits, before + (needs_commit ? 3 : 0));
        advance(clock, 50 * WEIR_MILLISECOND);
        test_await_number(&rig->done, 3);
        assert_int_equal(stats_of(rig).commits, before + (needs_commit ? 3 : 1));
        rig_check(rig);
        close_on_fake_clock(rig, clock);
    }
}

static void count_row(void *context, const struct wr_store_row *row)
{
    (void)row;
    atomic_fetch_add((atomic_int *)context, 1);
}

static atomic_int load_answers;

static void count_answer(void *context, int error, const char *why)
{
    (void)context;
    (void)why;
    assert_int_equal(error, 0);
    atomic_fetch_add(&load_answers, 1);
}

static void load_waits_while_the_store_is_paused_and_then_sees_all(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        atomic_int rows = 0;
        weir_clock *clock = open_on_fake_clock(rig);
        int64_t job = rig_job(rig, "");
        atomic_store(&load_answers, 0);
        atomic_store(&rig->sync_error, WEIR_E_FULL);
        const struct wr_store_change changes[] = {numbered(rig, job, 1), rig_output(job, "crawl.jsonl", 55)};
        assert_int_equal(wr_store_post(rig->store, changes, 2, rig_count, rig), 0);
        advance(clock, 50 * WEIR_MILLISECOND);
        test_await_number(&rig->paused, 1);
        struct wr_store_query query = {.what = WR_STORE_TASKS,
                                       .job = job,
                                       .key = wr_span_of("h"),
                                       .after = WR_STORE_FIRST_POSITION,
                                       .row = count_row,
                                       .done = count_answer,
                                       .context = &rows};
        for (int i = 0; i < 3; i++)
            assert_int_equal(wr_store_read(rig->store, &query), 0);
        /* a read of a job is answered while the store is paused */
        assert_int_equal(rig_look_job(rig, job).queued, 0);
        assert_int_equal(atomic_load(&load_answers), 0);
        atomic_store(&rig->sync_error, 0);
        test_await_waiters(clock, 1);
        advance(clock, WEIR_SECOND);
        test_await_number(&load_answers, 3);
        assert_int_equal(atomic_load(&rows), 3);
        assert_int_equal(atomic_load(&rig->done), 1);
        close_on_fake_clock(rig, clock);
    }
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static void wait_and_post(void *context, int error, const char *why)
{
    struct store_fixture *rig = context;
    int64_t job;
    struct wr_store_query query = {.what = WR_STORE_JOBS};

    (void)error;
    (void)why;
    assert_int_equal(wr_store_add_job(rig->store, wr_span_of(""), 0, &job), WEIR_E_INVAL);
    assert_int_equal(wr_store_post(rig->store, NULL, 0, NULL, NULL), WEIR_E_INVAL);
    assert_int_equal(wr_store_read(rig->store, &query), WEIR_E_INVAL);
    /* a callback may post without waiting */
    assert_int_equal(wr_store_post(rig->store, NULL, 0, rig_count, rig), 0);
}

static void store_callback_may_post_but_not_block(void **state)
{
    (void)state;
    EACH_BACKEND(rig)
    {
        rig_open(rig);
        assert_int_equal(wr_store_post(rig->store, NULL, 0, wait_and_post, rig), 0);
        test_await_number(&rig->done, 1);
    }
}

WEIR_TESTS(test(posts_wait_for_others_and_share_a_transaction), test(full_batch_is_written_without_waiting),
           test(blocking_post_writes_the_waiting_ones_at_once), test(posts_of_each_thread_are_stored_in_order),
           test(only_the_last_values_of_a_host_are_written),
           test(last_values_of_a_host_are_written_when_the_store_closes),
           test(last_values_of_a_host_are_not_lost_while_others_are_written), test(retry_after_time_is_written_at_once),
           test(many_changed_hosts_are_written_before_their_time), test(full_store_queue_and_later_room_are_reported),
           test(large_texts_fill_the_queue_and_one_may_be_larger_than_it),
           test(output_is_synced_before_its_length_is_stored),
           test(failure_of_a_store_is_final_and_no_post_is_half_stored),
           test(freeing_a_paused_store_reports_its_unwritten_posts), test(load_sees_earlier_posts_before_they_are_due),
           test(load_waits_while_the_store_is_paused_and_then_sees_all), test(store_callback_may_post_but_not_block))
