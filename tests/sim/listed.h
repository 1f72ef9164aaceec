/* SPDX-License-Identifier: MIT */
/* listed.h - the scenarios that reference.csv speaks of, out of their files. */
#ifndef WEIR_TEST_LISTED_H
#define WEIR_TEST_LISTED_H

#include "sim/sim.h"

#define LISTED_COUNT 34

/* By their order in reference.csv, and by name. The folder is that of WEIR_SCENARIOS. */
const struct wr_scenario *listed(size_t index);
const struct wr_scenario *listed_named(const char *name);

#endif
