/* SPDX-License-Identifier: MIT */
/* rate_history.h - how fast hosts were asked in the course of a run: starts in equal steps of time.
 *
 *     wr_rate_history_init(&course);
 *     while (!wr_engine_wait(engine, ...))
 *         wr_rate_history_sample(&course, engine, stats.elapsed_ns);     looks when a step is over
 *     count = wr_rate_history_read(&course, key, ..., starts);         after wr_engine_finish
 *
 * Bounds: the WR_RATE_HISTORY_HOSTS hosts that seem to be asked most, and WR_RATE_HISTORY_POINTS
 * steps. A step is a second at first. When there are too many steps, pairs are joined, and a step
 * lasts twice as long. The same happens if a look at all hosts would cost more than a fiftieth of a
 * step.
 */
#ifndef WR_CRAWL_ENGINE_RATE_HISTORY_H
#define WR_CRAWL_ENGINE_RATE_HISTORY_H

#include "crawl/engine/crawl_inspect.h"

#define WR_RATE_HISTORY_POINTS 60
#define WR_RATE_HISTORY_HOSTS 24

struct wr_rate_history_host {
    char key[WEIR_PACE_KEY_MAX + 1];
    uint64_t seen; /* requests of the host at the last look */
    uint32_t from; /* first step in which the host was seen */
    bool was_lost; /* the host was out of memory for a while: some of its starts are missing */
    uint32_t starts[WR_RATE_HISTORY_POINTS];
};

struct wr_rate_history {
    int64_t step_ns;
    uint32_t points; /* number of steps that are over */
    /* Time into the run until which some host had work, as estimated at the last look. */
    int64_t last_at;
    size_t count;
    struct wr_rate_history_host hosts[WR_RATE_HISTORY_HOSTS];
};

void wr_rate_history_init(struct wr_rate_history *ret_course);

/* Looks at all hosts if a step is over. Must not be called on a thread of the engine, nor after
 * wr_engine_finish. */
void wr_rate_history_sample(struct wr_rate_history *history, struct wr_engine *engine, int64_t elapsed_ns);

/* Records a look at one host in the step that has just ended. `is_whole`: a host that is seen for
 * the first time was not asked in earlier steps. */
void wr_rate_history_note(struct wr_rate_history *history, const char *key, uint64_t requests, bool is_whole);

/* Updates the number of steps that are over after `elapsed_ns`, and joins steps if needed. */
void wr_rate_history_advance(struct wr_rate_history *history, int64_t elapsed_ns);

/* Lengthens the steps until a look at `hosts` hosts takes at most a fiftieth of a step. */
void wr_rate_history_widen(struct wr_rate_history *history, uint64_t hosts);

/* Returns the number of steps, at most WR_RATE_HISTORY_POINTS, the one in which the run ended
 * included; 0 if the host is not known. ret_starts has the starts in each; -1: not known. */
size_t wr_rate_history_read(const struct wr_rate_history *history, struct wr_span key, uint64_t requests,
                            int64_t elapsed_ns, int64_t ret_starts[WR_RATE_HISTORY_POINTS]);

#endif
