/* SPDX-License-Identifier: MIT */
/* backend.h - the interface of a database to the store. Only one thread at a time calls it.
 *
 * WEIR_E_FULL, WEIR_E_NOMEM and WEIR_E_TIMEOUT are temporary: the store repeats the transaction
 * from its beginning. All other errors are permanent. After an error `why` gives the reason.
 */
#ifndef WR_CRAWL_STORE_BACKEND_H
#define WR_CRAWL_STORE_BACKEND_H

#include "crawl/store/store.h"

#define WR_BACKEND_WHY_BYTES 160
#define WR_BACKEND_READS_MAX 128 /* most queries of one read_many */

/* SQL condition for the oldest robots.txt texts, so that the rest has at most `parameter` bytes.
 * Rows without a text cost nothing. */
#define WR_BACKEND_OLD_ROBOTS(parameter)                                                       \
    "text_bytes > 0 AND fetched_at_ms <= (SELECT max(fetched_at_ms) FROM"                      \
    " (SELECT fetched_at_ms, sum(text_bytes) OVER (ORDER BY fetched_at_ms DESC) AS bytes FROM" \
    "  robots WHERE text_bytes > 0) AS r WHERE bytes > " parameter ")"
#define WR_BACKEND_ROBOTS_BYTES "SELECT CAST(coalesce(sum(text_bytes), 0) AS bigint) FROM robots WHERE text_bytes > 0"

struct wr_backend {
    const struct wr_backend_kind *kind;
    struct wr_hash_key hash_key;
    uint64_t ignored, damaged, round_trips; /* totals so far, as in struct wr_store_stats */
    /* bytes of robots.txt that fit until the sum has to be computed */
    int64_t robots_room;
    const char *place; /* name for messages, without a password */
    char why[WR_BACKEND_WHY_BYTES];
};

struct wr_backend_kind {
    const char *name;
    const char *noun;  /* word for messages: "state file" or "database" */
    bool needs_commit; /* only committed changes can be read, so the store commits before reads */
    bool is_shared;    /* other processes use it too, and it may be away for a while */
    /* All defaults in `options` are filled in. */
    int (*open)(const struct wr_store_options *options, struct wr_backend **ret_backend);
    void (*close)(struct wr_backend *backend);
    /* One transaction: begin, then apply for each change, then commit; undo after any failure. */
    int (*begin)(struct wr_backend *backend, int64_t wall_now);
    int (*apply)(struct wr_backend *backend, const struct wr_store_change *change);
    int (*add_job)(struct wr_backend *backend, struct wr_span settings, int64_t earlier, bool joins, int64_t *ret_job);
    /* Called after the last apply, before a read or the commit. Changes must stay in memory until
     * then, and WR_STORE_OUTPUT changes until the commit. */
    int (*flush)(struct wr_backend *backend);
    int (*commit)(struct wr_backend *backend);
    void (*undo)(struct wr_backend *backend);
    /* Called after a commit and the report of its posts: does work that may come later. */
    int (*settle)(struct wr_backend *backend);
    /* Called outside a transaction. */
    int (*read)(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now);
    /* Runs several queries for which `can_pipeline` is true, in their order. If it fails, no
     * rows were returned. NULL: not supported. */
    int (*read_many)(struct wr_backend *backend, const struct wr_store_query *const *queries, size_t count,
                     int64_t wall_now);
    bool (*can_pipeline)(const struct wr_store_query *query);
};

/* Converts ns to ms as stored. Rounds up, so that no request starts earlier than it should. */
static inline int64_t wr_backend_ms(int64_t ns)
{
    return ns <= 0 ? 0 : ns / WEIR_MILLISECOND + (ns % WEIR_MILLISECOND > 0);
}

/* Returns how many bytes of robots.txt to keep when there are too many. They are fewer than the
 * limit, so that the next trim is not due at once. */
static inline int64_t wr_backend_robots_kept(size_t robots_bytes)
{
    return (int64_t)(robots_bytes - robots_bytes / 16);
}

extern const struct wr_backend_kind wr_backend_sqlite;
extern const struct wr_backend_kind wr_backend_pg;

/* Writes the URL up to its '?', without the password. */
void wr_pg_name_without_password(const char *url, char *ret_name, size_t name_bytes);

#endif
