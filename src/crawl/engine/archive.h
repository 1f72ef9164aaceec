/* SPDX-License-Identifier: MIT */
/* archive.h - what is kept of responses beside their lines: records of a WARC archive, and bodies
 * as files.
 *
 *     fetch --> keep: header lines, body --> packed into pieces --> posted with the line
 *           --> written before the commit
 *
 * A piece is a record for the archive's file, or a body for a file of its own. The store's thread
 * writes both before it commits their pages, as output_file.c does for lines. After a crash the
 * archive is cut back to the committed length, and a body that was written too early is written
 * again.
 *
 * Bounds: a body that is being read has at most WR_CAPTURE_MEMORY_MAX bytes in memory, or its part
 * of WR_CAPTURE_MEMORY_TOTAL if many are in flight. The rest is in an unnamed file. At most
 * WR_CAPTURE_BODY_MAX bytes of a body are kept. Pieces that are not written yet take at most
 * WR_ARCHIVE_PIECES_MAX bytes in all, or one piece that is larger. Beyond that pages wait, and
 * nothing is started.
 */
#ifndef WR_CRAWL_ENGINE_ARCHIVE_H
#define WR_CRAWL_ENGINE_ARCHIVE_H

#include "http/warc/warc.h"

#include <stdatomic.h>
#include <uv.h>

#define WR_CAPTURE_MEMORY_MAX ((size_t)1 << 20)
#define WR_CAPTURE_MEMORY_TOTAL ((size_t)256 << 20)
#define WR_CAPTURE_BODY_MAX ((uint64_t)256 << 20)
#define WR_ARCHIVE_PIECES_MAX ((size_t)128 << 20)
#define WR_ARCHIVE_SIZE ((uint64_t)1 << 30) /* default size of an archive file, bytes */
/* Bodies of a commit that are synced one by one; more cost one sync of the file system. */
#define WR_BODIES_SYNC_EACH 8
#define WR_BODY_NAME_MAX 160 /* bytes of a body's file name, with its host's folder */

struct wr_output;

/* A record or a body that is not written yet. */
struct wr_archive_piece {
    struct wr_archive_piece *next;
    struct wr_buf text;
    int fd;                          /* file that holds the body instead of `text`; -1: none */
    struct wr_output *file;          /* archive file that this piece begins; NULL: none */
    char name[WR_BODY_NAME_MAX + 1]; /* file name of a body; "": the piece is a record */
};

/* The response of one fetch, as far as it is kept. */
struct wr_capture {
    bool is_on;
    bool is_head_whole;
    bool is_cut;    /* the body has more bytes than may be kept */
    int trouble;    /* errno of a failure to keep the body; 0: none */
    bool waits;     /* the fetch waits for room, and has no pieces yet */
    bool is_new;    /* the payload is not in the archive yet */
    int fd;         /* file of a body that exceeds its share of memory; -1: none */
    uint64_t bytes; /* bytes of the body */
    int64_t wall_at;
    struct wr_buf request, head, body;
    char name[WR_BODY_NAME_MAX + 1]; /* file name of the body; "": it is not saved */
    struct wr_payload_key seen;
    struct wr_archive_piece *pieces; /* pieces of this fetch; the record first, if there is one */
    size_t held;                     /* bytes that archive->held counts for this fetch */
    uv_work_t work;
    int error;
};

/* The folder of saved bodies. Only the store's thread uses it, except `folder`. */
struct wr_bodies {
    char *folder; /* path; NULL: bodies are not saved */
    int fd;
    char part[32];                        /* temporary name, unique to the state file */
    int unsynced[WR_BODIES_SYNC_EACH][2]; /* descriptors of written files, and of their folders */
    size_t count;                         /* number of entries in `unsynced` */
    bool has_folder;                      /* the folder of a host was created since the last sync */
    /* More files than `unsynced` holds: the sync covers the whole file system. */
    bool has_more;
};

/* The archive and the bodies of an engine. */
struct wr_archive {
    bool is_on;
    char mark[16 + 1];  /* hex digest that identifies the state file */
    char *prefix;       /* path without "-00000.warc.gz"; NULL: no archive */
    char *spill_folder; /* folder of the unnamed files */
    uint64_t size_max;
    size_t share; /* bytes of a body that stay in memory */
    struct wr_warc *warc;
    uint64_t body_max;
    size_t pieces_max;
    _Atomic size_t held;     /* bytes of pieces that are packed, or will be */
    _Atomic bool is_refused; /* a page waits for room; the next sync wakes the loops */
    _Atomic bool has_pool;   /* libuv's threads may be used: there was memory for them */
    /* The output's lock protects the fields from here to `last`. */
    struct wr_payload_table *seen;
    uint32_t number;        /* number of the file that is being filled */
    uint64_t end;           /* length of that file with all posted records */
    uint64_t begin;         /* length of that file's first record */
    char path[4096];        /* scratch space for path_of */
    struct wr_output *next; /* the next file, claimed and empty; NULL: none */
    uint32_t next_number;
    bool is_switching_file; /* the store's thread does not write to the current file yet */
    struct wr_archive_piece *first, *last;
    /* Only the store's thread uses the fields below. */
    struct wr_output *file;
    struct wr_archive_piece *writing;
    size_t written; /* bytes already written of the first piece in `writing` */
    struct wr_bodies bodies;
};

#endif
