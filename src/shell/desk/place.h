/* SPDX-License-Identifier: MIT */
/* place.h - the socket beside a state file: where it is, and who may be at its other end. */
#ifndef WR_SHELL_DESK_PLACE_H
#define WR_SHELL_DESK_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

struct wr_desk_place {
    char *path; /* STATE.sock */
    dev_t device;
    ino_t inode;
};

/* Listens there; a socket that somebody left behind makes room, anything else does not: whoever calls this has the
 * state file locked. WEIR_E_INVAL, WEIR_E_SYSTEM, WEIR_E_NOMEM. */
int wr_desk_place_listen(struct wr_desk_place *ret_place, const char *state_path, int *ret_fd);
/* Takes it away, if it is still ours. */
void wr_desk_place_leave(struct wr_desk_place *place);
/* WEIR_E_ABSENT, WEIR_E_SYSTEM. */
int wr_desk_place_connect(const char *state_path, int *ret_fd);

/* The other end is this user, or root. */
bool wr_desk_peer_is_ours(int fd);

#endif
