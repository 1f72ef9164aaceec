/* SPDX-License-Identifier: MIT */
/* rig.h - test fixture: a real redis-server on a Unix socket, and requests that the test waits
 * for. */
#ifndef TESTS_SHARE_RIG_H
#define TESTS_SHARE_RIG_H

#include "cluster/limit/charge.h"

#include <sys/types.h>

struct redisContext;

#define MS WEIR_MILLISECOND
#define PATIENT (20 * WEIR_SECOND) /* timeout: a loaded machine is slow, not down */

struct store {
    char folder[64], path[96];
    pid_t pid;
};

/* The store of the tests that are registered with served(). */
extern struct store store;
int open_store(void **state);
int close_store(void **state);
#define served(function) cmocka_unit_test_setup_teardown(function, open_store, close_store)

/* Starts a store in a temporary folder. Fails the test if it does not answer. */
void store_open(struct store *store);
void store_start(struct store *store);
/* Starts the server with further arguments, up to a NULL, and does not wait for it. */
void store_start_with(struct store *store, const char *const words[]);
void store_wait(const struct store *store);
void store_kill(struct store *store);
void store_close(struct store *store);

/* Sends one command, its words separated by spaces. Returns the integer of the reply, or 0. */
long long store_say(const struct store *store, const char *command);

/* Advances CLOCK_BOOTTIME only, as if the machine had been suspended. */
void machine_sleeps(int64_t seconds);

/* Returns a script that reads the time from the keys "s" and "us", which set_clock writes. The
 * caller frees it. */
char *script_on_set_clock(enum wr_redis_script script);
void set_clock(struct redisContext *redis, int64_t us);

/* Returns the text with `to` in place of the first `from`, and frees `text`. */
char *changed(char *text, const char *from, const char *to);

struct bench {
    uv_loop_t loop;
    struct wr_redis_connection *wire;
    int told;  /* number of replies and failures so far */
    int error; /* result of the last request: 0, or WEIR_E_TIMEOUT if it was missed */
    struct wr_charge_reply last;
    long long number; /* result of the last request for a membership */
};

void bench_open(struct bench *bench, const struct store *store, int64_t timeout_ns);
void bench_close(struct bench *bench);

/* Runs the loop for a moment. */
void bench_step(struct bench *bench);

/* Sends a request and runs the loop until its end. Returns the error of wr_charge_send, or
 * bench->error. */
int bench_charge(struct bench *bench, const struct wr_charge_limits *charge_limits, const struct wr_charge *charge);
int bench_seat(struct bench *bench, const char *who, const char *seats, const char *ms);

#endif
