/* SPDX-License-Identifier: MIT */
/* test_again.c - SQLite files that are reopened: after repeated crashes and from copies; and the
 * callbacks of a store while its disk is full. */
#include "base/rng.h"
#include "lib/rig.h"
#include "limiter/clock/clock.h"
#include "store/rig.h"
#include "store/shim.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- repeated crashes ------------------------------------------------------------------------ */

#define ROBOTS_URL "https://h/robots.txt"

/* Stores a robots.txt and the time until which its server refuses requests. */
static void learn(struct store_fixture *rig, int64_t retry_wall_at)
{
    struct wr_store_host host = {.key = wr_span_of("h"), .memory = {.retry_wall_at = retry_wall_at}};
    const struct wr_store_change changes[] = {
        {.kind = WR_STORE_HOST, .host = host},
        {.kind = WR_STORE_ROBOTS,
         .robots = {.url = wr_span_of(ROBOTS_URL), .text = wr_span_of("Disallow: /x"), .fetched_wall_at = WEIR_SECOND}},
    };
    rig_post_all(rig, changes, 2);
}

/* Opens or creates the store and posts until it is killed. Does not return. */
static void crash(struct store_fixture *rig, int64_t retry_wall_at)
{
    size_t count;

    if (wr_store_open(&rig->options, &rig->store) != 0) {
        print_error("%s\n", weir_error_detail());
        _exit(6);
    }
    free(rig_read(rig, (struct wr_store_query){.what = WR_STORE_ONE_ROBOTS, .key = wr_span_of(ROBOTS_URL)}, &count));
    int64_t job = rig_job(rig, "");
    if (count == 0) /* like a crawl: stored knowledge is not fetched again */
        learn(rig, retry_wall_at);
    for (int i = 0;; i++) {
        char url[40];
        snprintf(url, sizeof url, "https://h/%d", i);
        rig_post(rig, rig_found(rig, job, "h", url, NULL));
    }
}

/* Kills the child after this many µs. Returns true if the signal ended it, not an exit. */
static bool kill_after(pid_t child, unsigned us)
{
    int status;

    (void)usleep(us);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Checks that the time named by the server and the robots.txt are stored, if they had been stored
 * for sure. */
static void check_after_crash(struct store_fixture *rig, int64_t retry_wall_at, bool was_told)
{
    size_t hosts, robots;

    rig_open(rig);
    rig_check(rig);
    struct rig_row *host =
        rig_read(rig, (struct wr_store_query){.what = WR_STORE_ONE_HOST, .key = wr_span_of("h")}, &hosts);
    struct rig_row *text =
        rig_read(rig, (struct wr_store_query){.what = WR_STORE_ONE_ROBOTS, .key = wr_span_of(ROBOTS_URL)}, &robots);
    if (was_told) {
        assert_true(robots == 1 && hosts == 1);
        assert_true(host[0].row.host.memory.retry_wall_at >= retry_wall_at);
        assert_true(rig_is(text[0].row.robots.text, "Disallow: /x"));
        assert_int_equal(text[0].row.robots.fetched_wall_at, WEIR_SECOND);
    }
    free(host);
    free(text);
    rig_close(rig);
}

static size_t files_in(const char *folder)
{
    DIR *entries = opendir(folder);
    size_t count = 0;

    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    assert_int_equal(closedir(entries), 0);
    return count;
}

/* F10: a supervisor restarts a crawl that keeps crashing early. */
static void repeated_crashes_lose_no_retry_after_and_no_robots_txt(void **state)
{
    enum {
        ROUNDS = 40
    };
    (void)state;
    struct store_fixture rig;
    struct wr_rng rng;
    int64_t retry_wall_at = weir_wall_now() + WEIR_HOUR;
    wr_rng_init(&rng, weir_test_seed());
    rig_set_up(&rig, rig_backends);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            crash(&rig, retry_wall_at);
        assert_true(kill_after(child, (unsigned)wr_rng_below(&rng, round < 30 ? 6000 : 30000)));
        if (round % 4 == 3) /* in the other rounds the next child finds what the last one left */
            check_after_crash(&rig, retry_wall_at, round > ROUNDS / 2);
        if (round != ROUNDS / 2)
            continue;
        rig_open(&rig); /* from now on the values are stored for sure */
        learn(&rig, retry_wall_at);
        rig_close(&rig);
    }
    /* the state file; a process killed while it created the file leaves one more */
    assert_true(files_in(rig.folder) < 10);
    rig_tear_down(&rig);
}

/* In a container, processes have the same process id at each start. */
static void leftover_of_a_killed_process_with_the_same_pid_is_no_hindrance(void **state)
{
    (void)state;
    struct store_fixture rig;
    char left[RIG_PATH + 64];
    rig_set_up(&rig, rig_backends);
    snprintf(left, sizeof left, "%s-new-%d", rig.path, (int)getpid());
    assert_int_equal(close(open(left, O_CREAT | O_WRONLY, 0600)), 0);
    rig_open(&rig);
    rig_check(&rig);
    rig_tear_down(&rig);
}

/* ---- copies of one file ---------------------------------------------------------------------- */

/* Returns all rows of all tables as text; the caller frees it with free(). */
static char *dump(const char *path)
{
    static const char *const tables[] = {"jobs", "tasks", "hosts", "robots", "accepted", "outputs", "secrets"};
    char sql[64], *text = NULL;
    size_t bytes = 0;
    sqlite3 *db;
    sqlite3_stmt *rows;
    FILE *file = open_memstream(&text, &bytes);

    assert_non_null(file);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY 1, 2", tables[i]);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
        fprintf(file, "%s\n", tables[i]);
        while (sqlite3_step(rows) == SQLITE_ROW) {
            for (int column = 0; column < sqlite3_column_count(rows); column++)
                fprintf(file, "%s|", (const char *)sqlite3_column_text(rows, column));
            fputc('\n', file);
        }
        (void)sqlite3_finalize(rows);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t got = read(in, bytes, sizeof bytes);

    assert_true(got > 0 && (size_t)got < sizeof bytes);
    assert_int_equal(write(out, bytes, (size_t)got), got);
    (void)close(in);
    (void)close(out);
}

static void read_all(struct store_fixture *rig, int64_t job)
{
    static const enum wr_store_query_kind kinds[] = {WR_STORE_JOBS, WR_STORE_HOSTS, WR_STORE_OUTPUTS, WR_STORE_CHECK};
    size_t count;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        free(rig_read(rig, (struct wr_store_query){.what = kinds[i], .job = job}, &count));
    struct wr_store_query known = {.what = WR_STORE_FINGERPRINTS, .job = job, .after = {.id = INT64_MIN}};
    free(rig_read(rig, known, &count));
    free(rig_queue(rig, job, "h"));
}

static void fill(struct store_fixture *rig, int64_t job)
{
    const struct wr_store_change changes[] = {
        rig_status(job, WR_JOB_RUNNING, ""),
        rig_found(rig, job, "h", "https://h/1", NULL),
        rig_found(rig, job, "h", "https://h/2", "https://h/1"),
        rig_found(rig, job, "g", "https://g/", "https://h/1"),
        rig_ended(rig, job, "https://h/1", false, "fetched"),
        rig_retry(rig, job, "https://g/", 1, 429),
        rig_output(job, "crawl.jsonl", 100),
        {.kind = WR_STORE_HOST, .host = {.key = wr_span_of("h"), .memory = {.delay_ns = WEIR_SECOND}}},
        {.kind = WR_STORE_ROBOTS, .robots = {.url = wr_span_of(ROBOTS_URL), .text = wr_span_of("Allow: /")}},
    };
    rig_post_all(rig, changes, sizeof changes / sizeof changes[0]);
}

/* Posts the rest of the crawl. */
static void go_on(struct store_fixture *rig, int64_t job)
{
    const struct wr_store_change changes[] = {
        rig_ended(rig, job, "https://h/2", true, "failed"),
        rig_found(rig, job, "g", "https://g/2", "https://g/"),
        rig_ended(rig, job, "https://g/", false, "fetched"),
        rig_output(job, "crawl.jsonl", 300),
    };
    rig_post_all(rig, changes, sizeof changes / sizeof changes[0]);
}

static int64_t read_still(const weir_clock *clock)
{
    (void)clock;
    return 1790000000 * (int64_t)WEIR_SECOND;
}

static const weir_clock still_wall = {read_still, NULL};

/* F11: reading a file, or starting to resume it, changes no data, and a copy resumes like the
 * original. */
static void opening_a_store_changes_nothing_and_a_copy_resumes_alike(void **state)
{
    (void)state;
    struct store_fixture rig;
    char copy[RIG_PATH + 32], *texts[2];
    rig_set_up(&rig, rig_backends);
    rig.options.wall = &still_wall;
    snprintf(copy, sizeof copy, "%s/copy.db", rig.folder);
    rig_open(&rig);
    int64_t job = rig_job(&rig, "{\"depth\": 3}");
    fill(&rig, job);
    rig_close(&rig);
    char *before = dump(rig.path);
    copy_file(rig.path, copy);
    for (int times = 0; times < 3; times++) {
        rig_open(&rig);
        read_all(&rig, job);
        rig_close(&rig);
        char *after = dump(rig.path);
        assert_string_equal(after, before);
        free(after);
    }
    for (int i = 0; i < 2; i++) {
        rig.options.path = i == 0 ? rig.path : copy;
        rig_open(&rig);
        go_on(&rig, job);
        rig_check(&rig);
        rig_close(&rig);
        texts[i] = dump(rig.options.path);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_true(strcmp(texts[0], before) != 0);
    free(texts[0]);
    free(texts[1]);
    free(before);
    rig_tear_down(&rig);
}

/* ---- a full disk during a crawl -------------------------------------------------------------- */

/* Callbacks of the store's thread in order, one letter each: P and R for its states, d for a
 * result, o for room. */
struct told {
    struct store_fixture *rig;
    int64_t job;
    char letters[64];
    atomic_int count;
    atomic_int posted; /* 1: tell_room has posted */
};

static void tell(struct told *told, char letter)
{
    int count = atomic_load(&told->count);

    told->letters[count] = letter;
    atomic_store(&told->count, count + 1);
}

static void tell_state(void *context, enum wr_store_state state, const char *why)
{
    if (state == WR_STORE_PAUSED)
        assert_string_equal(why, "the disk is full; free some space, and the crawl continues by itself");
    tell(context, "RPF"[state]);
}

static void tell_done(void *context, int error, const char *why)
{
    (void)why;
    tell(context, error == 0 ? 'd' : 'x');
}

static int post_to(struct told *told, int number)
{
    char url[40];

    snprintf(url, sizeof url, "https://h/%d", number);
    struct wr_store_change change = rig_found(told->rig, told->job, "h", url, NULL);
    return wr_store_post(told->rig->store, &change, 1, tell_done, told);
}

static void tell_room(void *context)
{
    struct told *told = context;

    tell(told, 'o');
    assert_int_equal(post_to(told, 1000), 0); /* a crawl resumes here */
    atomic_store(&told->posted, 1);
}

/* I3, F5: a crawl stops when the store reports a full queue and resumes when the store reports
 * room. */
static void store_reports_the_pause_its_end_and_then_room(void **state)
{
    (void)state;
    struct store_fixture rig;
    struct told told = {.rig = &rig};
    int taken = 0;
    shim_install();
    rig_set_up(&rig, rig_backends);
    rig_open(&rig);
    told.job = rig_job(&rig, "");
    rig_close(&rig);
    rig.options.retry_ns = WEIR_MILLISECOND;
    rig.options.batch_changes = 4;
    rig.options.queue_changes = 8;
    rig.options.changed = tell_state;
    rig.options.room = tell_room;
    rig.options.context = &told;
    rig_open(&rig);
    atomic_store(&shim.fail_write_at, 1);
    while (post_to(&told, taken) == 0)
        taken++;
    assert_int_equal(taken, 8);
    test_await_number(&told.count, 1);
    (void)usleep(20000); /* the store retries several times without further reports */
    assert_int_equal(post_to(&told, taken), WEIR_E_FULL);
    assert_int_equal(atomic_load(&told.count), 1);
    atomic_store(&shim.fail_write_at, 0);
    atomic_store(&shim.is_full, false);
    test_await_number(&told.posted, 1);
    /* P, R, 8 results, room, and the result of the post by tell_room */
    test_await_number(&told.count, 12);
    assert_string_equal(told.letters, "PRddddoddddd");
    assert_int_equal(rig_look_job(&rig, told.job).queued, 9);
    rig.options.context = &rig;
    rig_tear_down(&rig);
    shim_clear();
}

/* ---- 64 MB of address space ------------------------------------------------------------------ */

/* Returns 0 if the store worked or was refused for lack of memory, and is intact; otherwise the
 * number of the failed check. */
static int run_in_64_mb(struct store_fixture *rig, int64_t job)
{
    struct rlimit before, small;
    char url[64];
    int taken = 0;

    if (getrlimit(RLIMIT_AS, &before) != 0)
        return 2;
    small = (struct rlimit){64 << 20, before.rlim_max};
    if (setrlimit(RLIMIT_AS, &small) != 0)
        return 3;
    int error = wr_store_open(&rig->options, &rig->store);
    for (int i = 0; error == 0 && i < 50000; i++) {
        snprintf(url, sizeof url, "https://h/%d", i);
        int post_error = rig_post_later(rig, rig_found(rig, job, "h", url, NULL));
        if (post_error != 0 && post_error != WEIR_E_NOMEM && post_error != WEIR_E_FULL)
            return 4;
        taken += post_error == 0;
    }
    (void)setrlimit(RLIMIT_AS, &before);
    if (error != 0 && error != WEIR_E_NOMEM && error != WEIR_E_SYSTEM)
        return 5;
    if (error == 0) {
        test_await_number(&rig->done, taken);
        rig_close(rig);
    }
    rig_open(rig);
    rig_check(rig);
    bool is_all = rig_look_job(rig, job).queued == (uint64_t)taken;
    rig_close(rig);
    return is_all && atomic_load(&rig->failed) == 0 ? 0 : 6;
}

static void store_in_64_mb_works_or_refuses_and_stays_intact(void **state)
{
    (void)state;
    struct store_fixture rig;
    int status;
    if (SANITIZED)
        SKIP("sanitizers need terabytes of address space");
    rig_set_up(&rig, rig_backends);
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    rig_close(&rig);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_in_64_mb(&rig, job));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(repeated_crashes_lose_no_retry_after_and_no_robots_txt),
           test(leftover_of_a_killed_process_with_the_same_pid_is_no_hindrance),
           test(opening_a_store_changes_nothing_and_a_copy_resumes_alike),
           test(store_reports_the_pause_its_end_and_then_room), test(store_in_64_mb_works_or_refuses_and_stays_intact))
