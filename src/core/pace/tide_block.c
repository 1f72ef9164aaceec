/* SPDX-License-Identifier: MIT */
/* tide_block.c - Implements the modes blocked and hold of tide. In a block nothing is accepted;
 * single probes find its end. Its length and the number accepted before distinguish an outage, a
 * slow bucket, the end of a window and a ban.
 *
 *     first long block  The quota is the number accepted before. A window and a ban look the same.
 *                       Hold a rate that is safe for a quota per minute, and climb to the rate that
 *                       is safe for one per ten seconds.
 *     second            As long as the first: a ban; the number accepted since shows the window.
 *                       Otherwise a window: it ended twice, and the quota was accepted in between.
 */
#include "core/pace/tide.h"
#include <math.h>

/* Times of probes since the start of a block, s: just after usual lengths of bans, and some in
 * between. After a 403 the gaps exceed the usual lengths of bans that each request prolongs: 10,
 * 30, 60 and 120 s. */
static const float forbidden_at[] = {10.7f, 41.5f, 103, 164, 290, 612, 1810, 3610};
static const float probe_at[] = {2,     3.2f,   5.1f,   7.65f, 10.3f, 15.3f, 20.6f, 30.6f, 43.3f, 61.2f,
                                 86.5f, 122.4f, 173.0f, 245,   306,   432,   612,   905,   1810,  3610};

static float probe_time_after(const float *times, size_t count, float elapsed)
{
    for (size_t i = 0; i < count; i++)
        if (times[i] > 1.15f * elapsed)
            return times[i];
    return 1.5f * elapsed;
}

/* Returns the longest usual length that the last ban may have had, s. */
static float likely_length(const struct wr_tide *tide)
{
    static const float lengths[] = {122.4f, 61.2f, 30.7f, 20.6f, 15.4f, 10.4f, 5.2f};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i] > tide->block_least && lengths[i] < tide->block_most)
            return lengths[i];
    return 1.03f * tide->block_most;
}

static float first_probe(const struct wr_tide *tide)
{
    if (tide->forbidden) /* an early probe may prolong the ban */
        return tide->blocks > 0 ? likely_length(tide) : forbidden_at[0];
    if (tide->traits & WR_TIDE_WINDOWED) /* the block ends soon: the rate hardly exceeds the quota */
        return wr_tide_within(0.05f * tide->quota / tide->centre, TIDE_WINDOW_PAUSE, TIDE_BLOCK_PAUSE);
    return tide->broken ? TIDE_BROKEN_PAUSE : TIDE_BLOCK_PAUSE;
}

void wr_tide_block(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now)
{
    wr_tide_note_window_rate(tide, answer);
    tide->mode = WR_TIDE_BLOCKED;
    tide->outage = wr_tide_is_vague(answer);
    /* In this mode `phase` is the time of the last failed probe, in seconds since block_at. A
     * Retry-After is rounded up to a second, so one second is deducted. */
    tide->phase =
        wr_tide_most(wr_tide_seconds(answer->sent_at - tide->block_at), (float)answer->retry_after_ns * 1e-9f - 1);
    tide->forbidden = answer->status == 403;
    wr_tide_count_refused(tide);
    tide->broken = tide->outage && answer->status != 503;
    tide->cut_seq = tide->sent_seq;
    int64_t pause_ns = (int64_t)((double)first_probe(tide) * 1e9);
    if (tide->next_at < now + pause_ns)
        tide->next_at = now + pause_ns;
}

static float next_probe(const struct wr_tide *tide, float elapsed)
{
    if (tide->outage && !tide->testing)
        return elapsed +
               wr_tide_most(tide->broken ? TIDE_BROKEN_PAUSE : TIDE_OUTAGE_PAUSE, TIDE_OUTAGE_SHARE * elapsed);
    if (tide->forbidden)
        return probe_time_after(forbidden_at, sizeof forbidden_at / sizeof *forbidden_at, elapsed);
    if (tide->traits & WR_TIDE_WINDOWED)
        return elapsed + wr_tide_most(TIDE_WINDOW_PAUSE, TIDE_PROBE_SHARE * elapsed);
    if (tide->testing) /* a share of the window that is assumed */
        return elapsed + wr_tide_most(tide->outage ? TIDE_BROKEN_PAUSE : 2 * TIDE_WINDOW_PAUSE,
                                      TIDE_PROBE_SHARE * (elapsed + wr_tide_seconds(tide->block_at - tide->free_at)));
    if (tide->blocks > 0 && tide->block_most < TIDE_BAN_LONG) {
        float middle = (tide->block_least + tide->block_most) / 2;
        if (elapsed < 0.94f * middle)
            return middle;
        if (elapsed < 0.98f * tide->block_most)
            return tide->block_most;
    } else if (tide->blocks > 0 && elapsed < 0.9f * (tide->block_most - tide->block_least)) {
        /* The last block may have ended by a silence of this length. */
        return tide->block_most - tide->block_least;
    }
    return probe_time_after(probe_at, sizeof probe_at / sizeof *probe_at, elapsed);
}

void wr_tide_probe_failed(struct wr_tide *tide, int64_t now)
{
    float elapsed = wr_tide_seconds(now - tide->block_at);
    wr_tide_cut(tide);
    wr_tide_count_refused(tide);
    tide->phase = elapsed;
    float pause = wr_tide_least(next_probe(tide, elapsed) - elapsed, TIDE_PROBE_PAUSE_MOST);
    int64_t at = now + (int64_t)((double)pause * 1e9);
    if (tide->next_at < at)
        tide->next_at = at;
}

static void hold_rate_at(struct wr_tide *tide, float rate)
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

/* Returns the speed of a climb, e-folds per second. It is higher if a ban costs little. */
static float climb_speed(const struct wr_tide *tide)
{
    return wr_tide_within(TIDE_CLIMB_BANS / likely_length(tide), TIDE_CLIMB, TIDE_CLIMB_MOST);
}

/* Returns the rate that is safe if the quota is for a short window; after a long block that is a
 * minute. A short ban may also be for a window of one second. */
static float climb_most(const struct wr_tide *tide, float length)
{
    if (length < TIDE_BAN_SHORT)
        return wr_tide_most(tide->bad, hold_rate(tide, TIDE_WINDOW_SHORT));
    return hold_rate(tide, length > TIDE_BAN_LONG && !tide->no_window ? TIDE_WINDOW_LONG : TIDE_WINDOW_SHORT);
}

/* Returns the longest usual window in (least, most], s; 0 if no usual window fits. */
static float usual_window(float least, float most)
{
    static const float windows[] = {3600, 900, 600, 300, 60, 10, 1};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        if (windows[i] > least && windows[i] <= most)
            return windows[i];
    return 0;
}

/* Returns the shortest usual window in [least, most], s; otherwise the geometric mean. */
static float usual_within(float least, float most)
{
    static const float windows[] = {1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        if (windows[i] >= least && windows[i] <= most)
            return windows[i];
    return sqrtf(least * most);
}

/* Holds a rate for a window of more than `span` seconds: all requests of that time were in it. */
static void hold_longer(struct wr_tide *tide, float span)
{
    float window = span < TIDE_WINDOW_SHORT ? TIDE_WINDOW_SHORT : usual_window(span, 2 * span + TIDE_WINDOW_LONG);
    hold_rate_at(tide, hold_rate(tide, window > 0 ? window : 2 * span));
}

/* Returns how many requests were sent in the last `span` seconds before the first block, which came
 * at `rate`. In the mode start the rate grew by e-folds in a second or a little more, and earlier
 * by e-folds in a fixed number of requests. */
static float sent_in(const struct wr_tide *tide, float rate, float span)
{
    if (!tide->from_start)
        return rate * span;
    float slow = wr_tide_least(TIDE_GROW_LEAST, rate), fast_s = logf(rate / slow) + (rate - slow) / TIDE_GROW_FAST;
    if (span <= fast_s)
        return rate * (1 - expf(-span)) * (1 + rate / (2 * TIDE_GROW_FAST));
    float fast = rate - slow + (rate * rate - slow * slow) / (2 * TIDE_GROW_FAST);
    return fast + TIDE_GROW_LEAST * logf(1 + (span - fast_s) * slow / TIDE_GROW_LEAST);
}

/* Returns how long it took to send the last `n` requests before the first block, s. */
static float last_took(const struct wr_tide *tide, float n)
{
    float took = 0.25f;
    while (took < tide->span && sent_in(tide, tide->resume, took) < n)
        took *= 1.05f;
    return wr_tide_least(took, tide->span);
}

static float first_in(const struct wr_tide *tide, float span)
{
    return wr_tide_least(sent_in(tide, tide->bad / TIDE_CLIMB_TOP, span), tide->quota);
}

/* Returns the limit after a climb that a ban ended at the rate `resume` after `span` seconds. The
 * window before this ban contained as many requests as the window before the first ban. That is
 * true for one window length only, so the limit is known. */
static float climbed_to(const struct wr_tide *tide, float span)
{
    float speed = tide->climbing ? climb_speed(tide) : 1e-3f, top = tide->resume, window = 0.5f;
    /* Servers that ban with a 403 count in fixed windows. */
    bool is_fixed = tide->forbidden && tide->block_most < TIDE_BAN_SHORT;
    while (window < span &&
           first_in(tide, is_fixed ? TIDE_FIXED_SHARE * window : window) > top * (1 - expf(-speed * window)) / speed)
        window *= 1.1f;
    window = usual_within(0.9f * window, 2 * window);
    float folds = speed * window, added = 1 - expf(-folds);
    float doubt = is_fixed ? wr_tide_least(TIDE_CLIMB_DOUBT, added) : 0;
    return TIDE_HOLD_SHARE * TIDE_HOLD_SHARE * (1 - doubt) * top * added / folds;
}

/* Returns true if refusals come late: then the window may slide, and its quota is unknown. */
static bool is_tarpit(const struct wr_tide *tide)
{
    return tide->outage && wr_tide_penalty(tide) * 1e9f >= (float)TIDE_STALLED_NS;
}

/* Lowers the rate after a ban with a known quota: the window is longer than `window` seconds. */
static void hold_exact(struct wr_tide *tide, float window)
{
    float least = is_tarpit(tide) ? TIDE_HOLD_AGAIN : 0;
    float share = hold_rate(tide, usual_within(window, 2 * window)) / tide->resume;
    hold_rate_at(tide, wr_tide_within(share, least, TIDE_HOLD_AGAIN) * tide->resume);
}

/* Handles a ban as long as the one before. It came `span` seconds after the end of the first, and
 * `n` requests were accepted in between. */
static void hold_ban(struct wr_tide *tide, float n, float span)
{
    float beyond = n - tide->quota; /* requests that had left the window when the ban came */
    bool within = beyond <= 0.02f * tide->quota + 1;
    tide->traits |= WR_TIDE_BANS;
    if (n > tide->quota / 2)
        tide->quota = wr_tide_least(tide->quota, n); /* at most n were accepted before this ban */
    if (tide->blocks == 2 && n < tide->quota / 2)    /* requests before the last ban counted too */
        hold_longer(tide, wr_tide_most(span + tide->block_most, TIDE_WINDOW_SHORT));
    else if ((tide->exact && (within || tide->climbing || n < 2 * tide->quota)) ||
             (within && tide->block_most < TIDE_BAN_SHORT))
        hold_exact(tide, within ? span : 1.08f * tide->quota / tide->resume);
    else if (tide->blocks > 2) /* the rate was nearly right, or must be now */
        hold_rate_at(tide, (tide->blocks > 3 && !is_tarpit(tide) ? TIDE_HOLD_AT_LAST : TIDE_HOLD_AGAIN) * tide->resume);
    else if (within)
        hold_longer(tide, span);
    else
        hold_rate_at(tide, wr_tide_least(climbed_to(tide, span), TIDE_HOLD_SHARE * tide->resume));
}

/* Sets `resume` to the rate that was refused first, if the rate only fell since. */
static void find_first_rate(struct wr_tide *tide)
{
    bool fell = tide->resume_mode == WR_TIDE_SEARCH && tide->peak <= 0 && tide->centre > tide->resume;
    if (fell)
        tide->resume = tide->centre;
    tide->from_start = fell || tide->resume_mode == WR_TIDE_START;
}

/* Handles the end of the first long block after `length` seconds. In the `span` seconds before it,
 * `n` requests were accepted. */
static void hold_quota(struct wr_tide *tide, float n, float span, float length)
{
    /* Requests of the first seconds, which were not in a short window. */
    float early = wr_tide_most(0, span - TIDE_WINDOW_SHORT) * 1.2f;
    float window = length > TIDE_BAN_LONG ? span + length : TIDE_WINDOW_LONG;
    tide->block_least = tide->phase;
    tide->block_most = length;
    if (length < TIDE_BAN_SHORT)
        window = wr_tide_most(TIDE_WINDOW_SHORT, likely_length(tide));
    find_first_rate(tide);
    /* The number accepted in a short window, at most what the rate sends in one. */
    tide->quota = wr_tide_least(n - early, TIDE_WINDOW_SHORT * tide->resume);
    hold_rate_at(tide, TIDE_HOLD_SHARE * n / window);
    tide->bad = TIDE_CLIMB_TOP * tide->resume;
    tide->climbing = tide->rate < climb_most(tide, length);
}

static void resume_former_mode(struct wr_tide *tide)
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

/* Handles the second ban of a test. The `n` requests before it came at a stroke, so `n` is the
 * quota. The window is at least as long as the last `n` requests before the first ban took. The
 * number of windows before that ban gives its maximum. */
static void found_ban(struct wr_tide *tide, float n, float span)
{
    float least = wr_tide_most(last_took(tide, n), span);
    float windows = ceilf(tide->quota / n) - 1;
    float most = windows >= 1 ? tide->span / windows
                              : wr_tide_most(wr_tide_least(2 * tide->block_most, TIDE_WINDOW_LONG), 2 * tide->span);
    tide->quota = n;
    tide->traits |= WR_TIDE_BANS;
    tide->blocks = 2;
    hold_rate_at(tide, hold_rate(tide, wr_tide_most(least, most)));
    tide->bad = hold_rate(tide, usual_within(least, 1.6f * least));
    tide->climbing = tide->rate < tide->bad;
    tide->exact = true;
}

/* Returns the length of a window that is in (least, most], s: the roundest number in that range. */
static float round_window(float least, float most)
{
    static const float steps[] = {60, 30, 10, 5, 2, 1, 0.5f};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        float window = steps[i] * ceilf(least / steps[i]);
        if (window > least && window <= most)
            return window;
    }
    return (least + most) / 2;
}

static void long_block(struct wr_tide *tide, const struct wr_pace_response *answer, float length)
{
    float n = (float)tide->accepted - 1, span = wr_tide_seconds(tide->block_at - tide->free_at);
    float least = tide->phase, early = tide->block_most - tide->block_least;
    bool first = tide->blocks == 0;
    bool alike =
        !first && (tide->forbidden || (least <= 1.03f * tide->block_most && 1.03f * length >= tide->block_least));
    float most_window = span + length + early; /* free_at may have been earlier by `early` */

    if (tide->blocks < 15)
        tide->blocks++;
    tide->peak = 0; /* the host accepted that rate only until the quota was used up */
    /* Cruise meets the end of a window shortly before it, so this long block is a ban. */
    if (first && tide->resume_mode == WR_TIDE_CRUISE) {
        tide->traits |= WR_TIDE_BANS;
        hold_rate_at(tide, TIDE_HOLD_AGAIN * tide->resume);
    } else if (first && n < TIDE_MEASURED) { /* too few for a quota */
        wr_tide_restart(tide, wr_tide_least(tide->resume, TIDE_FIRST_RATE));
    } else if (first) {
        hold_quota(tide, n, span, length);
    } else if (alike && tide->testing) {
        found_ban(tide, n, span);
    } else if (alike || tide->no_window) {
        hold_ban(tide, n, span);
    } else {
        float window =
            tide->testing ? round_window(span + least, most_window) : usual_window(span + least, most_window);
        wr_tide_cruise(tide, n / (window > 0 ? window : most_window), 0.01f, 2 * TIDE_SPAN_NEW);
        wr_tide_mark(tide, answer);
        tide->blocks = 0;
        tide->quota = n;
        if (tide->testing)
            tide->traits |= WR_TIDE_WINDOWED;
    }
    if (alike) {
        least = wr_tide_most(least, tide->block_least);
        length = wr_tide_least(length, tide->block_most);
    }
    tide->block_least = least;
    tide->block_most = length;
    tide->free_at = answer->sent_at;
    tide->accepted = 1;
    tide->testing = false;
}

/* Starts a test. A silence of some seconds is the rest of a window, a ban, or the time until a slow
 * bucket has a token. Requests are now sent fast: they use up a window, which ends a whole window
 * after it began; a ban is as long as the last; a bucket refuses the next request. */
static void begin_test(struct wr_tide *tide, const struct wr_pace_response *answer, float length)
{
    find_first_rate(tide);
    hold_rate_at(tide, TIDE_TEST_RATE * tide->resume);
    tide->centre = tide->resume;
    tide->quota = (float)tide->accepted - 1;
    tide->span = wr_tide_seconds(tide->block_at - tide->free_at);
    tide->testing = true;
    tide->block_least = tide->phase;
    tide->block_most = length;
    tide->blocks = 1;
    tide->free_at = answer->sent_at;
    tide->accepted = 1;
}

static bool is_worth_a_test(const struct wr_tide *tide, float length)
{
    return tide->blocks == 0 && !(tide->traits & WR_TIDE_WINDOWED) && !tide->forbidden &&
           (tide->outage || tide->phase > TIDE_TEST_SHARP * length) && tide->phase < TIDE_TEST_MOST &&
           (float)tide->accepted - 1 >= TIDE_MEASURED;
}

/* Searches for the rate of a slow bucket, which had a token after `least` to `most` seconds. */
static void slow_bucket(struct wr_tide *tide, float least, float most)
{
    float rate = 1.2f / sqrtf(most * wr_tide_most(least, 0.1f));
    if (most < 2)
        rate = wr_tide_most(rate, tide->rate / 2);
    /* The number accepted before is safe even if it is the quota of a minute. */
    if (tide->quota >= TIDE_HOPE_LEAST)
        rate = wr_tide_most(rate, hold_rate(tide, TIDE_WINDOW_LONG));
    wr_tide_search(tide, wr_tide_least(rate, tide->resume / 2), tide->resume);
}

bool wr_tide_test_rejected(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    if ((float)tide->accepted > TIDE_MEASURED || answer->retry_after_ns >= TIDE_BLOCK_RETRY_NS)
        return true;
    tide->testing = false;
    tide->blocks = 0;
    slow_bucket(tide, tide->block_least, tide->block_most);
    return false;
}

/* Returns true if the host is down: it sent only 5xx or no response for long. If that follows soon
 * after the last time, our requests caused both, and the time in between was a test. */
static bool is_down(struct wr_tide *tide)
{
    float apart = wr_tide_seconds(tide->block_at - tide->free_at);
    if (!tide->outage || tide->phase < TIDE_OUTAGE_LEAST || tide->testing)
        return false;
    if (!tide->was_out || apart > TIDE_OUTAGE_APART * tide->block_most)
        return true;
    if (tide->blocks == 0) {
        tide->blocks = 1;
        tide->testing = true;
    }
    return false;
}

static void end_outage(struct wr_tide *tide, const struct wr_pace_response *answer, float length)
{
    if (tide->blocks == 0) {
        tide->quota = (float)tide->accepted - 1;
        tide->from_start = tide->resume_mode == WR_TIDE_START;
        tide->block_least = tide->phase;
        tide->block_most = length;
        tide->free_at = answer->sent_at;
        tide->accepted = 1;
        tide->was_out = true;
    }
    resume_former_mode(tide);
}

/* Returns true if the block was the end of a window that was met a little early: it is short
 * against the time since the last one, and shorter than known bans. */
static bool is_brief(const struct wr_tide *tide, float length, float since)
{
    if (tide->traits & WR_TIDE_WINDOWED)
        return true;
    if (tide->resume_mode == WR_TIDE_HOLD && tide->blocks > 0 && length > TIDE_BRIEF_BAN * tide->block_least)
        return false;
    return tide->resume_mode >= WR_TIDE_CRUISE && length < TIDE_BLOCK_BRIEF * since;
}

/* Handles the end of a window: computes the limit from the requests accepted since the last end. A
 * limit that was held as a ban is recognised as a window. */
static void end_window(struct wr_tide *tide, const struct wr_pace_response *answer, float length, float since)
{
    float n = tide->marked ? (float)(answer->seq - tide->empty_seq - tide->refused) : (float)tide->accepted;
    float window = since + length;
    if (tide->resume_mode == WR_TIDE_HOLD && !tide->marked && n >= TIDE_MEASURED && n < 1.2f * tide->resume * window) {
        window = round_window(since + tide->phase, window + tide->block_most - tide->block_least);
        tide->traits = (tide->traits & (WR_TIDE_TRAITS & ~WR_TIDE_BANS)) | WR_TIDE_WINDOWED;
        tide->quota = n;
        tide->resume = n / window;
    }
    float limit = wr_tide_least(n / window, tide->resume);
    bool same = tide->resume_mode == WR_TIDE_CRUISE && fabsf(limit / tide->centre - 1) < TIDE_HOLD_MORE;
    wr_tide_cruise(tide, limit, tide->margin, same ? 2 * tide->span : tide->span);
    wr_tide_mark(tide, answer);
}

void wr_tide_probe_accepted(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now)
{
    float length = wr_tide_seconds(answer->sent_at - tide->block_at);
    float since = wr_tide_seconds(tide->block_at - (tide->marked ? tide->empty_at : tide->free_at));
    (void)now;
    tide->streak = 0;
    if (is_down(tide))
        end_outage(tide, answer, length);
    else if (is_brief(tide, length, since))
        end_window(tide, answer, length, since);
    else if (is_worth_a_test(tide, length))
        begin_test(tide, answer, length);
    else if (!tide->testing && !(tide->traits & WR_TIDE_BANS) && !tide->forbidden && tide->phase < TIDE_BLOCK_SHORT &&
             length < 2 * TIDE_BLOCK_SHORT)
        slow_bucket(tide, tide->phase, length);
    else
        long_block(tide, answer, length);
    wr_tide_cut(tide);
}

/* Returns true if more than twice the quota was accepted since a block that seemed to be the rest
 * of a window. It was a ban, then, with a quota for a shorter window; or nothing at all, if no
 * other ban follows. */
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

/* Handles an accepted request in the mode hold. Climbs, if a shorter window is to be found.
 * Otherwise asks for more when a ban would cost little of the time since the last: a little at
 * first, and more after each success. */
void wr_tide_hold_accepted(struct wr_tide *tide, int64_t now)
{
    float since = wr_tide_seconds(now - tide->free_at);
    float patience = tide->block_most < TIDE_TEST_MOST ? TIDE_PATIENCE_SHORT : TIDE_PATIENCE;
    float enough = wr_tide_least(tide->quota, TIDE_WINDOW_SHORT * tide->centre) + TIDE_HOPE_LEAST;
    if (tide->testing && (float)tide->accepted > TIDE_TEST_IN_VAIN * enough) {
        tide->testing = false;
        tide->blocks = 0;
        wr_tide_restart(tide, tide->resume);
    } else if (tide->climbing) {
        float most = climb_most(tide, tide->block_most);
        if (tide->exact) {
            tide->rate = wr_tide_least(tide->bad, tide->rate * (1 + TIDE_EXACT_CLIMB / tide->quota));
            tide->climbing = tide->rate < tide->bad;
            return;
        }
        tide->rate = wr_tide_least(most, tide->centre * expf(climb_speed(tide) * since));
        tide->climbing = tide->rate < most;
    } else if (!no_window(tide, since, now) && since > patience * tide->block_most && tide->paced) {
        tide->phase = wr_tide_within(2 * tide->phase, TIDE_HOLD_MORE, 1);
        tide->rate = wr_tide_least(tide->rate * (1 + tide->phase), TIDE_RATE_MOST);
        tide->free_at = now;
    }
}
