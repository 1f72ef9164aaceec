/* SPDX-License-Identifier: MIT */
/* matrix.h - runs each pacer against each scenario on several threads. The results do not depend on
 * their number. */
#ifndef WR_CLI_SIMULATE_MATRIX_H
#define WR_CLI_SIMULATE_MATRIX_H

#include "cli/simulate/catalog.h"

#define WR_MATRIX_JOBS_MAX 256

struct wr_matrix {
    const struct wr_catalog *catalog;
    const struct wr_sim_pacer *pacers;
    size_t pacer_count;
    uint32_t seeds; /* runs per scenario; 0: as each scenario says */
    uint64_t seed;  /* seed of the first run */
    bool warm;
    bool late;   /* the table uses the second half of each run */
    size_t jobs; /* number of threads */
    const weir_allocator *allocator;
};

struct wr_matrix_cell {
    bool done;
    int error; /* 0, or the error because of which the cell is not finished */
    uint32_t seeds;
    char scenario[sizeof((struct wr_scenario *)NULL)->name];
    struct wr_score score;
};

/* Fills the cells, which must be zeroed, pacer by pacer: `pacer_count` times
 * wr_catalog_count(catalog). Shows the progress. After Ctrl-C, cells that have begun are finished
 * and the others are left out. Returns the number of finished cells. */
size_t wr_matrix_run(const struct wr_matrix *matrix, struct wr_matrix_cell *cells);

#endif
