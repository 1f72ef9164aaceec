/* SPDX-License-Identifier: MIT */
/* turns.h - how soon the calling thread gets a processor that others want as well.
 *
 * A start that is due must not wait for somebody's whole turn, some milliseconds. Linux since 6.12 lets those who ask
 * for short turns in soon, at nobody's expense and without a privilege; elsewhere these do nothing.
 */
#ifndef WR_SHELL_CLOCK_TURNS_H
#define WR_SHELL_CLOCK_TURNS_H

/* For one that has to be punctual. */
void wr_turns_short(void);

/* For one that works in batches: it interrupts nobody. */
void wr_turns_long(void);

#endif
