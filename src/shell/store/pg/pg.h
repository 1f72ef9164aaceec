/* SPDX-License-Identifier: MIT */
/* pg.h - the store in a PostgreSQL database, which other processes use as well: docs/internals/cluster.md.
 *
 * A transaction is gathered here, and sent as one pipeline when it is flushed: one round trip, whatever its size; the
 * commit is a second one. No call waits longer than WR_PG_SILENCE_NS for a server that says nothing, nor longer than
 * WR_PG_LONGEST_NS for one that says little. A connection that was lost is made again by the next call that needs one.
 *
 * Nothing outlives a transaction on the server (prepared statements, settings), so PgBouncer may stand in between.
 */
#ifndef WR_SHELL_STORE_PG_PG_H
#define WR_SHELL_STORE_PG_PG_H

#include "base/buf.h"
#include "shell/store/backend.h"

#include <libpq-fe.h>

#define WR_PG_VERSION 4 /* of the tables */
#define WR_PG_SILENCE_NS (10 * WEIR_SECOND)
#define WR_PG_LONGEST_NS (60 * WEIR_SECOND)
#define WR_PG_PLACE_BYTES 256
#define WR_PG_NAME_BYTES 128

/* ---- parameters ---- */

#define WR_PG_PARAMS 17 /* at most */

/* Binary, as the protocol has it. An array is of one dimension. */
struct wr_pg_params {
    int count;
    struct {
        char letter;
        uint32_t elements;
        struct wr_buf buf;
    } list[WR_PG_PARAMS];
};

/* A letter for each: 'n' an array of whole numbers, 'f' of floats, 't' of texts; 'N', 'T' and 'B' one number, text and
 * string of bytes. */
void wr_pg_params_init(struct wr_pg_params *ret_params, const weir_allocator *allocator, const char *letters);
void wr_pg_params_release(struct wr_pg_params *params);
void wr_pg_params_clear(struct wr_pg_params *params);

/* The value, or one more of the array. What fails is told when it is sent. */
void wr_pg_put_whole(struct wr_pg_params *params, int at, int64_t number);
void wr_pg_put_wholes(struct wr_pg_params *params, int at, const int64_t *numbers, int count);
void wr_pg_put_real(struct wr_pg_params *params, int at, double number);
void wr_pg_put_bytes(struct wr_pg_params *params, int at, struct wr_span bytes);

/* ---- the backend ---- */

/* A change that waits for the flush, or a new job. */
struct wr_pg_item {
    const struct wr_store_change *change; /* NULL: a job */
    struct wr_span settings;
    int64_t earlier;
    bool joins;
    int64_t *ret_job;
};

/* What an answer will be about. */
struct wr_pg_sent {
    enum wr_pg_answer {
        WR_PG_NOTHING,
        WR_PG_COUNT, /* how many of `count` changed something */
        WR_PG_FOUND, /* which tasks were new: those from `first` on in `found` */
        WR_PG_JOB,   /* its number: `first` in items */
        WR_PG_ENDED, /* of those from `first` on in `ended`: which are refused, by number; and how many changed
                        something */
    } what;
    size_t first, count;
};

struct wr_pg {
    struct wr_backend backend; /* first */
    const weir_allocator *allocator;
    const weir_clock *clock, *wall;
    int64_t skew_ms;             /* the database's wall time less ours, in whole seconds */
    int64_t wall_base_ms;        /* our wall time less that of the monotonic clock, when they were compared */
    const char *url;             /* the store's */
    size_t robots_bytes;         /* the same */
    PGconn *conn;                /* NULL: there is none */
    unsigned turns;              /* connections that failed or were lost */
    int64_t node;                /* this process, among those that use the database */
    char name[WR_PG_NAME_BYTES]; /* and for people: "machine/pid" */
    int64_t lease_ns;
    int64_t walk_job, walked_to; /* claims of this job go on after this host: claim.h */
    bool is_conflict;
    bool is_doubtful; /* nobody knows whether the last commit was carried out */
    bool is_open;     /* there is a transaction on the server */

    /* The transaction. */
    int64_t wall_ms;
    int64_t nonce; /* and those after it: of its jobs and reports. The same when it is tried again */
    uint64_t ignored;
    struct wr_pg_item *items;
    size_t item_count, item_room;
    struct wr_pg_sent *sent;
    size_t sent_count, sent_room;
    const struct wr_store_found **found;
    size_t found_count, found_room;
    const struct wr_store_ended **ended;
    size_t ended_count, ended_room;
    size_t settled_items, settled_ends; /* the first so many were carried out by a commit that was not answered */
    char place[WR_PG_PLACE_BYTES];
};

static inline struct wr_pg *wr_pg_of(struct wr_backend *backend)
{
    return (struct wr_pg *)(void *)backend;
}

/* One more element of an array that grows. False: no memory. */
bool wr_pg_grow(const weir_allocator *allocator, void **array, size_t *room, size_t count, size_t each);

/* ---- dial.c ---- */

/* Begins to connect, to the hosts of the URL in their order but for the first `turns` of them, which come last. NULL:
 * no memory. */
PGconn *wr_pg_dial(const char *url, unsigned turns, int64_t *ret_patience_ns);

unsigned wr_pg_host_count(const char *url);

/* ---- wire.c: WEIR_E_ codes as of backend.h; `why` says what happened ---- */

int wr_pg_connect(struct wr_pg *pg); /* unless it is */
void wr_pg_drop(struct wr_pg *pg);

/* Some statements without parameters; what they answer is dropped. */
int wr_pg_run(struct wr_pg *pg, const char *sql);

/* Into the pipeline, which is sent by wr_pg_exchange. */
int wr_pg_send(struct wr_pg *pg, const char *sql, struct wr_pg_params *params);

/* Sends all, and takes the answers in their order; after the first that fails no more is taken. Who keeps a result puts
 * NULL in its place. */
typedef void wr_pg_take(void *context, size_t number, PGresult **result);
int wr_pg_exchange(struct wr_pg *pg, wr_pg_take *take, void *context);

/* One statement, and its answer, for PQclear. */
int wr_pg_ask(struct wr_pg *pg, const char *sql, struct wr_pg_params *params, PGresult **ret_result);

/* A whole number of 1 to 8 bytes; 0 for NULL. */
int64_t wr_pg_whole(const PGresult *result, int row, int at);

#define WR_PG_RELEASE "UPDATE hosts SET lease_owner = 0, lease_until = '-infinity'"

/* ---- schema.c ---- */

int wr_pg_open(const struct wr_store_options *options, struct wr_backend **ret_backend);
void wr_pg_close(struct wr_backend *backend);

/* ---- write.c ---- */

int wr_pg_begin(struct wr_backend *backend, int64_t wall_now);
int wr_pg_apply(struct wr_backend *backend, const struct wr_store_change *change);
int wr_pg_add_job(struct wr_backend *backend, struct wr_span settings, int64_t earlier, bool joins, int64_t *ret_job);
int wr_pg_flush(struct wr_backend *backend);
int wr_pg_commit(struct wr_backend *backend);
void wr_pg_undo(struct wr_backend *backend);
int wr_pg_settle(struct wr_backend *backend);

/* ---- gather.c: the transaction as statements, into the pipeline ---- */

int wr_pg_gather(struct wr_pg *pg);
bool wr_pg_is_same_output(const struct wr_store_output *one, const struct wr_store_output *other);

/* ---- read.c ---- */

int wr_pg_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now);
int wr_pg_read_many(struct wr_backend *backend, const struct wr_store_query *const *list, size_t count,
                    int64_t wall_now);
bool wr_pg_reads_with_others(const struct wr_store_query *query);

#endif
