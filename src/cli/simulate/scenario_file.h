/* SPDX-License-Identifier: MIT */
/* scenario_file.h - reads scenario files. */
#ifndef WR_CLI_SIMULATE_SCENARIO_FILE_H
#define WR_CLI_SIMULATE_SCENARIO_FILE_H

#include "config/config.h"
#include "sim/sim.h"

/* Read a scenario, like wr_config_read and wr_config_parse. The defaults are those of
 * wr_scenario_init. */
int wr_scenario_read(const char *path, const weir_allocator *allocator, struct wr_scenario *ret_scenario,
                     char ret_why[WR_CONFIG_WHY_BYTES]);
int wr_scenario_parse(const char *file, const char *text, size_t text_bytes, const weir_allocator *allocator,
                      struct wr_scenario *ret_scenario, char ret_why[WR_CONFIG_WHY_BYTES]);

/* Describes the origin in a few words, such as "token bucket, 20/s, burst 20". */
void wr_scenario_describe(const struct wr_scenario *scenario, char *ret_text, size_t text_bytes);

#endif
