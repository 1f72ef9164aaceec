/* SPDX-License-Identifier: MIT */
/* signals.h - counts SIGINT, SIGTERM and SIGHUP for commands that end in order. */
#ifndef WR_CLI_KIT_SIGNALS_H
#define WR_CLI_KIT_SIGNALS_H

/* Blocks the signals. Threads that are created from now on keep them blocked, so that this thread
 * gets them. */
void wr_signals_block(void);

/* Unblocks the signals in this thread and counts them. The signal number `deadly` kills the
 * process, the ones before do not. SIGHUP stays ignored if it was ignored before (nohup). Blocking
 * calls are interrupted, not restarted. */
void wr_signals_listen(unsigned deadly);

/* Returns the number of signals so far. Can be called from any thread. */
unsigned wr_signals_count(void);

#endif
