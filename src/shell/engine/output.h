/* SPDX-License-Identifier: MIT */
/* output.h - the file of lines, which is as long as the store says (output.c). */
#ifndef WR_SHELL_ENGINE_OUTPUT_H
#define WR_SHELL_ENGINE_OUTPUT_H

#include "base/buf.h"
#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>

struct wr_engine;
struct wr_news;

struct wr_output {
    pthread_mutex_t lock;     /* held while a line and its post are made one */
    int fd;                   /* -1: none */
    bool is_file;             /* it can be cut and synced */
    bool was_made;            /* there was none */
    _Atomic bool is_stopping; /* who does not read now is not waited for */
    char *path;               /* as the store knows it */
    uint64_t end;             /* with all lines that were posted */
    struct wr_buf lines;      /* not written yet */
    struct wr_buf writing;
    struct wr_list leased; /* lines whose posts may be refused (struct wr_leased_line) */
};

/* A line that is only to be there if the host was still ours when the post was stored. */
struct wr_leased_line {
    struct wr_list_link link;
    struct wr_engine *engine;
    struct wr_news *news; /* of the same post; NULL: none */
    uint64_t at;
    size_t bytes;
    bool is_refused; /* the store's answer */
};

/* The whole path of a file that may not be there; to be freed. NULL: no memory, or no folder. */
char *wr_output_path(const char *path);
/* Nobody else writes to it from here on. WEIR_E_SYSTEM, WEIR_E_NOMEM. */
int wr_output_open(struct wr_output *output, const char *path, const weir_allocator *allocator);
/* `has_length`: cut it back to `length`, which it must have. WEIR_E_INVAL: it has results. WEIR_E_SYSTEM. */
int wr_output_begin(struct wr_output *output, bool appends, bool has_length, uint64_t length);
/* Nothing begins: removes what was made. */
void wr_output_take_back(struct wr_output *output);
/* *ret_written is right also if it fails. WEIR_E_FULL: no room now. */
int wr_output_write(struct wr_output *output, const char *bytes, size_t count, size_t *ret_written);
/* Writes and syncs. The store calls it before a commit. */
int wr_output_sync(struct wr_output *output);
void wr_output_close(struct wr_output *output);

#endif
