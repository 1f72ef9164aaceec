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

struct store_fixture {
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

void rig_set_up(struct store_fixture *rig, const struct rig_backend *backend);
bool rig_set_up_shared(struct store_fixture *rig); /* on PostgreSQL; false: not installed */
void rig_tear_down(struct store_fixture *rig);
void rig_open(struct store_fixture *rig);
/* Opens a second store on the same database, as another process would. */
void rig_join(struct store_fixture *rig, struct store_fixture *ret_other);
void rig_close(struct store_fixture *rig);
void rig_reopen(struct store_fixture *rig);

/* Two processes on one PostgreSQL, and a job with this many hosts. rig_pair_set_up returns false if
 * PostgreSQL is not installed. */
struct rig_pair {
    struct store_fixture first, second;
    int64_t job;
};
bool rig_pair_set_up(struct rig_pair *pair, int hosts);
void rig_pair_tear_down(struct rig_pair *pair);

/* Runs the loop body once for every backend, with a fixture that is set up. */
struct store_fixture *rig_first(void);
struct store_fixture *rig_next(struct store_fixture *rig);
#define EACH_BACKEND(rig) for (struct store_fixture *rig = rig_first(); rig != NULL; rig = rig_next(rig))

/* ---- writing ---- */

uint64_t rig_fingerprint(const struct store_fixture *rig, const char *url);
int64_t rig_job(struct store_fixture *rig, const char *settings);

struct wr_store_change rig_found(struct store_fixture *rig, int64_t job, const char *host, const char *url,
                                 const char *parent);
struct wr_store_change rig_ended(struct store_fixture *rig, int64_t job, const char *url, bool failed,
                                 const char *verdict);
struct wr_store_change rig_retry(struct store_fixture *rig, int64_t job, const char *url, uint32_t attempts,
                                 int status);
struct wr_store_change rig_status(int64_t job, enum wr_job_status status, const char *why);
struct wr_store_change rig_output(int64_t job, const char *path, uint64_t bytes);

/* Posts one page for each of the hosts h00, h01, …; count is at most 100. */
void rig_find_hosts(struct store_fixture *rig, int64_t job, int count);

/* Returns a host record in which most fields are set. */
struct wr_store_host rig_known_host(const char *key);

/* Posts and waits; fails the test if the post fails. */
void rig_post(struct store_fixture *rig, struct wr_store_change change);
void rig_post_all(struct store_fixture *rig, const struct wr_store_change *changes, size_t count);

/* Counts the result of a post in rig->done or rig->failed. */
void rig_count(void *context, int error, const char *why);
int rig_post_later(struct store_fixture *rig, struct wr_store_change change);

/* ---- reading ---- */

/* A copy of a row and its texts. */
struct rig_row {
    struct wr_store_row row;
    char text[RIG_TEXT];
};

/* Returns all rows; the caller frees them with free(). */
struct rig_row *rig_read(struct store_fixture *rig, struct wr_store_query query, size_t *ret_count);

size_t rig_read_count(struct store_fixture *rig, struct wr_store_query query);

/* Returns a job without its texts. */
struct wr_store_job rig_look_job(struct store_fixture *rig, int64_t job);

/* Returns the record of a host without its texts; false: the store does not know the host. */
bool rig_look_host(struct store_fixture *rig, const char *key, struct wr_store_host *ret_host);

/* Returns "a,b,c", the queued URLs of the host; the caller frees it with free(). */
char *rig_queue(struct store_fixture *rig, int64_t job, const char *host);

/* Fails unless the file is intact and all counters agree. */
void rig_check(struct store_fixture *rig);

bool rig_is(struct wr_span span, const char *text);

#endif
