/* SPDX-License-Identifier: MIT */
/* handover.h - a daemon gives all it has to the next one: sockets that listen, connections, and what it knows of
 * callers.
 *
 *     old                                      new
 *     listens at PATH (0600, peer checked)     reads its rules: if they are wrong, nothing has happened
 *                                              connects
 *     L  each socket that listens
 *     R  these are all
 *                                              G  go
 *     stops deciding, saves its state
 *     S  the state is at PATH.state
 *     C  each connection, and what was read of it
 *     E  these are all
 *                                              K  I have them
 *     A  they are yours; ends                  starts
 *
 * Until it has said A the old one can go on as if nothing had been, and does so if the new one fails or takes longer
 * than ten seconds; without an A the new one does not start. So at any moment at most one of them decides.
 */
#ifndef WR_SHELL_SERVE_HANDOVER_H
#define WR_SHELL_SERVE_HANDOVER_H

#include "shell/serve/inside.h"

/* ---- the new one ---- */

/* Sockets for the addresses of options.http.listens that the old one has are put there. WEIR_E_ABSENT: nobody is at
 * PATH. WEIR_E_SYSTEM. */
int wr_handover_begin(const char *path, struct wr_http_listen *listens, size_t count, int *ret_fd);
/* State and connections; closes `fd`. WEIR_E_SYSTEM: the old one goes on. */
int wr_handover_take(struct wr_serve *serve, int fd, char *ret_why, size_t why_bytes);

/* ---- the old one ---- */

/* Listens at options.handover in a thread of its own. WEIR_E_SYSTEM, WEIR_E_INVAL. */
int wr_handover_open(struct wr_serve *serve);
void wr_handover_close(struct wr_serve *serve);

#endif
