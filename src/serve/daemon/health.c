/* SPDX-License-Identifier: MIT */
/* health.c - GET /healthz: 200 in normal operation, 503 when at least half of the decisions
 * fail. */
#include "serve/daemon/serve_internal.h"

#include "base/json.h"

const char *wr_serve_health_name(enum wr_serve_health health)
{
    static const char *const names[] = {"ok", "degraded", "unhealthy"};
    return names[health];
}

void wr_serve_view_get(struct wr_serve *serve, struct wr_serve_view *ret_view)
{
    struct wr_serve_view view = {
        .health = (enum wr_serve_health)atomic_load(&serve->failing),
        .why = "",
        .waiting = atomic_load(&serve->waiting),
        .saves = atomic_load(&serve->saves),
        .saves_failed = atomic_load(&serve->saves_failed),
        .lost = atomic_load(&serve->lost),
        .is_reload_bad = atomic_load(&serve->is_reload_bad),
    };
    if (view.health != WR_SERVE_OK)
        view.why = "rules fail";
    else if (view.is_reload_bad)
        view.why = "the file could not be reloaded; older rules are in force";
    else if (atomic_load(&serve->is_save_bad))
        view.why = "the state file could not be written";
    else if (atomic_load(&serve->is_store_bad))
        view.why = "the store of shared limits cannot be reached";
    if (view.health == WR_SERVE_OK && view.why[0] != '\0')
        view.health = WR_SERVE_DEGRADED;
    *ret_view = view;
}

void wr_serve_health(struct wr_serve_worker *worker, struct wr_http_exchange *exchange)
{
    struct wr_serve_view view;
    char memory[512];
    struct wr_buf buf;
    wr_serve_view_get(worker->serve, &view);
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_append_json_text(&buf, "{\"status\":", wr_span_of(wr_serve_health_name(view.health)));
    if (view.why[0] != '\0')
        wr_append_json_text(&buf, ",\"why\":", wr_span_of(view.why));
    wr_append_json_count(&buf, ",\"waiting\":", view.waiting);
    wr_buf_append_string(&buf, "}\n");
    wr_http_reply(exchange, view.health == WR_SERVE_UNHEALTHY ? 503 : 200, WR_HTTP_JSON, wr_buf_from(&buf, 0));
}
