/* SPDX-License-Identifier: MIT */
/* tide_block.c - tide: when nothing is accepted any more. Single probes find the end; its length and what was accepted
 * before tell an outage, a slow bucket, the end of a window and a ban apart.
 *
 *     first long block   the quota is what was accepted before; a window and a ban look the same. Hold a rate that is
 *                        safe if the quota is per minute, and climb to what would be safe per ten seconds.
 *     second             as long as the first: a ban, and what was accepted since tells the window. Otherwise a window:
 *                        it ended twice, and the quota is what was accepted in between.
 */
#include "core/pace/tide.h"
#include <math.h>

/* Elapsed seconds at which probes are sent: just after usual lengths of bans, and some in between. */
static const float probe_at[] = {2,      7.65f, 15.3f, 30.6f, 43.3f, 61.2f, 86.5f, 122.4f,
                                 173.0f, 245,   306,   432,   612,   905,   1810,  3610};

void wr_tide_block(struct wr_tide *tide, const struct wr_told *answer, int64_t now)
{
    tide->mode = WR_TIDE_BLOCKED;
    tide->outage = answer->status == 503;
    tide->phase = 0; /* here: seconds after which the last probe failed */
    tide->cut_seq = tide->sent_seq;
    if (tide->next_at < now + TIDE_BLOCK_PAUSE_NS)
        tide->next_at = now + TIDE_BLOCK_PAUSE_NS;
}

static float next_probe(const struct wr_tide *tide, float elapsed)
{
    if (tide->outage)
        return elapsed + wr_tide_most(TIDE_OUTAGE_PAUSE, TIDE_OUTAGE_SHARE * elapsed);
    if (tide->blocks > 0 && tide->block_most < TIDE_BAN_LONG) {
        float middle = (tide->block_least + tide->block_most) / 2;
        if (elapsed < 0.94f * middle)
            return middle;
        if (elapsed < 0.98f * tide->block_most)
            return tide->block_most;
    } else if (tide->blocks > 0 && elapsed < 0.9f * (tide->block_most - tide->block_least)) {
        return tide->block_most - tide->block_least; /* what ended it last time may have been this silence */
    }
    for (size_t i = 0; i < sizeof probe_at / sizeof *probe_at; i++)
        if (probe_at[i] > 1.15f * elapsed)
            return probe_at[i];
    return 1.5f * elapsed;
}

void wr_tide_probe_failed(struct wr_tide *tide, int64_t now)
{
    float elapsed = wr_tide_seconds(now - tide->block_at);
    wr_tide_cut(tide);
    tide->phase = elapsed;
    float pause = wr_tide_least(next_probe(tide, elapsed) - elapsed, TIDE_PROBE_PAUSE_MOST);
    int64_t at = now + (int64_t)((double)pause * 1e9);
    if (tide->next_at < at)
        tide->next_at = at;
}

static void hold(struct wr_tide *tide, float rate)
{
    tide->mode = WR_TIDE_HOLD;
    tide->rate = tide->centre = wr_tide_most(rate, TIDE_RATE_LEAST);
    tide->climbing = false;
    tide->marked = false;
}

static float hold_rate(const struct wr_tide *tide, float window)
{
    return TIDE_HOLD_SHARE * tide->quota / window;
}

/* What would be safe if the quota were for a short window; after a long block that is a minute. */
static float climb_most(const struct wr_tide *tide, float length)
{
    return hold_rate(tide, length > TIDE_BAN_LONG && !tide->no_window ? TIDE_WINDOW_LONG : TIDE_WINDOW_SHORT);
}

/* The longest of the usual windows within; 0: none. */
static float usual_window(float least, float most)
{
    static const float windows[] = {3600, 900, 600, 300, 60, 10, 1};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        if (windows[i] > least && windows[i] <= most)
            return windows[i];
    return 0;
}

/* All `n` that were accepted in `span` seconds were in the window, so it is longer than that. */
static void hold_longer(struct wr_tide *tide, float span)
{
    float window = span < TIDE_WINDOW_SHORT ? TIDE_WINDOW_SHORT : usual_window(span, 2 * span + TIDE_WINDOW_LONG);
    hold(tide, hold_rate(tide, window > 0 ? window : 2 * span));
}

/* A ban as long as the one before came `span` seconds after that ended, `n` were accepted in between. */
static void hold_ban(struct wr_tide *tide, float n, float span)
{
    float beyond = n - tide->quota; /* those were out of the window when the ban came */
    bool within = beyond <= 0.02f * tide->quota + 1;
    tide->traits |= WR_TIDE_BANS;
    if (n < tide->quota / 2) /* what was sent before the last ban counted too */
        hold_longer(tide, wr_tide_most(span + tide->block_most, TIDE_WINDOW_SHORT));
    else if (tide->blocks > 2 || (!tide->climbing && !within)) /* it was nearly right, or had better be now */
        hold(tide, (tide->blocks > 3 ? TIDE_HOLD_AT_LAST : TIDE_HOLD_AGAIN) * tide->resume);
    else if (within)
        hold_longer(tide, span);
    else { /* the climb sent `beyond` before the window began: centre / CLIMB * (e^(CLIMB * t) - 1) */
        float window = span - logf(1 + TIDE_CLIMB * beyond / tide->centre) / TIDE_CLIMB;
        hold(tide, TIDE_HOLD_SHARE * hold_rate(tide, wr_tide_most(window, 1)));
    }
}

/* The first long block ended after `length`; `n` were accepted in the `span` seconds before. */
static void hold_quota(struct wr_tide *tide, float n, float span, float length)
{
    float early = wr_tide_most(0, span - TIDE_WINDOW_SHORT) * 1.2f; /* the first seconds are out of a short window */
    tide->quota = wr_tide_least(n - early, tide->quota);            /* or what was sent in one, at the last rate */
    float window = length > TIDE_BAN_LONG ? span + length : TIDE_WINDOW_LONG;
    hold(tide, TIDE_HOLD_SHARE * n / window);
    tide->climbing = tide->rate < climb_most(tide, length);
}

static void resume(struct wr_tide *tide)
{
    tide->marked = false;
    if (tide->resume_mode == WR_TIDE_CRUISE) {
        wr_tide_cruise(tide, tide->resume, tide->margin, tide->span);
    } else if (tide->resume_mode == WR_TIDE_SEARCH) {
        wr_tide_search(tide, tide->resume, tide->bad);
    } else if (tide->resume_mode == WR_TIDE_START) {
        wr_tide_restart(tide, tide->resume);
    } else {
        tide->mode = WR_TIDE_HOLD;
        tide->rate = tide->resume;
    }
}

static void long_block(struct wr_tide *tide, const struct wr_told *answer, float length)
{
    float n = (float)tide->accepted - 1, span = wr_tide_seconds(tide->block_at - tide->free_at);
    float least = tide->phase, early = length - least;
    bool first = tide->blocks == 0;
    bool alike = !first && least <= 1.03f * tide->block_most && 1.03f * length >= tide->block_least;
    float most_window = span + length + tide->free_early;

    if (tide->blocks < UINT8_MAX)
        tide->blocks++;
    if (first && tide->resume_mode == WR_TIDE_CRUISE) { /* a window's end is met shortly before it: this punishes */
        tide->traits |= WR_TIDE_BANS;
        hold(tide, TIDE_HOLD_AGAIN * tide->resume);
    } else if (first && n < TIDE_MEASURED) { /* too few to be a quota */
        wr_tide_restart(tide, wr_tide_least(tide->resume, TIDE_FIRST_RATE));
    } else if (first) {
        hold_quota(tide, n, span, length);
    } else if (alike || tide->no_window) {
        hold_ban(tide, n, span);
    } else {
        float window = usual_window(span + least, most_window);
        wr_tide_cruise(tide, n / (window > 0 ? window : most_window), 0.01f, 2 * TIDE_SPAN_NEW);
        wr_tide_mark(tide, answer);
        tide->blocks = 0;
    }
    if (alike) {
        least = wr_tide_most(least, tide->block_least);
        length = wr_tide_least(length, tide->block_most);
    }
    tide->block_least = least;
    tide->block_most = length;
    tide->free_early = early;
    tide->free_at = answer->sent_at;
    tide->accepted = 1;
}

void wr_tide_probe_accepted(struct wr_tide *tide, const struct wr_told *answer, int64_t now)
{
    float length = wr_tide_seconds(answer->sent_at - tide->block_at);
    float since = wr_tide_seconds(tide->block_at - (tide->marked ? tide->empty_at : tide->free_at));
    (void)now;
    tide->streak = 0;
    if (tide->outage) {
        resume(tide);
    } else if (tide->resume_mode >= WR_TIDE_CRUISE && length < TIDE_BLOCK_BRIEF * since) {
        float n = tide->marked ? (float)(answer->seq - tide->empty_seq - tide->refused) : (float)tide->accepted;
        wr_tide_cruise(tide, wr_tide_least(n / (since + length), tide->resume), tide->margin, tide->span);
        wr_tide_mark(tide, answer);
    } else if (tide->phase < TIDE_BLOCK_SHORT && length < 2 * TIDE_BLOCK_SHORT) { /* a token came after that time */
        float rate = 1.2f / sqrtf(length * wr_tide_most(tide->phase, 0.1f));
        if (length < 2)
            rate = wr_tide_most(rate, tide->rate / 2);
        else if (length > TIDE_BLOCK_SHORT && tide->blocks == 0) /* or a short window began anew */
            rate = wr_tide_most(rate, ((float)tide->accepted - 1) / (since + length));
        wr_tide_search(tide, wr_tide_least(rate, tide->resume / 2), tide->resume);
    } else {
        long_block(tide, answer, length);
    }
    wr_tide_cut(tide);
}

/* More than twice the quota went through since a block that seemed to be the rest of a window: it was none. So it was a
 * ban, and the quota is for a shorter window; or it was nothing, if that does not bring another. */
static bool no_window(struct wr_tide *tide, float since, int64_t now)
{
    if (tide->blocks != 1 || tide->block_most < TIDE_BAN_LONG || (float)tide->accepted < 2 * tide->quota)
        return false;
    if (!tide->no_window) {
        tide->no_window = true;
        tide->centre = tide->rate;
        tide->climbing = tide->rate < climb_most(tide, tide->block_most);
        tide->free_at = now;
        tide->accepted = 1;
    } else if (since > 2 * tide->block_most) {
        wr_tide_restart(tide, tide->rate);
    }
    return true;
}

/* Climbs, where that is to be tried; else asks for more when a ban would cost little of the time since: a little at
 * first, and more each time that it goes well. */
void wr_tide_hold_accepted(struct wr_tide *tide, int64_t now)
{
    float since = wr_tide_seconds(now - tide->free_at);
    if (tide->climbing) {
        float most = climb_most(tide, tide->block_most);
        tide->rate = wr_tide_least(most, tide->centre * expf(TIDE_CLIMB * since));
        tide->climbing = tide->rate < most;
    } else if (!no_window(tide, since, now) && since > TIDE_PATIENCE * tide->block_most && tide->paced) {
        tide->phase = wr_tide_within(2 * tide->phase, TIDE_HOLD_MORE, 1);
        tide->rate = wr_tide_least(tide->rate * (1 + tide->phase), TIDE_RATE_MOST);
        tide->free_at = now;
    }
}
