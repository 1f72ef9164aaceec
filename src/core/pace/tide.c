/* SPDX-License-Identifier: MIT */
/* tide.c - Implements the strategy interface of tide and distributes starts and responses. */
#include "core/pace/tide.h"

#include "core/pace/refusal.h"
#include <math.h>

#define QUOTA_SLACK_NS (50 * WEIR_MILLISECOND) /* how much later responses of one window may come */
/* Timer slack: a start this late counts as on time and does not delay the next one. */
#define SLACK_NS INT64_C(1000000)

static const char *const words[] = {
    [WR_TIDE_START] = "start",     [WR_TIDE_SEARCH] = "search", [WR_TIDE_CRUISE] = "cruise",
    [WR_TIDE_BLOCKED] = "blocked", [WR_TIDE_HOLD] = "hold",
};

/* Layout of weir_pace_memory.traits: the traits in the low bits, the unloaded latency above. */
#define BASE_SHIFT 16
#define BASE_STEPS 16.0f /* steps per log2 of latency */
#define BASE_MASK 1023u

/* Restores the limit from a stored memory. It is confirmed like any measurement. */
static void recall_limit(struct wr_tide *tide, const weir_pace_memory *memory)
{
    tide->traits = memory->traits & WR_TIDE_TRAITS;
    tide->base = (float)(memory->traits >> BASE_SHIFT & BASE_MASK) / BASE_STEPS;
    if (memory->cap > 0) {
        tide->cap = (float)memory->cap;
        tide->cap_found = true;
    }
    if (memory->block_ns > 0) {
        tide->blocks = 2;
        tide->block_most = (float)((double)memory->block_ns * 1e-9); /* restores the same float */
        tide->block_least = 0.75f * tide->block_most;
    }
    float rate = (float)memory->rate;
    if (tide->traits & WR_TIDE_BANS) {
        tide->mode = WR_TIDE_HOLD;
        /* If a rate below the floor was right, it will be learned again. */
        tide->rate = tide->centre = wr_tide_most(rate, TIDE_RATE_FLOOR);
    } else if (tide->traits & (WR_TIDE_FREE | WR_TIDE_CONCURRENCY)) {
        tide->traits &= WR_TIDE_TRAITS & ~WR_TIDE_FREE;
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
        recall_limit(tide, memory);
}

static bool headers_hold(const struct wr_tide *tide, int64_t now)
{
    return now < tide->header_until && tide->header_rate < tide->rate;
}

static void wait_if_spent(struct wr_tide *tide, int64_t now)
{
    if (now >= tide->header_until || tide->quota_left >= 1 || tide->mode == WR_TIDE_BLOCKED ||
        tide->next_at >= tide->header_until)
        return;
    tide->next_at = tide->header_until;
    tide->by_header = true;
}

static void tide_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options;
    struct wr_tide *tide = state;
    bool header = headers_hold(tide, now);
    int64_t interval = wr_tide_interval(header ? tide->header_rate : tide->rate);
    int64_t late = now - tide->next_at;

    tide->paced = !header && late <= interval / 8 + SLACK_NS;
    if (start->in_flight == 1 && late > interval + SLACK_NS)
        tide->marked = false; /* the bucket may have overflowed while idle */
    tide->gap += (wr_tide_seconds(late + interval) - tide->gap) / 8;
    tide->by_header = header && tide->mode != WR_TIDE_BLOCKED;
    tide->next_at = late > 0 && late <= SLACK_NS ? tide->next_at + interval : now + interval;
    tide->quota_left -= 1;
    wait_if_spent(tide, now);
    tide->sent_seq = start->seq;
    wr_tide_cap_sent(tide, start);
}

static void set_quota_end(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t until)
{
    tide->header_until = until;
    tide->exact_ms = (uint16_t)(answer->sent_at / WEIR_MILLISECOND % 1000);
}

/* Notes the end of the quota window. Servers state resets in whole seconds, rounded up, so the
 * earliest end stated for a window is the most exact. A window is a new one if more requests are
 * left than before, or if its end is later than rounding explains. */
static void note_quota_end(struct wr_tide *tide, const struct wr_pace_response *answer, float left, int64_t now)
{
    int64_t until = answer->sent_at + answer->quota_reset_ns, off_ns = until - tide->header_until;
    bool is_same =
        now < tide->header_until && left <= tide->quota_left + 0.5f && off_ns <= WEIR_SECOND + QUOTA_SLACK_NS;
    if (is_same)
        tide->rounded |= off_ns > QUOTA_SLACK_NS || off_ns < -QUOTA_SLACK_NS;
    if (!is_same || off_ns < 0)
        set_quota_end(tide, answer, until);
}

/* Returns the time over which to spread the quota, s. The server's reset decides how long to wait
 * for a new quota, and it is exact at one instant of each second. With the result the quota is used
 * up at the last such instant. */
static float time_to_use(const struct wr_tide *tide, float seconds)
{
    int64_t since_ms = (tide->header_until / WEIR_MILLISECOND - tide->exact_ms) % 1000;
    float before_end = 1e-3f * (float)since_ms - TIDE_EXACT_SLACK;
    if (before_end < 2 * TIDE_EXACT_SLACK)
        before_end += 1;
    return seconds > before_end ? seconds - before_end : seconds;
}

/* Returns the rate that uses the whole quota before the quota is full again. */
static float quota_rate(const struct wr_tide *tide, float seconds)
{
    if (tide->quota_left < 1)
        return 1 / seconds;
    if (!tide->rounded)
        return (tide->quota_left + 1) / seconds;
    return tide->quota_left / time_to_use(tide, seconds);
}

/* Spreads the quota that the server states over the time until its reset. The latest response
 * applies: a start that an earlier response delayed is moved. */
static void read_quota_headers(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now)
{
    if (answer->quota_remaining < 0 || answer->quota_reset_ns <= 0)
        return;
    bool was_spent = tide->quota_left < 1;
    float before = tide->header_rate, since = (float)(int32_t)(tide->sent_seq - answer->seq);
    float left = (float)answer->quota_remaining - since;
    note_quota_end(tide, answer, left, now);
    tide->quota_left = left;
    tide->header_rate = quota_rate(tide, wr_tide_most(wr_tide_seconds(tide->header_until - answer->sent_at), 1e-3f));
    if (tide->by_header && tide->quota_left >= 1) {
        tide->by_header = headers_hold(tide, now);
        int64_t interval = wr_tide_interval(tide->by_header ? tide->header_rate : tide->rate);
        tide->next_at = was_spent ? answer->sent_at + interval : tide->next_at + interval - wr_tide_interval(before);
        tide->next_at = tide->next_at > now ? tide->next_at : now;
    }
    wait_if_spent(tide, now);
}

static void learn_accepted(struct wr_tide *tide, const struct wr_pace_response *answer, bool fresh, int64_t now)
{
    tide->accepted++;
    tide->credit = wr_tide_least(tide->credit + TIDE_EARN, TIDE_CREDIT);
    tide->share = (uint16_t)(tide->share - tide->share / 32);
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

/* Notes the cost of a rejection and the wait that the server asks for. The gate obeys Retry-After;
 * this note keeps the wait from counting as idle time. */
static void note_wait(struct wr_tide *tide, const struct wr_pace_response *answer, bool fresh, int64_t now)
{
    float wait = answer->retry_after_ns > 0 ? wr_tide_seconds(answer->retry_after_ns) : 0;
    float cost = answer->latency_ns < TIDE_STALLED_NS ? wait : wr_tide_most(wait, wr_tide_seconds(answer->latency_ns));
    if (fresh)
        tide->penalty = (uint16_t)(((float)tide->penalty + wr_tide_least(10 * cost, UINT16_MAX)) / 2);
    int64_t until = now + (answer->retry_after_ns > 0 ? answer->retry_after_ns : 0);
    int64_t from = tide->next_at > now ? tide->next_at : now;
    if (until > from) {
        tide->held += wr_tide_seconds(until - from);
        tide->next_at = until;
    }
}

static void note_streak(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    if (tide->streak == 0) {
        tide->resume = tide->mode == WR_TIDE_CRUISE || tide->testing ? tide->centre : tide->rate;
        tide->resume_mode = tide->mode;
        tide->block_at = answer->sent_at;
        if (tide->blocks == 0 && !tide->was_out)
            tide->quota = TIDE_WINDOW_SHORT / tide->gap;
    }
    if (tide->streak < 15)
        tide->streak++;
}

static void note_row(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    if (((tide->row_seq + 1u) & 15) != (answer->seq & 15))
        tide->row = 0;
    if (tide->row < 15)
        tide->row++;
    tide->row_seq = answer->seq & 15;
}

/* Returns true if a vague rejection, such as a 503, is independent of the rate. A host that sends
 * 429 (or similar) means the rate by that, so its single 503s are strays. */
static bool is_stray(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    if (wr_status_refuses(answer->status))
        tide->traits |= WR_TIDE_STRAY_503;
    if (tide->mode == WR_TIDE_BLOCKED)
        return false;
    tide->share = (uint16_t)(tide->share + (65535 - tide->share) / 32);
    note_row(tide, answer);
    if (tide->row >= TIDE_STREAK_503) {
        tide->strays = 0;
        tide->traits &= WR_TIDE_TRAITS & ~WR_TIDE_STRAY_503;
        return false;
    }
    if (!wr_tide_is_vague(answer) || answer->retry_after_ns >= 0)
        return false;
    if (tide->traits & WR_TIDE_STRAY_503)
        return wr_tide_share(tide) < TIDE_STRAY_SHARE && tide->streak + 1 < TIDE_STREAK_503;
    if (tide->mode == WR_TIDE_START && wr_tide_share(tide) < 2.5f / 32) {
        if (++tide->strays >= TIDE_STRAYS_START)
            tide->traits |= WR_TIDE_STRAY_503;
        return true;
    }
    return false;
}

/* Returns true if six single 503s in a row came while the rate fell: they are not about the rate.
 * Restores the rate before them. */
static bool turns_stray(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    if (!wr_tide_is_vague(answer) || tide->mode != WR_TIDE_CRUISE || tide->row >= TIDE_STREAK_503)
        return false;
    if (tide->strays == 0 || tide->phase > 2) {
        tide->strays = 0;
        tide->stray_rate = tide->rate;
    }
    if (tide->strays < 15)
        tide->strays++;
    if (tide->strays < TIDE_STRAYS || tide->rate > TIDE_STRAYS_FALL * tide->stray_rate)
        return false;
    tide->traits |= WR_TIDE_STRAY_503;
    wr_tide_restart(tide, tide->stray_rate);
    return true;
}

/* Handles a 403. A single one may concern its page. If there are many, the rate falls, but never
 * below a rate that burdens no server. */
static void learn_forbidden(struct wr_tide *tide)
{
    if (wr_tide_share(tide) > TIDE_403_SHARE && tide->rate > TIDE_FIRST_RATE && tide->mode != WR_TIDE_HOLD)
        wr_tide_search(tide, wr_tide_most(tide->rate / 2, TIDE_FIRST_RATE), tide->rate);
}

static bool is_block(const struct wr_tide *tide, const struct wr_pace_response *answer)
{
    int most = tide->traits & WR_TIDE_WINDOWED ? 1 : wr_tide_is_vague(answer) ? TIDE_STREAK_503 : TIDE_STREAK;
    bool spent = tide->mode == WR_TIDE_HOLD && tide->blocks > 0 && (float)tide->accepted >= 0.98f * tide->quota;
    return tide->streak >= most || spent || answer->retry_after_ns >= TIDE_BLOCK_RETRY_NS;
}

static void learn_rejected(struct wr_tide *tide, const struct wr_pace_response *answer, bool fresh, int64_t now)
{
    tide->by_header = false; /* the next start may be delayed for other reasons now */
    note_wait(tide, answer, fresh, now);
    if (is_stray(tide, answer)) {
        if (fresh && !wr_tide_cap_stray(tide, answer))
            note_streak(tide, answer);
        return;
    }
    tide->credit = wr_tide_most(tide->credit - 1, TIDE_CREDIT_LEAST);
    if (tide->marked && !fresh && (int32_t)(answer->seq - tide->empty_seq) > 0)
        wr_tide_count_refused(tide);
    bool stalled = tide->row >= TIDE_STREAK_503 && tide->streak > 0 && answer->latency_ns >= TIDE_STALLED_NS;
    if (stalled && tide->mode != WR_TIDE_BLOCKED) { /* consecutive requests were rejected late */
        wr_tide_block(tide, answer, now);
        return;
    }
    if (!fresh)
        return;
    if (tide->mode == WR_TIDE_BLOCKED) {
        wr_tide_probe_failed(tide, now);
        return;
    }
    bool crowded = tide->streak < TIDE_STREAK_CROWD && wr_tide_cap_rejected(tide, answer);
    note_streak(tide, answer);
    if (crowded)
        return;
    bool tested = tide->testing && tide->mode == WR_TIDE_HOLD;
    if (tide->mode == WR_TIDE_HOLD && wr_tide_is_vague(answer) && tide->row < TIDE_ROW_TESTED)
        return; /* one vague rejection shows no window or ban */
    if (tested ? wr_tide_test_rejected(tide, answer) : is_block(tide, answer))
        wr_tide_block(tide, answer, now);
    else if (answer->status == 403)
        learn_forbidden(tide);
    else if (!tested && !turns_stray(tide, answer))
        wr_tide_rejected(tide, answer);
    int64_t next_at = now + wr_tide_interval(tide->rate);
    if (tide->mode == WR_TIDE_SEARCH)
        next_at += answer->latency_ns; /* responses to requests in flight come first */
    if (tide->mode != WR_TIDE_BLOCKED && tide->next_at < next_at)
        tide->next_at = next_at;
}

static void tide_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer, int64_t now)
{
    (void)options;
    struct wr_tide *tide = state;
    bool fresh = (int32_t)(answer->seq - tide->cut_seq) > 0;

    read_quota_headers(tide, answer, now);
    if (answer->kind == WR_PACE_RESPONSE_OK)
        wr_tide_cap_accepted(tide, answer, now);
    if (answer->kind == WR_PACE_RESPONSE_OK)
        learn_accepted(tide, answer, fresh, now);
    else if (answer->kind == WR_PACE_RESPONSE_REJECTED || !answer->tripped || tide->mode == WR_TIDE_BLOCKED ||
             tide->streak > 0)
        learn_rejected(tide, answer, fresh, now);
}

static struct wr_pace_bounds tide_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options;
    const struct wr_tide *tide = state;
    return (struct wr_pace_bounds){
        .earliest_at = tide->next_at,
        .reason = WEIR_REASON_PACE,
        .cap = tide->mode == WR_TIDE_BLOCKED ? 1 : wr_tide_cap(tide),
        .rate = (double)(headers_hold(tide, now) ? tide->header_rate : tide->rate),
    };
}

static void tide_remember(const weir_pace_options *options, const void *state, int64_t now, weir_pace_memory *memory)
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

/* Returns true if a new state would not be faster and would not have to learn of a block again. */
static bool tide_settled(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct wr_tide *tide = state;
    return tide->mode <= WR_TIDE_CRUISE && tide->rate >= TIDE_FIRST_RATE && tide->cap >= TIDE_CAP_FIRST;
}

static const char *tide_mode(const void *state)
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

static bool tide_has_mode(const void *state)
{
    const struct wr_tide *tide = state;
    return tide->mode <= WR_TIDE_HOLD && tide->resume_mode <= WR_TIDE_HOLD;
}

const struct wr_strategy wr_tide = {
    .name = "tide",
    .state_bytes = sizeof(struct wr_tide),
    .start = start,
    .sent = tide_sent,
    .tell = tide_tell,
    .want = tide_want,
    .remember = tide_remember,
    .settled = tide_settled,
    .instants = instants,
    .has_mode = tide_has_mode,
    .mode = tide_mode,
    .describe_limit = wr_tide_describe_limit,
};
