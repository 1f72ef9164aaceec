/* SPDX-License-Identifier: MIT */
/* limits.h - a program whose memory is limited makes do with less. */
#ifndef WR_CLI_KIT_LIMITS_H
#define WR_CLI_KIT_LIMITS_H

/* Before any thread, and before libuv is used. */
void wr_limits_obey(void);

#endif
