/* SPDX-License-Identifier: MIT */
/* driver.c - asking and telling whom a run tries. */
#include "sim/driver.h"

#include <stdalign.h>
#include <string.h>

static const struct wr_strategy *strategy_of(const struct wr_sim_pacer *pacer)
{
    return pacer->strategy != NULL ? pacer->strategy : wr_strategy_of(pacer->options.strategy);
}

int wr_driver_init(struct wr_driver *ret_driver, const struct wr_sim_pacer *pacer, const weir_pace_memory *memory,
                   const weir_allocator *allocator)
{
    const struct wr_strategy *strategy = strategy_of(pacer);
    struct wr_driver driver = {.pacer = pacer, .options = &pacer->options, .allocator = allocator};
    driver.state_bytes = strategy->state_bytes > 0 ? strategy->state_bytes : 1;
    driver.state = wr_take(allocator, driver.state_bytes, alignof(max_align_t));
    if (driver.state == NULL)
        return WEIR_E_NOMEM;
    strategy->start(driver.options, driver.state, memory, 0);
    *ret_driver = driver;
    return 0;
}

void wr_driver_release(struct wr_driver *driver)
{
    wr_give(driver->allocator, driver->state, driver->state_bytes, alignof(max_align_t));
    driver->state = NULL;
}

int64_t wr_driver_ask(const struct wr_driver *driver, int64_t now)
{
    struct wr_want want = strategy_of(driver->pacer)->want(driver->options, driver->state, now);
    if (driver->in_flight >= want.cap)
        return WEIR_UNTIL_RELEASE;
    int64_t at = want.earliest_at > driver->held_until ? want.earliest_at : driver->held_until;
    return at > now ? at - now : 0;
}

struct wr_gate_start wr_driver_sent(struct wr_driver *driver, int64_t now)
{
    driver->in_flight++;
    struct wr_start start = {.seq = ++driver->seq, .in_flight = driver->in_flight};
    strategy_of(driver->pacer)->sent(driver->options, driver->state, &start, now);
    return (struct wr_gate_start){.seq = start.seq, .in_flight = start.in_flight, .sent_at = now};
}

static enum wr_answer_kind kind_of(int status)
{
    if (status == 429 || status == 403 || status == 503)
        return WR_ANSWER_REJECTED;
    return status >= 500 ? WR_ANSWER_ERROR : WR_ANSWER_OK;
}

void wr_driver_tell(struct wr_driver *driver, const struct wr_gate_start *start, const struct wr_reply *reply,
                    int64_t now, double unit)
{
    (void)unit;
    driver->in_flight--;
    struct wr_answer answer = {
        .kind = kind_of(reply->status),
        .status = reply->status,
        .seq = start->seq,
        .in_flight_then = start->in_flight,
        .in_flight = driver->in_flight,
        .sent_at = start->sent_at,
        .latency_ns = now - start->sent_at,
        .retry_after_ns = reply->retry_after_ns,
        .quota_limit = reply->quota_limit,
        .quota_remaining = reply->quota_remaining,
        .quota_reset_ns = reply->quota_reset_ns,
    };
    if (driver->pacer->strategy == NULL && reply->retry_after_ns >= 0 &&
        now + reply->retry_after_ns > driver->held_until)
        driver->held_until = now + reply->retry_after_ns;
    strategy_of(driver->pacer)->tell(driver->options, driver->state, &answer, now);
}

void wr_driver_look(const struct wr_driver *driver, int64_t now, struct wr_sim_event *event)
{
    const struct wr_strategy *strategy = strategy_of(driver->pacer);
    event->rate = strategy->want(driver->options, driver->state, now).rate;
    event->mode = strategy->mode(driver->state);
}

void wr_driver_remember(const struct wr_driver *driver, int64_t now, weir_pace_memory *ret_memory)
{
    *ret_memory = (weir_pace_memory){0};
    strategy_of(driver->pacer)->remember(driver->options, driver->state, now, ret_memory);
}
