/* SPDX-License-Identifier: MIT */
/* signals.h - SIGINT, SIGTERM and SIGHUP, for commands that end in order. */
#ifndef WR_CLI_KIT_SIGNALS_H
#define WR_CLI_KIT_SIGNALS_H

/* Threads that are made from here on leave them to this one. */
void wr_signals_hold(void);

/* From here on they are counted, and do not end the program before the one of the number `deadly`, which does so where
 * it is. SIGHUP stays ignored if it was (nohup). Calls that wait are not restarted. */
void wr_signals_listen(unsigned deadly);

/* How many came. Any thread. */
unsigned wr_signals_count(void);

#endif
