/* SPDX-License-Identifier: MIT */
/* builtin.h - the built-in scenarios: the files of scenarios/, converted to C by embed.py. */
#ifndef WR_CLI_SIMULATE_BUILTIN_H
#define WR_CLI_SIMULATE_BUILTIN_H

#include <stddef.h>

struct wr_builtin {
    const char *name; /* file name without .yaml, such as "P1a-tb0.2-b5" */
    const char *text;
};

/* The built-in scenarios in natural order: P2 before P10. */
extern const struct wr_builtin wr_builtins[];
extern const size_t wr_builtins_count;

#endif
