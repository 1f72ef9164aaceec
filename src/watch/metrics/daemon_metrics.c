/* SPDX-License-Identifier: MIT */
/* daemon_metrics.c - writes the metrics of a daemon: its rules, shared limits and HTTP server. */
#include "watch/metrics/daemon_metrics.h"

#include <stdlib.h>

/* ---- rules ---- */

static void write_request_counts(struct wr_metrics *metrics, const struct wr_rules_view *view)
{
    wr_metrics_family(metrics, "weir_serve_requests_total", WR_METRIC_COUNTER, "Decisions by verdict and cause.");
    for (int i = 0; i < WR_CAUSE_COUNT; i++)
        wr_metrics_count(metrics, WR_METRIC_LABEL("verdict", wr_span_of(wr_cause_name((enum wr_cause)i))),
                         view->causes[i]);
    wr_metrics_counter(metrics, "weir_serve_shadowed_total", "Requests that shadow rules would have refused.",
                       view->shadowed);
    wr_metrics_family(metrics, "weir_serve_reloads_total", WR_METRIC_COUNTER,
                      "Reloads of the rules; failed: the old rules stayed in force.");
    wr_metrics_count(metrics, WR_METRIC_LABEL("result", wr_span_of("ok")), view->reloads);
    wr_metrics_count(metrics, WR_METRIC_LABEL("result", wr_span_of("failed")), view->reloads_failed);
    wr_metrics_counter(metrics, "weir_serve_expired_holds_total", "Holds that expired before they were ended.",
                       view->holds_expired);
}

static void write_rules_state(struct wr_metrics *metrics, const struct wr_rules_view *view)
{
    wr_metrics_gauge(metrics, "weir_serve_rules", "Rules in force.", view->rules);
    wr_metrics_gauge(metrics, "weir_serve_waiting_requests", "Requests waiting in queues.", (double)view->waiting);
    wr_metrics_gauge(metrics, "weir_serve_holds", "Holds in force: permits that a caller must release.",
                     (double)view->holds);
    wr_metrics_gauge(metrics, "weir_serve_max_holds", "Maximum of holds.", (double)view->holds_max);
    wr_metrics_gauge(metrics, "weir_serve_restored_keys", "Keys restored at the last start.", (double)view->restored);
}

static uint64_t shadowed_of(const struct wr_rule_view *rule)
{
    return rule->shadowed;
}

static uint64_t keys_of(const struct wr_rule_view *rule)
{
    return rule->table.keys;
}

static uint64_t max_keys_of(const struct wr_rule_view *rule)
{
    return rule->table.max_keys;
}

static uint64_t evicted_of(const struct wr_rule_view *rule)
{
    return rule->table.evicted;
}

static uint64_t overflowed_of(const struct wr_rule_view *rule)
{
    return rule->table.overflowed;
}

static uint64_t waiting_of(const struct wr_rule_view *rule)
{
    return rule->table.waiters;
}

static uint64_t memory_of(const struct wr_rule_view *rule)
{
    return rule->table.memory_bytes;
}

static void write_decisions(struct wr_metrics *metrics, const struct wr_rule_view *rules, uint32_t count)
{
    wr_metrics_family(metrics, "weir_serve_rule_decisions_total", WR_METRIC_COUNTER,
                      "Decisions of each rule, by verdict and cause.");
    for (uint32_t i = 0; i < count; i++)
        for (int cause = 0; cause < WR_CAUSE_COUNT; cause++) {
            const struct wr_metric_label labels[] = {{"rule", wr_span_of(rules[i].name)},
                                                     {"verdict", wr_span_of(wr_cause_name((enum wr_cause)cause))},
                                                     {NULL, {NULL, 0}}};
            wr_metrics_count(metrics, labels, rules[i].causes[cause]);
        }
}

static void write_rule_metrics(struct wr_metrics *metrics, const struct wr_rule_view *rules, uint32_t count)
{
    static const struct {
        const char *name, *help;
        enum wr_metric_kind kind;
        uint64_t (*value)(const struct wr_rule_view *rule);
    } families[] = {
        {"weir_serve_rule_shadowed_total", "Requests that the shadow rule would have refused.", WR_METRIC_COUNTER,
         shadowed_of},
        {"weir_serve_rule_evicted_keys_total", "Keys evicted for new ones.", WR_METRIC_COUNTER, evicted_of},
        {"weir_serve_rule_overflowed_total", "Decisions for new keys that shared one limit because the table was full.",
         WR_METRIC_COUNTER, overflowed_of},
        {"weir_serve_rule_keys", "Keys in memory.", WR_METRIC_GAUGE, keys_of},
        {"weir_serve_rule_max_keys", "Maximum of keys in memory.", WR_METRIC_GAUGE, max_keys_of},
        {"weir_serve_rule_waiting_requests", "Requests waiting in the queue of the rule.", WR_METRIC_GAUGE, waiting_of},
        {"weir_serve_rule_memory_bytes", "Memory of the keys of the rule.", WR_METRIC_GAUGE, memory_of},
    };
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        wr_metrics_family(metrics, families[i].name, families[i].kind, families[i].help);
        for (uint32_t n = 0; n < count; n++)
            wr_metrics_count(metrics, WR_METRIC_LABEL("rule", wr_span_of(rules[n].name)), families[i].value(&rules[n]));
    }
}

/* ---- shared rules ---- */

static void write_limit_store(struct wr_metrics *metrics, const struct wr_redis_client_view *store)
{
    const struct {
        const char *result;
        uint64_t count;
    } asks[] = {{"answered", store->wire.answered},
                {"timed_out", store->wire.timed_out},
                {"refused", store->wire.refused},
                {"broken", store->wire.broken}};
    wr_metrics_gauge(metrics, "weir_share_up", "1 while the store of shared limits answers.", !store->wire.down);
    wr_metrics_gauge(metrics, "weir_share_seated", "1 while this node may hold leases.", store->seated);
    wr_metrics_gauge(metrics, "weir_share_nodes", "Nodes that may hold leases.", store->nodes);
    wr_metrics_counter(metrics, "weir_share_commands_total", "Commands sent to the store.", store->wire.sent);
    wr_metrics_family(metrics, "weir_share_asks_total", WR_METRIC_COUNTER, "Results of commands to the store.");
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
        wr_metrics_count(metrics, WR_METRIC_LABEL("result", wr_span_of(asks[i].result)), asks[i].count);
    wr_metrics_counter(metrics, "weir_share_outages_total", "Outages of the store.", store->wire.outages);
}

static void write_shared_decisions(struct wr_metrics *metrics, const struct wr_rule_view *rules, uint32_t count)
{
    wr_metrics_family(
        metrics, "weir_share_decisions_total", WR_METRIC_COUNTER,
        "Decisions of shared rules, by source: the lease, the store, a remembered refusal, or, without the store, the "
        "node's share, open or closed; late: the store did not reply in time, and the rule is exact.");
    for (uint32_t i = 0; i < count; i++)
        for (int source = 0; rules[i].is_shared && source < 2 * WR_SOURCE_COUNT; source++) {
            enum wr_decision_source by = (enum wr_decision_source)(source / 2);
            bool granted = source % 2 == 0;
            const struct wr_metric_label labels[] = {{"rule", wr_span_of(rules[i].name)},
                                                     {"source", wr_span_of(wr_decision_source_name(by))},
                                                     {"verdict", wr_span_of(granted ? "granted" : "refused")},
                                                     {NULL, {NULL, 0}}};
            wr_metrics_count(metrics, labels, granted ? rules[i].share.granted[by] : rules[i].share.refused[by]);
        }
}

static uint64_t bound_of(const struct wr_rule_view *rule)
{
    return rule->share.bound;
}

static uint64_t overshoot_of(const struct wr_rule_view *rule)
{
    return rule->share.overshoot;
}

static uint64_t owed_of(const struct wr_rule_view *rule)
{
    return rule->share.owed;
}

static uint64_t held_of(const struct wr_rule_view *rule)
{
    return rule->share.held;
}

static uint64_t leased_keys_of(const struct wr_rule_view *rule)
{
    return rule->share.keys;
}

static void write_shared_rules(struct wr_metrics *metrics, const struct wr_rule_view *rules, uint32_t count)
{
    static const struct {
        const char *name, *help;
        uint64_t (*value)(const struct wr_rule_view *rule);
    } families[] = {
        {"weir_share_overshoot_bound", "Permits by which all nodes together may exceed the limit of a key.", bound_of},
        {"weir_share_overshoot", "Most permits that this node granted to a key in a second beyond those charged.",
         overshoot_of},
        {"weir_share_owed", "Permits granted without the store and not charged yet.", owed_of},
        {"weir_share_in_flight", "Permits in flight at this node, for limits of concurrency.", held_of},
        {"weir_share_keys", "Keys in memory.", leased_keys_of},
    };
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        wr_metrics_family(metrics, families[i].name, WR_METRIC_GAUGE, families[i].help);
        for (uint32_t n = 0; n < count; n++)
            if (rules[n].is_shared)
                wr_metrics_count(metrics, WR_METRIC_LABEL("rule", wr_span_of(rules[n].name)),
                                 families[i].value(&rules[n]));
    }
    wr_metrics_family(metrics, "weir_share_damaged_total", WR_METRIC_COUNTER,
                      "Damaged keys in the store: deleted, and counted as used up.");
    for (uint32_t n = 0; n < count; n++)
        if (rules[n].is_shared)
            wr_metrics_count(metrics, WR_METRIC_LABEL("rule", wr_span_of(rules[n].name)), rules[n].share.damaged);
    wr_metrics_family(metrics, "weir_share_longest_wait_seconds", WR_METRIC_GAUGE,
                      "Longest wait of a decision for the store.");
    for (uint32_t n = 0; n < count; n++)
        if (rules[n].is_shared)
            wr_metrics_seconds(metrics, WR_METRIC_LABEL("rule", wr_span_of(rules[n].name)),
                               rules[n].share.longest_wait_ns);
}

/* Reads each rule only once, because a table must sum over its shards. */
void wr_metrics_rules(struct wr_metrics *metrics, struct wr_rules *book)
{
    struct wr_rules_view view;
    uint32_t count = 0;
    wr_rules_view_get(book, &view);
    write_request_counts(metrics, &view);
    write_rules_state(metrics, &view);
    struct wr_rule_view *rules = calloc(WR_RULES_MAX, sizeof *rules);
    while (rules != NULL && count < WR_RULES_MAX && wr_rule_view_get(book, count, &rules[count]) == 0)
        count++;
    write_decisions(metrics, rules, count);
    write_rule_metrics(metrics, rules, count);
    if (view.has_store) {
        write_limit_store(metrics, &view.store);
        write_shared_decisions(metrics, rules, count);
        write_shared_rules(metrics, rules, count);
    }
    free(rules);
}

/* ---- the server ---- */

void wr_metrics_http(struct wr_metrics *metrics, const struct wr_http_server *server)
{
    static const char *const classes[] = {"stream", "1xx", "2xx", "3xx", "4xx", "5xx"};
    struct wr_http_server_stats stats;
    wr_http_server_stats(server, &stats);
    wr_metrics_counter(metrics, "weir_http_accepted_connections_total", "Connections accepted.", stats.accepted);
    wr_metrics_counter(metrics, "weir_http_requests_total", "Requests read.", stats.requests);
    wr_metrics_counter(metrics, "weir_http_refused_total", "Requests refused as malformed or too large.",
                       stats.refused);
    wr_metrics_counter(metrics, "weir_http_foreign_total",
                       "Requests refused because a page of another site may have sent them.", stats.foreign);
    wr_metrics_counter(metrics, "weir_http_late_total",
                       "Connections closed because a head, a body or a reader was too slow.", stats.late);
    wr_metrics_counter(metrics, "weir_http_turned_away_total",
                       "Connections refused: too many, or the peer is not allowed.", stats.turned);
    wr_metrics_family(metrics, "weir_http_answers_total", WR_METRIC_COUNTER, "Responses by class of status.");
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        wr_metrics_count(metrics, WR_METRIC_LABEL("class", wr_span_of(classes[i])), stats.answered[i]);
    wr_metrics_gauge(metrics, "weir_http_connections", "Open connections.", (double)stats.connections);
    wr_metrics_gauge(metrics, "weir_http_streams", "Connections with an event stream.", (double)stats.streams);
    wr_metrics_gauge(metrics, "weir_http_buffered_bytes", "Memory of open requests and responses.",
                     (double)stats.buffered_bytes);
    wr_metrics_family(metrics, "weir_http_loop_lag_seconds", WR_METRIC_GAUGE, "Delay of the slowest event loop.");
    wr_metrics_seconds(metrics, NULL, stats.lag_ns);
}

void wr_metrics_daemon(struct wr_metrics *metrics, struct wr_rules *book, const struct wr_http_server *server)
{
    wr_metrics_rules(metrics, book);
    wr_metrics_http(metrics, server);
    wr_metrics_program(metrics);
}
