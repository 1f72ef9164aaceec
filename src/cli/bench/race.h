/* SPDX-License-Identifier: MIT */
/* race.h - asks a weir_table and the lower bound of cost_bound.h for the same keys in the same
 * order by the same clock.
 *
 * The two alternate round by round, and the median of the rounds counts. A disturbance on the
 * machine therefore affects both.
 */
#ifndef WR_CLI_BENCH_RACE_H
#define WR_CLI_BENCH_RACE_H

#include <weir/table.h>

#include "cli/bench/key_stream.h"

#define WR_RACE_BATCH_MAX 1024

struct wr_race_options {
    size_t keys, key_bytes;
    enum wr_key_distribution dist;
    size_t threads;
    /* Keys per call: 1 uses weir_table_try; 2 ... WR_RACE_BATCH_MAX use weir_table_try_many. */
    size_t batch;
    size_t ops;       /* decisions per thread and round */
    int64_t least_ns; /* minimum total time, ns: rounds are added until it has passed */
    const weir_clock *clock;
    uint64_t seed;
};

struct wr_race_result {
    double table_ns, bound_ns; /* wall time divided by the decisions of all threads, ns */
    double granted;            /* granted share of the table's decisions, 0 ... 1 */
    /* Growth of the resident memory while the table was created and filled. */
    double bytes_per_key;
    double fill_ns;   /* time to add a new key, ns */
    size_t keys_held; /* number of keys in the table after it was filled */
    size_t rounds;
};

/* Runs the race. Returns WEIR_E_NOMEM, or WEIR_E_SYSTEM if a thread could not be created. */
int wr_race_run(const struct wr_race_options *options, struct wr_race_result *ret_result);

#endif
