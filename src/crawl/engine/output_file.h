/* SPDX-License-Identifier: MIT */
/* output_file.h - the output file of lines. The store knows its committed length
 * (output_file.c). */
#ifndef WR_CRAWL_ENGINE_OUTPUT_FILE_H
#define WR_CRAWL_ENGINE_OUTPUT_FILE_H

#include "base/buf.h"
#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>

struct wr_engine;
struct wr_url_message;

struct wr_output {
    pthread_mutex_t lock;     /* held while a line gets its place and is posted */
    int fd;                   /* -1: no output */
    bool is_file;             /* a regular file, which can be cut and synced */
    bool was_made;            /* this process created the file */
    _Atomic bool is_stopping; /* do not wait for a slow reader any more */
    char *path;               /* absolute path, by which the store knows the file */
    uint64_t end;             /* length of the file with all posted lines */
    struct wr_buf lines;      /* lines that are not being written yet */
    struct wr_buf writing;
    struct wr_list leased; /* lines whose posts may be refused: struct wr_leased_line */
};

/* A line that is blanked if the lease of its host was lost before its post was stored. */
struct wr_leased_line {
    struct wr_list_link link;
    struct wr_engine *engine;
    struct wr_url_message *url_message; /* URLs posted with the line; NULL: none */
    uint64_t at;
    size_t bytes;
    bool is_refused; /* set by the store: the lease was lost */
};

/* Returns the absolute path of a file that need not exist; the caller frees it. Returns NULL if
 * memory is short or the folder does not exist. */
char *wr_output_path(const char *path);
/* Opens and locks the file: no other process writes to it from here on. Returns 0, WEIR_E_SYSTEM,
 * WEIR_E_NOMEM, or WEIR_E_FULL if the disk is full. */
int wr_output_open(struct wr_output *output, const char *path, const weir_allocator *allocator);
/* Sets where the next line goes. `has_length`: cuts the file back to `length`; it must not be
 * shorter. Returns WEIR_E_INVAL if the file has lines and neither flag is set, or WEIR_E_SYSTEM. */
int wr_output_begin(struct wr_output *output, bool appends, bool has_length, uint64_t length);
/* Removes the file if it was created here: the crawl could not start. */
void wr_output_remove_new(struct wr_output *output);
/* Writes bytes; sets *ret_written on errors, too. Returns 0, WEIR_E_FULL or WEIR_E_SYSTEM. */
int wr_output_write(struct wr_output *output, const char *bytes, size_t count, size_t *ret_written);
/* Writes the posted lines and syncs the file. The store calls it before each commit. */
int wr_output_sync(struct wr_output *output);
void wr_output_close(struct wr_output *output);

#endif
