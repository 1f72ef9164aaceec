/* SPDX-License-Identifier: MIT */
/* daemon_handover.h - hands a running daemon's work over to a new daemon: listening sockets,
 * connections and keys.
 *
 *     old                                      new
 *     listens at PATH (0600, peer checked)     reads its rules; an error there changes nothing
 *                                              connects
 *     L  one listening socket, for each
 *     R  no more sockets; the secret of token: keys
 *                                              P  prepare; sent twice
 *     S  a copy of the keys is at PATH.state; the second has only keys changed since the first
 *                                              loads it
 *                                              G  go
 *     stops deciding
 *     S  keys changed since, and permits in flight, are at PATH.state
 *     C  one connection and its unprocessed data, for each
 *     E  no more connections
 *                                              K  all received
 *     A  they are yours; ends                  starts
 *
 * Until it sends A the old daemon can continue as before. It does so if the new one fails or takes
 * longer than ten seconds after G. Without an A the new daemon does not start. So at most one of
 * them decides at any time. Between G and A none decides, but the old daemon then writes only the
 * keys that changed in the last second or two, however many keys there are.
 */
#ifndef WR_SERVE_DAEMON_DAEMON_HANDOVER_H
#define WR_SERVE_DAEMON_DAEMON_HANDOVER_H

#include "serve/daemon/serve_internal.h"

/* ---- the new daemon ---- */

/* Connects to the running daemon, puts its listening sockets into `listens` by address, and uses
 * its secret. Returns WEIR_E_ABSENT if no daemon listens at PATH; WEIR_E_SYSTEM on failure. */
int wr_handover_begin(struct wr_serve *serve, struct wr_http_listen_options *listens, size_t count, int *ret_fd);
/* Takes over the keys and connections; closes `fd`. After WEIR_E_SYSTEM the old daemon
 * continues. */
int wr_handover_take(struct wr_serve *serve, int fd, char *ret_why, size_t why_bytes);

/* ---- the old daemon ---- */

/* Listens at options.handover in a thread. Returns WEIR_E_SYSTEM on failure. */
int wr_handover_open(struct wr_serve *serve);
void wr_handover_close(struct wr_serve *serve);

#endif
