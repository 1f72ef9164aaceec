/* SPDX-License-Identifier: MIT */
/* matrix.h - every pacer against every scenario, on several threads. The results are the same on any number of them. */
#ifndef WR_CLI_SIMULATE_MATRIX_H
#define WR_CLI_SIMULATE_MATRIX_H

#include "cli/simulate/catalog.h"

#define WR_MATRIX_JOBS_MAX 256

struct wr_matrix {
    const struct wr_catalog *catalog;
    const struct wr_sim_pacer *pacers;
    size_t pacer_count;
    uint32_t seeds; /* 0: as many as each scenario says */
    uint64_t seed;  /* the first */
    bool warm;
    bool late;   /* the table judges by the second half of each run */
    size_t jobs; /* threads */
    const weir_allocator *allocator;
};

struct wr_cell {
    bool done;
    int error; /* 0, or why it is not done */
    uint32_t seeds;
    char scenario[sizeof((struct wr_scenario *)NULL)->name];
    struct wr_score score;
};

/* Fills the cells, which are zeroed, pacer by pacer: `pacer_count` times wr_catalog_count(catalog). Shows how far it
 * is. Ctrl-C ends it early: what has begun is finished, the rest is not done. Returns how many are done. */
size_t wr_matrix_run(const struct wr_matrix *matrix, struct wr_cell *cells);

#endif
