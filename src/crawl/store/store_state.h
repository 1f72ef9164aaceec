/* SPDX-License-Identifier: MIT */
/* store_state.h - the internals of a store: its queues and its thread's state.
 *
 *     posts    --------------------------+  when due: many, or old, or urgent
 *     notes    one per host, the latest -+--> batch --> one transaction --> done
 *     queries  --------------------------+  read after it
 *
 * The lock protects everything except the batch and the backend, which only the thread uses. A note
 * is a post of one change that is held back. Until it is due it is found by its host's key.
 */
#ifndef WR_CRAWL_STORE_STORE_STATE_H
#define WR_CRAWL_STORE_STORE_STATE_H

#include "base/map.h"
#include "crawl/store/backend.h"
#include "limiter/clock/clock.h"

#include <pthread.h>

/* A post: one memory block that also holds the texts of its changes. */
struct wr_post {
    struct wr_post *next;
    size_t block_bytes;
    wr_store_done *done; /* function to call when the post is done; may be NULL */
    void *context;
    bool is_hasty; /* the caller waits, but not for room on a disk */
    /* result of a post that adds a job; such a post has settings and no changes */
    int64_t *ret_job;
    struct wr_span settings;
    int64_t earlier;
    bool joins;
    size_t count;
    struct wr_store_change changes[];
};

struct wr_post_queue {
    struct wr_post *first, *last;
    size_t changes, bytes;
};

struct wr_store_read_request {
    struct wr_store_read_request *next;
    struct wr_store_query query;
    wr_store_done *done;
    void *done_context; /* the query's context, or the waiting caller's */
    char key[];         /* copy of the query's key */
};

struct wr_store {
    struct wr_store_options options;
    size_t path_bytes; /* bytes of the copied path with its NUL */
    struct wr_backend *backend;
    struct wr_hash_key map_key;

    pthread_mutex_t lock;
    pthread_cond_t moved;       /* signalled on progress, such as room in the queue */
    struct wr_post_queue posts; /* queue of posts, in the order of posting */
    struct wr_post_queue notes;
    struct wr_map hosts; /* notes by their host's key */
    struct wr_store_read_request *asks, *last_ask;
    size_t ask_count;     /* unanswered queries */
    int64_t posted_at;    /* time of the oldest post */
    int64_t noted_at;     /* time of the oldest note */
    size_t batch_changes; /* changes in the batch */
    size_t batch_bytes;
    bool is_urgent;  /* a caller waits: commit at once */
    bool was_full;   /* a caller got WEIR_E_FULL and has not been told of room yet */
    bool is_closing; /* no more posts will come */
    struct wr_store_stats stats;
    struct wr_histogram commit_times;
    char why[WR_BACKEND_WHY_BYTES];

    /* Only the store's thread uses the fields from here on. */
    pthread_t thread;
    struct wr_parker parker;
    struct wr_post_queue batch;
    struct wr_post *applied; /* last post of the batch that is in the transaction; NULL: none */
    bool is_open;            /* a transaction is open */
    bool has_output;         /* the transaction has a WR_STORE_OUTPUT */
    int64_t retry_at;        /* while paused: time of the next attempt */
    unsigned without_memory; /* consecutive failures for lack of memory */
    unsigned tries;          /* consecutive failures to reach the database */
};

/* change.c. Returns WEIR_E_INVAL if a text or a number of the change is invalid. */
int wr_store_change_check(const struct wr_store_change *change);

/* Gives pointers to the texts of a change, at most WR_CHANGE_SPANS. Returns their number. */
#define WR_CHANGE_SPANS 5
size_t wr_store_change_spans(struct wr_store_change *change, struct wr_span *ret_spans[WR_CHANGE_SPANS]);

/* post.c */
void wr_post_free(struct wr_store *store, struct wr_post *post);
void wr_store_read_request_free(struct wr_store *store, struct wr_store_read_request *ask);
void wr_post_queue_push(struct wr_post_queue *posts, struct wr_post *post);
struct wr_post *wr_post_queue_pop(struct wr_post_queue *posts);
void wr_post_queue_move(struct wr_post_queue *from, struct wr_post_queue *to);

/* writer.c */
void *wr_store_thread_main(void *context);

#endif
