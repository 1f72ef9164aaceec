/* SPDX-License-Identifier: MIT */
/* learned.c - Implements the strategy learned: a delay grows with each 429 and probes lower it. */
#include "core/pace/learned.h"
#include "core/pace/rate.h"
#include "core/pace/refusal.h"
#include "core/pace/strategy.h"

/* Returns a delay after the time `for_ns`: its excess over the base halves with every half-life.
 * Only whole half-lives count, so that steps stay exact. */
static int64_t aged_delay(const weir_pace_options *options, int64_t delay_ns, int64_t for_ns)
{
    int64_t halvings = for_ns > 0 ? for_ns / options->half_life_ns : 0;
    int64_t above_ns = delay_ns - options->base_delay_ns;
    return above_ns <= 0 ? delay_ns : options->base_delay_ns + (halvings < 63 ? above_ns >> halvings : 0);
}

static int64_t delay_now(const weir_pace_options *options, const struct wr_learned *learned, int64_t now)
{
    return aged_delay(options, learned->delay_ns, now - learned->next_at);
}

static int64_t floor_now(const weir_pace_options *options, const struct wr_learned *learned, int64_t now)
{
    return aged_delay(options, learned->floor_ns, now - learned->floor_at);
}

static void learned_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    struct wr_learned *learned = state;
    int64_t delay_ns = memory != NULL ? memory->delay_ns : 0;

    learned->delay_ns = wr_ns_within(delay_ns, options->base_delay_ns, options->max_delay_ns);
    learned->floor_ns = memory != NULL ? wr_ns_within(memory->floor_ns, 0, options->max_delay_ns) : 0;
    learned->floor_at = now;
    learned->next_at = memory != NULL ? now + learned->delay_ns : now;
}

static void learned_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)start;
    struct wr_learned *learned = state;
    learned->delay_ns = delay_now(options, learned, now);
    learned->next_at = now + learned->delay_ns;
}

/* Ends the current probe as a success, and starts the next if the delay can be lowered. */
static void probe_lower_delay(const weir_pace_options *options, struct wr_learned *learned, int64_t now)
{
    int64_t least_ns = floor_now(options, learned, now);
    if (least_ns < options->base_delay_ns)
        least_ns = options->base_delay_ns;
    int64_t delay_ns = learned->delay_ns - options->delay_down_ns;
    if (delay_ns < least_ns)
        delay_ns = least_ns;

    learned->successes = 0;
    learned->before_ns = 0;
    if (delay_ns >= learned->delay_ns)
        return;
    learned->before_ns = learned->delay_ns;
    learned->probed_at = now;
    learned->delay_ns = delay_ns;
}

static void learn_from_success(const weir_pace_options *options, struct wr_learned *learned, int64_t now)
{
    if (++learned->successes >= options->probe_after)
        probe_lower_delay(options, learned, now);
}

/* Handles a rejection. If the request was sent during a probe, the probe failed. If it was sent
 * earlier, the delay before the probe was too short as well. */
static void learn_from_rejection(const weir_pace_options *options, struct wr_learned *learned, int64_t sent_at,
                                 int64_t now)
{
    bool failed_probe = learned->before_ns > 0 && sent_at >= learned->probed_at;
    int64_t delay_ns = learned->before_ns > 0 ? learned->before_ns : learned->delay_ns;

    if (failed_probe) {
        learned->floor_ns = delay_ns;
        learned->floor_at = now;
    } else {
        delay_ns += options->delay_up_ns;
    }
    learned->delay_ns = delay_ns < options->max_delay_ns ? delay_ns : options->max_delay_ns;
    learned->before_ns = 0;
    learned->successes = 0;
    if (learned->next_at < now + learned->delay_ns)
        learned->next_at = now + learned->delay_ns;
}

static bool is_lesson(const weir_pace_options *options, int status)
{
    return wr_status_refuses(status) || (status == 403 && options->learn_on_403) ||
           (status == 503 && options->learn_on_503);
}

/* Handles a response. An error that says nothing about pace does not end a row of successes. */
static void learned_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer,
                         int64_t now)
{
    if (is_lesson(options, answer->status))
        learn_from_rejection(options, state, answer->sent_at, now);
    else if (answer->kind == WR_PACE_RESPONSE_OK)
        learn_from_success(options, state, now);
}

/* Moves the next start, so that its distance from the last start equals the new delay. */
static void learned_change(const weir_pace_options *options, void *state, int64_t now)
{
    (void)now;
    struct wr_learned *learned = state;
    int64_t delay_ns = wr_ns_within(learned->delay_ns, options->base_delay_ns, options->max_delay_ns);
    learned->next_at += delay_ns - learned->delay_ns;
    learned->delay_ns = delay_ns;
}

static struct wr_pace_bounds learned_want(const weir_pace_options *options, const void *state, int64_t now)
{
    const struct wr_learned *learned = state;
    return (struct wr_pace_bounds){
        .earliest_at = learned->next_at,
        .reason = WEIR_REASON_PACE,
        .cap = UINT32_MAX,
        .rate = wr_interval_rate(delay_now(options, learned, now)),
    };
}

static void learned_remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
{
    const struct wr_learned *learned = state;
    memory->delay_ns = delay_now(options, learned, now);
    memory->floor_ns = floor_now(options, learned, now);
}

static bool learned_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options;
    const struct wr_learned *learned = state;
    return now >= learned->next_at;
}

static const char *learned_mode(const void *state)
{
    const struct wr_learned *learned = state;
    return learned->before_ns > 0 ? "probe" : "hold";
}

static const uint16_t instants[] = {offsetof(struct wr_learned, floor_at), offsetof(struct wr_learned, probed_at),
                                    offsetof(struct wr_learned, next_at), WR_NO_INSTANT};

const struct wr_strategy wr_learned = {
    .name = "learned",
    .state_bytes = sizeof(struct wr_learned),
    .start = learned_start,
    .sent = learned_sent,
    .tell = learned_tell,
    .want = learned_want,
    .change = learned_change,
    .remember = learned_remember,
    .settled = learned_settled,
    .instants = instants,
    .mode = learned_mode,
};
