/* SPDX-License-Identifier: MIT */
/* inspect_events.c - keeps the last events of hosts, numbered, for observers. Each event takes a
 * lock; ordinary responses take none. */
#include "base/alloc.h"
#include "crawl/engine/engine_state.h"

struct wr_events {
    pthread_mutex_t lock;
    uint64_t last; /* number of the last event; 0: none yet */
    struct wr_engine_event ring[WR_EVENTS_KEPT];
};

const char *wr_event_name(enum wr_event_kind kind)
{
    static const char *const names[] = {
#define X(kind, name) [kind] = (name),
        WR_EVENTS(X)
#undef X
    };
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

int wr_events_new(struct wr_engine *engine)
{
    struct wr_events *events = wr_alloc(engine->allocator, sizeof *events, _Alignof(struct wr_events));
    if (events == NULL)
        return WEIR_E_NOMEM;
    (void)pthread_mutex_init(&events->lock, NULL);
    engine->events = events;
    return 0;
}

void wr_events_free(struct wr_engine *engine)
{
    struct wr_events *events = engine->events;
    if (events == NULL)
        return;
    (void)pthread_mutex_destroy(&events->lock);
    wr_free(engine->allocator, events, sizeof *events, _Alignof(struct wr_events));
    engine->events = NULL;
}

void wr_event_add(struct wr_engine *engine, struct wr_span key, struct wr_engine_event event)
{
    struct wr_events *events = engine->events;
    size_t bytes = key.bytes < sizeof event.key ? key.bytes : sizeof event.key - 1;
    memcpy(event.key, key.data, bytes);
    event.key[bytes] = '\0';
    event.wall_at = weir_wall_now();
    (void)pthread_mutex_lock(&events->lock);
    event.number = ++events->last;
    events->ring[event.number % WR_EVENTS_KEPT] = event;
    (void)pthread_mutex_unlock(&events->lock);
}

void wr_events_on_host_change(void *context, const struct wr_plan_host *host, uint32_t news, int status, int64_t now)
{
    struct wr_crawl_loop *loop = context;
    struct wr_plan_host_view look;
    struct wr_span key = wr_plan_host_key(host);
    struct wr_engine_event event = {.status = status};
    bool is_logged = (news & WR_GATE_CHANGE_DELAY) != 0 && loop->engine->log != NULL;
    if ((news & ~(uint32_t)WR_GATE_CHANGE_DELAY) == 0 && !is_logged)
        return;
    wr_plan_host_view(loop->plan, host, (uint32_t)loop->engine->job, now, &look);
    if (is_logged)
        wr_request_log_pace(loop->engine->log, key, &look.report.now, now);
    event.breaker = look.report.now.breaker;
    if ((news & WR_GATE_CHANGE_BREAKER) != 0)
        WR_COUNT_UP(loop, breakers[event.breaker]);
    if ((news & WR_GATE_CHANGE_RETRY_AFTER) != 0)
        WR_COUNT_UP(loop, heard);
    static const struct {
        uint32_t news;
        enum wr_event_kind kind;
    } kinds[] = {{WR_GATE_CHANGE_REJECTED, WR_EVENT_REJECTED},
                 {WR_GATE_CHANGE_RETRY_AFTER, WR_EVENT_RETRY_AFTER},
                 {WR_GATE_CHANGE_BREAKER, WR_EVENT_BREAKER},
                 {WR_GATE_CHANGE_HOPELESS, WR_EVENT_HOPELESS}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if ((news & kinds[i].news) == 0)
            continue;
        event.kind = kinds[i].kind;
        event.wait_ns = event.kind == WR_EVENT_RETRY_AFTER ? look.retry_after_ns
                        : event.kind == WR_EVENT_BREAKER   ? look.breaker_ns
                                                           : 0;
        wr_event_add(loop->engine, key, event);
    }
}

size_t wr_engine_events(struct wr_engine *engine, uint64_t after, struct wr_engine_event *ret_events, size_t most)
{
    struct wr_events *events = engine->events;
    size_t count = 0;
    (void)pthread_mutex_lock(&events->lock);
    uint64_t first = events->last > WR_EVENTS_KEPT ? events->last - WR_EVENTS_KEPT : 0;
    for (uint64_t n = (after > first ? after : first) + 1; n <= events->last && count < most; n++)
        ret_events[count++] = events->ring[n % WR_EVENTS_KEPT];
    (void)pthread_mutex_unlock(&events->lock);
    return count;
}
