/* SPDX-License-Identifier: MIT */
/* course.h - how fast hosts were asked in the course of a run: starts in equal steps of time.
 *
 *     wr_course_init(&course);
 *     while (!wr_engine_wait(engine, …))
 *         wr_course_take(&course, engine, stats.elapsed_ns);     looks when a step is over
 *     count = wr_course_tell(&course, key, …, starts);           after wr_engine_finish
 *
 * Bounded: the WR_COURSE_HOSTS hosts that were asked most, as far as could be seen, and WR_COURSE_POINTS steps. A step
 * is a second at first; when there are too many they are joined in pairs, and last twice as long. So they do where a
 * look at all hosts would cost more than a fiftieth of a step.
 */
#ifndef WR_SHELL_ENGINE_COURSE_H
#define WR_SHELL_ENGINE_COURSE_H

#include "shell/engine/look.h"

#define WR_COURSE_POINTS 60
#define WR_COURSE_HOSTS 24

struct wr_course_host {
    char key[WEIR_PACE_KEY_MAX + 1];
    uint64_t seen; /* its requests at the last look */
    uint32_t from; /* steps before were not seen */
    bool was_lost; /* it was out of memory meanwhile: not all of its starts are here */
    uint32_t starts[WR_COURSE_POINTS];
};

struct wr_course {
    int64_t step_ns;
    uint32_t points; /* steps that are over */
    int64_t last_at; /* of the run: until then some host has something to do, as it looked at the last look */
    size_t count;
    struct wr_course_host hosts[WR_COURSE_HOSTS];
};

void wr_course_init(struct wr_course *ret_course);

/* As wr_engine_look: not by a thread of the engine's, and not after wr_engine_finish. */
void wr_course_take(struct wr_course *course, struct wr_engine *engine, int64_t elapsed_ns);

/* One look at a host, in the step that is over; `is_whole`: before the first one it had not been asked. */
void wr_course_see(struct wr_course *course, const char *key, uint64_t requests, bool is_whole);

/* So much time has passed: counts the steps that are over, and joins them if there are too many. */
void wr_course_step(struct wr_course *course, int64_t elapsed_ns);

/* There are so many hosts to look at: steps become as long as that takes them to be. */
void wr_course_stretch(struct wr_course *course, uint64_t hosts);

/* What was started in each step, also in the one in which the run ended: at most WR_COURSE_POINTS, returns how many.
 * -1: not known. 0 if nothing is known of the host. */
size_t wr_course_tell(const struct wr_course *course, struct wr_span key, uint64_t requests, int64_t elapsed_ns,
                      int64_t ret_starts[WR_COURSE_POINTS]);

#endif
