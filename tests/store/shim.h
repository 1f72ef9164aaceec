/* SPDX-License-Identifier: MIT */
/* shim.h - a disk for SQLite that fails on demand and loses unsynced writes at a power cut. */
#ifndef WEIR_TEST_STORE_SHIM_H
#define WEIR_TEST_STORE_SHIM_H

#include "base/rng.h"

#include <stdatomic.h>
#include <stdbool.h>

struct shim {
    /* the n-th write from now and all later ones find the disk full; 0: none */
    atomic_long fail_write_at;
    atomic_bool only_main;     /* only writes to the main file fail, not those to the log */
    atomic_long fail_sync_at;  /* the n-th sync from now fails, once; 0: none */
    atomic_long writes, syncs; /* number of writes and syncs so far */
    atomic_bool is_full;       /* the disk is full until this is false */
    bool remembers;            /* records writes for shim_cut; set it before files are opened */
};
extern struct shim shim;

/* Makes this the VFS of SQLite. */
void shim_install(void);
/* Resets the shim to its state after shim_install. */
void shim_clear(void);

/* Copies all open files into `folder` as they might be after a power cut now: with everything that
 * was synced and an arbitrary part of the rest. */
void shim_cut(const char *folder, struct wr_rng *rng);

#endif
