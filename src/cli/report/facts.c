/* SPDX-License-Identifier: MIT */
/* facts.c - reads the report of a crawl from its JSON. */
#include "cli/report/facts.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/parse.h"

/* ---- members ---- */

static uint64_t count_of(const json_t *object, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(object, name));
    return number > 0 ? (uint64_t)number : 0;
}

static int64_t ns_of(const json_t *value)
{
    double seconds = json_number_value(value);
    if (!(seconds > 0))
        return 0;
    return seconds < (double)WEIR_DURATION_MAX / 1e9 ? (int64_t)(seconds * 1e9 + 0.5) : WEIR_DURATION_MAX;
}

/* Returns a rate of the report, per second; `none` if it is null or 0. */
static double rate_of(const json_t *object, const char *name, double none)
{
    double rate = json_number_value(json_object_get(object, name));
    return rate > 0 ? rate : none;
}

/* Returns a copy of the text without control characters, "" if it is missing; NULL if out of
 * memory. */
static char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    char *copy = strdup(text != NULL ? text : "");
    if (copy != NULL && !wr_span_clean(wr_span_of(copy)))
        for (char *c = copy; *c != '\0'; c++)
            *c = wr_ascii_is_printable(*c) ? *c : '?';
    return copy;
}

static void read_waits(const json_t *object, int64_t ret_waited_ns[WEIR_REASON_QUEUE + 1])
{
    const json_t *waits = json_object_get(object, "waited_s");
    for (size_t i = 1; i <= WEIR_REASON_QUEUE; i++)
        ret_waited_ns[i] = ns_of(json_object_get(waits, weir_reason_name((weir_reason)i)));
}

/* ---- hosts ---- */

static void read_starts(const json_t *object, struct wr_facts_host *host)
{
    const json_t *list = json_object_get(object, "starts");
    size_t count = json_array_size(list);
    host->points = count < WR_COURSE_POINTS ? count : WR_COURSE_POINTS;
    for (size_t i = 0; i < host->points; i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t starts = json_integer_value(item);
        host->starts[i] = !json_is_integer(item) ? -1 : starts < 0 ? 0 : starts < UINT32_MAX ? starts : UINT32_MAX;
    }
}

static bool read_host(const json_t *object, struct wr_facts_host *ret_host)
{
    *ret_host = (struct wr_facts_host){
        .name = text_of(object, "host"),
        .requests = count_of(object, "requests"),
        .ok = count_of(object, "ok"),
        .rejected = count_of(object, "rejected"),
        .failed = count_of(object, "failed"),
        .retries = count_of(object, "retries"),
        .bytes = count_of(object, "bytes"),
        .too_soon = count_of(object, "too_soon"),
        .reached = rate_of(object, "reached_per_s", 0),
        .allowed = rate_of(object, "allowed_per_s", (double)INFINITY),
        .closest_ns = ns_of(json_object_get(object, "closest_s")),
        .robots_delay_ns = ns_of(json_object_get(object, "robots_delay_s")),
    };
    read_waits(object, ret_host->waited_ns);
    read_starts(object, ret_host);
    return ret_host->name != NULL;
}

static bool read_hosts(const json_t *root, struct wr_facts *facts)
{
    const json_t *list = json_object_get(root, "hosts");
    size_t count = json_array_size(list);
    facts->hosts_left_out = count_of(root, "hosts_left_out");
    if (count > WR_FACTS_HOSTS) {
        facts->hosts_left_out += count - WR_FACTS_HOSTS;
        count = WR_FACTS_HOSTS;
    }
    facts->hosts = calloc(count + 1, sizeof *facts->hosts);
    if (facts->hosts == NULL)
        return false;
    for (; facts->host_count < count; facts->host_count++)
        if (!read_host(json_array_get(list, facts->host_count), &facts->hosts[facts->host_count]))
            return false;
    return true;
}

/* ---- totals ---- */

static void read_statuses(json_t *root, struct wr_facts *facts)
{
    json_t *statuses = json_object_get(root, "statuses");
    const char *name;
    json_t *count;
    json_object_foreach(statuses, name, count)
    {
        uint64_t status = 0;
        if (facts->status_count == WR_FACTS_STATUSES || json_integer_value(count) <= 0)
            continue;
        if (strcmp(name, "none") != 0 && wr_parse_u64(name, strlen(name), 1, 999, &status) != 0)
            continue;
        facts->statuses[facts->status_count++] =
            (struct wr_facts_status){(int)status, (uint64_t)json_integer_value(count)};
    }
}

static void read_counts(const json_t *root, struct wr_facts *facts)
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
        *counts[i].count = count_of(root, counts[i].name);
}

static bool read_texts(const json_t *root, struct wr_facts *facts)
{
    return (facts->end = text_of(root, "end")) != NULL && (facts->why = text_of(root, "why")) != NULL &&
           (facts->state = text_of(root, "state")) != NULL && (facts->out = text_of(root, "out")) != NULL &&
           (facts->ended_at = text_of(root, "ended_at")) != NULL &&
           (facts->failed_url = text_of(root, "failed_url")) != NULL &&
           (facts->failed_why = text_of(root, "failed_why")) != NULL;
}

int wr_facts_read(struct wr_span json, struct wr_facts *ret_facts)
{
    struct wr_facts facts = {.job = 0};
    json_t *root = json_loadb(json.data, json.bytes, 0, NULL);
    if (!json_is_object(root) || !json_is_string(json_object_get(root, "end"))) {
        json_decref(root);
        return WEIR_E_INVAL;
    }
    read_counts(root, &facts);
    read_statuses(root, &facts);
    read_waits(root, facts.waited_ns);
    facts.elapsed_ns = ns_of(json_object_get(root, "seconds"));
    facts.step_ns = ns_of(json_object_get(root, "step_s"));
    bool well = read_texts(root, &facts) && read_hosts(root, &facts);
    json_decref(root);
    if (well)
        *ret_facts = facts;
    else
        wr_facts_release(&facts);
    return well ? 0 : WEIR_E_NOMEM;
}

void wr_facts_release(struct wr_facts *facts)
{
    char *const texts[] = {facts->end,      facts->why,        facts->state,     facts->out,
                           facts->ended_at, facts->failed_url, facts->failed_why};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    for (size_t i = 0; i < facts->host_count; i++)
        free(facts->hosts[i].name);
    free(facts->hosts);
    *facts = (struct wr_facts){.job = 0};
}
