/* SPDX-License-Identifier: MIT */
/* catalog.h - collects the scenarios to run: from files, from folders, built-in ones and random
 * ones. */
#ifndef WR_CLI_SIMULATE_CATALOG_H
#define WR_CLI_SIMULATE_CATALOG_H

#include "sim/sim.h"

struct wr_catalog {
    const weir_allocator *allocator;
    struct wr_scenario **list; /* scenarios that were read */
    size_t listed, room;
    /* Number of random scenarios of the families P and R, which are drawn when needed. */
    uint32_t drawn, drawn_real;
    uint64_t seed; /* seed of the random scenarios */
};

void wr_catalog_init(struct wr_catalog *ret_catalog, const weir_allocator *allocator);

/* Adds a file, or the .yaml and .yml files of a folder. If there is no such path, adds the built-in
 * scenarios with that name ("P4" includes P4a, P4b and so on) or the random one ("P4-r14", "R2-r1",
 * by `seed`). Returns an exit status; prints an error if it is not 0. */
int wr_catalog_add(struct wr_catalog *catalog, const char *what);
int wr_catalog_add_builtins(struct wr_catalog *catalog);

static inline size_t wr_catalog_count(const struct wr_catalog *catalog)
{
    return catalog->listed + catalog->drawn + catalog->drawn_real;
}

/* Returns the scenario with this index. A random one is stored in *room. */
const struct wr_scenario *wr_catalog_get(const struct wr_catalog *catalog, size_t index, struct wr_scenario *room);

void wr_catalog_release(struct wr_catalog *catalog);

#endif
