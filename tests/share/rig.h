/* SPDX-License-Identifier: MIT */
/* rig.h - a real redis-server on a Unix socket, and asks that are waited for. */
#ifndef TESTS_SHARE_RIG_H
#define TESTS_SHARE_RIG_H

#include "cluster/limit/charge.h"

#include <sys/types.h>

struct redisContext;

#define MS WEIR_MILLISECOND
#define PATIENT (20 * WEIR_SECOND) /* a loaded machine is slow, not down */

struct store {
    char folder[64], path[96];
    pid_t pid;
};

/* The store of a test that is served. */
extern struct store store;
int open_store(void **state);
int close_store(void **state);
#define served(function) cmocka_unit_test_setup_teardown(function, open_store, close_store)

/* A store in a folder of its own. Fails the test if it does not come up. */
void store_open(struct store *store);
void store_start(struct store *store);
/* With these words after its own, up to a NULL; not waited for. */
void store_start_with(struct store *store, const char *const words[]);
void store_wait(const struct store *store);
void store_kill(struct store *store);
void store_close(struct store *store);

/* One command by redis-cli's protocol, words separated by spaces; the integer it answers, or 0. */
long long store_say(const struct store *store, const char *command);

/* Every clock but that of the time since the machine began stands still meanwhile. */
void machine_sleeps(int64_t seconds);

/* A script that reads the time from the keys "s" and "us", which set_clock writes. To be freed. */
char *script_on_set_clock(enum wr_redis_script script);
void set_clock(struct redisContext *redis, int64_t us);

/* The text with `to` in place of the first `from`; `text` is freed. */
char *changed(char *text, const char *from, const char *to);

struct bench {
    uv_loop_t loop;
    struct wr_redis_connection *wire;
    int told;  /* how many asks were */
    int error; /* of the last: 0, or WEIR_E_TIMEOUT if missed */
    struct wr_charge_reply last;
    long long number; /* or that, if it is one */
};

void bench_open(struct bench *bench, const struct store *store, int64_t timeout_ns);
void bench_close(struct bench *bench);

/* Runs the loop for a moment. */
void bench_step(struct bench *bench);

/* Sends and runs the loop until it is told. Returns what wr_charge_send does, or bench->error. */
int bench_charge(struct bench *bench, const struct wr_charge_limits *charge_limits, const struct wr_charge *charge);
int bench_seat(struct bench *bench, const char *who, const char *seats, const char *ms);

#endif
