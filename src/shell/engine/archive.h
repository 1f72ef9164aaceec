/* SPDX-License-Identifier: MIT */
/* archive.h - what is kept of answers beside their lines: records of an archive (WARC), and bodies as files.
 *
 *     flight ── keep: lines of the head, body ──▶ made into pieces ──▶ posted with the line ──▶ written before the
 * commit
 *
 * A piece is a record for the archive's file, or a body for a file of its own. The store's thread writes both before
 * it commits the pages they are of (output.c tells the same of lines): after a crash the archive is cut back to what
 * was committed, and a body that was written too early is written again.
 *
 * Bounded: of each body that is being read, as much as WR_KEEP_SHARE (or, with many in flight, its part of
 * WR_KEEP_TOTAL) is in memory, and the rest in a file without a name; of a body at most WR_KEEP_BODY_MAX is kept.
 * Pieces that are made and not written yet are at most WR_PIECES_MAX in all, or a single one that is larger: then pages
 * wait, and nothing is started.
 */
#ifndef WR_SHELL_ENGINE_ARCHIVE_H
#define WR_SHELL_ENGINE_ARCHIVE_H

#include "shell/warc/warc.h"

#include <stdatomic.h>
#include <uv.h>

#define WR_KEEP_SHARE ((size_t)1 << 20)
#define WR_KEEP_TOTAL ((size_t)256 << 20)
#define WR_KEEP_BODY_MAX ((uint64_t)256 << 20)
#define WR_PIECES_MAX ((size_t)128 << 20)
#define WR_ARCHIVE_SIZE ((uint64_t)1 << 30) /* the usual size of a file */
#define WR_BODIES_EACH 8                    /* bodies of a commit that are synced one by one: each takes as long */
#define WR_BODY_NAME_MAX 160                /* bytes of a body's name, with its folder */

struct wr_output;

/* Not yet written. */
struct wr_piece {
    struct wr_piece *next;
    struct wr_buf text;
    int fd;                          /* not -1: the body is in this file, not in the text */
    struct wr_output *file;          /* not NULL: it begins this file of the archive */
    char name[WR_BODY_NAME_MAX + 1]; /* of a body; "": a record */
};

/* A flight's. */
struct wr_keep {
    bool is_on;
    bool is_head_whole;
    bool is_cut;    /* there is more of the body than may be kept */
    int trouble;    /* errno of why it could not be kept; 0: none */
    bool waits;     /* for room: it has no pieces yet */
    bool is_new;    /* the payload was not in the archive */
    int fd;         /* of a body that is not in memory; -1: none */
    uint64_t bytes; /* of the body */
    int64_t wall_at;
    struct wr_buf request, head, body;
    char name[WR_BODY_NAME_MAX + 1]; /* of the body; "": it is not saved */
    struct wr_seen_key seen;
    struct wr_piece *pieces; /* the record first, if there is one */
    size_t held;             /* bytes counted for them */
    uv_work_t work;
    int error;
};

/* The folder of bodies; but for its name the store's thread's. */
struct wr_bodies {
    char *folder; /* NULL: none */
    int fd;
    char part[32];                   /* the name of a file that is not whole: nobody else's */
    int unsynced[WR_BODIES_EACH][2]; /* files, and the folders that they are in */
    size_t count;                    /* of them */
    bool has_folder;                 /* a new one */
    bool has_more;                   /* than that: all is synced at once */
};

/* The engine's. */
struct wr_archive {
    bool is_on;
    char mark[16 + 1];  /* of the state file */
    char *prefix;       /* whole path without "-00000.warc.gz"; NULL: no archive */
    char *spill_folder; /* where files without a name go */
    uint64_t size_max;
    size_t share; /* of a body in memory */
    struct wr_warc *warc;
    uint64_t body_max;
    size_t pieces_max;
    _Atomic size_t held;     /* bytes of pieces, made or about to be */
    _Atomic bool is_refused; /* somebody waits for less of them */
    _Atomic bool has_pool;   /* libuv's threads: there was the memory for them */
    /* Under the output's lock. */
    struct wr_seen *seen;
    uint32_t number;        /* of the file that is being filled */
    uint64_t end;           /* with all that was posted */
    uint64_t begin;         /* after its first record */
    char path[4096];        /* scratch */
    struct wr_output *next; /* the file after it, which is ours and empty; NULL: none */
    uint32_t next_number;
    bool is_turning; /* the file was posted to, and is not being written to yet */
    struct wr_piece *first, *last;
    /* The store's thread's. */
    struct wr_output *file;
    struct wr_piece *writing;
    size_t written; /* of the first */
    struct wr_bodies bodies;
};

#endif
