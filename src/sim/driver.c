/* SPDX-License-Identifier: MIT */
/* driver.c - Queries the pacer of a run and reports starts and responses to it. */
#include "sim/driver.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#define BEGAN_WALL_AT (1700000000 * WEIR_SECOND) /* wall time of the start of a run; arbitrary */
#define REST_NS WEIR_HOUR                        /* time between a run and one with its memory */

int wr_driver_init(struct wr_driver *ret_driver, const struct wr_sim_pacer *pacer, const weir_pace_memory *memory,
                   const weir_allocator *allocator)
{
    struct wr_driver driver = {.pacer = pacer, .allocator = allocator};
    const struct wr_strategy *bare = pacer->strategy;

    /* The state of a bare strategy may have 0 bytes. */
    driver.bytes = bare == NULL ? wr_gate_bytes(&pacer->options) : bare->state_bytes + 1;
    void *block = wr_alloc(allocator, driver.bytes, alignof(max_align_t));
    if (block == NULL)
        return WEIR_E_NOMEM;
    if (bare != NULL) {
        driver.state = block;
        bare->start(&pacer->options, block, NULL, 0);
    } else {
        driver.gate = block;
        wr_gate_init(block, &pacer->options, memory, 0, BEGAN_WALL_AT + REST_NS);
    }
    *ret_driver = driver;
    return 0;
}

void wr_driver_release(struct wr_driver *driver)
{
    void *block = driver->gate != NULL ? driver->gate : driver->state;
    wr_free(driver->allocator, block, driver->bytes, alignof(max_align_t));
    driver->gate = driver->state = NULL;
}

/* ---- bare strategies ------------------------------------------------------------------------- */

static int64_t bare_ask(const struct wr_driver *driver, int64_t now)
{
    struct wr_pace_bounds want = driver->pacer->strategy->want(&driver->pacer->options, driver->state, now);
    if (driver->in_flight >= want.cap)
        return WEIR_UNTIL_RELEASE;
    return want.earliest_at > now ? want.earliest_at - now : 0;
}

static struct wr_gate_start bare_sent(struct wr_driver *driver, int64_t now)
{
    struct wr_pace_start start = {.seq = ++driver->seq, .in_flight = ++driver->in_flight};
    driver->pacer->strategy->sent(&driver->pacer->options, driver->state, &start, now);
    return (struct wr_gate_start){.seq = start.seq, .in_flight = start.in_flight, .sent_at = now};
}

static void bare_tell(struct wr_driver *driver, const struct wr_gate_start *start, const struct wr_sim_reply *reply,
                      int64_t now)
{
    struct wr_pace_response answer = {
        .kind = wr_pace_response_kind(reply->status),
        .status = reply->status,
        .seq = start->seq,
        .in_flight_then = start->in_flight,
        .in_flight = --driver->in_flight,
        .sent_at = start->sent_at,
        .latency_ns = now - start->sent_at,
        .retry_after_ns = -1,
        .quota_limit = -1,
        .quota_remaining = -1,
        .quota_reset_ns = -1,
    };
    driver->pacer->strategy->tell(&driver->pacer->options, driver->state, &answer, now);
}

/* ---- gates ----------------------------------------------------------------------------------- */

static struct wr_gate_start gate_sent(struct wr_driver *driver, int64_t now)
{
    uint32_t seq = wr_gate_reserve(driver->gate, &driver->pacer->options, now);
    return wr_gate_sent(driver->gate, &driver->pacer->options, seq, now);
}

static void gate_tell(struct wr_driver *driver, const struct wr_gate_start *start, const struct wr_sim_reply *reply,
                      int64_t now, double unit)
{
    weir_outcome outcome = {
        .size = sizeof outcome,
        .status = reply->status,
        .latency_ns = now - start->sent_at,
        .has_retry_after = reply->retry_after_ns >= 0,
        .retry_after_ns = reply->retry_after_ns,
        .has_quota = reply->quota_limit >= 0 && !driver->pacer->ignores_quota_fields,
        .quota_limit = reply->quota_limit,
        .quota_remaining = reply->quota_remaining,
        .quota_reset_ns = reply->quota_reset_ns,
    };
    wr_gate_tell(driver->gate, &driver->pacer->options, start, &outcome, now, unit);
    assert(wr_gate_ok(driver->gate, &driver->pacer->options));
}

/* ---- both ------------------------------------------------------------------------------------ */

int64_t wr_driver_ask(const struct wr_driver *driver, int64_t now)
{
    return driver->gate == NULL ? bare_ask(driver, now)
                                : wr_gate_ask(driver->gate, &driver->pacer->options, now).wait_ns;
}

struct wr_gate_start wr_driver_sent(struct wr_driver *driver, int64_t now)
{
    return driver->gate == NULL ? bare_sent(driver, now) : gate_sent(driver, now);
}

void wr_driver_tell(struct wr_driver *driver, const struct wr_gate_start *start, const struct wr_sim_reply *reply,
                    int64_t now, double unit)
{
    if (driver->gate == NULL)
        bare_tell(driver, start, reply, now);
    else
        gate_tell(driver, start, reply, now, unit);
}

void wr_driver_inspect(struct wr_driver *driver, int64_t now, struct wr_sim_event *event)
{
    const weir_pace_options *options = &driver->pacer->options;
    if (driver->gate == NULL) {
        event->rate = driver->pacer->strategy->want(options, driver->state, now).rate;
        event->mode = driver->pacer->strategy->mode(driver->state);
        return;
    }
    weir_pace_entry entry = {.key = NULL};
    wr_gate_inspect(driver->gate, options, now, &entry);
    event->rate = entry.rate;
    memcpy(driver->mode, entry.mode, sizeof driver->mode);
    event->mode = driver->mode;
}

void wr_driver_remember(const struct wr_driver *driver, int64_t now, weir_pace_memory *ret_memory)
{
    *ret_memory = (weir_pace_memory){0};
    if (driver->gate != NULL)
        wr_gate_remember(driver->gate, &driver->pacer->options, now, BEGAN_WALL_AT, ret_memory);
}
