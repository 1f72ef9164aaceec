/* SPDX-License-Identifier: MIT */
/* state.h - the inside of a store.
 *
 *     posts    ──────────────────────────┐ due: much, or old, or urgent
 *     notes    one per host, the latest ─┼──▶ batch ──▶ one transaction ──▶ done
 *     queries  ──────────────────────────┘ read after it
 *
 * All under one lock, but for the batch and the backend, which are the thread's own. A note is a post of one change
 * that is held back, and found again by its host's key until then.
 */
#ifndef WR_SHELL_STORE_STATE_H
#define WR_SHELL_STORE_STATE_H

#include "base/map.h"
#include "shell/clock/clock.h"
#include "shell/store/backend.h"

#include <pthread.h>

/* One block, with the texts behind the changes. */
struct wr_post {
    struct wr_post *next;
    size_t block_bytes;
    wr_store_done *done; /* may be NULL */
    void *context;
    bool is_hasty;    /* whoever waits does not do so for room on a disk */
    int64_t *ret_job; /* of a post that adds a job: no changes, but the settings */
    struct wr_span settings;
    int64_t earlier;
    bool joins;
    size_t count;
    struct wr_store_change changes[];
};

struct wr_posts {
    struct wr_post *first, *last;
    size_t changes, bytes;
};

struct wr_ask {
    struct wr_ask *next;
    struct wr_store_query query;
    wr_store_done *done;
    void *done_context; /* the query's, or that of who waits */
    char key[];         /* of the query */
};

struct wr_store {
    struct wr_store_options options;
    size_t path_bytes; /* of the copy, with its NUL */
    struct wr_backend *backend;
    struct wr_hash_key map_key;

    pthread_mutex_t lock;
    pthread_cond_t moved;  /* something was done; there may be room */
    struct wr_posts posts; /* in the order of posting */
    struct wr_posts notes;
    struct wr_map hosts; /* from a host's key to its note */
    struct wr_ask *asks, *last_ask;
    size_t ask_count;     /* not answered yet */
    int64_t posted_at;    /* the first of the posts */
    int64_t noted_at;     /* the first of the notes */
    size_t batch_changes; /* in the batch */
    size_t batch_bytes;
    bool is_urgent;  /* somebody waits */
    bool was_full;   /* somebody was told so */
    bool is_closing; /* nothing more will come */
    struct wr_store_stats stats;
    struct wr_histogram commit_times;
    char why[WR_BACKEND_WHY_BYTES];

    /* The thread's. */
    pthread_t thread;
    struct wr_parker parker;
    struct wr_posts batch;
    struct wr_post *applied; /* the last of the batch that is in the transaction; NULL: none is */
    bool is_open;            /* there is a transaction */
    bool has_output;         /* with the length of one */
    int64_t retry_at;        /* paused: no transaction before */
    unsigned without_memory; /* tries in a row */
    unsigned tries;          /* of a database that is away, in a row */
};

/* change.c. WEIR_E_INVAL. */
int wr_store_change_check(const struct wr_store_change *change);

/* The texts of a change: at most WR_CHANGE_SPANS, returns how many. */
#define WR_CHANGE_SPANS 5
size_t wr_store_change_spans(struct wr_store_change *change, struct wr_span *ret_spans[WR_CHANGE_SPANS]);

/* post.c */
void wr_post_free(struct wr_store *store, struct wr_post *post);
void wr_ask_free(struct wr_store *store, struct wr_ask *ask);
void wr_posts_push(struct wr_posts *posts, struct wr_post *post);
struct wr_post *wr_posts_pop(struct wr_posts *posts);
void wr_posts_move(struct wr_posts *from, struct wr_posts *to);

/* writer.c */
void *wr_store_run(void *context);

#endif
