/* SPDX-License-Identifier: MIT */
/* bench_plan.c - weir bench plan: measures the time per URL of a crawl's decisions and the memory
 * per host and task. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/bench/bench.h"
#include "cli/bench/resident.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "core/pace/pace_options.h"
#include "core/plan/plan.h"
#include "limiter/clock/clock.h"

#define DIGITS 7
#define JOB 1
#define LATENCY_NS (50 * WEIR_MILLISECOND)

struct bench_plan_settings {
    uint64_t hosts, tasks, group;
    bool json;
};

static const struct wr_option options[] = {
    {"hosts", WR_COUNT(struct bench_plan_settings, hosts), .value = "N", .min = 1, .max = 5000000,
     .help = "Hosts in the plan"},
    {"tasks", WR_COUNT(struct bench_plan_settings, tasks), .value = "N", .min = 1, .max = 100000,
     .help = "URLs per host"},
    {"group", WR_COUNT(struct bench_plan_settings, group), .value = "N", .min = 1, .max = 5000000,
     .help = "Hosts per gate"},
    {"json", WR_FLAG(struct bench_plan_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench plan",
    .about = "Offers URLs of many hosts to the plan of a crawl, then fetches them all in virtual\n"
             "time, at most one a second from each host or group. The store and the web are\n"
             "simulated, and answer at once.\n"
             "\n"
             "  ns_per_offer     checking one URL (new, in budget, no trap) and counting it\n"
             "  ns_per_url       next, load, sent and outcome; wall time over the URLs\n"
             "  bytes_per_host   memory of the plan per host, with gate and robots.txt state\n"
             "  bytes_per_task   memory per task that is in memory\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

struct plan_bench {
    const struct bench_plan_settings *settings;
    struct wr_plan *plan;
    struct wr_hash_key hash_key;
    char text[WR_URL_ROOM];
    struct wr_url url;
    int64_t now;
};

struct plan_bench_result {
    double offer_ns, url_ns, bytes_per_host, bytes_per_task;
    size_t peak_bytes, resident_bytes, tasks_peak;
    uint64_t starts, loads;
    double virtual_s;
};

/* ---- URLs, which differ only in their digits ---- */

static void set_digits(char *digits, uint64_t number)
{
    for (int i = DIGITS; i-- > 0; number /= 10)
        digits[i] = (char)('0' + number % 10);
}

static uint64_t read_digits(const char *digits)
{
    uint64_t number = 0;
    for (int i = 0; i < DIGITS; i++)
        number = number * 10 + (uint64_t)(digits[i] - '0');
    return number;
}

static const struct wr_url *bench_url(struct plan_bench *bench, uint64_t host, uint64_t task)
{
    set_digits(bench->text + bench->url.host_at + 1, host);
    set_digits(bench->text + bench->url.path_at + 3, task);
    return &bench->url;
}

static uint64_t fingerprint_of(uint64_t host, uint64_t task)
{
    uint64_t z = (host << 20 ^ task) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ z >> 31;
}

/* ---- the plan ---- */

/* Returns the group of a host as seven digits: "0000012" is the 13th group. */
static struct wr_span bench_host_group(void *context, struct wr_span key)
{
    static char name[DIGITS];
    const struct plan_bench *bench = context;
    set_digits(name, read_digits(key.data + 1) / bench->settings->group);
    return (struct wr_span){name, DIGITS};
}

static int make_bench_plan(struct plan_bench *bench)
{
    static const unsigned char secret[WR_HASH_SECRET_BYTES] = {3};
    struct wr_plan_options plan = {.ignores_robots = true, .allocator = weir_allocator_system()};
    struct wr_robots_lifecycle_options robots = {.on_error = WR_ROBOTS_ON_ERROR_RFC9309};
    weir_pace_options pace;
    wr_hash_key_init(&bench->hash_key, secret);
    plan.hash_key = &bench->hash_key;
    plan.context = bench;
    plan.group_of = bench->settings->group > 1 ? bench_host_group : NULL;
    plan.max_hosts = (uint32_t)bench->settings->hosts;
    plan.max_tasks = (uint32_t)(bench->settings->hosts * 4 > 262144 ? bench->settings->hosts * 4 : 262144);
    plan.known_max = wr_size_of(bench->settings->hosts * bench->settings->tasks * 2);
    weir_pace_options_init(&pace);
    pace.min_interval_ns = WEIR_SECOND;
    int error = wr_pace_options_check(&pace, &plan.pace);
    error = error != 0 ? error : wr_robots_lifecycle_options_check(&robots, &plan.robots);
    error = error != 0 ? error : wr_plan_new(&plan, &bench->plan);
    error = error != 0 ? error : wr_plan_job_add(bench->plan, &(struct wr_plan_job){.id = JOB});
    return error;
}

static size_t plan_bytes(const struct plan_bench *bench, size_t *ret_tasks)
{
    struct wr_plan_stats stats;
    wr_plan_stats_get(bench->plan, &stats);
    if (ret_tasks != NULL)
        *ret_tasks = stats.tasks;
    return stats.memory_bytes - stats.known_bytes;
}

static int add_bench_urls(struct plan_bench *bench)
{
    for (uint64_t task = 0; task < bench->settings->tasks; task++)
        for (uint64_t host = 0; host < bench->settings->hosts; host++) {
            struct wr_url_to_add offer = {
                .job = JOB, .fingerprint = fingerprint_of(host, task), .url = bench_url(bench, host, task)};
            if (wr_plan_add_url(bench->plan, &offer, bench->now) != WR_ADD_URL_NEW)
                return WEIR_E_NOMEM;
            if (wr_plan_known_is_crowded(bench->plan) && wr_plan_known_grow(bench->plan) != 0)
                return WEIR_E_NOMEM;
        }
    return 0;
}

static int load_host_tasks(struct plan_bench *bench, const struct wr_plan_action *action)
{
    uint64_t host = read_digits(wr_plan_host_key(action->host).data + 1), given = 0;
    int error = 0;
    if (action->wants_memory)
        wr_plan_restore_host(bench->plan, action->host, &(struct wr_plan_stored_host){.pace = NULL}, bench->now, 0);
    for (uint64_t task = (uint64_t)action->after.id; task < bench->settings->tasks && given < action->count; task++) {
        struct wr_plan_row row = {.fingerprint = fingerprint_of(host, task),
                                  .position = {(int64_t)task + 1, 0},
                                  .url = bench_url(bench, host, task)};
        error = wr_plan_load_row(bench->plan, action->host, JOB, &row, bench->now);
        if (error != 0)
            break;
        given++;
    }
    wr_plan_load_end(bench->plan, action->host, JOB, error == 0 && given < action->count, 0, bench->now);
    return error == WEIR_E_FULL ? 0 : error;
}

static void fetch_plan_task(struct plan_bench *bench, const struct wr_plan_action *action)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = LATENCY_NS};
    if (wr_plan_may_send(bench->plan, action->task, bench->now).verdict != WEIR_GO)
        abort();
    wr_plan_sent(bench->plan, action->task, bench->now);
    wr_plan_page_finished(bench->plan, action->task, &outcome, 12000, bench->now);
}

/* Runs the plan until all URLs are fetched. */
static int fetch_all_tasks(struct plan_bench *bench, struct plan_bench_result *result)
{
    struct wr_plan_action action;
    int error = 0;
    for (;;) {
        wr_plan_next(bench->plan, bench->now, &action);
        if (action.kind == WR_PLAN_DRAINED || error != 0)
            return error;
        if (action.kind == WR_PLAN_IDLE) {
            bench->now = action.at;
        } else if (action.kind == WR_PLAN_LOAD) {
            error = load_host_tasks(bench, &action);
            result->loads++;
        } else if (action.kind == WR_PLAN_START) {
            /* All hosts have loaded their tasks before the first start, so memory is at its
             * peak. */
            if (result->starts++ == 0)
                result->peak_bytes = plan_bytes(bench, &result->tasks_peak);
            fetch_plan_task(bench, &action);
        }
    }
}

static int run_plan_bench(const struct bench_plan_settings *settings, struct plan_bench_result *ret_result)
{
    static struct plan_bench bench;
    double urls = (double)settings->hosts * (double)settings->tasks;
    bench = (struct plan_bench){.settings = settings, .now = WEIR_SECOND};
    size_t before_bytes = wr_resident_bytes();
    if (wr_url_parse(wr_span_of("http://h0000000.example/p/0000000"), NULL, NULL, bench.text, sizeof bench.text,
                     &bench.url) != WR_URL_OK)
        abort();
    int error = make_bench_plan(&bench);
    if (error != 0)
        return error;
    size_t empty_bytes = plan_bytes(&bench, NULL);
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    error = add_bench_urls(&bench);
    int64_t offered_at = weir_clock_now(weir_clock_monotonic());
    size_t offered_bytes = plan_bytes(&bench, NULL);
    error = error != 0 ? error : fetch_all_tasks(&bench, ret_result);
    int64_t end_at = weir_clock_now(weir_clock_monotonic());
    ret_result->resident_bytes = wr_resident_bytes() - before_bytes;
    ret_result->offer_ns = (double)(offered_at - start_at) / urls;
    ret_result->url_ns = (double)(end_at - offered_at) / urls;
    ret_result->bytes_per_host = (double)(offered_bytes - empty_bytes) / (double)settings->hosts;
    if (ret_result->tasks_peak > 0)
        ret_result->bytes_per_task = (double)(ret_result->peak_bytes - offered_bytes) / (double)ret_result->tasks_peak;
    ret_result->virtual_s = (double)bench.now / (double)WEIR_SECOND - 1;
    wr_plan_free(bench.plan);
    return error;
}

/* ---- printing ---- */

static void print_plan_json(const struct bench_plan_settings *settings, const struct plan_bench_result *result)
{
    wr_print("{\"hosts\": %" PRIu64 ", \"tasks\": %" PRIu64 ", \"group\": %" PRIu64 ", \"starts\": %" PRIu64
             ", \"loads\": %" PRIu64 ", \"virtual_s\": %.1f,\n",
             settings->hosts, settings->tasks, settings->group, result->starts, result->loads, result->virtual_s);
    wr_print(" \"ns_per_offer\": %.1f, \"ns_per_url\": %.1f, \"bytes_per_host\": %.1f, \"bytes_per_task\": %.1f,\n",
             result->offer_ns, result->url_ns, result->bytes_per_host, result->bytes_per_task);
    wr_print(" \"tasks_in_memory\": %zu, \"plan_bytes\": %zu, \"resident_bytes\": %zu}\n", result->tasks_peak,
             result->peak_bytes, result->resident_bytes);
}

static void print_plan_text(const struct bench_plan_settings *settings, const struct plan_bench_result *result)
{
    wr_print("%" PRIu64 " hosts, %" PRIu64 " URLs each, fetched in %.1f s of virtual time\n", settings->hosts,
             settings->tasks, result->virtual_s);
    wr_print("offer   %10.1f ns per URL\n", result->offer_ns);
    wr_print("fetch   %10.1f ns per URL: next, load, sent, outcome\n", result->url_ns);
    wr_print("memory  %10.1f bytes per host, %.1f per task in memory (%zu of them), %.1f MB resident\n",
             result->bytes_per_host, result->bytes_per_task, result->tasks_peak, (double)result->resident_bytes / 1e6);
}

int wr_bench_plan_run(int argc, char **argv)
{
    struct bench_plan_settings settings = {.hosts = 100000, .tasks = 10, .group = 1};
    struct plan_bench_result result = {.offer_ns = 0};
    int status;
    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    int error = run_plan_bench(&settings, &result);
    if (error != 0) {
        wr_complain("%s", weir_error_text(error));
        return WR_EXIT_FAILED;
    }
    (settings.json ? print_plan_json : print_plan_text)(&settings, &result);
    return WR_EXIT_OK;
}
