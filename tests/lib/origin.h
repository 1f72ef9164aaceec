/* SPDX-License-Identifier: MIT */
/* origin.h - a well-behaved web server for tests: a function returns the responses, and each
 * request is logged with its time.
 *
 *     static struct origin_reply reply(void *context, const struct origin_request *request)
 *     {
 *         return (struct origin_reply){.status = request->number == 2 ? 429 : 200,
 *                                      .fields = "Retry-After: 1\r\n"};
 *     }
 *     struct origin *origin = origin_new(reply, NULL, NULL);
 *     ... http://127.0.0.1:origin_port(origin)/ ...
 *     request = origin_request(origin, 0);
 *     origin_free(origin);
 *
 * Each connection has a thread and stays open. An error of the server fails the test. hostile.h is
 * a server that misbehaves.
 */
#ifndef WEIR_TEST_ORIGIN_H
#define WEIR_TEST_ORIGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weir/time.h>

struct origin_request {
    int number;      /* number among all requests to this origin, from 0 */
    int64_t at;      /* time of its first byte, by weir_clock_monotonic and the kernel's stamp */
    int64_t done_at; /* time at which the response began to be written; 0: not yet */
    int64_t told_at; /* time at which the whole response was written; 0: not yet */
    char method[16];
    char path[1024];
    char text[4096]; /* the head as received */
};

struct origin_reply {
    int status;                /* 0: 200 */
    const char *fields;        /* further header fields, each with CRLF; NULL: none */
    const char *body;          /* NULL: "hello\n" */
    int64_t delay_ns;          /* delay before the response */
    const atomic_bool *may_go; /* the response waits until this is true; NULL: it does not wait */
    int64_t stall_ns;          /* pause between head and body */
    bool closes;               /* closes the connection without a Connection field */
    const char *raw;           /* sends only these bytes, then closes the connection */
};

typedef struct origin_reply origin_answer(void *context, const struct origin_request *request);

struct origin;

/* Listens at `address` (NULL: 127.0.0.1). The function is called from several threads, with a lock
 * held. */
struct origin *origin_new(origin_answer *answer, void *context, const char *address);

int origin_port(const struct origin *origin);

int origin_requests(struct origin *origin);

/* Returns the n-th request, from 0. Fails the test if there is none. */
struct origin_request origin_request(struct origin *origin, int n);

/* Returns the number of requests for this path. */
int origin_asked(struct origin *origin, const char *path);

/* Return the number of connections so far, and of those that the client has not closed. */
int origin_connections(struct origin *origin);
int origin_open_connections(struct origin *origin);

/* Returns the least time between two arrivals at any connections. */
int64_t origin_least_gap(struct origin *origin);

/* Returns the largest number of requests that were in progress at a time. */
int origin_most_at_once(struct origin *origin);

void origin_free(struct origin *origin);

#endif
