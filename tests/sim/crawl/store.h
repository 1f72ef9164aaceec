/* SPDX-License-Identifier: MIT */
/* store.h - a simulated store. Changes are committed later and in order. A crash loses those that
 * are not committed. */
#ifndef WEIR_TEST_CRAWL_STORE_H
#define WEIR_TEST_CRAWL_STORE_H

#include "sim/crawl/web.h"

#include <weir/pace.h>

#define STORE_ROWS 8192
#define STORE_OPS 4096
#define STORE_JOBS 3

struct store_row {
    uint64_t fingerprint;
    uint32_t job, host, depth, hops;
    char url[WEB_URL];
    bool is_committed; /* the insertion is committed */
    bool has_ended, end_committed, failed;
    bool is_gone; /* lost in a crash */
    /* State for the laws: */
    bool flies, was_page;
    uint32_t sends;
    int64_t came_at; /* time of arrival in a window */
};

/* Stored values of one host. */
struct store_host {
    bool has_memory;
    weir_pace_memory memory;
    struct {
        bool is_known, has_rules;
        char text[WEB_URL];
        int64_t wall_at;
    } robots[2];
};

struct store_op {
    int64_t at; /* time of the commit */
    enum {
        STORE_INSERT,
        STORE_END,
        STORE_HOST
    } kind;
    uint32_t row, host;
    struct store_host known;
};

struct store {
    struct store_row rows[STORE_ROWS];
    uint32_t count;
    struct store_op ops[STORE_OPS]; /* ring buffer */
    uint32_t first, waiting;
    int64_t last_at;
    uint32_t open[STORE_JOBS + 1]; /* rows of each job that have not ended */
    struct store_host posted[WEB_HOSTS_MAX], committed[WEB_HOSTS_MAX];
};

/* Returns the row of a fingerprint, or UINT32_MAX. */
uint32_t store_find(const struct store *store, uint32_t job, uint64_t fingerprint);
/* Returns whether the row is new. *ret_row is the row in both cases. */
bool store_insert(struct store *store, const struct store_row *row, int64_t commit_at, uint32_t *ret_row);
void store_end(struct store *store, uint32_t row, bool failed, int64_t commit_at);
/* Posts the host with its values in `posted`. */
void store_host(struct store *store, uint32_t host, int64_t commit_at);
void store_commit(struct store *store, int64_t now);
void store_crash(struct store *store);

/* Returns the number of committed rows that have not ended. */
uint32_t store_queued(const struct store *store, uint32_t job, uint32_t host);

#endif
