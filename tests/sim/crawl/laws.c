/* SPDX-License-Identifier: MIT */
/* laws.c - checks the laws of a crawl from outside. */
#include "sim/crawl/laws.h"

#include <stdio.h>

#define LONG_AGO (-WEIR_DURATION_MAX)

static void forget_groups(struct laws *laws)
{
    for (int i = 0; i < LAW_GROUPS; i++)
        laws->groups[i] = (struct law_group){LONG_AGO, LONG_AGO, 0};
}

void laws_init(struct laws *laws, const struct wr_plan_options *options)
{
    *laws = (struct laws){.options = options};
    forget_groups(laws);
    for (int i = 0; i < WEB_HOSTS_MAX; i++) {
        struct law_host *host = &laws->hosts[i];
        host->closest_ns = host->reported_closest_ns = WEIR_FOREVER;
        host->last_send_at = host->window_end = host->known_since = laws->durable_window_end[i] = LONG_AGO;
    }
}

void laws_break(struct laws *laws, const char *law, struct wr_span url, int64_t now)
{
    if (laws->broken != NULL)
        return;
    laws->broken = law;
    snprintf(laws->detail, sizeof laws->detail, "%.*s at %lld ms", (int)url.bytes, url.data,
             (long long)(now / WEIR_MILLISECOND));
}

static int64_t interval_of(const struct laws *laws, const struct law_host *host)
{
    const weir_pace_options *pace = &laws->options->pace;
    int64_t ns = pace->min_interval_ns;
    if (pace->max_rate > 0 && 1e9 / pace->max_rate > (double)ns)
        ns = (int64_t)(1e9 / pace->max_rate);
    for (int i = 0; i < 2; i++)
        if (host->robots_known[i] && host->delay_ns[i] > ns)
            ns = host->delay_ns[i];
    return ns;
}

static void check_page(struct laws *laws, const struct law_host *host, struct store_row *row, struct wr_span url,
                       int64_t now)
{
    bool is_https = web_is_https(url);
    if (!laws->options->ignores_robots && !host->robots_known[is_https])
        laws_break(laws, "V3: a page while robots.txt is unknown", url, now);
    if (!laws->options->ignores_robots && host->denies[is_https] && web_kind_of(url) == 'x')
        laws_break(laws, "V3: a page that robots.txt denies", url, now);
    if (row->flies)
        laws_break(laws, "V4: a URL twice at once", url, now);
    if (row->has_ended)
        laws_break(laws, "V4: a URL that has ended", url, now);
    row->flies = true;
    row->sends++;
    if (++laws->in_flight[row->job] > laws->concurrency && laws->concurrency > 0)
        laws_break(laws, "R14: more of a job in flight than its concurrency", url, now);
}

void laws_send(struct laws *laws, struct store_row *row, struct wr_span url, int64_t now)
{
    struct law_host *host = &laws->hosts[web_host_of(url)];
    uint32_t most = laws->options->pace.max_in_flight;
    if (now < host->last_send_at + interval_of(laws, host))
        laws_break(laws, "V1: closer than the interval", url, now);
    if (now < host->known_since + interval_of(laws, host))
        laws_break(laws, "V1, R23: a known host's first request waits an interval", url, now);
    if (now < host->window_end)
        laws_break(laws, "V2: within a server's window", url, now);
    if (most > 0 && host->in_flight >= most)
        laws_break(laws, "V1: too many in flight", url, now);
    if (row != NULL)
        check_page(laws, host, row, url, now);
    if (host->sends++ > 0 && now - host->last_send_at < host->closest_ns)
        host->closest_ns = now - host->last_send_at;
    host->last_send_at = now;
    host->in_flight++;
}

void laws_hear(struct laws *laws, struct wr_span url, int64_t retry_after_ns, int64_t now)
{
    struct law_host *host = &laws->hosts[web_host_of(url)];
    if (retry_after_ns > 0 && now + retry_after_ns > host->window_end)
        host->window_end = now + retry_after_ns;
}

void laws_answer(struct laws *laws, struct store_row *row, struct wr_span url, int64_t retry_after_ns, int64_t now)
{
    struct law_host *host = &laws->hosts[web_host_of(url)];
    host->in_flight--;
    laws_hear(laws, url, retry_after_ns, now);
    if (row != NULL) {
        row->flies = false;
        laws->in_flight[row->job]--;
    }
}

/* ---- groups ---- */

static int64_t own_interval(const struct laws *laws)
{
    static const struct law_host nobody = {.robots_known = {false}};
    return interval_of(laws, &nobody);
}

void laws_group_send(struct laws *laws, uint32_t index, struct wr_span url, int64_t now)
{
    struct law_group *group = &laws->groups[index];
    if (index == 0)
        return;
    if (now < group->last_send_at + own_interval(laws))
        laws_break(laws, "D8: closer than the interval, in one group", url, now);
    if (now < group->window_end)
        laws_break(laws, "D8: within a window that a server of the group named", url, now);
    if (laws->options->pace.max_in_flight > 0 && group->in_flight >= laws->options->pace.max_in_flight)
        laws_break(laws, "D8: too many in flight, in one group", url, now);
    group->last_send_at = now;
    group->in_flight++;
}

void laws_group_hear(struct laws *laws, uint32_t index, int64_t retry_after_ns, int64_t now)
{
    struct law_group *group = &laws->groups[index];
    if (retry_after_ns > 0 && now + retry_after_ns > group->window_end)
        group->window_end = now + retry_after_ns;
}

void laws_group_answer(struct laws *laws, uint32_t index, int64_t retry_after_ns, int64_t now)
{
    laws->groups[index].in_flight--;
    laws_group_hear(laws, index, retry_after_ns, now);
}

/* ---- reports ------------- */

void laws_waited(struct laws *laws, uint32_t index, const struct wr_plan_action *action, int64_t came_at, int64_t now)
{
    struct law_host *host = &laws->hosts[index];
    const uint32_t *ms = action->waited.ms;
    int64_t sum_ns = 0, of_host_ns = 0;
    for (int i = 0; i < WR_PLAN_REASONS; i++) {
        bool is_own = i == WEIR_REASON_QUEUE || i == WEIR_REASON_RETRY;
        sum_ns += ms[i] * WEIR_MILLISECOND;
        of_host_ns += is_own ? 0 : ms[i] * WEIR_MILLISECOND;
    }
    if (sum_ns < now - came_at - 2 * WEIR_MILLISECOND || ms[WEIR_REASON_NONE] != 0)
        laws_break(laws, "R28: a page has waited longer than it says", action->url, now);
    if (of_host_ns > now - host->gone_at + WEIR_MILLISECOND)
        laws_break(laws, "R28: a host was held for longer than since its last page", action->url, now);
    host->gone_at = now;
}

void laws_reported(struct laws *laws, uint32_t index, const struct wr_plan_host_report *report, int64_t now)
{
    struct law_host *host = &laws->hosts[index];
    host->reported += report->requests;
    if (report->closest_ns < host->reported_closest_ns)
        host->reported_closest_ns = report->closest_ns;
    if (report->successes + report->rejected + report->failures > report->requests)
        laws_break(laws, "more answers than requests are reported", report->key, now);
    if (report->hasty > 0)
        laws_break(laws, "starts are reported that came too soon", report->key, now);
}

void laws_life_ended(struct laws *laws, int64_t now)
{
    for (uint32_t i = 0; i < WEB_HOSTS_MAX; i++) {
        struct law_host *host = &laws->hosts[i];
        if (host->reported != host->sends)
            laws_break(laws, "requests that no report has", wr_span_of("-"), now);
        if (host->left ? host->reported_closest_ns < host->closest_ns : host->reported_closest_ns != host->closest_ns)
            laws_break(laws, "another closest spacing is reported than there was", wr_span_of("-"), now);
        host->sends = host->reported = 0;
        host->closest_ns = host->reported_closest_ns = WEIR_FOREVER;
        host->left = false;
    }
}

void laws_window_committed(struct laws *laws, uint32_t host)
{
    laws->durable_window_end[host] = laws->hosts[host].window_end;
}

void laws_robots(struct laws *laws, uint32_t index, bool is_https, bool denies, int64_t delay_ns)
{
    struct law_host *host = &laws->hosts[index];
    host->robots_known[is_https] = true;
    host->denies[is_https] = denies;
    host->delay_ns[is_https] = delay_ns;
}

/* Restarts: values that were not stored are forgotten, and stored ones still hold. */
void laws_restart(struct laws *laws, const struct store *store, int64_t now)
{
    memset(laws->in_flight, 0, sizeof laws->in_flight);
    forget_groups(laws);
    for (uint32_t i = 0; i < WEB_HOSTS_MAX; i++) {
        struct law_host *host = &laws->hosts[i];
        const struct store_host *known = &store->committed[i];
        host->in_flight = 0;
        host->gone_at = now;
        host->window_end = laws->durable_window_end[i];
        host->known_since = known->has_memory ? now : LONG_AGO;
        host->last_send_at = known->has_memory ? host->last_send_at : LONG_AGO;
        for (int o = 0; o < 2; o++) {
            host->robots_known[o] = known->robots[o].is_known;
            host->denies[o] = host->denies[o] && known->robots[o].has_rules;
            host->delay_ns[o] = known->robots[o].has_rules ? host->delay_ns[o] : 0;
        }
    }
}
