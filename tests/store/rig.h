/* SPDX-License-Identifier: MIT */
/* rig.h - test fixture: stores of every backend, each in a temporary folder. */
#ifndef WEIR_TEST_STORE_RIG_H
#define WEIR_TEST_STORE_RIG_H

#include "crawl/store/store.h"
#include "lib/test.h"

#include <stdatomic.h>

#define RIG_PATH 256
#define RIG_TEXT 8300

/* A backend. Every backend must pass the tests of the contract. */
struct rig_backend {
    const char *name;
    const struct wr_backend_kind *kind;
};
extern const struct rig_backend rig_backends[];
extern const size_t rig_backend_count;

struct rig {
    const struct rig_backend *backend;
    char folder[RIG_PATH];
    char path[RIG_PATH + 16];        /* path of the state file, or the URL of the database */
    char schema[32];                 /* name of the schema in PostgreSQL */
    struct wr_store_options options; /* options of the store; change them between set-up and open */
    struct wr_store *store;
    atomic_int done, failed; /* results of posts by rig_post_later */
    atomic_int paused, rooms, syncs, sync_error;
    char why[200]; /* reason of the last failed post */
};

void rig_set_up(struct rig *rig, const struct rig_backend *backend);
bool rig_set_up_shared(struct rig *rig); /* on PostgreSQL; false: not installed */
void rig_tear_down(struct rig *rig);
void rig_open(struct rig *rig);
/* Opens a second store on the same database, as another process would. */
void rig_join(struct rig *rig, struct rig *ret_other);
void rig_close(struct rig *rig);
void rig_reopen(struct rig *rig);

/* Two processes on one PostgreSQL, and a job with this many hosts. rig_pair_set_up returns false if
 * PostgreSQL is not installed. */
struct rig_pair {
    struct rig first, second;
    int64_t job;
};
bool rig_pair_set_up(struct rig_pair *pair, int hosts);
void rig_pair_tear_down(struct rig_pair *pair);

/* Runs the loop body once for every backend, with a fixture that is set up. */
struct rig *rig_first(void);
struct rig *rig_next(struct rig *rig);
#define EACH_BACKEND(rig) for (struct rig *rig = rig_first(); rig != NULL; rig = rig_next(rig))

/* ---- writing ---- */

uint64_t rig_fingerprint(const struct rig *rig, const char *url);
int64_t rig_job(struct rig *rig, const char *settings);

struct wr_store_change rig_found(struct rig *rig, int64_t job, const char *host, const char *url, const char *parent);
struct wr_store_change rig_ended(struct rig *rig, int64_t job, const char *url, bool failed, const char *verdict);
struct wr_store_change rig_retry(struct rig *rig, int64_t job, const char *url, uint32_t attempts, int status);
struct wr_store_change rig_status(int64_t job, enum wr_job_status status, const char *why);
struct wr_store_change rig_output(int64_t job, const char *path, uint64_t bytes);

/* Posts one page for each of the hosts h00, h01, …; count is at most 100. */
void rig_find_hosts(struct rig *rig, int64_t job, int count);

/* Returns a host record in which most fields are set. */
struct wr_store_host rig_known_host(const char *key);

/* Posts and waits; fails the test if the post fails. */
void rig_post(struct rig *rig, struct wr_store_change change);
void rig_post_all(struct rig *rig, const struct wr_store_change *changes, size_t count);

/* Counts the result of a post in rig->done or rig->failed. */
void rig_count(void *context, int error, const char *why);
int rig_post_later(struct rig *rig, struct wr_store_change change);

/* ---- reading ---- */

/* A copy of a row and its texts. */
struct rig_row {
    struct wr_store_row row;
    char text[RIG_TEXT];
};

/* Returns all rows; the caller frees them with free(). */
struct rig_row *rig_read(struct rig *rig, struct wr_store_query query, size_t *ret_count);

size_t rig_read_count(struct rig *rig, struct wr_store_query query);

/* Returns a job without its texts. */
struct wr_store_job rig_look_job(struct rig *rig, int64_t job);

/* Returns the record of a host without its texts; false: the store does not know the host. */
bool rig_look_host(struct rig *rig, const char *key, struct wr_store_host *ret_host);

/* Returns "a,b,c", the queued URLs of the host; the caller frees it with free(). */
char *rig_queue(struct rig *rig, int64_t job, const char *host);

/* Fails unless the file is intact and all counters agree. */
void rig_check(struct rig *rig);

bool rig_is(struct wr_span span, const char *text);

#endif
