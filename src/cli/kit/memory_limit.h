/* SPDX-License-Identifier: MIT */
/* memory_limit.h - adapts the process to a limit of its memory. */
#ifndef WR_CLI_KIT_MEMORY_LIMIT_H
#define WR_CLI_KIT_MEMORY_LIMIT_H

/* Must be called before any thread is created and before libuv is used. */
void wr_memory_limit_apply(void);

#endif
