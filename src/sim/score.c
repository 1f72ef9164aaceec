/* SPDX-License-Identifier: MIT */
/* score.c - Computes the score of a run. */
#include "sim/score.h"

#include <math.h>
#include <stdalign.h>

#define SPAN_S 10   /* s over which a rate is measured: a few responses at 0.2/s */
#define REACHED 0.9 /* share of the oracle's rate that counts as reached */

int wr_sim_counts_init(struct wr_sim_counts *ret_tally, int64_t duration_ns, const weir_allocator *allocator)
{
    size_t seconds = (size_t)((duration_ns + WEIR_SECOND - 1) / WEIR_SECOND);
    uint32_t *counts = wr_alloc_array(allocator, 3 * seconds, sizeof *counts, alignof(uint32_t));
    if (counts == NULL)
        return WEIR_E_NOMEM;
    *ret_tally = (struct wr_sim_counts){.sent_in = counts,
                                        .ok_in = counts + seconds,
                                        .refused_in = counts + 2 * seconds,
                                        .seconds = seconds,
                                        .allocator = allocator};
    return 0;
}

void wr_sim_counts_release(struct wr_sim_counts *tally)
{
    wr_free(tally->allocator, tally->sent_in, 3 * tally->seconds * sizeof *tally->sent_in, alignof(uint32_t));
    tally->sent_in = NULL;
}

void wr_sim_counts_sent(struct wr_sim_counts *tally, int64_t now)
{
    tally->sent++;
    tally->sent_in[now / WEIR_SECOND]++;
}

void wr_sim_counts_answered(struct wr_sim_counts *tally, int64_t now, const struct wr_sim_reply *reply,
                            int64_t latency_ns)
{
    switch (reply->cause) {
    case WR_REPLY_GOOD:
        tally->ok++;
        tally->ok_in[now / WEIR_SECOND]++;
        tally->latency_ns += (double)latency_ns;
        tally->last_ok_at = now;
        break;
    case WR_REPLY_TOO_MUCH:
        tally->rejections++;
        tally->refused_in[now / WEIR_SECOND]++;
        break;
    case WR_REPLY_OUTAGE:
        tally->waste++;
        break;
    case WR_REPLY_BROKEN:
        break;
    }
}

static bool touches_outage(const struct wr_origin *origin, size_t from)
{
    return (int64_t)from * WEIR_SECOND < origin->outage.to_ns &&
           (int64_t)(from + SPAN_S) * WEIR_SECOND > origin->outage.from_ns;
}

/* Returns the start of the first SPAN_S seconds, not before `from`, that reach REACHED of the
 * oracle's 200s. Returns NAN if there are none. */
static double reached(const struct wr_sim_counts *tally, const struct wr_sim_origin *site,
                      const struct wr_scenario *scenario, size_t from)
{
    for (size_t s = from; s + SPAN_S <= tally->seconds; s++) {
        if (touches_outage(site->origin, s))
            continue;
        uint64_t ok = 0;
        for (size_t i = 0; i < SPAN_S; i++)
            ok += tally->ok_in[s + i];
        if ((double)ok >= REACHED * wr_oracle_between(site, scenario, (double)s, (double)(s + SPAN_S)))
            return (double)s;
    }
    return NAN;
}

static double recovery(const struct wr_sim_counts *tally, const struct wr_sim_origin *site,
                       const struct wr_scenario *scenario)
{
    double at = site->origin->outage.to_ns > 0 ? wr_seconds(site->origin->outage.to_ns) : wr_vary_rise(&site->vary);
    if (isnan(at))
        return NAN;
    return reached(tally, site, scenario, (size_t)ceil(at)) - at;
}

/* Returns sent / allowed in the worst second, except outages. One request is always allowed. */
static double overshoot(const struct wr_sim_counts *tally, const struct wr_sim_origin *site,
                        const struct wr_scenario *scenario)
{
    double worst = 0;
    for (size_t s = 0; s < tally->seconds; s++) {
        double rate = tally->sent_in[s] > 0 ? wr_oracle_rate(site, scenario, (double)s + 0.5) : 0;
        if (rate > 0)
            worst = fmax(worst, tally->sent_in[s] / fmax(1, rate));
    }
    return worst;
}

/* Returns the time for the backlog, s. A run that did not finish is extrapolated. */
static double makespan_s(const struct wr_sim_counts *tally, const struct wr_scenario *scenario, uint32_t backlog)
{
    if (tally->ok >= backlog)
        return wr_seconds(tally->last_ok_at);
    return wr_seconds(scenario->duration_ns) * backlog / fmax(1, (double)tally->ok);
}

static double sum_of_counts(const uint32_t *counts, size_t from, size_t to)
{
    double sum = 0;
    for (size_t s = from; s < to; s++)
        sum += counts[s];
    return sum;
}

static void score_late(struct wr_score *score, const struct wr_sim_counts *tally, const struct wr_sim_origin *site,
                       const struct wr_scenario *scenario)
{
    size_t from = tally->seconds / 2, to = tally->seconds;
    double sent = sum_of_counts(tally->sent_in, from, to), oracle = 0;
    for (size_t s = from; s < to; s++)
        oracle += wr_oracle_between(site, scenario, (double)s, (double)s + 1);
    score->late_goodput = oracle > 0 ? sum_of_counts(tally->ok_in, from, to) / oracle : (double)NAN;
    score->late_rejected = sent > 0 ? sum_of_counts(tally->refused_in, from, to) / sent : 0;
}

/* Computes the numbers that do not depend on a backlog. */
static struct wr_score score_of(const struct wr_sim_counts *tally, const struct wr_sim_origin *site,
                                const struct wr_scenario *scenario)
{
    double ok = (double)tally->ok, sent = (double)tally->sent;
    double unloaded_s = wr_oracle_latency(site->origin, scenario);
    return (struct wr_score){
        .rejected = sent > 0 ? (double)tally->rejections / sent : 0,
        .sent = sent,
        .ok = ok,
        .rejections = (double)tally->rejections,
        .waste = (double)tally->waste,
        .t90_s = reached(tally, site, scenario, 0),
        .recovery_s = recovery(tally, site, scenario),
        .latency_inflation = ok > 0 ? tally->latency_ns / 1e9 / ok / unloaded_s : (double)NAN,
        .overshoot = overshoot(tally, site, scenario),
        .bans = site->origin_limiter.bans,
    };
}

void wr_sim_counts_score(const struct wr_sim_counts *tally, const struct wr_sim_origin *site,
                         const struct wr_scenario *scenario, uint32_t backlog, struct wr_score *ret_score,
                         double *ret_ideal_s)
{
    if (backlog == 0) {
        *ret_score = score_of(tally, site, scenario);
        ret_score->oracle = wr_oracle_total(site, scenario);
        ret_score->goodput = ret_score->ok / ret_score->oracle;
        ret_score->makespan_s = *ret_ideal_s = NAN;
        score_late(ret_score, tally, site, scenario);
        return;
    }
    struct wr_sim_counts worked = *tally; /* seconds after the last URL do not count */
    worked.seconds = (size_t)(tally->last_ok_at / WEIR_SECOND + 1);
    *ret_score = score_of(&worked, site, scenario);
    ret_score->oracle = backlog;
    ret_score->late_goodput = ret_score->late_rejected = NAN;
    ret_score->makespan_s = makespan_s(tally, scenario, backlog);
    *ret_ideal_s = wr_oracle_makespan(site, scenario, backlog);
    ret_score->goodput = *ret_ideal_s / ret_score->makespan_s;
}

void wr_score_add(struct wr_score *sum, const struct wr_score *more)
{
    sum->goodput += more->goodput;
    sum->rejected += more->rejected;
    sum->late_goodput += more->late_goodput;
    sum->late_rejected += more->late_rejected;
    sum->sent += more->sent;
    sum->ok += more->ok;
    sum->rejections += more->rejections;
    sum->waste += more->waste;
    sum->oracle += more->oracle;
    sum->t90_s += more->t90_s;
    sum->recovery_s += more->recovery_s;
    sum->latency_inflation += more->latency_inflation;
    sum->overshoot += more->overshoot;
    sum->makespan_s += more->makespan_s;
    sum->bans += more->bans;
}

void wr_score_divide(struct wr_score *sum, double by)
{
    sum->goodput /= by;
    sum->rejected /= by;
    sum->late_goodput /= by;
    sum->late_rejected /= by;
    sum->sent /= by;
    sum->ok /= by;
    sum->rejections /= by;
    sum->waste /= by;
    sum->oracle /= by;
    sum->t90_s /= by;
    sum->recovery_s /= by;
    sum->latency_inflation /= by;
    sum->overshoot /= by;
    sum->makespan_s /= by;
    sum->bans /= by;
}
