/* SPDX-License-Identifier: MIT */
/* oracle.c - Integrates what an origin allows over time. */
#include "sim/oracle.h"

#include <math.h>

static double service_s(const struct wr_origin *origin)
{
    return wr_seconds(origin->service.mean_ns) * (1 + (WR_TAIL_FACTOR - 1) * origin->service.tail);
}

/* Returns the mean time of both ways. The mean of a half-normal is sqrt(2/pi) deviations. */
static double trip_s(const struct wr_scenario *scenario)
{
    return wr_seconds(scenario->network.rtt_ns) + 2 * sqrt(M_2_PI) * wr_seconds(scenario->network.jitter_ns);
}

double wr_oracle_latency(const struct wr_origin *origin, const struct wr_scenario *scenario)
{
    return service_s(origin) + trip_s(scenario);
}

static double limiter_rate(const struct wr_origin *origin, const struct wr_scenario *scenario)
{
    double window_s = wr_seconds(origin->limiter.window_ns);
    switch (origin->limiter.kind) {
    case WR_LIMITER_TOKEN_BUCKET:
        return origin->limiter.rate * (1 - origin->cross);
    case WR_LIMITER_FIXED_WINDOW:
    case WR_LIMITER_SLIDING_BAN:
    case WR_LIMITER_SLIDING_COUNTER:
    case WR_LIMITER_SLOW_DOWN: /* the rate of requests that are not slowed down */
        return origin->limiter.quota / window_s;
    case WR_LIMITER_CONCURRENCY:
        return origin->limiter.max / wr_oracle_latency(origin, scenario);
    case WR_LIMITER_NONE:
        break;
    }
    return INFINITY;
}

/* Returns the rate that all bounds allow, per second. The factor applies to the limiter, or to the
 * speed of the service if there is no limiter. */
static double allowed(const struct wr_origin *origin, const struct wr_scenario *scenario, double factor)
{
    double speed = origin->limiter.kind == WR_LIMITER_NONE ? factor : 1;
    double rate = scenario->workers / (service_s(origin) / speed + trip_s(scenario));
    rate = fmin(rate, limiter_rate(origin, scenario) * factor);
    if (origin->station.servers > 0)
        rate = fmin(rate, origin->station.servers * speed / service_s(origin));
    return rate;
}

static double share_without_errors(const struct wr_origin *origin)
{
    return (1 - origin->errors.p500) * (1 - origin->errors.p503);
}

/* Returns the number of admitted requests, without outage and errors. */
static double admitted_between(const struct wr_sim_origin *site, const struct wr_scenario *scenario, double from,
                               double to)
{
    if (to <= from)
        return 0;
    double factor = (wr_vary_sum(&site->vary, to) - wr_vary_sum(&site->vary, from)) / (to - from);
    return allowed(site->origin, scenario, factor) * (to - from);
}

double wr_oracle_between(const struct wr_sim_origin *site, const struct wr_scenario *scenario, double from, double to)
{
    double down = wr_seconds(site->origin->outage.from_ns);
    double up = fmax(down, wr_seconds(site->origin->outage.to_ns));
    double before = admitted_between(site, scenario, from, fmin(to, down));
    double after = admitted_between(site, scenario, fmax(from, up), to);
    return (before + after) * share_without_errors(site->origin);
}

static double burst(const struct wr_sim_origin *site)
{
    bool bucket = site->origin->limiter.kind == WR_LIMITER_TOKEN_BUCKET;
    return bucket ? site->origin->limiter.burst * share_without_errors(site->origin) : 0;
}

/* Sums second by second: a mean factor over longer times does not give the least bound. */
double wr_oracle_total(const struct wr_sim_origin *site, const struct wr_scenario *scenario)
{
    double end = wr_seconds(scenario->duration_ns);
    double sum = burst(site);
    for (double t = 0; t < end; t++)
        sum += wr_oracle_between(site, scenario, t, fmin(t + 1, end));
    return sum;
}

double wr_oracle_rate(const struct wr_sim_origin *site, const struct wr_scenario *scenario, double t)
{
    double ns = t * 1e9;
    if (ns >= (double)site->origin->outage.from_ns && ns < (double)site->origin->outage.to_ns)
        return 0;
    return allowed(site->origin, scenario, wr_vary_factor(&site->vary, t));
}

double wr_oracle_makespan(const struct wr_sim_origin *site, const struct wr_scenario *scenario, uint32_t backlog)
{
    double end = wr_seconds(scenario->duration_ns);
    double left = backlog - burst(site);
    double latency = wr_oracle_latency(site->origin, scenario);
    double t = 0;
    for (; t < end && left > 0; t++) {
        double more = wr_oracle_between(site, scenario, t, fmin(t + 1, end));
        if (more >= left)
            return fmin(end, t + left / more + latency);
        left -= more;
    }
    return fmin(end, t + latency);
}
