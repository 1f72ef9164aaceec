/* SPDX-License-Identifier: MIT */
/* steps.h - how much work something was, counted and not timed.
 *
 * The code under test is compiled with -fsanitize-coverage=trace-pc: every branch that it takes is a step. What it has
 * moved, compared or searched by the C library counts as a step for 16 bytes. So the same input always costs the same,
 * however busy the machine is.
 */
#ifndef WEIR_TEST_STEPS_H
#define WEIR_TEST_STEPS_H

#include "lib/test.h"

#include "base/buf.h"

/* Steps since the program began. */
uint64_t steps_now(void);

/* Fails if `work` of an input of 4 * bytes costs more than seven times what it costs of `bytes`, or more than `each`
 * steps for a byte. */
typedef void steps_work(const char *text, size_t bytes);
void steps_grow_with(const char *name, steps_work *work, const char *begin, const char *again, const char *end,
                     size_t bytes, uint64_t each);

#endif
