/* SPDX-License-Identifier: MIT */
/* test_faults.c - SQLite on disks that fill up, fail to sync or lose power, and without memory. */
#include "crawl/store/backend.h"
#include "lib/alloc.h"
#include "lib/rig.h"
#include "lib/worker.h"
#include "store/rig.h"
#include "store/shim.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_up(struct store_fixture *rig)
{
    rig_set_up(rig, rig_backends);
    rig->options.retry_ns = WEIR_MILLISECOND;
    rig->options.batch_changes = 8; /* the posts of a test take several transactions */
}

static int try_page(struct store_fixture *rig, int64_t job, int number)
{
    char url[64], next[64];

    snprintf(url, sizeof url, "https://h/%06d", number);
    snprintf(next, sizeof next, "https://h/%06d", number + 1);
    const struct wr_store_change changes[] = {
        rig_ended(rig, job, url, false, "fetched"),
        rig_found(rig, job, "h", next, url),
        rig_output(job, "crawl.jsonl", (uint64_t)number * 10),
    };
    return wr_store_post(rig->store, changes, 3, rig_count, rig);
}

/* Posts a page and waits for room. A post that a failed store refuses counts as failed. */
static void post_page(struct store_fixture *rig, int64_t job, int number)
{
    int error;
    while ((error = try_page(rig, job, number)) == WEIR_E_FULL)
        (void)usleep(1000);
    if (error != 0)
        (void)atomic_fetch_add(&rig->failed, 1);
}

static int64_t begin(struct store_fixture *rig)
{
    rig_open(rig);
    int64_t job = rig_job(rig, "");
    rig_post(rig, rig_found(rig, job, "h", "https://h/000000", NULL));
    return job;
}

/* Checks that the number of stored pages is in this range and no page is stored in part. */
static void check_pages(struct store_fixture *rig, int64_t job, uint64_t least, uint64_t most)
{
    struct wr_store_job seen = rig_look_job(rig, job);
    size_t count;

    rig_check(rig);
    assert_in_range(seen.done, least, most);
    assert_int_equal(seen.queued, 1);
    struct wr_store_query query = {.what = WR_STORE_OUTPUTS, .job = job};
    struct rig_row *rows = rig_read(rig, query, &count);
    assert_int_equal(count > 0 ? rows[0].row.output.bytes : 0, seen.done > 0 ? (seen.done - 1) * 10 : 0);
    free(rows);
}

static void ignore_row(void *context, const struct wr_store_row *row)
{
    (void)context;
    (void)row;
}

/* ---- a full disk ----------------------------------------------------------------------------- */

enum {
    PAGES = 20
};

/* Fills the disk at the n-th write. Returns true if the disk was full at some time of the run. */
static bool full_at(long n)
{
    struct store_fixture rig;
    set_up(&rig);
    int64_t job = begin(&rig);
    atomic_store(&shim.fail_write_at, n);
    for (int i = 0; i < PAGES; i++)
        post_page(&rig, job, i);
    while (atomic_load(&rig.done) < PAGES && atomic_load(&rig.paused) == 0)
        (void)usleep(100);
    bool is_paused = atomic_load(&rig.done) < PAGES;
    if (is_paused) {
        assert_true(atomic_load(&shim.is_full));
        atomic_store(&shim.is_full, false);
        test_await_number(&rig.done, PAGES);
    } else {
        rig_close(&rig); /* if the disk is full while the store closes, the log stays */
    }
    bool was_full = is_paused || atomic_load(&shim.is_full);
    atomic_store(&shim.is_full, false);
    atomic_store(&shim.fail_write_at, 0);
    assert_int_equal(atomic_load(&rig.failed), 0);
    rig_reopen(&rig);
    check_pages(&rig, job, PAGES, PAGES);
    rig_tear_down(&rig);
    return was_full;
}

/* F5: no change is lost, whichever write finds the disk full. */
static void full_disk_at_any_write_pauses_the_store_and_loses_nothing(void **state)
{
    (void)state;
    long n = 1;
    shim_install();
    while (full_at(n))
        n++;
    print_message("full at each of %ld writes\n", n - 1);
    assert_true(n > 20);
}

/* A large log is copied into the file; without room for that the log grows. */
static void sqlite_log_grows_while_the_file_cannot(void **state)
{
    (void)state;
    struct store_fixture rig;
    char url[64], *text = calloc(1, WR_STORE_ROBOTS_MAX);
    struct stat file;
    assert_non_null(text);
    shim_install();
    set_up(&rig);
    int64_t job = begin(&rig);
    atomic_store(&shim.only_main, true);
    atomic_store(&shim.is_full, true);
    for (int i = 0; i < 192; i++) {
        snprintf(url, sizeof url, "https://h%d/robots.txt", i);
        rig_post(&rig,
                 (struct wr_store_change){.kind = WR_STORE_ROBOTS,
                                          .robots = {.url = wr_span_of(url), .text = {text, WR_STORE_ROBOTS_MAX}}});
    }
    assert_int_equal(stat(rig.path, &file), 0);
    assert_true(file.st_size < (1 << 20));
    atomic_store(&shim.is_full, false);
    post_page(&rig, job, 0);
    test_await_number(&rig.done, 1);
    rig_post_all(&rig, NULL, 0); /* returns after the post before it is complete */
    assert_int_equal(stat(rig.path, &file), 0);
    assert_true(file.st_size > (20 << 20));
    assert_int_equal(atomic_load(&rig.paused), 0);
    rig_reopen(&rig);
    check_pages(&rig, job, 1, 1);
    rig_tear_down(&rig);
    free(text);
}

/* Neither posts nor reads wait, not even the first one that finds the disk full. */
static void call_that_does_not_wait_reports_a_full_disk(void **state)
{
    (void)state;
    struct store_fixture rig;
    shim_install();
    set_up(&rig);
    int64_t job = begin(&rig);
    struct wr_store_change change = rig_found(&rig, job, "h", "https://h/x", NULL);
    struct wr_store_query query = {
        .what = WR_STORE_ONE_HOST, .key = wr_span_of("h"), .is_hasty = true, .row = ignore_row};
    assert_int_equal(wr_store_post_now(rig.store, &change, 1), 0);
    atomic_store(&shim.is_full, true);
    for (int i = 0; i < 2; i++) { /* once while the store runs, once while it is paused */
        change = rig_found(&rig, job, "h", i == 0 ? "https://h/kept" : "https://h/refused", NULL);
        assert_int_equal(wr_store_post_now(rig.store, &change, 1), WEIR_E_FULL);
        assert_non_null(strstr(weir_error_detail(), "full"));
    }
    assert_int_equal(wr_store_read(rig.store, &query), WEIR_E_FULL);
    assert_int_equal(wr_store_forget_host(rig.store, wr_span_of("h")), WEIR_E_FULL);
    atomic_store(&shim.is_full, false);
    char *queue = rig_queue(&rig, job, "h");
    assert_string_equal(queue, "https://h/000000,https://h/x,https://h/kept");
    free(queue);
    rig_tear_down(&rig);
}

/* Fills the disk by means of the real file system: a limit on file sizes. */
static int run_limited(void)
{
    struct store_fixture rig;
    struct rlimit limit;
    (void)signal(SIGXFSZ, SIG_IGN);
    set_up(&rig);
    rig.options.queue_changes = 64;
    int64_t job = begin(&rig);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit small = {.rlim_cur = 200 << 10, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int posted = 0;
    while (atomic_load(&rig.paused) + atomic_load(&rig.failed) == 0) {
        if (try_page(&rig, job, posted) == 0)
            posted++;
        else
            (void)usleep(100);
    }
    bool paused = atomic_load(&rig.paused) > 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    if (!paused) {
        print_error("not paused: %s\n", rig.why);
        return 1;
    }
    test_await_number(&rig.done, posted);
    rig_reopen(&rig);
    check_pages(&rig, job, (uint64_t)posted, (uint64_t)posted);
    rig_tear_down(&rig);
    return 0;
}

static void file_size_limit_counts_as_a_full_disk(void **state)
{
    (void)state;
    int status;
    shim_install();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_limited());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* G8: the log stays small, however much is written. */
static void sqlite_log_stays_small(void **state)
{
    (void)state;
    struct store_fixture rig;
    char wal[RIG_PATH + 24], *text = calloc(1, WR_STORE_ROBOTS_MAX);
    struct stat file;
    assert_non_null(text);
    shim_install();
    set_up(&rig);
    (void)begin(&rig);
    snprintf(wal, sizeof wal, "%s-wal", rig.path);
    for (int i = 0; i < 480; i++) {
        text[0] = (char)i;
        rig_post(&rig, (struct wr_store_change){
                           .kind = WR_STORE_ROBOTS,
                           .robots = {.url = wr_span_of("https://h/robots.txt"), .text = {text, WR_STORE_ROBOTS_MAX}}});
        assert_int_equal(stat(wal, &file), 0);
        assert_true(file.st_size < (24 << 20));
    }
    rig_tear_down(&rig);
    free(text);
}

/* ---- changes by another process -------------------------------------------------------------- */

static void removed_or_replaced_state_file_is_noticed(void **state)
{
    (void)state;
    shim_install();
    for (int replaces = 0; replaces < 2; replaces++) {
        struct store_fixture rig;
        char away[RIG_PATH + 24];
        set_up(&rig);
        int64_t job = begin(&rig);
        snprintf(away, sizeof away, "%s-away", rig.path);
        assert_int_equal(rename(rig.path, away), 0);
        if (replaces) {
            FILE *other = fopen(rig.path, "w");
            assert_non_null(other);
            (void)fclose(other);
        }
        assert_int_equal(try_page(&rig, job, 0), 0);
        test_await_number(&rig.failed, 1);
        assert_string_equal(rig.why, "was removed or replaced while it was in use");
        rig_tear_down(&rig);
    }
}

/* ---- syncs ----------------------------------------------------------------------------------- */

/* F6: after a failed sync the content of the disk is unknown. Returns true if there were n
 * syncs. */
static bool sync_fails_at(long n)
{
    struct store_fixture rig;
    set_up(&rig);
    int64_t job = begin(&rig);
    atomic_store(&shim.fail_sync_at, n);
    for (int i = 0; i < PAGES; i++)
        post_page(&rig, job, i);
    while (atomic_load(&rig.done) + atomic_load(&rig.failed) < PAGES)
        (void)usleep(100);
    int done = atomic_load(&rig.done);
    bool has_failed = done < PAGES;
    if (has_failed) {
        struct wr_store_stats stats;
        wr_store_stats_get(rig.store, &stats);
        assert_int_equal(stats.state, WR_STORE_FAILED);
        assert_true(strstr(rig.why, "cannot be used any more") != NULL);
        assert_int_equal(atomic_load(&rig.paused), 0);
    }
    rig_close(&rig);
    atomic_store(&shim.fail_sync_at, 0);
    rig_open(&rig);
    check_pages(&rig, job, (uint64_t)done, PAGES);
    rig_tear_down(&rig);
    return has_failed;
}

static void failed_sync_makes_the_store_fail_for_good(void **state)
{
    (void)state;
    long n = 1;
    shim_install();
    while (sync_fails_at(n))
        n++;
    assert_true(n > 2);
}

/* ---- power cuts ------------------------------------------------------------------------------ */

/* F4: every change reported as stored is there after a power cut, and the file is intact. */
static void power_cut_loses_no_change_reported_as_stored(void **state)
{
    (void)state;
    struct wr_rng rng;
    uint64_t seed = weir_test_seed();
    int with_loss = 0;
    shim_install();
    for (int round = 0; round < 25; round++) {
        struct store_fixture rig, after;
        wr_rng_init(&rng, seed + (uint64_t)round);
        shim_clear();
        shim.remembers = true;
        set_up(&rig);
        set_up(&after);
        int64_t job = begin(&rig);
        int posted = 20 + (int)wr_rng_below(&rng, 200), enough = (int)wr_rng_below(&rng, (uint64_t)posted);
        for (int i = 0; i < posted; i++)
            post_page(&rig, job, i);
        test_await_number(&rig.done, enough);
        int told = atomic_load(&rig.done);
        shim_cut(after.folder, &rng);
        with_loss += told < posted;
        rig_tear_down(&rig);
        shim_clear();
        after.options.may_create = false;
        assert_int_equal(chmod(after.path, 0600), 0);
        rig_open(&after);
        check_pages(&after, job, (uint64_t)told, (uint64_t)posted);
        rig_tear_down(&after);
    }
    assert_true(with_loss > 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static sqlite3_mem_methods real_memory;
static atomic_long fail_malloc_at; /* the n-th allocation from now fails; 0: none */
static atomic_bool fails_for_ever;

static bool refuses(void)
{
    long left = atomic_load(&fail_malloc_at);
    if (left == 0)
        return false;
    if (left == 1)
        return atomic_load(&fails_for_ever) || atomic_compare_exchange_strong(&fail_malloc_at, &left, 0);
    atomic_fetch_sub(&fail_malloc_at, 1);
    return false;
}

static void *poor_malloc(int bytes)
{
    return refuses() ? NULL : real_memory.xMalloc(bytes);
}

static void *poor_realloc(void *block, int bytes)
{
    return refuses() ? NULL : real_memory.xRealloc(block, bytes);
}

static void make_poor(bool is_poor)
{
    assert_int_equal(sqlite3_shutdown(), SQLITE_OK);
    if (real_memory.xMalloc == NULL)
        assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory), SQLITE_OK);
    sqlite3_mem_methods poor = real_memory;
    if (is_poor) {
        poor.xMalloc = poor_malloc;
        poor.xRealloc = poor_realloc;
    }
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &poor), SQLITE_OK);
    /* The lookaside memory of a connection, which some builds of SQLite have, would be enough for
     * every write. */
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
    assert_int_equal(sqlite3_initialize(), SQLITE_OK);
}

static void ignore_answer(void *context, int error, const char *why)
{
    (void)context;
    (void)error;
    (void)why;
}

/* L1: a read that fails also rolls back the open transaction. */
static void lack_of_memory_while_writing_pauses_and_loses_nothing(void **state)
{
    (void)state;
    int pauses = 0;
    make_poor(true);
    for (long n = 1; n < 400; n += n < 100 ? 3 : 23) {
        struct store_fixture rig;
        set_up(&rig);
        int64_t job = begin(&rig);
        struct wr_store_query query = {.what = WR_STORE_TASKS,
                                       .job = job,
                                       .key = wr_span_of("h"),
                                       .after = WR_STORE_FIRST_POSITION,
                                       .row = ignore_row,
                                       .done = ignore_answer};
        atomic_store(&fail_malloc_at, n);
        for (int i = 0; i < PAGES; i++) {
            post_page(&rig, job, i);
            assert_int_equal(wr_store_read(rig.store, &query), 0);
        }
        test_await_number(&rig.done, PAGES);
        atomic_store(&fail_malloc_at, 0);
        pauses += atomic_load(&rig.paused);
        assert_int_equal(atomic_load(&rig.failed), 0);
        rig_reopen(&rig);
        check_pages(&rig, job, PAGES, PAGES);
        rig_tear_down(&rig);
    }
    make_poor(false);
    assert_true(pauses > 0);
}

static void lack_of_memory_while_opening_is_an_error_and_does_no_harm(void **state)
{
    (void)state;
    struct store_fixture rig;
    int errors = 0;
    make_poor(true);
    set_up(&rig);
    int64_t job = begin(&rig);
    rig_close(&rig);
    for (long n = 1; n < 2000; n += n < 200 ? 7 : 101) {
        atomic_store(&fails_for_ever, n % 2 == 0);
        atomic_store(&fail_malloc_at, n);
        int error = wr_store_open(&rig.options, &rig.store);
        atomic_store(&fail_malloc_at, 0);
        errors += error != 0;
        assert_true(error == 0 || error == WEIR_E_NOMEM || error == WEIR_E_SYSTEM || error == WEIR_E_INVAL);
        if (error != 0)
            rig.store = NULL;
        rig_close(&rig);
    }
    atomic_store(&fails_for_ever, false);
    assert_true(errors > 10);
    rig_open(&rig);
    check_pages(&rig, job, 0, 0);
    rig_tear_down(&rig);
    make_poor(false);
}

/* L2: limits the address space to its present size and a little more. */
static int run_with_little_memory(void)
{
    struct store_fixture rig;
    struct rlimit limit;
    long pages = 0;
    int taken = 0, refused = 0;
    char url[64], *text = calloc(1, WR_STORE_ROBOTS_MAX);
    set_up(&rig);
    int64_t job = begin(&rig);
    FILE *file = fopen("/proc/self/statm", "r");
    if (text == NULL || file == NULL || fscanf(file, "%ld", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0)
        return 2;
    (void)fclose(file);
    struct rlimit small = {(rlim_t)pages * 4096 + (12 << 20), limit.rlim_max};
    if (setrlimit(RLIMIT_AS, &small) != 0)
        return 3;
    for (int i = 0; i < 200; i++) {
        snprintf(url, sizeof url, "https://h%d/robots.txt", i);
        struct wr_store_change change = {.kind = WR_STORE_ROBOTS,
                                         .robots = {.url = wr_span_of(url), .text = {text, WR_STORE_ROBOTS_MAX}}};
        int error = rig_post_later(&rig, change);
        if (error != 0 && error != WEIR_E_NOMEM && error != WEIR_E_FULL)
            return 4;
        taken += error == 0;
        refused += error != 0;
    }
    (void)setrlimit(RLIMIT_AS, &limit);
    test_await_number(&rig.done, taken);
    rig_reopen(&rig);
    check_pages(&rig, job, 0, 0);
    rig_tear_down(&rig);
    free(text);
    return taken > 0 && refused > 0 && atomic_load(&rig.failed) == 0 ? 0 : 5;
}

static void little_memory_refuses_some_posts_and_loses_none(void **state)
{
    (void)state;
    int status;
    if (SANITIZED)
        SKIP("sanitizers need terabytes of address space");
    shim_install();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_with_little_memory());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void store_with_a_failing_allocator_reports_it_and_leaks_nothing(void **state)
{
    (void)state;
    struct store_fixture rig;
    test_allocator allocator;
    test_allocator_init(&allocator);
    set_up(&rig);
    rig.options.allocator = &allocator.allocator;
    for (long n = 1; n <= 3; n++) {
        atomic_store(&allocator.fail_at, n);
        assert_int_equal(wr_store_open(&rig.options, &rig.store), WEIR_E_NOMEM);
        assert_int_equal(atomic_load(&allocator.live), 0);
    }
    int64_t job = begin(&rig), none;
    struct wr_store_host host = {.key = wr_span_of("h")};
    struct wr_store_change change = rig_found(&rig, job, "h", "https://h/x", NULL);
    struct wr_store_query query = {.what = WR_STORE_JOBS, .row = (void (*)(void *, const struct wr_store_row *))abort};
    atomic_store(&allocator.fail_at, 1);
    assert_int_equal(rig_post_later(&rig, change), WEIR_E_NOMEM);
    atomic_store(&allocator.fail_at, 1);
    assert_int_equal(wr_store_add_job(rig.store, wr_span_of(""), 0, &none), WEIR_E_NOMEM);
    for (long n = 1; n <= 2; n++) { /* the note, and room in the map for it */
        atomic_store(&allocator.fail_at, n);
        assert_int_equal(wr_store_note_host(rig.store, &host), WEIR_E_NOMEM);
    }
    atomic_store(&allocator.fail_at, 1);
    assert_int_equal(wr_store_read(rig.store, &query), WEIR_E_NOMEM);
    rig_post(&rig, change);
    rig_close(&rig);
    assert_int_equal(atomic_load(&allocator.live), 0);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(full_disk_at_any_write_pauses_the_store_and_loses_nothing),
           test(sqlite_log_grows_while_the_file_cannot), test(call_that_does_not_wait_reports_a_full_disk),
           test(sqlite_log_stays_small), test(removed_or_replaced_state_file_is_noticed),
           test(file_size_limit_counts_as_a_full_disk), test(failed_sync_makes_the_store_fail_for_good),
           test(power_cut_loses_no_change_reported_as_stored),
           test(lack_of_memory_while_writing_pauses_and_loses_nothing),
           test(lack_of_memory_while_opening_is_an_error_and_does_no_harm),
           test(little_memory_refuses_some_posts_and_loses_none),
           test(store_with_a_failing_allocator_reports_it_and_leaks_nothing))
