/* SPDX-License-Identifier: MIT */
/* bytes.c - measures the resident memory of a key, a host and a queued URL, in a program whose
 * threads have heaps like those of `weir crawl`:
 *
 *     ledger_bytes key|pacer_host|plan_host|plan_url      prints the bytes of each
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <weir/pace.h>
#include <weir/table.h>

#include "cli/kit/memory_limit.h"
#include "core/pace/pace_options.h"
#include "core/plan/plan.h"
#include "limiter/memory/memory.h"

#define KEYS 1000000
#define KEY_BYTES 24
#define PACER_HOSTS 100000
#define PLAN_HOSTS 50000
#define URLS_PER_HOST 4
#define JOB 1

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "ledger_bytes: %s\n", what);
    exit(1);
}

/* Returns the resident bytes that no file backs, in whole pages: memory from malloc and mmap. */
static double resident_bytes(void)
{
    char line[256];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    need(file != NULL, "/proc/self/smaps_rollup cannot be read");
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "Anonymous:", 10) == 0 || strncmp(line, "Swap:", 5) == 0)
            kilobytes += strtod(strchr(line, ':') + 1, NULL);
    (void)fclose(file);
    return kilobytes * 1024;
}

/* ---- keys of a table ---- */

static double fill_table(void)
{
    weir_limit limit;
    weir_table *table;
    weir_table_options options;
    weir_decision decision;
    char key[KEY_BYTES + 1];
    double before = resident_bytes();
    weir_table_options_init(&options);
    options.max_keys = KEYS;
    need(weir_limit_token_bucket(&limit, 100, 1000, WEIR_SECOND) == 0 &&
             weir_table_new(&limit, 1, &options, &table) == 0,
         "no table");
    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "key-%020u", i);
        need(weir_table_try(table, key, KEY_BYTES, 1, &decision) == 0, "no key");
    }
    return (resident_bytes() - before) / KEYS;
}

/* ---- hosts of a pacer ---- */

static double fill_pacer(void)
{
    weir_pacer *pacer;
    weir_pacer_options options;
    weir_permit permit;
    weir_decision decision;
    char key[KEY_BYTES + 1];
    double before = resident_bytes();
    weir_pacer_options_init(&options);
    options.max_hosts = PACER_HOSTS;
    options.sweep_every_ns = -1;
    need(weir_pacer_new(NULL, &options, &pacer) == 0, "no pacer");
    for (unsigned i = 0; i < PACER_HOSTS; i++) {
        const weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = WEIR_MILLISECOND};
        (void)snprintf(key, sizeof key, "key-%020u", i);
        need(weir_pacer_try(pacer, key, KEY_BYTES, NULL, 0, &permit, &decision) == 0 && decision.verdict == WEIR_GO &&
                 weir_permit_finish(&permit, &outcome) == 0,
             "no host");
    }
    return (resident_bytes() - before) / PACER_HOSTS;
}

/* ---- hosts and URLs of a crawl's plan ---- */

static struct wr_plan *plan;
static char url_text[WR_URL_ROOM];
static struct wr_url url;

static void make_plan(void)
{
    static const unsigned char secret[WR_HASH_SECRET_BYTES] = {3};
    static struct wr_hash_key hash_key;
    struct wr_plan_options options = {.ignores_robots = true, .allocator = wr_allocator_or_steady(NULL)};
    struct wr_robots_lifecycle_options life = {.on_error = WR_ROBOTS_ON_ERROR_RFC9309};
    weir_pace_options pace;
    wr_hash_key_init(&hash_key, secret);
    options.hash_key = &hash_key;
    options.max_hosts = PLAN_HOSTS;
    options.max_tasks = PLAN_HOSTS * URLS_PER_HOST * 2;
    options.known_max = PLAN_HOSTS * URLS_PER_HOST * 2;
    weir_pace_options_init(&pace);
    need(wr_pace_options_check(&pace, &options.pace) == 0 &&
             wr_robots_lifecycle_options_check(&life, &options.robots) == 0 && wr_plan_new(&options, &plan) == 0 &&
             wr_plan_job_add(plan, &(struct wr_plan_job){.id = JOB}) == 0,
         "no plan");
    need(wr_url_parse(wr_span_of("http://h0000000.example/articles/0000000"), NULL, NULL, url_text, sizeof url_text,
                      &url) == WR_URL_OK,
         "no URL");
}

static void set_digits(char *digits, unsigned number)
{
    for (int i = 6; i >= 0; i--, number /= 10)
        digits[i] = (char)('0' + number % 10);
}

static uint64_t name_url(unsigned host, unsigned task)
{
    set_digits(url_text + url.host_at + 1, host);
    set_digits(url_text + url.path_at + strlen("/articles/"), task);
    uint64_t mixed = ((uint64_t)host << 20 | task) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return mixed ^ mixed >> 31;
}

static void offer_all(void)
{
    for (unsigned task = 0; task < URLS_PER_HOST; task++)
        for (unsigned host = 0; host < PLAN_HOSTS; host++) {
            struct wr_url_to_add offer = {.job = JOB, .fingerprint = name_url(host, task), .url = &url};
            need(wr_plan_add_url(plan, &offer, WEIR_SECOND) == WR_ADD_URL_NEW, "the plan refuses a URL");
            need(!wr_plan_known_is_crowded(plan) || wr_plan_known_grow(plan) == 0, "the plan does not grow");
        }
}

static void load(const struct wr_plan_action *action)
{
    unsigned host = (unsigned)strtoul(wr_plan_host_key(action->host).data + 1, NULL, 10);
    if (action->wants_memory)
        wr_plan_restore_host(plan, action->host, &(struct wr_plan_stored_host){.pace = NULL}, WEIR_SECOND, 0);
    for (unsigned task = 0; task < URLS_PER_HOST; task++) {
        struct wr_plan_row row = {.fingerprint = name_url(host, task), .position = {(int64_t)task + 1, 0}, .url = &url};
        need(wr_plan_load_row(plan, action->host, JOB, &row, WEIR_SECOND) == 0, "the plan takes no task");
    }
    wr_plan_load_end(plan, action->host, JOB, true, 0, WEIR_SECOND);
}

/* Loads URLs into memory until each host has some. */
static void load_all(void)
{
    struct wr_plan_action action;
    for (wr_plan_next(plan, WEIR_SECOND, &action); action.kind == WR_PLAN_LOAD;
         wr_plan_next(plan, WEIR_SECOND, &action))
        load(&action);
    need(action.kind == WR_PLAN_START, "the plan has nothing to do");
}

static double fill_plan_hosts(void)
{
    double before = resident_bytes();
    make_plan();
    offer_all();
    return (resident_bytes() - before) / PLAN_HOSTS;
}

static double fill_plan_urls(void)
{
    (void)fill_plan_hosts();
    double before = resident_bytes();
    load_all();
    return (resident_bytes() - before) / PLAN_HOSTS / URLS_PER_HOST;
}

/* ---- measured in a thread, which has its own heap ---- */

static void *fill(void *context)
{
    static const struct {
        const char *name;
        double (*fill)(void);
    } kinds[] = {
        {"key", fill_table}, {"pacer_host", fill_pacer}, {"plan_host", fill_plan_hosts}, {"plan_url", fill_plan_urls}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, context) == 0) {
            printf("%.2f\n", kinds[i].fill());
            return context;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *done = NULL;
    need(argc == 2, "key, pacer_host, plan_host or plan_url?");
    /* the use of huge pages would depend on other processes */
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    wr_memory_limit_apply();
    need(pthread_create(&thread, NULL, fill, argv[1]) == 0 && pthread_join(thread, &done) == 0, "no thread");
    need(done != NULL, "there is no such figure");
    return 0;
}
