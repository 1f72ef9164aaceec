/* SPDX-License-Identifier: MIT */
/* tide.c - the strategy tide, as the gate calls it: what starts and answers mean, and to which part they go. */
#include "core/pace/tide.h"
#include <math.h>

#define SLACK_NS INT64_C(1000000) /* of timers: a start this late is on time, and the next is not put off by it */

static const char *const words[] = {
    [WR_TIDE_START] = "start",     [WR_TIDE_SEARCH] = "search", [WR_TIDE_CRUISE] = "cruise",
    [WR_TIDE_BLOCKED] = "blocked", [WR_TIDE_HOLD] = "hold",
};

/* Memory: traits holds the traits, the time constant of the span and the unloaded latency besides. */
#define BASE_SHIFT 16
#define BASE_STEPS 16.0f /* per log2 of latency */
#define BASE_MASK 1023u

/* A warm start knows where the limit was, and confirms it like any measurement. */
static void recall(struct wr_tide *tide, const weir_pace_memory *memory)
{
    tide->traits = memory->traits & WR_TIDE_TRAITS;
    tide->base = (float)(memory->traits >> BASE_SHIFT & BASE_MASK) / BASE_STEPS;
    if (memory->cap > 0) {
        tide->cap = (float)memory->cap;
        tide->cap_found = true;
    }
    if (memory->block_ns > 0) {
        tide->blocks = 2;
        tide->block_most = wr_tide_seconds(memory->block_ns);
        tide->block_least = 0.75f * tide->block_most;
    }
    float rate = (float)memory->rate;
    if (tide->traits & WR_TIDE_BANS) {
        tide->mode = WR_TIDE_HOLD;
        tide->rate = tide->centre = wr_tide_most(rate, TIDE_RATE_FLOOR); /* if less was right, it will be again */
    } else if (tide->traits & (WR_TIDE_FREE | WR_TIDE_CONCURRENCY)) {
        tide->traits &= (uint8_t)~WR_TIDE_FREE;
        wr_tide_restart(tide, rate);
    } else {
        wr_tide_cruise(tide, rate, 2 * TIDE_MARGIN_LEAST, TIDE_SPAN_MOST);
    }
}

static void start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options;
    struct wr_tide *tide = state;
    tide->next_at = tide->free_at = tide->epoch_at = now;
    tide->margin = TIDE_MARGIN_NEW;
    tide->span = TIDE_SPAN_NEW;
    tide->credit = TIDE_CREDIT;
    tide->header_rate = INFINITY;
    tide->cap = TIDE_CAP_FIRST;
    tide->flight = 1;
    tide->gap = 1 / TIDE_FIRST_RATE;
    tide->crowd_wait = TIDE_CROWD_WAIT;
    tide->paced = true;
    wr_tide_restart(tide, TIDE_FIRST_RATE);
    if (memory != NULL && memory->rate > 0)
        recall(tide, memory);
}

static bool headers_hold(const struct wr_tide *tide, int64_t now)
{
    return now < tide->header_until && tide->header_rate < tide->rate;
}

static void sent(const weir_pace_options *options, void *state, const struct wr_start *start, int64_t now)
{
    (void)options;
    struct wr_tide *tide = state;
    bool header = headers_hold(tide, now);
    int64_t interval = wr_tide_interval(header ? tide->header_rate : tide->rate);
    int64_t late = now - tide->next_at;

    tide->paced = !header && late <= interval / 8 + SLACK_NS;
    if (start->in_flight == 1 && late > interval + SLACK_NS)
        tide->marked = false; /* idle: the bucket may have overflowed */
    tide->gap += (wr_tide_seconds(late + interval) - tide->gap) / 8;
    tide->by_header = header && tide->mode != WR_TIDE_BLOCKED;
    tide->next_at = late > 0 && late <= SLACK_NS ? tide->next_at + interval : now + interval;
    tide->sent_seq = start->seq;
    wr_tide_cap_sent(tide, start);
}

/* What the server says it still allows, spread over the time until it allows more. The last word holds: a start that
 * was put off by an earlier one is moved. */
static void read_headers(struct wr_tide *tide, const struct wr_told *answer, int64_t now)
{
    if (answer->quota_remaining < 0 || answer->quota_reset_ns <= 0)
        return;
    float left = (float)answer->quota_remaining - (float)answer->in_flight, before = tide->header_rate;
    tide->header_rate = wr_tide_most(left, 1) / wr_tide_seconds(answer->quota_reset_ns);
    tide->header_until = now + answer->quota_reset_ns;
    if (tide->by_header) {
        tide->by_header = headers_hold(tide, now);
        tide->next_at += wr_tide_interval(tide->by_header ? tide->header_rate : tide->rate) - wr_tide_interval(before);
    }
}

static void accepted(struct wr_tide *tide, const struct wr_told *answer, bool fresh, int64_t now)
{
    tide->accepted++;
    tide->credit = wr_tide_least(tide->credit + TIDE_EARN, TIDE_CREDIT);
    tide->share *= 1 - 1 / 32.0f;
    if (!fresh)
        return;
    if (tide->mode == WR_TIDE_BLOCKED) {
        wr_tide_probe_accepted(tide, answer, now);
        return;
    }
    tide->streak = 0;
    if (tide->mode == WR_TIDE_HOLD)
        wr_tide_hold_accepted(tide, now);
    else
        wr_tide_accepted(tide, answer, now);
}

/* The gate waits for Retry-After; here it is only known, so that waiting is not taken for idleness. */
static void note_wait(struct wr_tide *tide, const struct wr_told *answer, bool fresh, int64_t now)
{
    float wait = answer->retry_after_ns > 0 ? wr_tide_seconds(answer->retry_after_ns) : 0;
    if (fresh)
        tide->penalty += (wait - tide->penalty) / 2;
    int64_t until = now + (answer->retry_after_ns > 0 ? answer->retry_after_ns : 0);
    int64_t from = tide->next_at > now ? tide->next_at : now;
    if (until > from) {
        tide->held += wr_tide_seconds(until - from);
        tide->next_at = until;
    }
}

static void note_streak(struct wr_tide *tide, const struct wr_told *answer)
{
    if (tide->streak == 0) {
        tide->resume = tide->mode == WR_TIDE_CRUISE ? tide->centre : tide->rate;
        tide->resume_mode = tide->mode;
        tide->block_at = answer->sent_at;
        if (tide->blocks == 0)
            tide->quota = TIDE_WINDOW_SHORT / tide->gap;
    }
    if (tide->streak < UINT8_MAX)
        tide->streak++;
}

/* Whether this 503 is one of those that come whatever the rate. A host that says 429 means the rate by that. */
static bool is_stray(struct wr_tide *tide, const struct wr_told *answer)
{
    if (answer->status == 429)
        tide->traits |= WR_TIDE_STRAY_503;
    if (tide->mode == WR_TIDE_BLOCKED)
        return false;
    tide->share += (1 - tide->share) / 32;
    if (answer->status != 503 || answer->retry_after_ns >= 0)
        return false;
    if (tide->traits & WR_TIDE_STRAY_503)
        return tide->share < TIDE_STRAY_SHARE && tide->streak + 1 < TIDE_STREAK_503;
    if (tide->mode == WR_TIDE_START && tide->share < 2.5f / 32) {
        if (++tide->strays >= TIDE_STRAYS_START)
            tide->traits |= WR_TIDE_STRAY_503;
        return true;
    }
    return false;
}

/* Six single 503s in a row while the rate fell: they are not about the rate. Takes it back. */
static bool turns_stray(struct wr_tide *tide, const struct wr_told *answer)
{
    if (answer->status != 503 || tide->mode != WR_TIDE_CRUISE)
        return false;
    if (tide->strays == 0 || tide->phase > 2) {
        tide->strays = 0;
        tide->stray_rate = tide->rate;
    }
    if (++tide->strays < TIDE_STRAYS || tide->rate > TIDE_STRAYS_FALL * tide->stray_rate)
        return false;
    tide->traits |= WR_TIDE_STRAY_503;
    wr_tide_restart(tide, tide->stray_rate);
    return true;
}

/* A single 403 may be the page's own. Many are not, perhaps: then it is as slow as nobody minds, and no slower. */
static void forbidden(struct wr_tide *tide)
{
    if (tide->share > TIDE_403_SHARE && tide->rate > TIDE_FIRST_RATE && tide->mode != WR_TIDE_HOLD)
        wr_tide_search(tide, wr_tide_most(tide->rate / 2, TIDE_FIRST_RATE), tide->rate);
}

static bool is_block(const struct wr_tide *tide, const struct wr_told *answer)
{
    int most = answer->status == 503 ? TIDE_STREAK_503 : TIDE_STREAK;
    bool spent = tide->mode == WR_TIDE_HOLD && tide->blocks > 0 && (float)tide->accepted >= 0.98f * tide->quota;
    return tide->streak >= most || spent || answer->retry_after_ns >= TIDE_BLOCK_RETRY_NS;
}

static void rejected(struct wr_tide *tide, const struct wr_told *answer, bool fresh, int64_t now)
{
    tide->by_header = false; /* what comes now may put off the next start for other reasons */
    note_wait(tide, answer, fresh, now);
    if (is_stray(tide, answer)) {
        if (fresh)
            note_streak(tide, answer);
        return;
    }
    tide->credit = wr_tide_most(tide->credit - 1, TIDE_CREDIT_LEAST);
    if (tide->marked && !fresh && (int32_t)(answer->seq - tide->empty_seq) > 0)
        tide->refused++;
    if (!fresh)
        return;
    if (tide->mode == WR_TIDE_BLOCKED) {
        wr_tide_probe_failed(tide, now);
        return;
    }
    if (wr_tide_cap_rejected(tide, answer))
        return;
    note_streak(tide, answer);
    if (is_block(tide, answer))
        wr_tide_block(tide, answer, now);
    else if (answer->status == 403)
        forbidden(tide);
    else if (!turns_stray(tide, answer))
        wr_tide_rejected(tide, answer);
    int64_t next_at = now + wr_tide_interval(tide->rate);
    if (tide->mode == WR_TIDE_SEARCH)
        next_at += answer->latency_ns; /* what is still in flight tells more before another is sent */
    if (tide->mode != WR_TIDE_BLOCKED && tide->next_at < next_at)
        tide->next_at = next_at;
}

static void tell(const weir_pace_options *options, void *state, const struct wr_told *answer, int64_t now)
{
    (void)options;
    struct wr_tide *tide = state;
    bool fresh = (int32_t)(answer->seq - tide->cut_seq) > 0;

    read_headers(tide, answer, now);
    if (answer->kind == WR_TOLD_OK)
        wr_tide_cap_accepted(tide, answer, now);
    if (answer->kind == WR_TOLD_REJECTED)
        rejected(tide, answer, fresh, now);
    else if (tide->mode == WR_TIDE_BLOCKED && answer->kind != WR_TOLD_OK)
        wr_tide_probe_failed(tide, now);
    else if (answer->kind != WR_TOLD_LOST)
        accepted(tide, answer, fresh, now);
}

static struct wr_want want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options;
    const struct wr_tide *tide = state;
    return (struct wr_want){
        .earliest_at = tide->next_at,
        .reason = WEIR_REASON_PACE,
        .cap = tide->mode == WR_TIDE_BLOCKED ? 1 : (uint32_t)tide->cap,
        .rate = (double)(headers_hold(tide, now) ? tide->header_rate : tide->rate),
    };
}

static void remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
{
    (void)options, (void)now;
    const struct wr_tide *tide = state;
    enum wr_tide_mode mode = tide->mode == WR_TIDE_BLOCKED ? tide->resume_mode : tide->mode;
    uint32_t traits = tide->traits;
    if (mode == WR_TIDE_HOLD)
        traits |= WR_TIDE_BANS;
    if (mode == WR_TIDE_START)
        traits |= WR_TIDE_FREE;
    float rate = tide->mode == WR_TIDE_BLOCKED ? tide->resume : mode == WR_TIDE_CRUISE ? tide->centre : tide->rate;
    memory->rate = (double)rate;
    memory->cap = (uint32_t)tide->cap;
    memory->traits = traits | (uint32_t)(tide->base * BASE_STEPS) << BASE_SHIFT;
    memory->block_ns = (int64_t)((double)tide->block_most * 1e9);
    memory->delay_ns = memory->floor_ns = wr_tide_interval(rate);
}

/* A new one would not be faster, and would not have to learn of a block again. */
static bool settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct wr_tide *tide = state;
    return tide->mode <= WR_TIDE_CRUISE && tide->rate >= TIDE_FIRST_RATE && tide->cap >= TIDE_CAP_FIRST;
}

static const char *mode(const void *state)
{
    const struct wr_tide *tide = state;
    return words[tide->mode];
}

static const uint16_t instants[] = {offsetof(struct wr_tide, next_at),
                                    offsetof(struct wr_tide, empty_at),
                                    offsetof(struct wr_tide, block_at),
                                    offsetof(struct wr_tide, free_at),
                                    offsetof(struct wr_tide, header_until),
                                    offsetof(struct wr_tide, epoch_at),
                                    WR_NO_INSTANT};

static bool has_mode(const void *state)
{
    const struct wr_tide *tide = state;
    return tide->mode <= WR_TIDE_HOLD && tide->resume_mode <= WR_TIDE_HOLD;
}

const struct wr_strategy wr_tide = {
    .name = "tide",
    .state_bytes = sizeof(struct wr_tide),
    .start = start,
    .sent = sent,
    .tell = tell,
    .want = want,
    .remember = remember,
    .settled = settled,
    .instants = instants,
    .has_mode = has_mode,
    .mode = mode,
};
