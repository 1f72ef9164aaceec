/* SPDX-License-Identifier: MIT */
/* shim.h - a disk for SQLite that fails when told to, and forgets what was not synced when the power is cut. */
#ifndef WEIR_TEST_STORE_SHIM_H
#define WEIR_TEST_STORE_SHIM_H

#include "base/rng.h"

#include <stdatomic.h>
#include <stdbool.h>

struct shim {
    atomic_long fail_write_at; /* the n-th write from now finds the disk full, and all after it; 0: none */
    atomic_bool only_main;     /* of the main file, not of the log */
    atomic_long fail_sync_at;  /* the n-th sync from now fails, once; 0: none */
    atomic_long writes, syncs; /* so far */
    atomic_bool is_full;       /* the disk is full until this is false */
    bool remembers;            /* for shim_cut; set it before files are opened */
};
extern struct shim shim;

/* From now on SQLite opens its files here. */
void shim_install(void);
/* As after shim_install. */
void shim_clear(void);

/* Copies all open files into `folder` as they might be after a power cut now: with what was synced, and any part of
 * what was not. */
void shim_cut(const char *folder, struct wr_rng *rng);

#endif
