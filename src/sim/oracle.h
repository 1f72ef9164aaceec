/* SPDX-License-Identifier: MIT */
/* oracle.h - what would one deliver who knows the origin?
 *
 * In each moment the least of what the limiter, the station and the workers allow,
 *
 *     token bucket   rate (and once the burst)       station   servers / mean service
 *     window, ban    quota / window                  workers   workers / (mean service + round trip)
 *     concurrency    max / (mean service + round trip)
 *
 * times the factor by which it varies, less the share of others, the outage, and the errors that befall anybody.
 */
#ifndef WR_SIM_ORACLE_H
#define WR_SIM_ORACLE_H

#include "sim/origin.h"

/* 200s between two instants, in seconds from the beginning, without the burst. */
double wr_oracle_between(const struct wr_site *site, const struct wr_scenario *scenario, double from, double to);

/* 200s at most of a whole run. */
double wr_oracle_total(const struct wr_site *site, const struct wr_scenario *scenario);

/* Requests per second that are let in at this instant; 0 in an outage. */
double wr_oracle_rate(const struct wr_site *site, const struct wr_scenario *scenario, double t);

/* Seconds until `backlog` 200s could be there, at most the run's duration. */
double wr_oracle_makespan(const struct wr_site *site, const struct wr_scenario *scenario, uint32_t backlog);

/* Mean seconds from sending to an answer, when nobody else is there. */
double wr_oracle_latency(const struct wr_origin *origin, const struct wr_scenario *scenario);

#endif
