/* SPDX-License-Identifier: MIT */
/* control_socket.h - the path of the socket beside a state file, and the check of its peer. */
#ifndef WR_WATCH_CONTROL_CONTROL_SOCKET_H
#define WR_WATCH_CONTROL_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

struct wr_control_socket {
    char *path; /* path of the socket, STATE.sock */
    dev_t device;
    ino_t inode;
};

/* Listens at the socket of a state file, which the caller must have locked. Replaces a left-over
 * socket, but no other file. Returns WEIR_E_INVAL, WEIR_E_SYSTEM or WEIR_E_NOMEM on failure. */
int wr_control_socket_listen(struct wr_control_socket *ret_place, const char *state_path, int *ret_fd);
/* Unlinks the socket file, unless it was replaced by another. */
void wr_control_socket_remove(struct wr_control_socket *control_socket);
/* Connects to the socket of a state file. Returns WEIR_E_ABSENT or WEIR_E_SYSTEM on failure. */
int wr_control_socket_connect(const char *state_path, int *ret_fd);

/* Returns true if the peer is the same user, or root. */
bool wr_control_peer_is_ours(int fd);

#endif
