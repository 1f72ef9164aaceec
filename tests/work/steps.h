/* SPDX-License-Identifier: MIT */
/* steps.h - measures work by counting steps instead of time.
 *
 * The code under test is compiled with -fsanitize-coverage=trace-pc: every branch that it takes is
 * a step. Bytes that the C library copies, compares or searches count as a step per 16 bytes. The
 * same input therefore always costs the same, however busy the machine is. */
#ifndef WEIR_TEST_STEPS_H
#define WEIR_TEST_STEPS_H

#include "lib/test.h"

#include "base/buf.h"

/* Returns the steps since the program began. */
uint64_t steps_now(void);

/* Fails if `work` on an input of 4 * bytes costs more than seven times as much as on `bytes`, or
 * more than `each` steps per byte. */
typedef void steps_work(const char *text, size_t bytes);
void steps_grow_with(const char *name, steps_work *work, const char *begin, const char *again, const char *end,
                     size_t bytes, uint64_t each);

#endif
