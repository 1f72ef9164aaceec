/* SPDX-License-Identifier: MIT */
/* loads.c - answers of the simulated store to loads, and grants of the ledgers. */
#include "sim/crawl/world.h"

#include <stdio.h>
#include <stdlib.h>

static void remember(struct world *world, const struct event *event)
{
    const struct store_host *known = &world->store.committed[world_index_of(event->action.host)];
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    struct wr_plan_stored_host memory = {.pace = known->has_memory ? &known->memory : NULL};
    for (int i = 0; i < 2; i++) {
        memory.robots[i].is_known = known->robots[i].is_known;
        memory.robots[i].max_age_ns = -1;
        memory.robots[i].age_ns = world->now - known->robots[i].wall_at;
        if (known->robots[i].is_known && known->robots[i].has_rules &&
            wr_robots_parse(wr_span_of(known->robots[i].text), &options, weir_allocator_system(),
                            &memory.robots[i].rules) != 0)
            abort();
    }
    wr_plan_restore_host(world->plans[event->loop], event->action.host, &memory, world->now, world->now);
}

void world_loaded(struct world *world, struct event *event)
{
    const struct wr_plan_action *action = &event->action;
    struct wr_plan *plan = world->plans[event->loop];
    uint32_t host = world_index_of(action->host), given = 0;
    int error = 0;
    if (action->wants_memory)
        remember(world, event);
    if (action->count == 0)
        return;
    for (uint32_t i = (uint32_t)action->after.id; i < world->store.count && given < action->count && error == 0; i++) {
        struct store_row *row = &world->store.rows[i];
        char memory[WR_URL_ROOM];
        struct wr_url url;
        if (row->job != action->job || row->host != host || !row->is_committed || row->has_ended || row->is_gone)
            continue;
        world_parse(row->url, memory, &url);
        struct wr_plan_row out = {row->fingerprint, {(int64_t)i + 1, 0}, &url, row->depth, row->hops, 0, 0};
        error = wr_plan_load_row(plan, action->host, action->job, &out, world->now);
        given += error == 0;
        row->came_at = world->now;
    }
    wr_plan_load_end(plan, action->host, action->job, error == 0 && given < action->count, 0, world->now);
}

void world_listed(struct world *world, struct event *event)
{
    struct wr_plan *plan = world->plans[event->loop];
    uint32_t host = (uint32_t)event->action.after.id, job = event->action.job;
    int error = 0;
    for (; host < world->web.count && error == 0; host++) {
        char key[24];
        uint32_t queued = store_queued(&world->store, job, host);
        snprintf(key, sizeof key, "h%u.example", host);
        if (world_loop_of(world, host) == event->loop && queued > 0)
            error = wr_plan_hosts_row(plan, job, wr_span_of(key), queued, world->now);
    }
    wr_plan_hosts_end(plan, job, (int64_t)host - (error != 0), error == 0, world->now);
}

/* ---- ledgers ---- */

void world_draw(struct world *world, uint32_t loop, const struct wr_plan_action *action)
{
    bool is_last;
    uint64_t granted = wr_ledger_take_budget(&world->ledgers[action->job], action->draw, action->count / 16, &is_last);
    wr_plan_grant_budget(world->plans[loop], action->job, action->draw, granted, is_last);
}
