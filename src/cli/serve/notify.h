/* SPDX-License-Identifier: MIT */
/* notify.h - what a service manager gives to a daemon, and wants to hear of it (systemd's sd_listen_fds, sd_notify). */
#ifndef WR_CLI_SERVE_NOTIFY_H
#define WR_CLI_SERVE_NOTIFY_H

/* How many sockets were given, from descriptor 3 on; 0: none, or they are somebody else's. Once: then the environment
 * says nothing of them any more. */
int wr_notify_sockets(void);

#define WR_NOTIFY_FIRST 3

/* "READY=1"; without a manager nothing. */
void wr_notify(const char *state);

#endif
