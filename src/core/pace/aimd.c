/* SPDX-License-Identifier: MIT */
/* aimd.c - Implements the strategy aimd: additive increase, multiplicative decrease. */
#include "core/pace/aimd.h"
#include "base/bits.h"
#include "core/pace/rate.h"
#include "core/pace/refusal.h"
#include "core/pace/strategy.h"

enum aimd_mode {
    HOLD,
    RAISE,
    CUT
};

/* Returns the time that an empty bucket needs to fill, ns. */
static int64_t bucket_full_ns(const weir_pace_options *options, const struct wr_aimd *aimd)
{
    return wr_ns_up(options->burst * (double)aimd->interval_ns);
}

static void set_aimd_rate(const weir_pace_options *options, struct wr_aimd *aimd, double rate)
{
    aimd->rate = wr_within(rate, options->min_rate, options->rate_ceiling);
    aimd->interval_ns = wr_rate_interval(aimd->rate);
}

/* Changes the rate and keeps the number of missing tokens: the time until the bucket is full is
 * scaled with the interval and rounded up. */
static void change_aimd_rate(const weir_pace_options *options, struct wr_aimd *aimd, double rate, int64_t now)
{
    int64_t before_ns = aimd->interval_ns;
    int64_t debt_ns = aimd->full_at - now;

    set_aimd_rate(options, aimd, rate);
    if (debt_ns <= 0)
        return;
    wr_i128 stretched_ns = ((wr_i128)debt_ns * aimd->interval_ns + before_ns - 1) / before_ns;
    aimd->full_at = now + (stretched_ns < WEIR_DURATION_MAX ? (int64_t)stretched_ns : WEIR_DURATION_MAX);
}

/* Initialises the state. With a stored memory the bucket starts empty, so that a restart of the
 * process causes no burst. */
static void aimd_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    struct wr_aimd *aimd = state;
    bool known = memory != NULL && memory->delay_ns > 0;

    set_aimd_rate(options, aimd, known ? wr_interval_rate(memory->delay_ns) : options->initial_rate);
    aimd->full_at = memory != NULL ? now + bucket_full_ns(options, aimd) : now;
    aimd->target_ns = options->latency_target_ns;
    aimd->safe_ns = known ? memory->floor_ns : 0;
    aimd->held_until = now;
}

static void aimd_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options, (void)start;
    struct wr_aimd *aimd = state;
    aimd->full_at = (aimd->full_at > now ? aimd->full_at : now) + aimd->interval_ns;
}

/* Moves the latency target towards the latest latency. The target is rounded up by one more
 * nanosecond, so that a response with the usual latency is below it. */
static void follow_latency(const weir_pace_options *options, struct wr_aimd *aimd, int64_t latency_ns)
{
    double ahead = (double)(latency_ns - aimd->target_ns) * options->latency_weight;
    double mean = (double)aimd->target_ns + ahead;
    aimd->target_ns = wr_ns_up(mean) + 1;
}

/* Returns true if the response calls for a lower rate. Several responses with Retry-After cause one
 * decrease: `directed_again` is true while an earlier one holds. */
static bool calls_for_decrease(const struct wr_pace_response *answer, bool directed_again, bool slow)
{
    if (answer->retry_after_ns > 0)
        return !directed_again;
    return wr_status_refuses(answer->status) || answer->status >= 500 || slow;
}

static void aimd_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer, int64_t now)
{
    struct wr_aimd *aimd = state;
    bool answered = answer->kind == WR_PACE_RESPONSE_OK;
    bool slow = answered && (double)answer->latency_ns >= options->degrade_factor * (double)aimd->target_ns;
    bool good = answered && answer->status < 400 && answer->latency_ns < aimd->target_ns;

    aimd->mode = HOLD;
    if (calls_for_decrease(answer, now < aimd->held_until, slow)) {
        aimd->mode = CUT;
        change_aimd_rate(options, aimd, aimd->rate * options->decrease, now);
    } else if (good && answer->retry_after_ns <= 0) {
        aimd->mode = RAISE;
        aimd->safe_ns = aimd->interval_ns;
        change_aimd_rate(options, aimd, aimd->rate + options->increase, now);
    }
    if (answer->retry_after_ns > 0 && now + answer->retry_after_ns > aimd->held_until)
        aimd->held_until = now + answer->retry_after_ns;
    if (answered)
        follow_latency(options, aimd, answer->latency_ns);
}

static void aimd_change(const weir_pace_options *options, void *state, int64_t now)
{
    struct wr_aimd *aimd = state;
    change_aimd_rate(options, aimd, aimd->rate, now);
}

static struct wr_pace_bounds aimd_want(const weir_pace_options *options, const void *state, int64_t now)
{
    const struct wr_aimd *aimd = state;
    int64_t full = bucket_full_ns(options, aimd);
    int64_t debt_ns = aimd->full_at > now ? aimd->full_at - now : 0;

    return (struct wr_pace_bounds){
        .earliest_at = aimd->full_at - full + aimd->interval_ns,
        .reason = WEIR_REASON_TOKENS,
        .cap = UINT32_MAX,
        .rate = aimd->rate,
        .tokens = (double)(full - debt_ns) / (double)aimd->interval_ns,
    };
}

static void aimd_remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
{
    (void)options, (void)now;
    const struct wr_aimd *aimd = state;
    memory->delay_ns = aimd->interval_ns;
    memory->floor_ns = aimd->safe_ns;
}

static bool aimd_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options;
    const struct wr_aimd *aimd = state;
    return now >= aimd->full_at;
}

static const char *aimd_mode(const void *state)
{
    static const char *const names[] = {[HOLD] = "hold", [RAISE] = "raise", [CUT] = "cut"};
    const struct wr_aimd *aimd = state;
    return names[aimd->mode];
}

static const uint16_t instants[] = {offsetof(struct wr_aimd, full_at), offsetof(struct wr_aimd, held_until),
                                    WR_NO_INSTANT};

static bool aimd_has_mode(const void *state)
{
    const struct wr_aimd *aimd = state;
    return aimd->mode <= CUT;
}

const struct wr_strategy wr_aimd = {
    .name = "aimd",
    .state_bytes = sizeof(struct wr_aimd),
    .start = aimd_start,
    .sent = aimd_sent,
    .tell = aimd_tell,
    .want = aimd_want,
    .change = aimd_change,
    .remember = aimd_remember,
    .settled = aimd_settled,
    .instants = instants,
    .has_mode = aimd_has_mode,
    .mode = aimd_mode,
};
