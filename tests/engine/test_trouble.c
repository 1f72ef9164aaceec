/* SPDX-License-Identifier: MIT */
/* test_trouble.c - tests of full disks, outputs without a reader, few descriptors, and servers that
 * fail for a while. */
#include "crawl/engine/crawl_inspect.h"
#include "engine/held.h"
#include "engine/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 300

static struct origin_reply answer_tree(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, PAGES, NULL);
}

static int64_t cpu_now(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * WEIR_SECOND +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * WEIR_MICROSECOND;
}

/* ---- a full disk ---- */

#define BEFORE ((off_t)16 << 20) /* bytes in the output at first: more than the state file gets */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void await_pause(struct crawl_fixture *rig)
{
    struct wr_engine_stats stats = {.is_paused = false};
    for (int64_t until = monotonic() + WEIR_MINUTE; !stats.is_paused; sleep_ns(5 * MS)) {
        assert_true(monotonic() < until);
        assert_false(rig_await_end(rig, 0));
        wr_engine_stats_get(rig->engine, &stats);
    }
    /* the cause, and the remedy */
    assert_non_null(strstr(stats.pause_why, "full; free some space"));
}

/* Removes the bytes that were in the output beforehand, which are no lines. */
static void cut_front(const struct crawl_fixture *rig)
{
    static char all[1 << 20];
    int fd = open(rig->out, O_RDWR);
    ssize_t bytes = pread(fd, all, sizeof all, BEFORE);
    assert_true(bytes >= 0 && bytes < (ssize_t)sizeof all);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, all, (size_t)bytes, 0), bytes);
    (void)close(fd);
}

/* F5: no line is lost, and no partial line counts. */
static void full_disk_under_the_output_pauses_the_crawl(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_tree);
    (void)signal(SIGXFSZ, SIG_IGN);
    int fd = open(rig.out, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, BEFORE), 0);
    (void)close(fd);
    rig.options.appends = true;
    rig_start(&rig);
    limit_files((rlim_t)BEFORE + 10001);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    await_pause(&rig);
    sleep_ns(300 * MS);
    assert_int_equal(rig.waits, 1); /* one warning */
    assert_false(rig_await_end(&rig, 0));
    limit_files(RLIM_INFINITY);
    assert_true(rig_await_end(&rig, 120 * WEIR_SECOND));
    cut_front(&rig);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig.line_count, PAGES);
    rig_assert_trees(&rig, 1, 1, PAGES);
    rig_check_store(&rig);
    rig_tear_down(&rig);
}

/* ---- an endless web ---- */

/* Returns a page with links to 20 more pages. */
static struct origin_reply answer_endless(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    unsigned long long n = strtoull(request->path + 1, NULL, 10);
    char *text = NULL;
    size_t bytes;
    if (rig_is_robots(request))
        return (struct origin_reply){.status = 404};
    FILE *stream = open_memstream(&text, &bytes);
    for (unsigned i = 1; i <= 20; i++)
        (void)fprintf(stream, "<a href=/%llu>", 20 * n + i);
    (void)fclose(stream);
    const char *kept = rig_text(rig, "%s", text);
    free(text);
    return rig_html(kept);
}

/* ---- a log without a reader ---- */

static void note_dropped(void *context, const char *line)
{
    struct crawl_fixture *rig = context;
    int dropped = 0;
    if (sscanf(line, "%d lines of the log were dropped", &dropped) == 1)
        *(int *)rig->site = dropped;
}

static int lines_in(int fd)
{
    static char bytes[65536];
    int lines = 0;
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            lines += bytes[i] == '\n';
    return lines;
}

/* T16, I6: each request has a line in the pipe, or counts as a dropped line. */
static void dropped_lines_of_an_unread_log_are_counted_and_reported(void **state)
{
    struct crawl_fixture rig;
    char path[RIG_PATH + 16];
    int dropped = 0;
    (void)state;
    rig_set_up(&rig, answer_tree);
    rig.site = &dropped;
    (void)snprintf(path, sizeof path, "%s/log", rig.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0 && fcntl(reader, F_SETPIPE_SZ, 4096) >= 0);
    rig.options.log_path = path;
    rig.options.warn = note_dropped;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    int written = lines_in(reader);
    print_message("%d lines written, %d dropped\n", written, dropped);
    assert_true(dropped > 0 && written > 0);
    assert_int_equal(written + dropped, origin_requests(rig.origin));
    (void)close(reader);
    rig_tear_down(&rig);
}

/* ---- an output without a reader ---- */

struct reader {
    int fd;
    pthread_t thread;
    size_t bytes;
};

static void *read_all(void *context)
{
    struct reader *reader = context;
    char bin[65536];
    ssize_t got;
    while ((got = read(reader->fd, bin, sizeof bin)) > 0)
        reader->bytes += (size_t)got;
    return NULL;
}

/* Waits until no request has arrived for a while. Returns the number of requests. */
static int await_silence(struct crawl_fixture *rig)
{
    int before = -1, now = origin_requests(rig->origin);
    for (int64_t until = monotonic() + 60 * WEIR_SECOND; now != before; now = origin_requests(rig->origin)) {
        assert_true(monotonic() < until);
        before = now;
        sleep_ns(SANITIZED ? 3 * WEIR_SECOND : WEIR_SECOND);
    }
    return now;
}

/* I3. */
static void unread_output_pauses_the_crawl(void **state)
{
    struct crawl_fixture rig;
    struct wr_engine_stats stats;
    struct reader reader;
    (void)state;
    rig_set_up(&rig, answer_endless);
    assert_int_equal(mkfifo(rig.out, 0600), 0);
    reader = (struct reader){.fd = open(rig.out, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    assert_true(reader.fd >= 0);
    rig.options.appends = true;
    rig.options.concurrency = 16;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    int stood = await_silence(&rig);
    int64_t cpu_before = cpu_now();
    wr_engine_stats_get(rig.engine, &stats);
    print_message("%d requests, %zu bytes of plans\n", stood, stats.memory_bytes);
    assert_true(stood > 100 && stood < 8000);
    assert_true(stats.in_flight <= 16);
    sleep_ns(WEIR_SECOND);
    assert_int_equal(origin_requests(rig.origin), stood);
    assert_true(cpu_now() - cpu_before < 500 * MS);
    assert_int_equal(fcntl(reader.fd, F_SETFL, 0), 0); /* blocking */
    assert_int_equal(pthread_create(&reader.thread, NULL, read_all, &reader), 0);
    rig_await_requests(&rig, stood + 100);
    wr_engine_stop(rig.engine);
    assert_true(rig_await_end(&rig, 30 * WEIR_SECOND));
    wr_engine_finish(rig.engine, &rig.result);
    wr_engine_free(rig.engine);
    rig.engine = NULL;
    assert_int_equal(rig.result.end, WR_END_STOPPED);
    assert_int_equal(pthread_join(reader.thread, NULL), 0);
    (void)close(reader.fd);
    assert_true(reader.bytes > 100000);
    rig_tear_down(&rig);
}

/* ---- the end of a crawl on a full disk ---- */

/* M14: the time limit applies on a full disk, and the wait is attributed to the limit. */
static void add_waits(void *context, const struct wr_engine_host_report *host)
{
    int64_t *waited_ns = context;
    waited_ns[0] += host->waited_ns[WEIR_REASON_JOB_LIMIT];
    waited_ns[1] += host->waited_ns[WEIR_REASON_PAUSED];
}

static void time_limit_ends_a_crawl_whose_disk_is_full(void **state)
{
    struct crawl_fixture rig;
    int64_t waited_ns[2] = {0, 0};
    (void)state;
    limit_files(RLIM_INFINITY);
    hold_clock();
    rig_set_up(&rig, answer_endless);
    (void)signal(SIGXFSZ, SIG_IGN);
    rig.options.max_time_ns = 3 * WEIR_SECOND;
    rig.options.drain_ns = 2 * WEIR_SECOND;
    start_held(&rig);
    limit_files(10001);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    await_pause(&rig);
    let_clock_run();
    assert_true(rig_await_end(&rig, 120 * WEIR_SECOND)); /* the disk is still full */
    wr_engine_finish(rig.engine, &rig.result);
    (void)wr_engine_report(rig.engine, add_waits, waited_ns);
    wr_engine_free(rig.engine);
    rig.engine = NULL;
    limit_files(RLIM_INFINITY);
    assert_int_equal(rig.result.end, WR_END_BUDGET);
    assert_true(waited_ns[0] > 0);
    assert_int_equal(waited_ns[1], 0);
    rig_check_store(&rig);
    rig.options.max_time_ns = 0; /* the job can be resumed */
    rig_start(&rig);
    assert_false(rig.is_new);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_await_requests(&rig, origin_requests(rig.origin) + 100);
    wr_engine_stop(rig.engine);
    rig_finish(&rig);
    rig_check_store(&rig);
    rig_tear_down(&rig);
    free_clock();
}

/* M14: an engine that waited here could not be stopped, as its threads do not run yet. */
static void crawl_on_a_full_disk_fails_to_start_with_the_reason(void **state)
{
    struct crawl_fixture rig;
    const struct wr_engine_open_options place = {.state_path = rig.state, .may_create = true};
    (void)state;
    limit_files(RLIM_INFINITY);
    rig_set_up(&rig, answer_tree);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(wr_engine_open(&place, &rig.engine), 0);
    limit_files(1);
    assert_int_equal(wr_engine_start(rig.engine, &rig.options), WEIR_E_FULL);
    assert_non_null(strstr(weir_error_detail(), "full; free some space"));
    wr_engine_free(rig.engine);
    rig.engine = NULL;
    limit_files(RLIM_INFINITY);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_tear_down(&rig);
}

/* If the disk is full, the end of a job cannot be stored. The job stays open and ends after it is
 * resumed. */
static void crawl_that_ends_on_a_full_disk_can_be_resumed(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    limit_files(RLIM_INFINITY);
    rig_set_up(&rig, answer_tree);
    (void)signal(SIGXFSZ, SIG_IGN);
    rig.options.drain_ns = 300 * MS;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, 10);
    limit_files(1);
    wr_engine_cancel(rig.engine);
    assert_true(rig_await_end(&rig, 60 * WEIR_SECOND));
    wr_engine_finish(rig.engine, &rig.result);
    wr_engine_free(rig.engine);
    rig.engine = NULL;
    limit_files(RLIM_INFINITY);
    assert_int_equal(rig.result.end, WR_END_BROKEN);
    assert_non_null(strstr(rig.result.why, "full"));
    rig_start(&rig);
    assert_false(rig.is_new);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/")); /* the seed may not have been stored */
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, 1, PAGES);
    rig_tear_down(&rig);
}

/* ---- few descriptors ---- */

static struct origin_reply answer_late(void *context, const struct origin_request *request)
{
    struct origin_reply reply = rig_tree(context, request, 3, NULL);
    reply.delay_ns = 20 * MS;
    return reply;
}

/* E5: the crawl is slower, but nothing fails, and it does not spin. */
static void few_descriptors_only_make_a_crawl_slower(void **state)
{
    struct crawl_fixture rig;
    struct rusage used;
    int status;
    (void)state;
    rig_set_up(&rig, answer_late);
    rig.files_max = 36;
    pid_t child = rig_spawn(&rig, 80);
    assert_int_equal(wait4(child, &status, 0, &used), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    rig_read_lines(&rig);
    assert_int_equal(rig.line_count, 240);
    rig_assert_trees(&rig, 1, 80, 3);
    double cpu = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    print_message("%.2f s of CPU\n", cpu);
    if (!SANITIZED)
        assert_true(cpu < 3);
    rig_tear_down(&rig);
}

/* ---- a server that fails for a while ---- */

static atomic_bool is_away;

static struct origin_reply answer_unless_away(void *context, const struct origin_request *request)
{
    if (is_away)
        return (struct origin_reply){.raw = ""};
    return rig_tree(context, request, 60, NULL);
}

/* E4, S0-95: few attempts and little CPU time while the server fails; all pages are fetched
 * afterwards. */
static void server_that_failed_for_a_while_is_crawled_to_the_end(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_unless_away);
    is_away = false;
    rig_profile(&rig, WEIR_PROFILE_ADAPTIVE);
    rig.options.pace.max_rate = 100;
    rig.options.pace.open_ns = 300 * MS;
    rig.options.pace.retry.attempts = 10;
    rig.options.failure_threshold = UINT32_MAX;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    rig_await_requests(&rig, 10);
    is_away = true;
    int before = origin_requests(rig.origin);
    int64_t cpu_before = cpu_now(), began_at = monotonic();
    sleep_ns(3 * WEIR_SECOND);
    int64_t away_ns = monotonic() - began_at;
    int tries = origin_requests(rig.origin) - before;
    print_message("%d tries, %.3f s of CPU\n", tries, (double)(cpu_now() - cpu_before) / 1e9);
    /* at the usual pace there would be a hundred per second */
    assert_true(tries < 20 * away_ns / WEIR_SECOND);
    assert_true(cpu_now() - cpu_before < (SANITIZED ? 2 : 1) * away_ns / 3);
    is_away = false;
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, 1, 60);
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(full_disk_under_the_output_pauses_the_crawl), test(time_limit_ends_a_crawl_whose_disk_is_full),
             test(crawl_on_a_full_disk_fails_to_start_with_the_reason),
             test(crawl_that_ends_on_a_full_disk_can_be_resumed), test(unread_output_pauses_the_crawl),
             test(dropped_lines_of_an_unread_log_are_counted_and_reported),
             test(few_descriptors_only_make_a_crawl_slower), test(server_that_failed_for_a_while_is_crawled_to_the_end))
