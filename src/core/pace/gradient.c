/* SPDX-License-Identifier: MIT */
/* gradient.c - Implements the strategy gradient: as many requests in flight as add no latency.
 *
 *     gradient = TOLERANCE * low / short     1 or more: no queue; less: requests queue at the host
 *     window   = window * gradient + growth  once per round trip, while the window is used
 *     interval = short / window              Little's law: spreads the starts, even if window < 1
 *
 * `short` is the moving mean of latencies and `low` its minimum. `low` rises so slowly that a queue
 * that we cause is never taken for the normal latency of the host. A rejection cuts the window once
 * per round trip. Growth is slow near the rejected window and fast away from it, so that a hard
 * limit is tried rarely and a new limit is found soon.
 */
#include "core/pace/rate.h"
#include "core/pace/strategy.h"

#include <math.h>

#define SHORT_WEIGHT 0.25     /* weight of one round trip's mean in `short` */
#define LOW_RISE_NS WEIR_HOUR /* time in which `low` doubles, to accept a host that stays slower */
#define TOLERANCE 2.0         /* latency is noisy: it may double before the window shrinks */
#define GRADIENT_LEAST 0.5    /* one step halves the window at most */
#define REFUSED_CUT 0.8
#define GROWTH_LEAST 0.001 /* minimum growth factor, at the rejected window */
#define WINDOW_MAX 1000.0
#define LATENCY_LEAST_NS WEIR_MICROSECOND /* minimum, because it is a divisor */

struct gradient {
    double window;   /* target number of requests in flight; may be below 1 */
    double refused;  /* window at the last rejection; 0 before the first */
    double short_ns; /* moving mean of the latency; 0 before the first response */
    double low_ns;
    double sum_ns; /* sum of the latencies in this round trip */
    int64_t interval_ns;
    int64_t next_at;
    int64_t stepped_at; /* start of this round trip */
    int64_t cut_at;     /* time of the last cut; rejections of earlier requests cause no other */
    int64_t safe_ns;    /* interval at the last step without trouble; 0 if unknown */
    uint32_t answers;   /* responses in this round trip */
    uint32_t used;      /* most requests in flight in this round trip */
};

static void set_gradient_window(const weir_pace_options *options, struct gradient *gradient, double window)
{
    double least = options->min_rate * gradient->short_ns / (double)WEIR_SECOND;
    gradient->window = fmin(fmax(window, least), WINDOW_MAX);
    gradient->interval_ns = wr_ns_up(gradient->short_ns / gradient->window);
}

static void gradient_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    struct gradient *gradient = state;
    bool known = memory != NULL && memory->delay_ns > 0;

    gradient->interval_ns = known ? memory->delay_ns : wr_rate_interval(options->initial_rate);
    gradient->safe_ns = known ? memory->floor_ns : 0;
    gradient->next_at = memory != NULL ? now + gradient->interval_ns : now;
    gradient->cut_at = gradient->stepped_at = now;
}

static void gradient_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options;
    struct gradient *gradient = state;
    gradient->next_at = now + gradient->interval_ns;
    if (gradient->used < start->in_flight)
        gradient->used = start->in_flight;
}

/* Evaluates the latencies of one round trip. */
static void measure_round_trip(struct gradient *gradient, int64_t now)
{
    double mean_ns = gradient->sum_ns / gradient->answers;
    gradient->short_ns += SHORT_WEIGHT * (mean_ns - gradient->short_ns);
    gradient->low_ns *= 1 + (double)(now - gradient->stepped_at) / (double)LOW_RISE_NS;
    if (gradient->low_ns > gradient->short_ns)
        gradient->low_ns = gradient->short_ns;
}

static double growth(const struct gradient *gradient)
{
    double window = gradient->window;
    double away = gradient->refused > 0 ? window / gradient->refused - 1 : 1;
    return (window < 1 ? window : sqrt(window)) * wr_within(away * away, GROWTH_LEAST, 1);
}

/* Ends a round trip and adjusts the window. A window that was used by less than half does not grow:
 * it was not tested. */
static void end_round_trip(const weir_pace_options *options, struct gradient *gradient, int64_t now)
{
    measure_round_trip(gradient, now);
    double ratio = wr_within(TOLERANCE * gradient->low_ns / gradient->short_ns, GRADIENT_LEAST, 1);
    bool used = gradient->used * 2 >= gradient->window;

    if (ratio >= 1)
        gradient->safe_ns = gradient->interval_ns;
    set_gradient_window(options, gradient, gradient->window * ratio + (used ? growth(gradient) : 0));
    gradient->answers = gradient->used = 0;
    gradient->sum_ns = 0;
    gradient->stepped_at = now;
}

static void first_answer(const weir_pace_options *options, struct gradient *gradient, double latency_ns)
{
    gradient->short_ns = gradient->low_ns = latency_ns;
    set_gradient_window(options, gradient, latency_ns / (double)gradient->interval_ns);
}

static void cut_gradient_window(const weir_pace_options *options, struct gradient *gradient, int64_t now)
{
    gradient->cut_at = gradient->stepped_at = now;
    gradient->answers = gradient->used = 0;
    gradient->sum_ns = 0;
    if (gradient->short_ns > 0) {
        gradient->refused = gradient->window;
        set_gradient_window(options, gradient, gradient->window * REFUSED_CUT);
        return;
    }
    double rate = wr_interval_rate(gradient->interval_ns) * REFUSED_CUT; /* no response so far */
    gradient->interval_ns = wr_rate_interval(rate < options->min_rate ? options->min_rate : rate);
}

static void gradient_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                          int64_t now)
{
    struct gradient *gradient = state;
    double latency_ns = answer->latency_ns > LATENCY_LEAST_NS ? (double)answer->latency_ns : LATENCY_LEAST_NS;

    if (answer->kind == WR_PACE_RESPONSE_REJECTED && answer->sent_at >= gradient->cut_at)
        cut_gradient_window(options, gradient, now);
    if (answer->kind != WR_PACE_RESPONSE_OK)
        return;
    if (gradient->short_ns <= 0)
        first_answer(options, gradient, latency_ns);
    gradient->sum_ns += latency_ns;
    gradient->answers++;
    if (answer->sent_at >= gradient->stepped_at)
        end_round_trip(options, gradient, now);
}

static struct wr_pace_bounds gradient_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct gradient *gradient = state;
    return (struct wr_pace_bounds){
        .earliest_at = gradient->next_at,
        .reason = WEIR_REASON_PACE,
        .cap = gradient->short_ns > 0 ? (uint32_t)gradient->window + 1 : 1,
        .rate = wr_interval_rate(gradient->interval_ns),
    };
}

static void gradient_remember(const weir_pace_options *options, const void *state, int64_t now,
                              weir_pace_memory *memory)
{
    (void)options, (void)now;
    const struct gradient *gradient = state;
    memory->delay_ns = gradient->interval_ns;
    memory->floor_ns = gradient->safe_ns;
}

static bool gradient_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options;
    const struct gradient *gradient = state;
    return now >= gradient->next_at;
}

static const char *gradient_mode(const void *state)
{
    const struct gradient *gradient = state;
    return gradient->refused > 0 ? "near" : "open";
}

static const uint16_t instants[] = {offsetof(struct gradient, next_at), offsetof(struct gradient, stepped_at),
                                    offsetof(struct gradient, cut_at), WR_NO_INSTANT};

const struct wr_strategy wr_gradient = {
    .name = "gradient",
    .state_bytes = sizeof(struct gradient),
    .start = gradient_start,
    .sent = gradient_sent,
    .tell = gradient_tell,
    .want = gradient_want,
    .remember = gradient_remember,
    .settled = gradient_settled,
    .instants = instants,
    .mode = gradient_mode,
};
