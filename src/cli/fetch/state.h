/* SPDX-License-Identifier: MIT */
/* state.h - what weir fetch has learned of hosts, in a file that outlives it.
 *
 * One line of text for each host: its pace as settled on, and the time before which it wants no request. The file is
 * written anew beside itself and takes its own place, so it is whole at any instant; soon after a host has named a
 * time, every few seconds, and at the end. One process has it at a time. What is damaged or not ours is refused and
 * left alone.
 */
#ifndef WR_CLI_FETCH_STATE_H
#define WR_CLI_FETCH_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <weir/pace.h>

#include "base/map.h"

struct wr_state {
    char *path, *new_path;
    int lock_fd;
    weir_pacer *pacer;
    pthread_t saver;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_urgent, is_over; /* under the lock */
    /* The saver's, while it runs. */
    struct wr_hash_key hash_key;
    struct wr_map hosts;
    bool is_dirty; /* the file does not have what is in `hosts` */
    bool has_complained;
};

/* Locks and reads. False after a complaint. */
bool wr_state_open(struct wr_state *ret_state, const char *path);

/* A listener for the pacer: a host that names a time is written down at once. */
void wr_state_listen(void *context, const weir_pace_event *event);

/* Tells the pacer what is known, and writes down what it learns from here on. False after a complaint. */
bool wr_state_start(struct wr_state *state, weir_pacer *pacer);

/* Writes the last of it, if it was started, and lets go. False, after a complaint, if it could not be written. */
bool wr_state_close(struct wr_state *state);

#endif
