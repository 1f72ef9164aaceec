/* SPDX-License-Identifier: MIT */
/* report_data.c - reads the report of a crawl from its JSON. */
#include "cli/report/report_data.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/parse.h"

/* ---- members ---- */

static uint64_t member_count(const json_t *object, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(object, name));
    return number > 0 ? (uint64_t)number : 0;
}

static int64_t seconds_to_ns(const json_t *value)
{
    double seconds = json_number_value(value);
    if (!(seconds > 0))
        return 0;
    return seconds < (double)WEIR_DURATION_MAX / 1e9 ? (int64_t)(seconds * 1e9 + 0.5) : WEIR_DURATION_MAX;
}

/* Returns a rate of the report, per second; `none` if it is null or 0. */
static double member_rate(const json_t *object, const char *name, double none)
{
    double rate = json_number_value(json_object_get(object, name));
    return rate > 0 ? rate : none;
}

/* Returns a copy of the text without control characters, "" if it is missing; NULL if out of
 * memory. */
static char *member_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    char *copy = strdup(text != NULL ? text : "");
    if (copy != NULL && !wr_span_is_clean(wr_span_of(copy)))
        for (char *c = copy; *c != '\0'; c++)
            *c = wr_ascii_is_printable(*c) ? *c : '?';
    return copy;
}

static void read_report_waits(const json_t *object, int64_t ret_waited_ns[WEIR_REASON_QUEUE + 1])
{
    const json_t *waits = json_object_get(object, "waited_s");
    for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++)
        ret_waited_ns[i] = seconds_to_ns(json_object_get(waits, weir_reason_name((weir_reason)i)));
}

/* ---- hosts ---- */

static void read_report_starts(const json_t *object, struct wr_report_data_host *host)
{
    const json_t *list = json_object_get(object, "starts");
    size_t count = json_array_size(list);
    host->points = count < WR_RATE_HISTORY_POINTS ? count : WR_RATE_HISTORY_POINTS;
    for (size_t i = 0; i < host->points; i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t starts = json_integer_value(item);
        host->starts[i] = !json_is_integer(item) ? -1 : starts < 0 ? 0 : starts < UINT32_MAX ? starts : UINT32_MAX;
    }
}

static bool read_report_host(const json_t *object, struct wr_report_data_host *ret_host)
{
    *ret_host = (struct wr_report_data_host){
        .name = member_text(object, "host"),
        .requests = member_count(object, "requests"),
        .ok = member_count(object, "ok"),
        .rejected = member_count(object, "rejected"),
        .failed = member_count(object, "failed"),
        .retries = member_count(object, "retries"),
        .bytes = member_count(object, "bytes"),
        .too_soon = member_count(object, "too_soon"),
        .reached = member_rate(object, "reached_per_s", 0),
        .allowed = member_rate(object, "allowed_per_s", (double)INFINITY),
        .closest_ns = seconds_to_ns(json_object_get(object, "closest_s")),
        .robots_delay_ns = seconds_to_ns(json_object_get(object, "robots_delay_s")),
    };
    read_report_waits(object, ret_host->waited_ns);
    read_report_starts(object, ret_host);
    return ret_host->name != NULL;
}

static bool read_report_hosts(const json_t *root, struct wr_report_data *facts)
{
    const json_t *list = json_object_get(root, "hosts");
    size_t count = json_array_size(list);
    facts->hosts_left_out = member_count(root, "hosts_left_out");
    if (count > WR_REPORT_DATA_HOSTS) {
        facts->hosts_left_out += count - WR_REPORT_DATA_HOSTS;
        count = WR_REPORT_DATA_HOSTS;
    }
    facts->hosts = calloc(count + 1, sizeof *facts->hosts);
    if (facts->hosts == NULL)
        return false;
    for (; facts->host_count < count; facts->host_count++)
        if (!read_report_host(json_array_get(list, facts->host_count), &facts->hosts[facts->host_count]))
            return false;
    return true;
}

/* ---- totals ---- */

static void read_statuses(json_t *root, struct wr_report_data *facts)
{
    json_t *statuses = json_object_get(root, "statuses");
    const char *name;
    json_t *count;
    json_object_foreach(statuses, name, count)
    {
        uint64_t status = 0;
        if (facts->status_count == WR_REPORT_DATA_STATUSES || json_integer_value(count) <= 0)
            continue;
        if (strcmp(name, "none") != 0 && wr_parse_u64(name, strlen(name), 1, 999, &status) != 0)
            continue;
        facts->statuses[facts->status_count++] =
            (struct wr_report_data_status){(int)status, (uint64_t)json_integer_value(count)};
    }
}

static void read_report_counts(const json_t *root, struct wr_report_data *facts)
{
    const struct {
        const char *name;
        uint64_t *count;
    } counts[] = {
        {"job", &facts->job},
        {"pages", &facts->pages},
        {"fetched", &facts->fetched},
        {"unchanged", &facts->unchanged},
        {"failed", &facts->failed},
        {"denied", &facts->denied},
        {"redirects", &facts->redirects},
        {"blocked", &facts->blocked},
        {"blocked_hosts", &facts->blocked_hosts},
        {"requests", &facts->requests},
        {"robots_requests", &facts->robots},
        {"rejected", &facts->rejected},
        {"retries", &facts->retries},
        {"bytes", &facts->bytes},
        {"queued", &facts->queued},
        {"seeds_refused", &facts->seeds_refused},
        {"links_beyond_pages", &facts->beyond},
        {"links_beyond_depth", &facts->deeper},
        {"sitemaps_left_out", &facts->unread},
        {"max_pages", &facts->max_pages},
        {"host_pages", &facts->host_pages},
        {"depth", &facts->depth},
        {"too_soon", &facts->too_soon},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        *counts[i].count = member_count(root, counts[i].name);
}

static bool read_texts(const json_t *root, struct wr_report_data *facts)
{
    return (facts->end = member_text(root, "end")) != NULL && (facts->why = member_text(root, "why")) != NULL &&
           (facts->state = member_text(root, "state")) != NULL && (facts->out = member_text(root, "out")) != NULL &&
           (facts->ended_at = member_text(root, "ended_at")) != NULL &&
           (facts->failed_url = member_text(root, "failed_url")) != NULL &&
           (facts->failed_why = member_text(root, "failed_why")) != NULL;
}

int wr_report_data_read(struct wr_span json, struct wr_report_data *ret_facts)
{
    struct wr_report_data facts = {.job = 0};
    json_t *root = json_loadb(json.data, json.bytes, 0, NULL);
    if (!json_is_object(root) || !json_is_string(json_object_get(root, "end"))) {
        json_decref(root);
        return WEIR_E_INVAL;
    }
    read_report_counts(root, &facts);
    read_statuses(root, &facts);
    read_report_waits(root, facts.waited_ns);
    facts.elapsed_ns = seconds_to_ns(json_object_get(root, "seconds"));
    facts.step_ns = seconds_to_ns(json_object_get(root, "step_s"));
    bool well = read_texts(root, &facts) && read_report_hosts(root, &facts);
    json_decref(root);
    if (well)
        *ret_facts = facts;
    else
        wr_report_data_release(&facts);
    return well ? 0 : WEIR_E_NOMEM;
}

void wr_report_data_release(struct wr_report_data *facts)
{
    char *const texts[] = {facts->end,      facts->why,        facts->state,     facts->out,
                           facts->ended_at, facts->failed_url, facts->failed_why};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    for (size_t i = 0; i < facts->host_count; i++)
        free(facts->hosts[i].name);
    free(facts->hosts);
    *facts = (struct wr_report_data){.job = 0};
}
