/* SPDX-License-Identifier: MIT */
/* race.h - a weir_table and the bound, asked for the same keys in the same order by the same clock.
 *
 * They take turns, round by round, and the median of the rounds counts: what else happens on the machine then hits
 * both.
 */
#ifndef WR_CLI_BENCH_RACE_H
#define WR_CLI_BENCH_RACE_H

#include <weir/table.h>

#include "cli/bench/stream.h"

#define WR_RACE_BATCH_MAX 1024

struct wr_race_options {
    size_t keys, key_bytes;
    enum wr_dist dist;
    size_t threads;
    size_t batch;     /* 1: weir_table_try; 2 … WR_RACE_BATCH_MAX: weir_table_try_many */
    size_t ops;       /* decisions per thread and round */
    int64_t least_ns; /* rounds are added until so much time has passed */
    const weir_clock *clock;
    uint64_t seed;
};

struct wr_race_result {
    double table_ns, bound_ns; /* wall time over decisions of all threads */
    double granted;            /* share, 0 … 1, of the table's decisions */
    double bytes_per_key;      /* by which the resident memory grew when the table was made and filled */
    double fill_ns;            /* per new key */
    size_t keys_held;          /* in the table when it had been filled */
    size_t rounds;
};

/* WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_race_run(const struct wr_race_options *options, struct wr_race_result *ret_result);

#endif
