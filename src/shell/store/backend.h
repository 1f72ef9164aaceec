/* SPDX-License-Identifier: MIT */
/* backend.h - what a database does for the store. All calls come from one thread at a time.
 *
 * Failures: WEIR_E_FULL, WEIR_E_NOMEM and WEIR_E_TIMEOUT may pass, and the transaction is tried again from its
 * beginning; all others are for good. `why` then says what happened.
 */
#ifndef WR_SHELL_STORE_BACKEND_H
#define WR_SHELL_STORE_BACKEND_H

#include "shell/store/store.h"

#define WR_BACKEND_WHY_BYTES 160
#define WR_BACKEND_MANY 128 /* reads at once */

/* The oldest texts of robots.txt, but for as many bytes as the parameter says. Those without a text cost nothing. */
#define WR_BACKEND_OLD_ROBOTS(parameter)                                                       \
    "text_bytes > 0 AND fetched_at_ms <= (SELECT max(fetched_at_ms) FROM"                      \
    " (SELECT fetched_at_ms, sum(text_bytes) OVER (ORDER BY fetched_at_ms DESC) AS bytes FROM" \
    "  robots WHERE text_bytes > 0) AS r WHERE bytes > " parameter ")"
#define WR_BACKEND_ROBOTS_BYTES "SELECT CAST(coalesce(sum(text_bytes), 0) AS bigint) FROM robots WHERE text_bytes > 0"

struct wr_backend {
    const struct wr_backend_kind *kind;
    struct wr_hash_key hash_key;
    uint64_t ignored, damaged, round_trips; /* so far, as in wr_store_stats */
    int64_t robots_room;                    /* bytes of robots.txt that fit before they have to be added up again */
    const char *place;                      /* as it is named in messages: without a password */
    char why[WR_BACKEND_WHY_BYTES];
};

struct wr_backend_kind {
    const char *name;
    const char *noun;  /* "state file", … */
    bool needs_commit; /* what is applied is seen only once it is committed: then the store does that before reads */
    bool is_shared;    /* other processes use it, and it may be away for a while */
    /* Defaults are filled in. */
    int (*open)(const struct wr_store_options *options, struct wr_backend **ret_backend);
    void (*close)(struct wr_backend *backend);
    /* One transaction: begin, apply and so on, commit; or undo, after any failure. */
    int (*begin)(struct wr_backend *backend, int64_t wall_now);
    int (*apply)(struct wr_backend *backend, const struct wr_store_change *change);
    int (*add_job)(struct wr_backend *backend, struct wr_span settings, int64_t earlier, bool joins, int64_t *ret_job);
    /* After the last apply, and before a read or the commit: changes stay where they are until then, and those that
     * tell an output's length until the commit. */
    int (*flush)(struct wr_backend *backend);
    int (*commit)(struct wr_backend *backend);
    void (*undo)(struct wr_backend *backend);
    /* After a commit: work that need not be done before it is told. */
    int (*settle)(struct wr_backend *backend);
    /* Outside of a transaction. */
    int (*read)(struct wr_backend *backend, const struct wr_store_query *query, int64_t wall_now);
    /* Several at once, of those that `reads_with_others`, in their order; if it fails no rows were given. NULL: no. */
    int (*read_many)(struct wr_backend *backend, const struct wr_store_query *const *queries, size_t count,
                     int64_t wall_now);
    bool (*reads_with_others)(const struct wr_store_query *query);
};

/* As it is stored. Up: nobody starts earlier for having been stored. */
static inline int64_t wr_backend_ms(int64_t ns)
{
    return ns <= 0 ? 0 : ns / WEIR_MILLISECOND + (ns % WEIR_MILLISECOND > 0);
}

/* How many bytes are kept of all when there are too many: fewer than may be, or they would be added up each time. */
static inline int64_t wr_backend_robots_kept(size_t robots_bytes)
{
    return (int64_t)(robots_bytes - robots_bytes / 16);
}

extern const struct wr_backend_kind wr_backend_sqlite;
extern const struct wr_backend_kind wr_backend_pg;

/* A URL up to its '?', without the password. */
void wr_pg_name(const char *url, char *ret_name, size_t name_bytes);

#endif
