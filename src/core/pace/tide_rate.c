/* SPDX-License-Identifier: MIT */
/* tide_rate.c - Measures the limit for tide and implements its modes start, search and cruise. */
#include "core/pace/tide.h"
#include <math.h>

/* The limit as a rejection shows it. */
struct limit_measurement {
    float n;           /* requests accepted since the last rejection; negative if unknown */
    float least, most; /* bounds of the limit: the bucket may have overflowed in server waits */
    float rate;        /* rate at which the rejected request was sent */
};

/* Marks a reaction. There is one per round trip: responses to earlier requests cause no other. */
void wr_tide_cut(struct wr_tide *tide)
{
    tide->cut_seq = tide->sent_seq;
    tide->phase = 0;
}

void wr_tide_mark(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    tide->marked = true;
    tide->empty_at = answer->sent_at;
    tide->empty_seq = answer->seq;
    tide->refused = 0;
    tide->held = 0;
}

void wr_tide_restart(struct wr_tide *tide, float rate)
{
    tide->mode = WR_TIDE_START;
    tide->rate = rate;
    tide->bad = INFINITY;
    tide->marked = tide->back = false;
    wr_tide_cut(tide);
}

void wr_tide_search(struct wr_tide *tide, float rate, float bad)
{
    tide->mode = WR_TIDE_SEARCH;
    tide->rate = wr_tide_most(rate, TIDE_RATE_LEAST);
    tide->bad = bad;
    wr_tide_cut(tide);
}

/* Returns the maximum span: the requests between two measurements. */
static float span_most(const struct wr_tide *tide)
{
    bool low = tide->centre < TIDE_LOW * tide->peak;
    float most = low ? wr_tide_most(TIDE_SPAN_LOW, TIDE_SPAN_LOW_S * tide->centre)
                     : wr_tide_most(TIDE_SPAN_MOST, TIDE_SPAN_S * tide->centre);
    return wr_tide_most(most, TIDE_PENALTY * wr_tide_penalty(tide) * tide->centre);
}

void wr_tide_cruise(struct wr_tide *tide, float centre, float margin, float span)
{
    tide->mode = WR_TIDE_CRUISE;
    tide->centre = wr_tide_most(centre, TIDE_RATE_LEAST);
    tide->peak = wr_tide_most(tide->peak * TIDE_PEAK_FADES, centre);
    tide->margin = wr_tide_within(margin, TIDE_MARGIN_LEAST, TIDE_MARGIN_MOST);
    float least = wr_tide_most(TIDE_SPAN_LEAST, TIDE_SPAN_FLIGHT * tide->flight);
    float dear = TIDE_PENALTY * wr_tide_penalty(tide) * centre;
    if (span < dear)
        span = wr_tide_least(4 * span, dear);
    tide->span = wr_tide_within(span, least, wr_tide_most(least, span_most(tide)));
    tide->rate = tide->centre * (1 - tide->margin);
    tide->back = tide->hoped = false;
    wr_tide_cut(tide);
}

static float cruise_rate(const struct wr_tide *tide, float phase)
{
    float x = phase - 1;
    float rise = x <= 1 ? x * x * x : expf(TIDE_GROWTH * (x - 1));
    return tide->centre * (1 + wr_tide_least(tide->margin * rise, 1));
}

/* Returns the progress of one request, in spans: less while rejections are owed. */
static float cruise_step(const struct wr_tide *tide)
{
    float debt = wr_tide_most(0, -tide->credit);
    if (tide->centre < TIDE_LOW * tide->peak)
        debt *= 0.25f;
    return 1 / (tide->span * (1 + TIDE_DEBT * debt));
}

static struct limit_measurement limit_measurement(const struct wr_tide *tide, const struct wr_pace_response *answer)
{
    struct limit_measurement m = {.n = -1, .rate = tide->rate};
    if (tide->mode == WR_TIDE_CRUISE) {
        float phase = tide->phase - (float)(tide->sent_seq - answer->seq) * cruise_step(tide);
        m.rate = wr_tide_least(m.rate, cruise_rate(tide, wr_tide_most(phase, 0)));
    }
    if (!tide->marked)
        return m;
    m.n = (float)(answer->seq - tide->empty_seq - tide->refused) - 1;
    float elapsed = wr_tide_most(wr_tide_seconds(answer->sent_at - tide->empty_at), 1e-6f);
    float n = wr_tide_most(m.n, 0.5f);
    m.least = wr_tide_least(n / elapsed, m.rate);
    m.most = wr_tide_least(n / wr_tide_most(elapsed - tide->held, 1e-6f), m.rate);
    return m;
}

/* Estimates the limit by the requests accepted since the cut, when it is too early to measure. */
static float guess(const struct wr_tide *tide, float rate)
{
    return (tide->phase + 1) / (tide->phase + 2) * rate;
}

/* Estimates the capacity of the bucket, by the first measurement. */
static void learn_burst(struct wr_tide *tide, float limit)
{
    if (tide->peak > 0 || tide->blocks > 0)
        return;
    tide->burst = wr_tide_most(0, (float)tide->empty_seq - 1 - limit * wr_tide_seconds(tide->empty_at - tide->free_at));
}

static void search_rejected(struct wr_tide *tide, const struct limit_measurement *m)
{
    if (m->n < TIDE_MEASURED) {
        wr_tide_search(tide, guess(tide, tide->rate), tide->rate);
        return;
    }
    float limit = sqrtf(m->least * m->most);
    learn_burst(tide, limit);
    if (tide->burst < TIDE_BURST && m->rate > TIDE_NEAR * limit)
        wr_tide_search(tide, sqrtf(limit * m->rate), m->rate);
    else
        wr_tide_cruise(tide, limit * (1 - 0.4f / m->n), wr_tide_most(0.4f / m->n, 0.01f), 2 * m->n);
}

/* Returns the tokens that the bucket must have held if the limit was constant: the requests beyond
 * the limit while the rate grew by e-folds. */
static float tokens_needed(const struct wr_tide *tide, const struct limit_measurement *m)
{
    return logf(m->rate / m->most) / (TIDE_GROWTH * cruise_step(tide));
}

/* Returns the window that is assumed, s. An empty bucket accepts only what it refills; a window
 * accepts its quota again when it has passed. So the recent accepted rate is tried once the window
 * has passed at a lower rate. */
static float assumed_window(const struct wr_tide *tide)
{
    return 10 * (float)(tide->horizon + 1);
}

void wr_tide_note_window_rate(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    if (tide->hoped && tide->mode == WR_TIDE_CRUISE && tide->phase < TIDE_EARLY && tide->horizon < TIDE_HORIZONS)
        tide->horizon++; /* rejected early at the hoped rate: the limit is no such window */
    tide->hoped = false;
    if (tide->horizon >= TIDE_HORIZONS) {
        tide->hope = 0;
        return;
    }
    if (wr_tide_is_vague(answer) && tide->row < TIDE_ROW_TESTED)
        return; /* one vague rejection shows no window */
    bool keeps = tide->hope > 0 && !(tide->mode == WR_TIDE_CRUISE && tide->phase >= TIDE_EARLY);
    float rate = answer->good_rate[tide->horizon];
    if (!keeps)
        tide->hope = rate * assumed_window(tide) < TIDE_HOPE_LEAST ? 0 : TIDE_HOPE_SHARE * rate;
}

/* Tries the recent accepted rate when its time has come. Returns true if it is tried now. */
static bool try_window_rate(struct wr_tide *tide, int64_t now)
{
    if (tide->hope <= 0 || tide->horizon >= TIDE_HORIZONS || !tide->marked ||
        wr_tide_seconds(now - tide->empty_at) < assumed_window(tide))
        return false;
    float rate = tide->hope, here = tide->mode == WR_TIDE_CRUISE ? tide->centre : tide->rate;
    tide->hope = 0;
    if (rate < TIDE_HOPE * here)
        return false;
    wr_tide_cruise(tide, rate, TIDE_MARGIN_NEW, TIDE_SPAN_NEW);
    tide->hoped = true;
    return true;
}

static void cruise_rejected(struct wr_tide *tide, const struct limit_measurement *m)
{
    float phase = tide->phase, margin = tide->margin, span = tide->span;
    if (m->n < 0) {
        wr_tide_cruise(tide, wr_tide_least(tide->centre, m->rate * (1 - margin)), margin, span);
        return;
    }
    if (m->n < TIDE_MEASURED) {
        tide->phase *= span;
        wr_tide_search(tide, guess(tide, m->rate), m->rate);
        tide->back = true;
        return;
    }
    float limit = wr_tide_within(tide->centre, m->least, m->most);
    if (phase < 1 && limit < tide->centre * (1 - 3 / m->n - margin)) /* the limit fell */
        wr_tide_cruise(tide, limit * (1 - 0.4f / m->n), 0.4f / m->n + 0.01f, m->n);
    else if (phase > TIDE_LATE && tokens_needed(tide, m) > TIDE_ROSE_BURST * tide->burst + TIDE_ROSE_TOKENS)
        wr_tide_cruise(tide, sqrtf(limit * m->rate), TIDE_MARGIN_NEW,
                       m->rate > TIDE_NEAR * m->most ? TIDE_SPAN_NEW : span); /* the limit rose */
    else if (phase < TIDE_EARLY)
        wr_tide_cruise(tide, limit, margin * TIDE_MARGIN_UP,
                       limit < (1 - TIDE_SAME) * tide->centre ? TIDE_MOVED * span : span);
    else
        wr_tide_cruise(tide, limit, margin * TIDE_MARGIN_DOWN,
                       span * (fabsf(limit / tide->centre - 1) < TIDE_SAME ? 4 : 2));
}

static void start_rejected(struct wr_tide *tide)
{
    if (tide->rate < TIDE_FAR * tide->peak)
        tide->peak *= TIDE_FAR_FADES;
    tide->centre = tide->rate;
    wr_tide_search(tide, tide->rate / 2, tide->rate);
}

void wr_tide_rejected(struct wr_tide *tide, const struct wr_pace_response *answer)
{
    struct limit_measurement m = limit_measurement(tide, answer);
    enum wr_tide_mode mode = tide->mode;
    wr_tide_note_window_rate(tide, answer);
    float floor = wr_tide_least(TIDE_RATE_FLOOR, mode == WR_TIDE_CRUISE ? tide->centre : tide->rate);

    if (mode == WR_TIDE_START)
        start_rejected(tide);
    else if (mode == WR_TIDE_SEARCH)
        search_rejected(tide, &m);
    else if (mode == WR_TIDE_CRUISE)
        cruise_rejected(tide, &m);
    else if (m.n >= TIDE_MEASURED && !(tide->traits & WR_TIDE_BANS)) /* a bucket, not a quota */
        wr_tide_cruise(tide, m.least, TIDE_MARGIN_NEW, TIDE_SPAN_NEW);
    else
        tide->rate *= TIDE_HOLD_AGAIN;
    tide->rate = wr_tide_most(tide->rate, floor);
    tide->centre = wr_tide_most(tide->centre, floor);
    if (m.n < 0 || m.n >= TIDE_ACCUMULATE)
        wr_tide_mark(tide, answer);
    else
        wr_tide_count_refused(tide);
}

static void search_accepted(struct wr_tide *tide)
{
    tide->phase += 1;
    if (tide->phase < (tide->bad > 4 * tide->rate ? TIDE_CLEAN_FAR : TIDE_CLEAN))
        return;
    tide->phase = 0;
    if (tide->back && tide->rate * TIDE_NEAR > tide->centre) {
        wr_tide_cruise(tide, wr_tide_least(tide->centre, tide->rate), tide->margin * TIDE_MARGIN_UP, tide->span / 2);
    } else if (tide->rate * TIDE_NEAR > tide->bad) {
        wr_tide_cruise(tide, tide->rate, TIDE_MARGIN_NEW, TIDE_SPAN_NEW);
    } else {
        tide->rate = sqrtf(tide->rate * tide->bad);
    }
}

static void cruise_accepted(struct wr_tide *tide)
{
    tide->phase += cruise_step(tide);
    tide->rate = cruise_rate(tide, tide->phase);
    if (tide->rate >= 2 * tide->centre) {
        tide->centre = wr_tide_least(2 * tide->centre, TIDE_RATE_MOST);
        tide->phase = 2;
    }
}

/* Returns true if the rate is far below its peak or at the floor, without recent rejections. */
static bool is_far_below_peak(const struct wr_tide *tide)
{
    if (tide->traits & WR_TIDE_WINDOWED) /* the peak was for part of a window only */
        return false;
    float clean = tide->mode == WR_TIDE_CRUISE ? tide->phase * tide->span : tide->phase;
    return tide->rate < wr_tide_most(TIDE_FAR * tide->peak, 1.5f * TIDE_RATE_FLOOR) && clean >= TIDE_FAR_CLEAN;
}

/* Handles an accepted request. Only starts that the rate delayed show that it is right. */
void wr_tide_accepted(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now)
{
    if (!tide->paced)
        return;
    if (tide->mode != WR_TIDE_START && is_far_below_peak(tide))
        wr_tide_restart(tide, wr_tide_most(tide->rate, TIDE_RATE_FLOOR));
    if (tide->mode != WR_TIDE_START && try_window_rate(tide, now))
        return;
    if (tide->mode == WR_TIDE_SEARCH) {
        search_accepted(tide);
    } else if (tide->mode == WR_TIDE_CRUISE) {
        cruise_accepted(tide);
    } else if (tide->rate * tide->gap < TIDE_AHEAD && tide->rate < TIDE_RATE_MOST) {
        float n = wr_tide_most(TIDE_GROW_LEAST, (float)answer->in_flight);
        float seconds = TIDE_GROW_S * (1 + tide->rate / TIDE_GROW_FAST);
        tide->rate *= 1 + 1 / wr_tide_most(n, seconds * tide->rate);
    }
}
