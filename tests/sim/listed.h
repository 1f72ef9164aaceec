/* SPDX-License-Identifier: MIT */
/* listed.h - the scenarios that reference.csv lists, read from their files. */
#ifndef WEIR_TEST_LISTED_H
#define WEIR_TEST_LISTED_H

#include "sim/sim.h"

#define LISTED_COUNT 34

/* Return a scenario by its position in reference.csv, or by name. WEIR_SCENARIOS names the
 * folder. */
const struct wr_scenario *listed(size_t index);
const struct wr_scenario *listed_named(const char *name);

#endif
