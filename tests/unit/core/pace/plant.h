/* SPDX-License-Identifier: MIT */
/* plant.h - a simulated host with constant behaviour, on which controllers run in virtual time.
 *
 *     bucket (429 when empty) -> one queue, `served` a second -> `latency_ns` of work and
 *     network */
#ifndef WEIR_TEST_PACE_PLANT_H
#define WEIR_TEST_PACE_PLANT_H

#include "strategy_rig.h"

#define PLANT_IN_FLIGHT 512

struct plant {
    double rate, burst; /* token bucket, a second and in tokens; rate 0: no bucket */
    double served;      /* requests a second that the queue serves; 0: no limit */
    int64_t latency_ns;
    uint32_t workers; /* most requests in flight */
    /* Counters since the start of the run, and the state of the bucket and the queue. */
    double tokens;
    int64_t filled_at, busy_until;
    uint32_t sent, ok, refused;
    int64_t latency_sum_ns, latency_max_ns;
    struct flight {
        int64_t sent_at, done_at;
        int status;
    } flights[PLANT_IN_FLIGHT]; /* ordered by done_at */
    uint32_t count;
};

static inline void plant_receive(struct plant *plant, int64_t now)
{
    double seconds = (double)(now - plant->filled_at) / (double)WEIR_SECOND;
    plant->tokens = fmin(plant->burst, plant->tokens + seconds * plant->rate);
    plant->filled_at = now;
    struct flight flight = {.sent_at = now, .done_at = now + 10 * MS, .status = 429};
    if (plant->rate <= 0 || plant->tokens >= 1) {
        plant->tokens -= 1;
        int64_t begin_at = now;
        if (plant->served > 0) {
            begin_at = plant->busy_until > now ? plant->busy_until : now;
            plant->busy_until = begin_at + (int64_t)((double)WEIR_SECOND / plant->served);
        }
        flight.status = 200;
        flight.done_at = begin_at + plant->latency_ns;
    }
    assert_true(plant->count < PLANT_IN_FLIGHT);
    uint32_t at = plant->count++;
    for (; at > 0 && plant->flights[at - 1].done_at > flight.done_at; at--)
        plant->flights[at] = plant->flights[at - 1];
    plant->flights[at] = flight;
    plant->sent++;
}

static inline void plant_answer(struct plant *plant, struct strategy_fixture *rig)
{
    struct flight flight = plant->flights[0];
    memmove(&plant->flights[0], &plant->flights[1], --plant->count * sizeof flight);
    int64_t latency_ns = flight.done_at - flight.sent_at;
    rig_tell(rig, flight.done_at, flight.status, latency_ns, -1);
    plant->ok += flight.status == 200;
    plant->refused += flight.status != 200;
    if (flight.status == 200) {
        plant->latency_sum_ns += latency_ns;
        plant->latency_max_ns = latency_ns > plant->latency_max_ns ? latency_ns : plant->latency_max_ns;
    }
}

/* Runs from `now` until `end_at`, with counters reset to 0 at first. Returns end_at. */
static inline int64_t plant_run(struct plant *plant, struct strategy_fixture *rig, int64_t now, int64_t end_at)
{
    plant->sent = plant->ok = plant->refused = 0;
    plant->latency_sum_ns = plant->latency_max_ns = 0;
    for (;;) {
        bool room = rig->in_flight < plant->workers && rig->in_flight < rig_want(rig, now).cap;
        int64_t start_at = room ? now + rig_wait(rig, now) : INT64_MAX;
        int64_t answer_at = plant->count > 0 ? plant->flights[0].done_at : INT64_MAX;
        now = start_at < answer_at ? start_at : answer_at;
        if (now >= end_at)
            return end_at;
        if (answer_at <= start_at) {
            plant_answer(plant, rig);
        } else {
            rig_send(rig, now);
            plant_receive(plant, now);
        }
    }
}

#endif
