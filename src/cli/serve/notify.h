/* SPDX-License-Identifier: MIT */
/* notify.h - takes sockets from the service manager and reports the daemon's state to it (systemd's
 * sd_listen_fds and sd_notify). */
#ifndef WR_CLI_SERVE_NOTIFY_H
#define WR_CLI_SERVE_NOTIFY_H

/* Returns the number of sockets that the service manager passed, from descriptor WR_NOTIFY_FIRST
 * on. Returns 0 if there are no sockets or they belong to another process. Removes the variables
 * from the environment, so a second call returns 0. */
int wr_notify_sockets(void);

#define WR_NOTIFY_FIRST 3

/* Sends a state such as "READY=1" to the service manager. Does nothing without one. */
void wr_notify(const char *state);

#endif
