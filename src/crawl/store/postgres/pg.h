/* SPDX-License-Identifier: MIT */
/* pg.h - the store in a PostgreSQL database that processes share: docs/internals/cluster.md.
 *
 * A transaction is collected in memory and sent as one pipeline when it is flushed: one round trip,
 * whatever its size. The commit is a second one. A call fails if the server is silent for
 * WR_PG_SILENCE_TIMEOUT_NS, or takes longer than WR_PG_CALL_TIMEOUT_NS. The next call reconnects.
 *
 * Nothing outlives a transaction on the server (prepared statements, settings), so that PgBouncer
 * can be used.
 */
#ifndef WR_CRAWL_STORE_POSTGRES_PG_H
#define WR_CRAWL_STORE_POSTGRES_PG_H

#include "base/buf.h"
#include "crawl/store/backend.h"

#include <libpq-fe.h>

#define WR_PG_VERSION 4 /* version of the tables */
#define WR_PG_SILENCE_TIMEOUT_NS (10 * WEIR_SECOND)
#define WR_PG_CALL_TIMEOUT_NS (60 * WEIR_SECOND)
#define WR_PG_PLACE_BYTES 256
#define WR_PG_NAME_BYTES 128

/* ---- parameters ---- */

#define WR_PG_PARAMS 17 /* most parameters of a statement */

/* Parameters of a statement in the binary protocol. Arrays have one dimension. */
struct wr_pg_params {
    int count;
    struct {
        char letter;
        uint32_t elements;
        struct wr_buf buf;
    } list[WR_PG_PARAMS];
};

/* Sets the type of each parameter by a letter: 'n', 'f' and 't' are arrays of integers, floats and
 * texts; 'N', 'T' and 'B' are an integer, a text and bytes. */
void wr_pg_params_init(struct wr_pg_params *ret_params, const weir_allocator *allocator, const char *letters);
void wr_pg_params_release(struct wr_pg_params *params);
void wr_pg_params_clear(struct wr_pg_params *params);

/* Sets a parameter, or appends an element if it is an array. wr_pg_add_to_pipeline reports
 * errors. */
void wr_pg_put_integer(struct wr_pg_params *params, int at, int64_t number);
void wr_pg_put_integers(struct wr_pg_params *params, int at, const int64_t *numbers, int count);
void wr_pg_put_double(struct wr_pg_params *params, int at, double number);
void wr_pg_put_bytes(struct wr_pg_params *params, int at, struct wr_span bytes);

/* ---- the backend ---- */

/* A change that waits for the flush, or a new job. */
struct wr_pg_item {
    const struct wr_store_change *change; /* the change; NULL: a new job */
    struct wr_span settings;
    int64_t earlier;
    bool joins;
    int64_t *ret_job;
};

/* Describes the result of a sent statement. */
struct wr_pg_sent_statement {
    enum wr_pg_result_kind {
        WR_PG_RESULT_NONE,
        WR_PG_RESULT_COUNT, /* the number of changes with effect, of `count` */
        WR_PG_RESULT_FOUND, /* which tasks are new; they begin at `first` in `found` */
        WR_PG_RESULT_JOB,   /* the job's id, for items[first] */
        /* which ends were refused, and how many changed a task; they begin at `first` in `ended` */
        WR_PG_RESULT_ENDED,
    } what;
    size_t first, count;
};

struct wr_pg {
    struct wr_backend backend; /* must be first */
    const weir_allocator *allocator;
    const weir_clock *clock, *wall;
    int64_t skew_ms; /* database's wall time minus ours, in whole seconds */
    /* our wall time minus the monotonic time, when the clocks were compared */
    int64_t wall_base_ms;
    const char *url;             /* the store's path */
    size_t robots_bytes;         /* same option of the store */
    PGconn *conn;                /* connection; NULL: not connected */
    unsigned turns;              /* connections that failed or were lost */
    int64_t node;                /* random id of this process in the database */
    char name[WR_PG_NAME_BYTES]; /* name of this process for users: "machine/pid" */
    int64_t lease_ns;
    /* host after which the next claim of walk_job continues, see claim.h */
    int64_t walk_job, walked_to;
    bool is_conflict;
    bool is_doubtful; /* it is unknown whether the last commit took effect */
    bool is_open;     /* the server has an open transaction */

    /* The fields from here on belong to the current transaction. */
    int64_t wall_ms;
    int64_t nonce; /* first nonce of its new jobs and reports; unchanged when it is repeated */
    uint64_t ignored;
    struct wr_pg_item *items;
    size_t item_count, item_room;
    struct wr_pg_sent_statement *sent;
    size_t sent_count, sent_room;
    const struct wr_store_task_found **found;
    size_t found_count, found_room;
    const struct wr_store_task_ended **ended;
    size_t ended_count, ended_room;
    /* leading items and ends that an unanswered commit has stored */
    size_t settled_items, settled_ends;
    char place[WR_PG_PLACE_BYTES];
};

static inline struct wr_pg *wr_pg_of(struct wr_backend *backend)
{
    return (struct wr_pg *)(void *)backend;
}

/* Makes room for one more element of an array. Returns false if there is no memory. */
bool wr_pg_grow_array(const weir_allocator *allocator, void **array, size_t *room, size_t count, size_t each);

/* ---- host_order.c ---- */

/* Starts to connect to the hosts of the URL in their order, but tries the first `turns` of them
 * last. Returns NULL if there is no memory. */
PGconn *wr_pg_connect_start(const char *url, unsigned turns, int64_t *ret_patience_ns);

unsigned wr_pg_host_count(const char *url);

/* ---- connection.c: returns the WEIR_E_ codes of backend.h; `why` has the reason
 * -------------------- */

int wr_pg_connect(struct wr_pg *pg); /* Connects unless connected. */
void wr_pg_disconnect(struct wr_pg *pg);

/* Runs statements without parameters. Drops their results. */
int wr_pg_execute(struct wr_pg *pg, const char *sql);

/* Appends a statement to the pipeline, which wr_pg_run_pipeline sends. */
int wr_pg_add_to_pipeline(struct wr_pg *pg, const char *sql, struct wr_pg_params *params);

/* Sends the pipeline and takes the results in order, up to the first error. A function that keeps a
 * result sets its pointer to NULL. */
typedef void wr_pg_on_result(void *context, size_t number, PGresult **result);
int wr_pg_run_pipeline(struct wr_pg *pg, wr_pg_on_result *take, void *context);

/* Runs one statement and returns its result, for PQclear. */
int wr_pg_query(struct wr_pg *pg, const char *sql, struct wr_pg_params *params, PGresult **ret_result);

/* Returns an integer of 1 to 8 bytes; 0 for NULL. */
int64_t wr_pg_integer(const PGresult *result, int row, int at);

#define WR_PG_RELEASE_HOSTS "UPDATE hosts SET lease_owner = 0, lease_until = '-infinity'"

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

/* ---- statements.c: puts the transaction as statements into the pipeline
 * -------------------------- */

int wr_pg_send_transaction(struct wr_pg *pg);
bool wr_pg_is_same_output(const struct wr_store_output *one, const struct wr_store_output *other);

/* ---- read.c ---- */

int wr_pg_read(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now);
int wr_pg_read_many(struct wr_backend *backend, const struct wr_store_query *const *list, size_t count,
                    int64_t wall_now);
bool wr_pg_can_pipeline(const struct wr_store_query *query);

#endif
