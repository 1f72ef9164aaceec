/* SPDX-License-Identifier: MIT */
/* origin.h - an honest web server for tests: answers as a function says, and logs when what arrived.
 *
 *     static struct origin_reply reply(void *context, const struct origin_request *request)
 *     {
 *         return (struct origin_reply){.status = request->number == 2 ? 429 : 200, .fields = "Retry-After: 1\r\n"};
 *     }
 *     struct origin *origin = origin_new(reply, NULL, NULL);
 *     … http://127.0.0.1:origin_port(origin)/ …
 *     origin_request(origin, 0, &request);
 *     origin_free(origin);
 *
 * A thread for each connection; connections stay open. What goes wrong here fails the test. For what no honest server
 * does there is hostile.h.
 */
#ifndef WEIR_TEST_ORIGIN_H
#define WEIR_TEST_ORIGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weir/time.h>

struct origin_request {
    int number;      /* of all to this origin, from 0 */
    int64_t at;      /* when its first byte came, by weir_clock_monotonic and the kernel's word */
    int64_t done_at; /* when its answer began to be written; 0: not yet */
    int64_t told_at; /* when all of it was; 0: not yet */
    char method[16];
    char path[1024];
    char text[4096]; /* the head as it came */
};

struct origin_reply {
    int status;                /* 0: 200 */
    const char *fields;        /* further ones, each with CRLF; NULL: none */
    const char *body;          /* NULL: "hello\n" */
    int64_t delay_ns;          /* before the answer */
    const atomic_bool *may_go; /* before the answer: until it is true. NULL: at once */
    int64_t stall_ns;          /* between head and body */
    bool closes;               /* the connection, without saying so */
    const char *raw;           /* instead of all that: these bytes, and then the connection is closed */
};

typedef struct origin_reply origin_answer(void *context, const struct origin_request *request);

struct origin;

/* Listens at `address`, NULL: 127.0.0.1. The function is called from several threads, with a lock held. */
struct origin *origin_new(origin_answer *answer, void *context, const char *address);

int origin_port(const struct origin *origin);

int origin_requests(struct origin *origin);

/* The n-th, from 0. Fails the test if there is none. */
struct origin_request origin_request(struct origin *origin, int n);

/* How many of them asked for this path. */
int origin_asked(struct origin *origin, const char *path);

/* Connections so far, and those of them that the other side has not closed yet. */
int origin_connections(struct origin *origin);
int origin_open_connections(struct origin *origin);

/* The least time between two arrivals, over all. */
int64_t origin_least_gap(struct origin *origin);

/* The most requests that were under way at a time. */
int origin_most_at_once(struct origin *origin);

void origin_free(struct origin *origin);

#endif
