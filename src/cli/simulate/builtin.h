/* SPDX-License-Identifier: MIT */
/* builtin.h - the scenarios that the program carries: the files of scenarios/, made into C by embed.py. */
#ifndef WR_CLI_SIMULATE_BUILTIN_H
#define WR_CLI_SIMULATE_BUILTIN_H

#include <stddef.h>

struct wr_builtin {
    const char *name; /* of the file, without .yaml: "P1a-tb0.2-b5" */
    const char *text;
};

extern const struct wr_builtin wr_builtins[]; /* P2 before P10 */
extern const size_t wr_builtins_count;

#endif
