/* SPDX-License-Identifier: MIT */
/* rules_source.c - the data source for the dashboard of a daemon: its rulebook. */
#include "watch/dashboard/rules_source.h"

#include "base/alloc.h"
#include "base/json.h"
#include "limiter/memory/memory.h"

#include <jansson.h>

#define TOP_KEYS 8 /* top keys of each rule */

struct wr_dashboard_rules {
    struct wr_dashboard_source source;
    struct wr_dashboard_rules_options options;
    struct wr_rule_view view; /* buffer for one rule; large */
};

/* ---- counts ---- */

struct decision_counts {
    uint64_t allowed, denied, shadowed, failed;
};

static struct decision_counts counts_of(const uint64_t *causes, uint64_t shadowed)
{
    return (struct decision_counts){
        .allowed = causes[WR_CAUSE_GRANTED] + causes[WR_CAUSE_UNMATCHED] + causes[WR_CAUSE_ALLOW_LIST],
        .denied = causes[WR_CAUSE_LIMITED] + causes[WR_CAUSE_DENY_LIST] + causes[WR_CAUSE_MALFORMED] +
                  causes[WR_CAUSE_TIMED_OUT] + causes[WR_CAUSE_FULL],
        .shadowed = shadowed,
        .failed = causes[WR_CAUSE_FAILED] + causes[WR_CAUSE_FAILED_OPEN],
    };
}

static void append_decision_counts(struct wr_buf *buf, const uint64_t *causes, uint64_t shadowed)
{
    struct decision_counts counts = counts_of(causes, shadowed);
    wr_append_json_count(buf, ",\"allowed\":", counts.allowed);
    wr_append_json_count(buf, ",\"denied\":", counts.denied);
    wr_append_json_count(buf, ",\"shadowed\":", counts.shadowed);
    wr_append_json_count(buf, ",\"failed\":", counts.failed);
}

static void on_rules_sample(void *context, struct wr_buf *answer)
{
    struct wr_dashboard_rules *rules = context;
    struct wr_rules_view book;
    uint64_t keys = 0, evicted = 0;
    wr_rules_view_get(rules->options.book, &book);
    for (uint32_t i = 0; wr_rule_view_get(rules->options.book, i, &rules->view) == 0; i++) {
        keys += rules->view.table.keys;
        evicted += rules->view.table.evicted;
    }
    wr_buf_append_string(answer, "{\"ok\":true");
    append_decision_counts(answer, book.causes, book.shadowed);
    wr_append_json_count(answer, ",\"waiting\":", book.waiting);
    wr_append_json_count(answer, ",\"reserved\":", book.holds);
    wr_append_json_count(answer, ",\"keys\":", keys);
    wr_append_json_count(answer, ",\"evicted\":", evicted);
    wr_append_json_count(answer, ",\"reloads\":", book.reloads);
    wr_append_json_count(answer, ",\"reloads_failed\":", book.reloads_failed);
    wr_buf_append_string(answer, "}");
}

/* ---- rules ---- */

static void append_top_keys(const struct wr_dashboard_rules *rules, const char *name, struct wr_buf *answer)
{
    weir_table_entry *entries;
    size_t count;
    wr_buf_append_string(answer, ",\"top\":[");
    if (wr_rules_top_keys(rules->options.book, name, WEIR_TOP_DENIED, TOP_KEYS, &entries, &count) == 0) {
        for (size_t i = 0; i < count; i++) {
            wr_append_json_text(
                answer, i > 0 ? ",{\"key\":" : "{\"key\":", (struct wr_span){entries[i].key, entries[i].key_bytes});
            wr_append_json_count(answer, ",\"denied\":", entries[i].denied);
            wr_append_json_count(answer, ",\"limit\":", entries[i].quota.limit);
            wr_append_json_count(answer, ",\"remaining\":", entries[i].quota.remaining);
            if (entries[i].quota.reset_ns != WEIR_UNTIL_RELEASE)
                wr_append_json_count(answer,
                                     ",\"reset_ms\":", (uint64_t)(entries[i].quota.reset_ns / WEIR_MILLISECOND));
            wr_append_json_count(answer, ",\"idle_ms\":", (uint64_t)(entries[i].idle_ns / WEIR_MILLISECOND));
            wr_buf_append_string(answer, "}");
        }
        wr_rules_top_keys_free(rules->options.book, entries);
    }
    wr_buf_append_string(answer, "]");
}

/* Appends figures of a shared rule: largest batch of a key, decisions made without the store,
 * permits owed to it, permits in flight. */
static void append_shared_limit(const struct wr_shared_limit_view *share, struct wr_buf *answer)
{
    uint64_t alone = 0;
    for (int source = WR_SOURCE_SHARE; source < WR_SOURCE_COUNT; source++)
        alone += share->granted[source] + share->refused[source];
    wr_append_json_count(answer, ",\"share\":{\"batch\":", share->batch);
    wr_append_json_count(answer, ",\"alone\":", alone);
    wr_append_json_count(answer, ",\"owed\":", share->owed);
    wr_append_json_count(answer, ",\"in_flight\":", share->held);
    wr_buf_append_string(answer, "}");
}

static void append_store(struct wr_rules *book, struct wr_buf *answer)
{
    struct wr_rules_view view;
    wr_rules_view_get(book, &view);
    if (!view.has_store)
        return;
    wr_buf_append_string(answer, view.store.wire.down ? ",\"store\":{\"up\":false" : ",\"store\":{\"up\":true");
    wr_append_json_text(answer, ",\"why\":", wr_span_of(view.store.wire.why));
    wr_buf_append_string(answer, "}");
}

static void append_rule_view(const struct wr_dashboard_rules *rules, bool has_top, struct wr_buf *answer)
{
    const struct wr_rule_view *view = &rules->view;
    wr_append_json_text(answer, "{\"name\":", wr_span_of(view->name));
    wr_append_json_text(answer, ",\"match\":", wr_span_of(view->match));
    wr_append_json_text(answer, ",\"by\":", wr_span_of(view->key));
    wr_append_json_text(answer, ",\"limit\":", wr_span_of(view->limits));
    wr_buf_append_string(answer, view->shadow ? ",\"shadow\":true" : ",\"shadow\":false");
    append_decision_counts(answer, view->causes, view->shadowed);
    wr_append_json_count(answer, ",\"plans\":", view->plans);
    wr_append_json_count(answer, ",\"waiting\":", view->table.waiters);
    wr_append_json_count(answer, ",\"keys\":", view->table.keys);
    wr_append_json_count(answer, ",\"keys_max\":", view->table.max_keys);
    wr_append_json_count(answer, ",\"evicted\":", view->table.evicted);
    if (view->is_shared)
        append_shared_limit(&view->share, answer);
    if (has_top)
        append_top_keys(rules, view->name, answer);
    wr_buf_append_string(answer, "}");
}

static void on_rules_view(void *context, const struct wr_dashboard_query *query, struct wr_buf *answer)
{
    struct wr_dashboard_rules *rules = context;
    bool has_top = strcmp(query->view, "rules") == 0;
    if (rules->options.file != NULL)
        wr_append_json_text(answer, "{\"ok\":true,\"file\":", wr_span_of(rules->options.file));
    else
        wr_buf_append_string(answer, "{\"ok\":true");
    append_store(rules->options.book, answer);
    wr_buf_append_string(answer, ",\"rules\":[");
    for (uint32_t i = 0; wr_rule_view_get(rules->options.book, i, &rules->view) == 0; i++) {
        wr_buf_append_string(answer, i > 0 ? "," : "");
        append_rule_view(rules, has_top, answer);
    }
    wr_buf_append_string(answer, "]}");
}

/* ---- commands ---- */

static void append_outcome(int error, const char *why, struct wr_buf *answer)
{
    if (error == 0)
        wr_buf_append_string(answer, "{\"ok\":true}");
    else {
        wr_append_json_text(answer, "{\"ok\":false,\"error\":", wr_span_of(why));
        wr_buf_append_string(answer, "}");
    }
}

static void run_reset_command(const struct wr_dashboard_rules *rules, const json_t *root, struct wr_buf *answer)
{
    const json_t *rule = json_object_get(root, "rule"), *key = json_object_get(root, "key");
    int error = WEIR_E_ABSENT;
    if (json_is_string(rule) && json_is_string(key))
        error = wr_rules_reset_key(rules->options.book, json_string_value(rule), json_string_value(key),
                                   json_string_length(key));
    append_outcome(error,
                   error == WEIR_E_CLOSED
                       ? "the store of shared limits cannot be reached; it still has the state of the key"
                       : "there is no such key, or no such rule",
                   answer);
}

static void run_reload_command(const struct wr_dashboard_rules *rules, struct wr_buf *answer)
{
    char why[WR_CONFIG_WHY_BYTES] = "the rules cannot be read again";
    int error = WEIR_E_INVAL;
    if (rules->options.reload != NULL)
        error = rules->options.reload(rules->options.context, why, sizeof why);
    append_outcome(error, why, answer);
}

static void on_rules_command(void *context, struct wr_span request, struct wr_buf *answer)
{
    json_error_t mistake;
    json_t *root =
        json_loadb(request.data != NULL ? request.data : "", request.bytes, JSON_REJECT_DUPLICATES, &mistake);
    const char *what = json_string_value(json_object_get(root, "ask"));
    if (what != NULL && strcmp(what, "reset") == 0)
        run_reset_command(context, root, answer);
    else if (what != NULL && strcmp(what, "reload") == 0)
        run_reload_command(context, answer);
    else
        append_outcome(WEIR_E_INVAL, "there is no such command", answer);
    json_decref(root);
}

/* ---- the source ---- */

int wr_dashboard_rules_new(const struct wr_dashboard_rules_options *options, struct wr_dashboard_rules **ret_rules)
{
    static const char *const views[] = {"overview", "rules", NULL};
    struct wr_dashboard_rules *rules =
        wr_alloc(wr_allocator_or_system(NULL), sizeof *rules, _Alignof(struct wr_dashboard_rules));
    if (rules == NULL)
        return WEIR_E_NOMEM;
    rules->options = *options;
    rules->source =
        (struct wr_dashboard_source){rules, "serve", views, on_rules_sample, on_rules_view, on_rules_command};
    *ret_rules = rules;
    return 0;
}

void wr_dashboard_rules_free(struct wr_dashboard_rules *rules)
{
    wr_free(wr_allocator_or_system(NULL), rules, sizeof *rules, _Alignof(struct wr_dashboard_rules));
}

const struct wr_dashboard_source *wr_dashboard_rules_source(const struct wr_dashboard_rules *rules)
{
    return &rules->source;
}
