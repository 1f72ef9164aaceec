/* SPDX-License-Identifier: MIT */
/* oracle.h - The goodput of an ideal client that knows the origin.
 *
 * At each moment it is the least of the rates that the limiter, the station and the workers allow,
 *
 *     token bucket   rate (and once the burst)   station   servers / mean service
 *     window, ban    quota / window              workers   workers / (mean service + round trip)
 *     concurrency    max / (mean service + round trip)
 *
 * times the current factor, less the share of other clients, the outage, and the errors that no
 * client can avoid.
 */
#ifndef WR_SIM_ORACLE_H
#define WR_SIM_ORACLE_H

#include "sim/origin.h"

/* Returns the number of 200s between two instants (s since the beginning), without the burst. */
double wr_oracle_between(const struct wr_sim_origin *site, const struct wr_scenario *scenario, double from, double to);

/* Returns the maximum number of 200s in a whole run. */
double wr_oracle_total(const struct wr_sim_origin *site, const struct wr_scenario *scenario);

/* Returns the requests per second that are admitted at this instant; 0 in an outage. */
double wr_oracle_rate(const struct wr_sim_origin *site, const struct wr_scenario *scenario, double t);

/* Returns the seconds until `backlog` 200s are possible, at most the duration of the run. */
double wr_oracle_makespan(const struct wr_sim_origin *site, const struct wr_scenario *scenario, uint32_t backlog);

/* Returns the mean latency of a request at an unloaded origin, s. */
double wr_oracle_latency(const struct wr_origin *origin, const struct wr_scenario *scenario);

#endif
