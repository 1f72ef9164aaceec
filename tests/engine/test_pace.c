/* SPDX-License-Identifier: MIT */
/* test_pace.c - tests of many hosts at once, each at its own pace, judged by the times of
 * arrival. */
#include "engine/rig.h"

#include <dirent.h>
#include <sys/wait.h>

#define HOSTS 40
#define PAGES 12

/* Returns a setting of the environment, for the long form of a test: 100 hosts with an interval of
 * 1 s. */
static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? (int)strtol(text, NULL, 10) : otherwise;
}

static struct origin_reply answer_plain(void *context, const struct origin_request *request)
{
    return rig_tree(context, request, PAGES, NULL);
}

static int threads_of(pid_t child)
{
    char path[64];
    int count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)child);
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        (void)closedir(folder);
    return count - 2;
}

static void seed_hosts(struct crawl_fixture *rig, int first, int count)
{
    for (int host = first; host < first + count; host++)
        rig_seed(rig, "%s", rig_url(rig, host, "/"));
}

static int64_t last_arrival(const struct crawl_fixture *rig, int host)
{
    int count;
    int64_t *times = rig_arrivals(rig, host, &count);
    int64_t last_at = count > 0 ? times[count - 1] : 0;
    free(times);
    return last_at;
}

/* Returns the time from the first to the last arrival at a host (-1: all hosts). */
static int64_t span_of(const struct crawl_fixture *rig, int host)
{
    int count;
    int64_t *times = rig_arrivals(rig, host, &count);
    int64_t span_ns = count > 0 ? times[count - 1] - times[0] : 0;
    free(times);
    return span_ns;
}

/* Returns true if the last host to begin begins before the first host to end ends. */
static bool are_at_once(const struct crawl_fixture *rig, int hosts)
{
    int64_t begun_at = 0, ended_at = INT64_MAX;
    for (int host = 1; host <= hosts; host++) {
        int count;
        int64_t *times = rig_arrivals(rig, host, &count);
        assert_true(count > 0);
        begun_at = times[0] > begun_at ? times[0] : begun_at;
        ended_at = times[count - 1] < ended_at ? times[count - 1] : ended_at;
        free(times);
    }
    return begun_at < ended_at;
}

/* V1, S1-25, S1-26, S1-32, S4-1: robots.txt and pages of a host keep the interval together. No host
 * waits for another, so all together are as fast as one alone. */
static void every_host_has_its_own_interval(void **state)
{
    struct crawl_fixture rig;
    int hosts = setting("WEIR_TEST_CRAWL_HOSTS", HOSTS);
    int64_t interval_ns = setting("WEIR_TEST_CRAWL_INTERVAL_MS", 100) * MS;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig.options.loops = 2;
    rig_space(&rig, interval_ns);
    rig_start(&rig);
    seed_hosts(&rig, 1, hosts);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    rig_assert_trees(&rig, 1, hosts, PAGES);
    assert_int_equal(origin_requests(rig.origin), hosts * (PAGES + 1));
    for (int host = 1; host <= hosts; host++)
        rig_assert_spaced(&rig, host, interval_ns);
    assert_int_equal(rig.result.stats.rejected, 0);
    assert_true(rig.result.stats.memory_bytes < 10000000);
    double ideal_ns = (double)(PAGES * interval_ns), took_ns = (double)span_of(&rig, -1);
    print_message("%.3f of the ideal rate, plans of %zu bytes\n", ideal_ns / took_ns, rig.result.stats.memory_bytes);
    assert_true(are_at_once(&rig, hosts));
    if (interval_ns >= WEIR_SECOND) /* only in the long form, on an idle machine */
        assert_true(took_ns < 1 / 0.99 * ideal_ns);
    rig_tear_down(&rig);
}

/* ---- Crawl-delay ---- */

/* Returns the Crawl-delay of host 1 in ms. */
static int crawl_delay_ms(void)
{
    return setting("WEIR_TEST_CRAWL_DELAY_MS", 1000);
}

static struct origin_reply answer_delay(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request) && rig_host(request) == 1)
        return (struct origin_reply){
            .body = rig_text(rig, "User-agent: *\nCrawl-delay: %.1f\n", crawl_delay_ms() / 1000.0)};
    return rig_tree(rig, request, rig_host(request) == 1 ? 4 : PAGES, NULL);
}

static int arrivals_until(const struct crawl_fixture *rig, int host, int64_t until)
{
    int count, before = 0;
    int64_t *times = rig_arrivals(rig, host, &count);
    while (before < count && times[before] <= until)
        before++;
    free(times);
    return before;
}

/* S1-27, V1, S4-2, S4-3: during five requests to the slow host, every other host gets more. */
static void crawl_delay_holds_at_its_host_and_slows_no_other(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_delay);
    rig_space(&rig, 10 * MS);
    rig_start(&rig);
    seed_hosts(&rig, 1, HOSTS);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig.line_count, 4 + (HOSTS - 1) * PAGES);
    rig_assert_spaced(&rig, 1, crawl_delay_ms() * MS);
    assert_true(span_of(&rig, 1) >= 4 * crawl_delay_ms() * MS - STAMP_SLACK_NS);
    for (int host = 2; host <= HOSTS; host++)
        assert_true(arrivals_until(&rig, host, last_arrival(&rig, 1)) >= 5 + 3);
    rig_tear_down(&rig);
}

/* ---- threads ---- */

static struct origin_reply answer_and_count(void *context, const struct origin_request *request)
{
    (void)context;
    return (struct origin_reply){.closes = true, .status = rig_is_robots(request) ? 404 : 200};
}

/* S4-4: the crawl is a child process, so that the server's threads are not counted. */
static void thousand_hosts_need_no_thread_each(void **state)
{
    struct crawl_fixture rig;
    int status, most = 0;
    (void)state;
    rig_set_up(&rig, answer_and_count);
    rig.options.loops = 2;
    pid_t child = rig_spawn(&rig, 1000);
    while (waitpid(child, &status, WNOHANG) == 0) {
        int now = threads_of(child);
        most = now > most ? now : most;
        sleep_ns(5 * MS);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    rig_read_lines(&rig);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 1000);
    print_message("at most %d threads\n", most);
    assert_in_range(most, 3, 12);
    rig_tear_down(&rig);
}

/* R18: the global rate spaces the starts of all hosts, in both loops. */
static void global_rate_spaces_starts_of_all_hosts(void **state)
{
    struct crawl_fixture rig;
    int count;
    (void)state;
    rig_set_up(&rig, answer_plain);
    rig.options.loops = 2;
    rig.options.global_rate = 50;
    rig_start(&rig);
    seed_hosts(&rig, 1, 6);
    rig_finish(&rig);
    rig_assert_trees(&rig, 1, 6, PAGES);
    int64_t *times = rig_arrivals(&rig, -1, &count);
    assert_int_equal(count, 6 * (PAGES + 1));
    /* Each loop may have one start in hand, and another that waits for its connection. */
    const int held = 2 * 2;
    for (int i = 10; i < count; i++)
        if (times[i] - times[i - 10] < (10 - held) * 20 * MS - STAMP_SLACK_NS)
            fail_msg("ten starts in %.3f ms", (double)(times[i] - times[i - 10]) / 1e6);
    assert_true(times[count - 1] - times[0] >= (count - 1 - held) * 20 * MS - STAMP_SLACK_NS);
    print_message("%.1f a second\n", (count - 1) / ((double)(times[count - 1] - times[0]) / 1e9));
    free(times);
    rig_tear_down(&rig);
}

/* ---- requests in flight ---- */

static struct origin_reply answer_after_a_delay(void *context, const struct origin_request *request)
{
    struct origin_reply reply = rig_tree(context, request, PAGES, NULL);
    reply.delay_ns = rig_is_robots(request) ? 0 : 100 * MS;
    return reply;
}

/* Returns the most requests that a host (-1: all hosts) had to answer at once. */
static int most_at_once(const struct crawl_fixture *rig, int host)
{
    int most = 0, count = origin_requests(rig->origin);
    for (int i = 0; i < count; i++) {
        struct origin_request now = origin_request(rig->origin, i);
        int at_once = 0;
        for (int j = 0; j < count; j++) {
            struct origin_request other = origin_request(rig->origin, j);
            bool is_asked = host == -1 || (rig_host(&now) == host && rig_host(&other) == host);
            at_once += is_asked && other.at <= now.at && other.done_at > now.at;
        }
        most = at_once > most ? at_once : most;
    }
    return most;
}

/* V1, R13, S4-3: each host has a limit, and all hosts together have one. */
static void requests_in_flight_stay_within_host_and_global_limits(void **state)
{
    static const int per_host[] = {3, 20}, in_all[] = {24, 6};
    static const int least_per_host[] = {2, 1}; /* six requests in all may be one per host */
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct crawl_fixture rig;
        int most = 0;
        rig_set_up(&rig, answer_after_a_delay);
        rig.options.loops = 2;
        rig.options.concurrency = (uint32_t)in_all[i];
        rig.options.pace.max_in_flight = (uint32_t)per_host[i];
        rig_start(&rig);
        seed_hosts(&rig, 1, 6);
        rig_finish(&rig);
        rig_assert_trees(&rig, 1, 6, PAGES);
        for (int host = 1; host <= 6; host++) {
            int at_once = most_at_once(&rig, host);
            most = at_once > most ? at_once : most;
        }
        print_message("%d at once, %d in all\n", most, most_at_once(&rig, -1));
        assert_in_range(most, least_per_host[i], per_host[i]);
        assert_in_range(most_at_once(&rig, -1), 2, in_all[i]);
        rig_tear_down(&rig);
    }
}

ENGINE_TESTS(test(every_host_has_its_own_interval), test(crawl_delay_holds_at_its_host_and_slows_no_other),
             test(thousand_hosts_need_no_thread_each), test(global_rate_spaces_starts_of_all_hosts),
             test(requests_in_flight_stay_within_host_and_global_limits))
