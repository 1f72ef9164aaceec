/* SPDX-License-Identifier: MIT */
/* pace_file.h - keeps in a file what weir fetch has learned about hosts.
 *
 * The file has one line of text per host: its learned pace, and the time before which it must not
 * be asked. It is written to a new file that replaces the old one, so it is complete at any time:
 * soon after a host has named a time, every few seconds, and at the end. Only one process uses it
 * at a time. A damaged file or one of another program is refused and left unchanged.
 */
#ifndef WR_CLI_FETCH_PACE_FILE_H
#define WR_CLI_FETCH_PACE_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <weir/pace.h>

#include "base/map.h"

struct wr_pace_file {
    char *path, *new_path;
    int lock_fd;
    weir_pacer *pacer;
    pthread_t saver;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_urgent, is_over; /* protected by the lock */
    /* The fields below belong to the saver thread while it runs. */
    struct wr_hash_key hash_key;
    struct wr_map hosts;
    bool is_dirty; /* `hosts` has changes that the file lacks */
    bool has_complained;
};

/* Locks and reads the file. Returns false after printing an error. */
bool wr_pace_file_open(struct wr_pace_file *ret_state, const char *path);

/* Listener of the pacer: saves soon after a host has named a time or its circuit breaker has
 * changed. */
void wr_pace_file_on_event(void *context, const weir_pace_event *event);

/* Loads the hosts into the pacer and starts to save what it learns. Returns false after printing an
 * error. */
bool wr_pace_file_start(struct wr_pace_file *state, weir_pacer *pacer);

/* Saves the last changes, if saving was started, and frees the state. Returns false after printing
 * an error if they could not be written. */
bool wr_pace_file_close(struct wr_pace_file *state);

#endif
