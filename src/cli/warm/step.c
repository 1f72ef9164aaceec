/* SPDX-License-Identifier: MIT */
/* step.c - decides the next step of a page. */
#include "cli/warm/step.h"

#include "base/rng.h"

static bool may_be_cached_later(enum wr_cache_status status)
{
    return status == WR_CACHE_MISS || status == WR_CACHE_EXPIRED;
}

static enum wr_warm_step step_after_get(struct wr_warm_page_steps *course, const struct wr_warm_response *answer)
{
    course->is_sound = answer->is_sound;
    course->before = course->after = answer->cache;
    course->before_ns = answer->latency_ns;
    return answer->is_sound && may_be_cached_later(answer->cache) ? WR_WARM_PROBE : WR_WARM_DONE;
}

static enum wr_warm_step step_after_probe(struct wr_warm_page_steps *course, const struct wr_warm_response *answer)
{
    course->probes++;
    /* The server does not answer HEAD, or not like GET. */
    if (!answer->is_sound || answer->cache == WR_CACHE_UNKNOWN)
        return WR_WARM_DONE;
    course->after = answer->cache;
    if (wr_cache_is_hit(answer->cache))
        return WR_WARM_FINAL_GET;
    return may_be_cached_later(answer->cache) && course->probes < WR_WARM_PROBES_MAX ? WR_WARM_PROBE : WR_WARM_DONE;
}

enum wr_warm_step wr_warm_next_step(struct wr_warm_page_steps *course, const struct wr_warm_response *answer)
{
    if (course->step == WR_WARM_GET) {
        course->step = step_after_get(course, answer);
    } else if (course->step == WR_WARM_PROBE) {
        course->step = step_after_probe(course, answer);
    } else {
        if (answer->is_sound) {
            course->after = answer->cache;
            course->after_ns = answer->latency_ns;
        }
        course->step = WR_WARM_DONE;
    }
    return course->step;
}

int64_t wr_warm_jitter(uint64_t chance)
{
    double span = (double)(WR_WARM_JITTER_MAX_NS - WR_WARM_JITTER_MIN_NS);
    return WR_WARM_JITTER_MIN_NS + (int64_t)(wr_rng_unit_of(chance) * span);
}

int64_t wr_warm_saved_ns(const struct wr_warm_page_steps *course)
{
    if (course->after_ns <= 0 || !wr_cache_is_hit(course->after) || course->after_ns > course->before_ns)
        return 0;
    return course->before_ns - course->after_ns;
}
