/* SPDX-License-Identifier: MIT */
/* pid.c - Implements the strategy pid: a PID controller sets the rate by latency and rejections.
 *
 *     error = min(1 - share / SHARE_SET, 1 - latency / (LATENCY_SET * low)), in ERROR_LEAST ... 1
 *     ln rate += KP * (error - last) + KI * error + KD * (error - 2 last + one before)
 *
 * The controller runs once per sample, which takes PERIOD_NS and ANSWERS_LEAST responses or more.
 * `share` is the moving share of rejections, `low` the lowest latency of this host. This form has
 * no sum that could wind up: a change beyond the bounds is discarded. The rate does not grow far
 * beyond the real starts, which other bounds or a lack of work may limit.
 */
#include "core/pace/rate.h"
#include "core/pace/strategy.h"

#include <math.h>

#define KP 0.1           /* weight of a change of the error */
#define KI 0.02          /* +2 % per good sample: from a few per second to hundreds in minutes */
#define KD 0.05          /* weight of an accelerating change, for an early reaction */
#define ERROR_LEAST -4.0 /* halves a rate that is refused outright within seconds */
#define PERIOD_NS WEIR_SECOND
#define ANSWERS_LEAST 4
#define SHARE_SET 0.01 /* above 0, because a limit that is never reached stays unknown */
#define SHARE_WEIGHT 0.2
#define LATENCY_SET 2.5                   /* room for noise; less oscillates on hosts that queue */
#define LATENCY_ANSWERS 100.0             /* responses that the mean latency covers */
#define LATENCY_WEIGHT 0.3                /* maximum weight of one sample in the mean latency */
#define LOW_RISE 0.0002                   /* per sample: accepts a slower host within an hour */
#define AHEAD 2.0                         /* maximum ratio of the rate to the real starts */
#define LATENCY_LEAST_NS WEIR_MICROSECOND /* keeps logarithms above 0 */
#define RATE_MAX 100000.0                 /* starts per second */

struct pid {
    double rate;
    double last, before; /* errors of the last two samples, newest first */
    double share;
    double latency, low; /* moving mean and minimum, ln ns */
    double sum;          /* sum of the latencies in this sample, ln ns */
    int64_t interval_ns;
    int64_t next_at;
    int64_t sample_at;                    /* start of this sample */
    int64_t safe_ns;                      /* interval at the last good sample; 0 if unknown */
    uint32_t starts, answers, rejections; /* counts of this sample; answers exclude rejections */
};

static void set_pid_rate(const weir_pace_options *options, struct pid *pid, double rate)
{
    pid->rate = fmin(fmax(rate, options->min_rate), RATE_MAX);
    pid->interval_ns = wr_rate_interval(pid->rate);
}

static void pid_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    struct pid *pid = state;
    bool known = memory != NULL && memory->delay_ns > 0;

    set_pid_rate(options, pid, known ? wr_interval_rate(memory->delay_ns) : options->initial_rate);
    pid->safe_ns = known ? memory->floor_ns : 0;
    pid->next_at = memory != NULL ? now + pid->interval_ns : now;
    pid->sample_at = now;
}

static void pid_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options, (void)start;
    struct pid *pid = state;
    pid->next_at = now + pid->interval_ns;
    pid->starts++;
}

static void measure_sample(struct pid *pid)
{
    double share = (double)pid->rejections / (pid->answers + pid->rejections);
    pid->share += SHARE_WEIGHT * (share - pid->share);
    if (pid->answers == 0)
        return;
    double mean = pid->sum / pid->answers;
    double weight = wr_within(pid->answers / LATENCY_ANSWERS, 0, LATENCY_WEIGHT);
    pid->latency += (pid->latency > 0 ? weight : 1) * (mean - pid->latency);
    pid->low += LOW_RISE;
    if (pid->low > pid->latency || pid->low < 1)
        pid->low = pid->latency;
}

/* Returns the control error: 1 at best, 0 at the set point, negative beyond it. */
static double control_error(const struct pid *pid)
{
    double by_share = 1 - pid->share / SHARE_SET;
    double by_latency = 1 - exp(pid->latency - pid->low) / LATENCY_SET;
    return wr_within(by_share < by_latency ? by_share : by_latency, ERROR_LEAST, 1);
}

static void end_pid_sample(const weir_pace_options *options, struct pid *pid, int64_t now)
{
    double seconds = (double)(now - pid->sample_at) / (double)WEIR_SECOND;
    measure_sample(pid);
    double error = control_error(pid);
    double change = KP * (error - pid->last) + KI * error + KD * (error - 2 * pid->last + pid->before);
    double rate = pid->rate * exp(change);

    if (error > 0 && pid->rejections == 0)
        pid->safe_ns = pid->interval_ns;
    if (rate > pid->rate && rate > AHEAD * pid->starts / seconds + 1)
        rate = pid->rate;
    set_pid_rate(options, pid, rate);
    pid->before = pid->last;
    pid->last = error;
    pid->sample_at = now;
    pid->starts = pid->answers = pid->rejections = 0;
    pid->sum = 0;
}

static void pid_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer, int64_t now)
{
    struct pid *pid = state;
    if (answer->kind == WR_PACE_RESPONSE_REJECTED) {
        pid->rejections++;
    } else if (answer->kind == WR_PACE_RESPONSE_OK) {
        pid->answers++;
        pid->sum += log(answer->latency_ns > LATENCY_LEAST_NS ? (double)answer->latency_ns : LATENCY_LEAST_NS);
    }
    if (pid->answers + pid->rejections >= ANSWERS_LEAST && now - pid->sample_at >= PERIOD_NS)
        end_pid_sample(options, pid, now);
}

static struct wr_pace_bounds pid_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct pid *pid = state;
    return (struct wr_pace_bounds){
        .earliest_at = pid->next_at,
        .reason = WEIR_REASON_PACE,
        .cap = UINT32_MAX,
        .rate = pid->rate,
    };
}

static void pid_remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
{
    (void)options, (void)now;
    const struct pid *pid = state;
    memory->delay_ns = pid->interval_ns;
    memory->floor_ns = pid->safe_ns;
}

static bool pid_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options;
    const struct pid *pid = state;
    return now >= pid->next_at;
}

static const char *pid_mode(const void *state)
{
    const struct pid *pid = state;
    return pid->last > 0 ? "rise" : pid->last < 0 ? "fall" : "hold";
}

static const uint16_t instants[] = {offsetof(struct pid, next_at), offsetof(struct pid, sample_at), WR_NO_INSTANT};

const struct wr_strategy wr_pid = {
    .name = "pid",
    .state_bytes = sizeof(struct pid),
    .start = pid_start,
    .sent = pid_sent,
    .tell = pid_tell,
    .want = pid_want,
    .remember = pid_remember,
    .settled = pid_settled,
    .instants = instants,
    .mode = pid_mode,
};
