/* SPDX-License-Identifier: MIT */
/* job_report.c - computes the report of a job that processes share from the database: sums of tasks
 * by host, and the current data of hosts. */
#include "cli/report/job_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "cli/report/members.h"
#include "cli/report/report_data.h"
#include "crawl/engine/engine.h"
#include "limiter/memory/memory.h"

#define HOSTS_MAX ((size_t)1 << 24)
#define AT_A_TIME 10000

struct request_counts {
    uint64_t requests, ok, rejected, failed, retries, bytes;
    int64_t first_wall_at, last_wall_at;
};

struct job_host {
    struct request_counts asked;
    double allowed;
    int64_t robots_delay_ns;
    size_t key_bytes;
    char key[];
};

struct job_report {
    struct wr_store *store;
    struct wr_map hosts;
    struct wr_store_job job; /* the job, without its texts */
    char why[WR_STORE_WHY_MAX + 1];
    struct request_counts total;
    uint64_t pages, fetched, unchanged, denied, redirects, blocked, failed_pages;
    uint64_t statuses[WR_STATUSES_COUNT];
    uint64_t read; /* number of rows in the current batch */
    int64_t last;
    int error;
};

/* ---- reading ---- */

static void note_job(void *context, const struct wr_store_row *row)
{
    struct job_report *whole = context;
    whole->job = row->job;
    memcpy(whole->why, row->job.why.data, row->job.why.bytes);
    whole->why[row->job.why.bytes] = '\0';
}

static struct job_host *find_or_add_job_host(struct job_report *whole, struct wr_span key)
{
    struct job_host *host = wr_map_get(&whole->hosts, key.data, key.bytes);
    if (host != NULL)
        return host;
    host = calloc(1, sizeof *host + key.bytes);
    if (host == NULL) {
        whole->error = WEIR_E_NOMEM;
        return NULL;
    }
    host->key_bytes = key.bytes;
    host->allowed = (double)INFINITY;
    memcpy(host->key, key.data, key.bytes);
    whole->error = wr_map_put(&whole->hosts, host->key, key.bytes, host, NULL);
    if (whole->error == 0)
        return host;
    free(host);
    return NULL;
}

static void add_task_sum(struct request_counts *asked, const struct wr_store_task_sum *sum)
{
    bool is_rejected = sum->status == 429 || sum->status == 403 || sum->status == 503;
    bool is_ok = sum->status >= 200 && sum->status < 400;
    asked->requests += sum->attempts;
    asked->bytes += sum->bytes;
    asked->retries += sum->attempts > sum->tasks ? sum->attempts - sum->tasks : 0;
    if (sum->attempts == 0 || sum->state == WR_TASK_QUEUED)
        return;
    asked->ok += is_ok ? sum->tasks : 0;
    asked->rejected += is_rejected ? sum->tasks : 0;
    asked->failed += is_ok || is_rejected ? 0 : sum->tasks;
    if (sum->first_wall_at > 0 && (asked->first_wall_at == 0 || sum->first_wall_at < asked->first_wall_at))
        asked->first_wall_at = sum->first_wall_at;
    if (sum->last_wall_at > asked->last_wall_at)
        asked->last_wall_at = sum->last_wall_at;
}

static void count_pages(struct job_report *whole, const struct wr_store_task_sum *sum)
{
    const struct {
        const char *verdict;
        uint64_t *count;
    } counts[] = {{"fetched", &whole->fetched},     {"too_large", &whole->fetched}, {"unchanged", &whole->fetched},
                  {"unchanged", &whole->unchanged}, {"robots", &whole->denied},     {"redirect", &whole->redirects},
                  {"blocked", &whole->blocked}};
    whole->pages += sum->tasks;
    whole->failed_pages += sum->state == WR_TASK_FAILED ? sum->tasks : 0;
    whole->statuses[sum->status] += sum->attempts > 0 ? sum->tasks : 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (wr_span_is(sum->verdict, counts[i].verdict))
            *counts[i].count += sum->tasks;
}

static void on_task_sum(void *context, const struct wr_store_row *row)
{
    struct job_report *whole = context;
    const struct wr_store_task_sum *sum = &row->sum;
    add_task_sum(&whole->total, sum);
    if (sum->state != WR_TASK_QUEUED)
        count_pages(whole, sum);
    struct job_host *host =
        sum->attempts > 0 && sum->host.bytes > 0 && whole->error == 0 ? find_or_add_job_host(whole, sum->host) : NULL;
    if (host != NULL)
        add_task_sum(&host->asked, sum);
}

/* Notes the current pace of a host, if it has requests. */
static void note_host_pace(void *context, const struct wr_store_row *row)
{
    struct job_report *whole = context;
    const weir_pace_memory *memory = &row->host.memory;
    struct job_host *host = wr_map_get(&whole->hosts, row->host.key.data, row->host.key.bytes);
    whole->read++;
    whole->last = row->host.id;
    if (host == NULL)
        return;
    host->robots_delay_ns = memory->robots_delay_ns;
    if (memory->rate > 0)
        host->allowed = memory->rate;
    else if (memory->delay_ns > 0)
        host->allowed = 1e9 / (double)memory->delay_ns;
}

static int read_job_hosts(struct job_report *whole)
{
    struct wr_store_query query = {
        .what = WR_STORE_ALL_HOSTS, .limit = AT_A_TIME, .is_hasty = true, .row = note_host_pace, .context = whole};
    int error;
    do {
        whole->read = 0;
        query.after.id = whole->last;
        error = wr_store_read(whole->store, &query);
    } while (error == 0 && whole->read == AT_A_TIME);
    return error;
}

static int read_task_sums(struct job_report *whole)
{
    int64_t next = 0;
    struct wr_store_query query = {.what = WR_STORE_SUMS,
                                   .job = whole->job.id,
                                   .is_hasty = true,
                                   .ret_next = &next,
                                   .row = on_task_sum,
                                   .context = whole};
    int error;
    do {
        query.after.id = next;
        error = wr_store_read(whole->store, &query);
        error = error != 0 ? error : whole->error;
    } while (error == 0 && next != 0);
    return error;
}

static int read_job_tables(struct job_report *whole, int64_t job)
{
    const struct wr_store_query query = {
        .what = WR_STORE_JOBS, .job = job, .is_hasty = true, .row = note_job, .context = whole};
    int error = wr_store_read(whole->store, &query);
    if (error == 0 && whole->job.id == 0)
        error = WEIR_E_ABSENT;
    if (error == 0)
        error = read_task_sums(whole);
    return error == 0 ? read_job_hosts(whole) : error;
}

/* ---- JSON ---- */

static void append_host_counts(struct wr_buf *buf, const struct request_counts *asked)
{
    wr_append_json_count(buf, ", \"requests\": ", asked->requests);
    wr_append_json_count(buf, ", \"rejected\": ", asked->rejected);
    wr_append_json_count(buf, ", \"retries\": ", asked->retries);
    wr_append_json_count(buf, ", \"bytes\": ", asked->bytes);
}

static void append_job_totals(struct wr_buf *buf, const struct job_report *whole, const char *state)
{
    char name[512], ended[32] = "";
    time_t when = (time_t)(whole->job.updated_wall_at / WEIR_SECOND);
    struct tm utc;
    if (gmtime_r(&when, &utc) != NULL)
        (void)strftime(ended, sizeof ended, "%Y-%m-%dT%H:%M:%SZ", &utc);
    wr_store_name(state, name, sizeof name);
    wr_append_json_count(buf, "{\"job\": ", (uint64_t)whole->job.id);
    wr_append_member_text(buf, ", \"end\": ", wr_job_status_name(whole->job.status));
    wr_append_member_text(buf, ", \"why\": ", whole->why);
    wr_append_member_text(buf, ", \"state\": ", name);
    wr_append_member_text(buf, ", \"ended_at\": ", ended);
    wr_append_member_seconds(buf, ",\n \"seconds\": ", whole->job.updated_wall_at - whole->job.created_wall_at);
    wr_append_json_count(buf, ", \"pages\": ", whole->pages);
    wr_append_json_count(buf, ", \"fetched\": ", whole->fetched);
    wr_append_json_count(buf, ", \"unchanged\": ", whole->unchanged);
    wr_append_json_count(buf, ", \"failed\": ", whole->failed_pages);
    wr_append_json_count(buf, ", \"denied\": ", whole->denied);
    wr_append_json_count(buf, ", \"redirects\": ", whole->redirects);
    wr_append_json_count(buf, ", \"blocked\": ", whole->blocked);
    wr_append_json_count(buf, ", \"queued\": ", whole->job.queued);
    append_host_counts(buf, &whole->total);
    wr_append_member_statuses(buf, whole->statuses);
    wr_buf_append_string(buf, ",\n \"hosts\": [");
}

static void append_job_host(struct wr_buf *buf, const struct job_host *host, bool is_first)
{
    const struct request_counts *asked = &host->asked;
    int64_t over_ns = asked->last_wall_at - asked->first_wall_at;
    wr_buf_append_string(buf, is_first ? "\n  {\"host\": " : ",\n  {\"host\": ");
    wr_append_json_string(buf, (struct wr_span){host->key, host->key_bytes});
    append_host_counts(buf, asked);
    wr_append_json_count(buf, ", \"ok\": ", asked->ok);
    wr_append_json_count(buf, ", \"failed\": ", asked->failed);
    wr_append_member_rate(buf, ", \"reached_per_s\": ",
                          asked->requests > 1 && over_ns > 0 ? (double)(asked->requests - 1) * 1e9 / (double)over_ns
                                                             : 0);
    wr_append_member_rate(buf, ", \"allowed_per_s\": ", host->allowed);
    wr_append_member_seconds_or_null(buf, ", \"robots_delay_s\": ", host->robots_delay_ns);
    wr_buf_append_string(buf, "}");
}

static int compare_host_requests(const void *a, const void *b)
{
    const struct job_host *one = *(struct job_host *const *)a, *other = *(struct job_host *const *)b;
    if (one->asked.requests != other->asked.requests)
        return one->asked.requests > other->asked.requests ? -1 : 1;
    size_t bytes = one->key_bytes < other->key_bytes ? one->key_bytes : other->key_bytes;
    int order = memcmp(one->key, other->key, bytes);
    return order != 0 ? order : (one->key_bytes > other->key_bytes) - (one->key_bytes < other->key_bytes);
}

static int write_shared_job_report(struct job_report *whole, const char *state, struct wr_stored_report *found)
{
    const struct wr_map_slot *slot;
    struct wr_buf buf;
    size_t count = 0, most = whole->hosts.count < WR_REPORT_DATA_HOSTS ? whole->hosts.count : WR_REPORT_DATA_HOSTS;
    void **list = calloc(whole->hosts.count + 1, sizeof(void *));
    if (list == NULL)
        return WEIR_E_NOMEM;
    for (size_t cursor = 0; (slot = wr_map_next(&whole->hosts, &cursor)) != NULL;)
        list[count++] = slot->value;
    qsort(list, count, sizeof(void *), compare_host_requests);
    wr_buf_init(&buf, wr_allocator_or_system(NULL), WR_STORE_REPORT_MAX);
    append_job_totals(&buf, whole, state);
    for (size_t i = 0; i < most; i++)
        append_job_host(&buf, list[i], i == 0);
    wr_append_json_count(&buf, "\n ], \"hosts_left_out\": ", count - most);
    wr_buf_append_string(&buf, "}\n");
    found->bytes = buf.length;
    found->text = buf.error == 0 ? malloc(buf.length + 1) : NULL;
    if (found->text != NULL)
        memcpy(found->text, buf.bytes, buf.length);
    wr_buf_release(&buf);
    free(list);
    found->job = whole->job.id;
    found->run = 0;
    return found->text != NULL ? 0 : WEIR_E_NOMEM;
}

int wr_job_report_make(const char *state, struct wr_stored_report *found)
{
    struct job_report whole = {.pages = 0};
    const struct wr_map_slot *slot;
    found->text = NULL;
    int error = wr_store_open(&(struct wr_store_options){.path = state, .check_ns = -1}, &whole.store);
    if (error != 0)
        return error;
    wr_map_init(&whole.hosts, wr_allocator_or_system(NULL), wr_store_hash_key(whole.store), HOSTS_MAX);
    error = read_job_tables(&whole, found->job);
    if (error == 0)
        error = write_shared_job_report(&whole, state, found);
    for (size_t cursor = 0; (slot = wr_map_next(&whole.hosts, &cursor)) != NULL;)
        free(slot->value);
    wr_map_release(&whole.hosts);
    wr_store_free(whole.store);
    return error;
}
