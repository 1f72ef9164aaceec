/* SPDX-License-Identifier: MIT */
/* model.h - what a gate without a strategy must do, in simple and slow code: it keeps a list of all
 * events and recomputes everything on each call.
 *
 * The model stands for the laws V1 (spacing, requests in flight) and V2 (no request inside a window
 * that the server named, only budgeted probes while the breaker is not closed). A gate with a
 * strategy may be slower than the model but never faster. */
#ifndef WEIR_TEST_PACE_MODEL_H
#define WEIR_TEST_PACE_MODEL_H

#include "rig.h"

#define LIST_MAX 4000

struct model {
    weir_pace_options options;
    int64_t latest_at;
    int64_t robots_delay_ns;
    bool paused;
    int64_t sends[LIST_MAX], holds[LIST_MAX]; /* holds: ends of windows that the server named */
    size_t send_count, hold_count;
    int64_t pushed_until; /* end of the gate's own push-back; a restart clears it */
    uint32_t rejections;  /* consecutive rejections */
    bool banned;
    struct model_answer {
        int64_t at;
        bool counts, bad;
    } answers[LIST_MAX]; /* answers since the breaker last closed */
    size_t answer_count;
    int64_t success_at; /* latest success; INT64_MIN: never */
    /* State of the breaker. */
    bool tripped;
    int64_t open_until; /* end of the open time; INT64_MIN: never opened */
    uint32_t in_a_row, good_probes;
    /* Requests in flight. */
    uint32_t flying; /* requests sent and not answered */
    bool reserved;
    int64_t reserved_at;
};

static inline void model_init(struct model *model, const weir_pace_options *options, int64_t now)
{
    memset(model, 0, sizeof *model);
    model->options = *options;
    model->latest_at = now;
    model->open_until = model->success_at = model->pushed_until = INT64_MIN;
}

static inline void model_see(struct model *model, int64_t now)
{
    model->latest_at = now > model->latest_at ? now : model->latest_at;
    if (model->reserved && model->latest_at >= model->reserved_at + model->options.reservation_max_ns)
        model->reserved = false;
}

static inline void model_hold(struct model *model, int64_t until)
{
    assert_true(model->hold_count < LIST_MAX);
    model->holds[model->hold_count++] = until;
}

static inline void model_sent(struct model *model)
{
    assert_true(model->send_count < LIST_MAX);
    model->sends[model->send_count++] = model->latest_at;
    model->flying++;
    model->reserved = false;
}

static inline int64_t model_interval(const struct model *model)
{
    int64_t longest = model->options.min_interval_ns;
    if (model->options.max_rate > 0) {
        int64_t spacing = (int64_t)ceil(1e9 / model->options.max_rate);
        longest = spacing > longest ? spacing : longest;
    }
    return model->robots_delay_ns > longest ? model->robots_delay_ns : longest;
}

/* Returns the decision at `now` and changes nothing. A wait of WEIR_UNTIL_RELEASE has no known
 * end. */
static inline weir_decision model_ask(struct model copy, int64_t now)
{
    struct model *model = &copy;
    model_see(model, now);
    int64_t t = model->latest_at, at = model->pushed_until;
    uint32_t in_flight = model->flying; /* without the reservation, which expires by the clock */
    uint32_t probes = model->options.strategy == WEIR_STRATEGY_TIDE ? 1 : model->options.probes;
    if (model->tripped && t < model->open_until)
        return (weir_decision){WEIR_WAIT, WEIR_REASON_BREAKER, model->open_until - now};
    if (model->paused)
        return (weir_decision){WEIR_WAIT, WEIR_REASON_PAUSED, WEIR_UNTIL_RELEASE};
    if (model->banned && in_flight > 0)
        return (weir_decision){WEIR_WAIT, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE};
    if (model->options.max_in_flight > 0 && in_flight >= model->options.max_in_flight)
        return (weir_decision){WEIR_WAIT, WEIR_REASON_CONCURRENCY, WEIR_UNTIL_RELEASE};
    if (model->tripped && in_flight >= probes)
        return (weir_decision){WEIR_WAIT, WEIR_REASON_BREAKER, WEIR_UNTIL_RELEASE};
    for (size_t i = 0; i < model->send_count; i++)
        at = model->sends[i] + model_interval(model) > at ? model->sends[i] + model_interval(model) : at;
    for (size_t i = 0; i < model->hold_count; i++)
        at = model->holds[i] > at ? model->holds[i] : at;
    if (model->reserved && model->reserved_at + model->options.reservation_max_ns > at)
        at = model->reserved_at + model->options.reservation_max_ns;
    if (at > t)
        return (weir_decision){WEIR_WAIT, WEIR_REASON_PACE, at - now};
    return (weir_decision){WEIR_GO, WEIR_REASON_NONE, 0};
}

static inline int64_t model_clamp(const struct model *model, int64_t ns)
{
    return ns < 0 ? 0 : ns > model->options.retry_after_max_ns ? model->options.retry_after_max_ns : ns;
}

static inline void model_trip(struct model *model)
{
    int64_t open_ns = model->options.open_ns;
    if (model->options.strategy == WEIR_STRATEGY_TIDE && model->success_at != INT64_MIN) {
        int64_t tenth = (model->latest_at - model->success_at) / 10;
        tenth = tenth < WEIR_SECOND ? WEIR_SECOND : tenth;
        open_ns = tenth < open_ns ? tenth : open_ns;
    }
    model->tripped = true;
    model->open_until = model->latest_at + open_ns;
    model->good_probes = 0;
}

static inline bool model_too_many_errors(const struct model *model)
{
    int64_t step = model->options.window_step_ns, buckets = (model->options.window_ns + step - 1) / step;
    uint32_t samples = 0, bad = 0;
    for (size_t i = 0; i < model->answer_count; i++)
        if (model->answers[i].counts && model->latest_at / step - model->answers[i].at / step < buckets) {
            samples++;
            bad += model->answers[i].bad;
        }
    return samples >= model->options.min_samples && bad >= model->options.error_threshold * samples;
}

static inline void model_judge(struct model *model, bool counts, bool bad, int64_t sent_at)
{
    bool late = sent_at < model->open_until;
    assert_true(model->answer_count < LIST_MAX);
    model->answers[model->answer_count++] = (struct model_answer){model->latest_at, counts, bad};
    if (!model->options.breaker || !counts)
        return;
    if (!model->tripped && !bad) {
        model->in_a_row = 0;
    } else if (!model->tripped && !late) {
        model->in_a_row++;
        if (model->in_a_row >= model->options.consecutive_failures || model_too_many_errors(model))
            model_trip(model);
    } else if (model->tripped && !late && bad) {
        model_trip(model);
    } else if (model->tripped && !late && ++model->good_probes >= model->options.probes) {
        model->tripped = false;
        model->in_a_row = 0;
        model->answer_count = 0;
    }
}

static inline void model_push_back(struct model *model, int status)
{
    int64_t until = model->latest_at + 100 * MS;
    if (status == 403 && model->options.breaker && model->rejections >= model->options.consecutive_failures) {
        int64_t over_at = model->latest_at + model_clamp(model, model->options.open_ns);
        until = over_at > until ? over_at : until;
        model->banned = true;
    }
    model->pushed_until = until > model->pushed_until ? until : model->pushed_until;
}

/* Returns the time until the quota is restored, as the answer states it, or -1 if it does not. */
static inline int64_t model_reset(const struct model *model, const weir_outcome *outcome, bool is_reset)
{
    int64_t ns = outcome->has_quota && outcome->quota_reset_ns != -1 ? model_clamp(model, outcome->quota_reset_ns) : -1;
    if (is_reset && outcome->has_retry_after && model_clamp(model, outcome->retry_after_ns) > ns)
        ns = model_clamp(model, outcome->retry_after_ns);
    return ns;
}

/* Records an answer to a request sent at `sent_at`. */
static inline void model_tell(struct model *model, int64_t sent_at, const weir_outcome *outcome)
{
    int status = outcome->status;
    int64_t t = model->latest_at;
    bool tide = model->options.strategy == WEIR_STRATEGY_TIDE;
    bool refused = status == 429 || status == 529 || status == 999;
    bool lost = !refused && (status < 100 || status > 599);
    bool failure = lost || refused || status >= 500;
    bool is_reset = outcome->has_quota && outcome->quota_remaining >= 0 && status >= 200 && status <= 299;
    bool binds = outcome->has_retry_after && !is_reset;
    bool used_up = outcome->quota_remaining == 0 || (outcome->quota_remaining < 0 && refused);
    int64_t reset_ns = model_reset(model, outcome, is_reset);
    bool unsaid = failure && ((binds && outcome->retry_after_ns > 0) || (tide && (refused || status == 503)));
    model->flying--;
    if (binds)
        model_hold(model, t + model_clamp(model, outcome->retry_after_ns));
    if (outcome->has_quota && (used_up || outcome->quota_limit == 0)) {
        if (reset_ns >= 0)
            model_hold(model, t + reset_ns);
        else if (outcome->quota_limit == 0)
            model_hold(model, t + model_clamp(model, model->options.open_ns));
    }
    if (refused || status == 403 || status == 503) {
        model->rejections++;
        if (!tide)
            model_push_back(model, status);
    }
    if (!failure && status != 403) {
        model->success_at = t;
        model->rejections = 0;
        model->banned = false;
    }
    model_judge(model, !unsaid, failure, sent_at);
}

static inline void model_change(struct model *model, const weir_pace_options *options)
{
    model->options = *options;
    model_see(model, model->latest_at);
    int64_t latest_hold = model->latest_at + options->retry_after_max_ns;
    for (size_t i = 0; i < model->hold_count; i++)
        model->holds[i] = model->holds[i] < latest_hold ? model->holds[i] : latest_hold;
    if (model->open_until > model->latest_at + options->open_ns)
        model->open_until = model->latest_at + options->open_ns;
    if (model->pushed_until > latest_hold)
        model->pushed_until = latest_hold;
    if (!options->breaker) {
        model->banned = false;
        model->tripped = false;
        model->in_a_row = 0;
    }
}

/* Restarts the model: another process begins at `now`, `away_ns` later by the wall clock. */
static inline void model_restart(struct model *model, int64_t now, int64_t away_ns)
{
    int64_t shift = now - (model->latest_at + away_ns);
    for (size_t i = 0; i < model->hold_count; i++)
        model->holds[i] += shift;
    model->latest_at = now;
    model->send_count = model->flying = model->reserved = model->paused = 0;
    model->sends[model->send_count++] = now;
    model->answer_count = model->in_a_row = model->good_probes = 0;
    model->open_until = model->tripped ? now : INT64_MIN;
    model->success_at = model->pushed_until = INT64_MIN;
    model->rejections = model->banned = 0;
}

#endif
