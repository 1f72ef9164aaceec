/* SPDX-License-Identifier: MIT */
/* test_restart.c - tests that delays and pauses of hosts hold across kill -9 and a restart. */
#include "engine/rig.h"
#include "lib/sql.h"

#include <signal.h>
#include <sys/wait.h>

#define COMMITTED_NS (400 * MS) /* by then the store has committed what was posted */

static void kill_child(pid_t child)
{
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void await_completed(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Waits for the first request for `path` to be answered, and returns it. */
static struct origin_request await_path(struct crawl_fixture *rig, const char *path)
{
    for (int64_t until = monotonic() + 30 * WEIR_SECOND; monotonic() < until; sleep_ns(MS))
        for (int i = 0; i < origin_requests(rig->origin); i++) {
            struct origin_request request = origin_request(rig->origin, i);
            if (strcmp(request.path, path) == 0 && request.told_at != 0)
                return request;
        }
    fail_msg("no request for %s", path);
    return (struct origin_request){.number = 0};
}

/* ---- Retry-After ---- */

static struct origin_reply answer_busy(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (strcmp(request->path, "/3") == 0 && rig_asked_before(rig, request) == 0)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 3\r\n"};
    return rig_tree(rig, request, 7, NULL);
}

/* V2, F2, R23. */
static void retry_after_holds_after_kill_9(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_busy);
    rig_space(&rig, 20 * MS);
    pid_t child = rig_spawn(&rig, 1);
    struct origin_request busy = await_path(&rig, "/3");
    sleep_ns(COMMITTED_NS);
    kill_child(child);
    int before = origin_requests(rig.origin);
    await_completed(rig_spawn(&rig, 1));
    assert_true(origin_requests(rig.origin) > before);
    for (int i = before; i < origin_requests(rig.origin); i++) {
        int64_t after_ns = origin_request(rig.origin, i).at - busy.done_at;
        if (after_ns < 3 * WEIR_SECOND - STAMP_SLACK_NS)
            fail_msg("a request came %.3f s after Retry-After: 3", (double)after_ns / 1e9);
    }
    rig_read_lines(&rig);
    rig_assert_trees(&rig, 1, 1, 7);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/3"), "verdict"), "fetched");
    assert_int_equal(rig_number(&rig, rig_url(&rig, 1, "/3"), "attempts"), 2);
    rig_tear_down(&rig);
}

/* ---- the interval, and robots.txt ---- */

static struct origin_reply answer_rules(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request))
        return (struct origin_reply){.fields = "Cache-Control: max-age=3600\r\n",
                                     .body = "User-agent: *\nDisallow: /5\n"};
    return rig_tree(rig, request, 9, NULL);
}

#define INTERVAL_NS (400 * MS)

/* R23, F2. */
static void known_hosts_wait_one_interval_after_a_restart(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_rules);
    rig_space(&rig, INTERVAL_NS);
    pid_t child = rig_spawn(&rig, 3);
    (void)await_path(&rig, "/1");
    sleep_ns(COMMITTED_NS);
    kill_child(child);
    int before = origin_requests(rig.origin);
    sleep_ns(INTERVAL_NS);
    int64_t restarted_at = monotonic();
    child = rig_spawn(&rig, 3);
    rig_await_requests(&rig, before + 3);
    kill_child(child);
    for (int i = before; i < origin_requests(rig.origin); i++) {
        int64_t after_ns = origin_request(rig.origin, i).at - restarted_at;
        if (after_ns < INTERVAL_NS)
            fail_msg("a known host got a request %.3f ms after the start", (double)after_ns / 1e6);
    }
    for (int host = 1; host <= 3; host++)
        rig_assert_spaced(&rig, host, INTERVAL_NS);
    rig_tear_down(&rig);
}

/* S4-19, V3. */
static void robots_txt_is_not_fetched_again_after_a_restart(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_rules);
    rig_space(&rig, 100 * MS);
    pid_t child = rig_spawn(&rig, 2);
    (void)await_path(&rig, "/1");
    sleep_ns(COMMITTED_NS);
    kill_child(child);
    await_completed(rig_spawn(&rig, 2));
    assert_int_equal(rig_asked(&rig, 1, "/robots.txt"), 1);
    assert_int_equal(rig_asked(&rig, 2, "/robots.txt"), 1);
    assert_int_equal(rig_asked(&rig, -1, "/5"), 0); /* the old robots.txt is still obeyed */
    rig_read_lines(&rig);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/5"), "verdict"), "robots");
    assert_int_equal(rig.line_count, 18);
    rig_tear_down(&rig);
}

/* F3: a process that was stopped does not catch up on starts. */
static void crawl_stopped_by_a_signal_does_not_catch_up_on_starts(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_rules);
    rig_space(&rig, 150 * MS);
    pid_t child = rig_spawn(&rig, 5);
    (void)await_path(&rig, "/1");
    assert_int_equal(kill(child, SIGSTOP), 0);
    sleep_ns(1500 * MS);
    assert_int_equal(kill(child, SIGCONT), 0);
    await_completed(child);
    for (int host = 1; host <= 5; host++)
        rig_assert_spaced(&rig, host, 150 * MS);
    rig_tear_down(&rig);
}

/* ---- damaged state files ---- */

/* Fails unless each page of each tree has a line: tasks that could be read, and damaged ones, of
 * which little is known. */
static void expect_damaged(const struct crawl_fixture *rig, int damaged, const char *words)
{
    int seen = 0;
    assert_int_equal(rig->result.end, WR_END_COMPLETED);
    for (size_t i = 0; i < rig->line_count; i++) {
        json_t *line = rig->lines[i];
        if (strcmp(json_string_value(json_object_get(line, "verdict")), "damaged") != 0)
            continue;
        assert_string_equal(json_string_value(json_object_get(line, "error")), "damaged");
        assert_string_equal(json_string_value(json_object_get(line, "error_text")), words);
        assert_true(json_integer_value(json_object_get(line, "depth")) > 0);
        assert_true(json_is_string(json_object_get(line, "referrer")));
        seen++;
    }
    assert_int_equal(seen, damaged);
    assert_int_equal(rig->result.failed, damaged);
    assert_int_equal(rig->result.stats.queued, 0);
    assert_int_equal(rig_verdicts(rig, "fetched"), (int)rig->line_count - damaged);
    assert_int_equal(rig->line_count, rig->result.stats.accepted);
    rig_check_store(rig);
}

static atomic_bool all_may_go;

/* Returns pages beyond the first three levels only after the crawl was stopped, however slow the
 * machine is. */
static struct origin_reply answer_trees(void *context, const struct origin_request *request)
{
    struct origin_reply reply = rig_tree(context, request, 31, NULL);

    if (strtol(request->path + 1, NULL, 10) >= 7)
        reply.may_go = &all_may_go;
    return reply;
}

static void await_asked(const struct crawl_fixture *rig, int host, const char *path)
{
    for (int64_t until = monotonic() + WEIR_MINUTE; rig_asked(rig, host, path) == 0; sleep_ns(MS))
        assert_true(monotonic() < until);
}

/* G9: a damaged task cannot be fetched. It ends with a line, so it neither vanishes nor blocks the
 * job. */
static void damaged_tasks_end_with_a_line(void **state)
{
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {"UPDATE tasks SET url = '' WHERE state = 0", "the state has lost its URL"},
        {"UPDATE tasks SET url = 'nonsense' || id WHERE state = 0", "its stored text is not a URL of its host"},
        {"UPDATE hosts SET host = char(10) || id", "the state has lost its host"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct crawl_fixture rig;
        atomic_store(&all_may_go, false);
        rig_set_up(&rig, answer_trees);
        rig_space(&rig, 20 * MS);
        rig.options.loops = 2;
        rig_start(&rig);
        for (int host = 1; host <= 2; host++)
            rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
        rig_seeded(&rig);
        for (int host = 1; host <= 2; host++) /* the seeds, which have no referrer, are done */
            await_asked(&rig, host, "/3");
        wr_engine_stop(rig.engine);
        atomic_store(&all_may_go, true);
        rig_finish(&rig);
        int left = (int)rig.result.stats.queued;
        assert_true(left > 5);
        run_sql(rig.state, cases[i].sql);
        rig_start(&rig);
        rig_finish(&rig);
        expect_damaged(&rig, left, cases[i].words);
        rig_tear_down(&rig);
    }
}

ENGINE_TESTS(test(retry_after_holds_after_kill_9), test(known_hosts_wait_one_interval_after_a_restart),
             test(robots_txt_is_not_fetched_again_after_a_restart),
             test(crawl_stopped_by_a_signal_does_not_catch_up_on_starts), test(damaged_tasks_end_with_a_line))
