/* SPDX-License-Identifier: MIT */
/* handover.h - a daemon gives all it has to the next one: sockets that listen, connections, and what it knows of
 * callers.
 *
 *     old                                      new
 *     listens at PATH (0600, peer checked)     reads its rules: if they are wrong, nothing has happened
 *                                              connects
 *     L  each socket that listens
 *     R  these are all, and the secret of token: keys
 *                                              P  prepare; twice
 *     S  a copy of its keys is at PATH.state, the second time of those that have changed since
 *                                              loads it
 *                                              G  go
 *     stops deciding
 *     S  what has changed since, and what is in flight, is at PATH.state
 *     C  each connection, and what was read of it
 *     E  these are all
 *                                              K  I have them
 *     A  they are yours; ends                  starts
 *
 * Until it has said A the old one can go on as if nothing had been, and does so if the new one fails or takes longer
 * than ten seconds from G on; without an A the new one does not start. So at any moment at most one of them decides.
 * Nothing is decided between G and A: however many keys there are, only those of the last second or two are written
 * and read in that time.
 */
#ifndef WR_SHELL_SERVE_HANDOVER_H
#define WR_SHELL_SERVE_HANDOVER_H

#include "shell/serve/inside.h"

/* ---- the new one ---- */

/* Sockets for the addresses of options.http.listens that the old one has are put there, and its secret is taken.
 * WEIR_E_ABSENT: nobody is at PATH. WEIR_E_SYSTEM. */
int wr_handover_begin(struct wr_serve *serve, struct wr_http_listen *listens, size_t count, int *ret_fd);
/* State and connections; closes `fd`. WEIR_E_SYSTEM: the old one goes on. */
int wr_handover_take(struct wr_serve *serve, int fd, char *ret_why, size_t why_bytes);

/* ---- the old one ---- */

/* Listens at options.handover in a thread of its own. WEIR_E_SYSTEM, WEIR_E_INVAL. */
int wr_handover_open(struct wr_serve *serve);
void wr_handover_close(struct wr_serve *serve);

#endif
