/* SPDX-License-Identifier: MIT */
/* catalog.h - which scenarios are to be run: those of files, folders and the program itself, and freshly drawn ones. */
#ifndef WR_CLI_SIMULATE_CATALOG_H
#define WR_CLI_SIMULATE_CATALOG_H

#include "sim/sim.h"

struct wr_catalog {
    const weir_allocator *allocator;
    struct wr_scenario **list; /* those that were read */
    size_t listed, room;
    uint32_t drawn, drawn_real; /* how many are drawn when they are needed, of the families P and R */
    uint64_t seed;              /* of those */
};

void wr_catalog_init(struct wr_catalog *ret_catalog, const weir_allocator *allocator);

/* Adds a file, the files of a folder that end in .yaml or .yml, or, where there is no such path, the built-in scenarios
 * of that name ("P4" is P4a, P4b and so on) or the drawn one ("P4-r14", "R2-r1", by `seed`). Returns an exit status,
 * after a complaint if it is not 0. */
int wr_catalog_add(struct wr_catalog *catalog, const char *what);
int wr_catalog_add_builtins(struct wr_catalog *catalog);

static inline size_t wr_catalog_count(const struct wr_catalog *catalog)
{
    return catalog->listed + catalog->drawn + catalog->drawn_real;
}

/* The index-th; `room` is where a drawn one is put. */
const struct wr_scenario *wr_catalog_get(const struct wr_catalog *catalog, size_t index, struct wr_scenario *room);

void wr_catalog_release(struct wr_catalog *catalog);

#endif
