/* SPDX-License-Identifier: MIT */
/* limits.h - adapts the process to a limit of its memory. */
#ifndef WR_CLI_KIT_LIMITS_H
#define WR_CLI_KIT_LIMITS_H

/* Must be called before any thread is created and before libuv is used. */
void wr_limits_obey(void);

#endif
