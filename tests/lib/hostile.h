/* SPDX-License-Identifier: MIT */
/* hostile.h - a server that sends exact bytes at exact times, to test a client against hostile or
 * broken servers. Each case has a port.
 *
 *     static const struct hostile_step steps[] = {
 *         READ, SAY("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"),
 *         PAUSE(WEIR_SECOND), RESET, END,
 *     };
 *     struct hostile *server = hostile_new();
 *     int port = hostile_listen(server, &(struct hostile_case){.steps = {steps}});
 *     ... http://127.0.0.1:port/ ...
 *     hostile_request(server, port, 0, &request);          the request and its time
 *     hostile_free(server);
 *
 * Each connection runs the steps. With several lists, the first connection runs the first list, and
 * so on; all later connections run the last one. The server logs each request with its time. Each
 * connection has a thread, which ends in hostile_free. An error of the server fails the test.
 */
#ifndef WEIR_TEST_HOSTILE_H
#define WEIR_TEST_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/time.h>

#define HOSTILE_FOREVER (-1)

enum hostile_what {
    HOSTILE_END,       /* closes the connection */
    HOSTILE_READ,      /* waits for a request with a body of its Content-Length, and logs it */
    HOSTILE_SIP,       /* waits for any bytes, and logs them as a request */
    HOSTILE_SEND,      /* sends the text `times` times (0: once), pausing after each */
    HOSTILE_PAUSE,     /* does nothing for pause_ns */
    HOSTILE_HOLD,      /* reads and does nothing else until the client closes */
    HOSTILE_RESET,     /* ends the connection with a RST */
    HOSTILE_AGAIN,     /* starts over with the first step */
    HOSTILE_GREET,     /* TLS handshake after plain text; by default it comes first */
    HOSTILE_ASK_AGAIN, /* a new TLS handshake on the connection (renegotiation, TLS 1.2) */
};

struct hostile_step {
    enum hostile_what what;
    const char *text;
    size_t bytes; /* 0: up to the '\0' */
    int times;
    int64_t pause_ns;
};

#define END                 \
    {                       \
        .what = HOSTILE_END \
    }
#define READ                 \
    {                        \
        .what = HOSTILE_READ \
    }
#define SIP                 \
    {                       \
        .what = HOSTILE_SIP \
    }
#define HOLD                 \
    {                        \
        .what = HOSTILE_HOLD \
    }
#define RESET                 \
    {                         \
        .what = HOSTILE_RESET \
    }
#define AGAIN                 \
    {                         \
        .what = HOSTILE_AGAIN \
    }
#define GREET                 \
    {                         \
        .what = HOSTILE_GREET \
    }
#define ASK_AGAIN                 \
    {                             \
        .what = HOSTILE_ASK_AGAIN \
    }
#define PAUSE(ns)                               \
    {                                           \
        .what = HOSTILE_PAUSE, .pause_ns = (ns) \
    }
#define SAY(literal)                                                          \
    {                                                                         \
        .what = HOSTILE_SEND, .text = (literal), .bytes = sizeof(literal) - 1 \
    } /* the literal may have NULs */
#define REPEAT(literal, count, every_ns)                                                         \
    {                                                                                            \
        .what = HOSTILE_SEND, .text = (literal), .bytes = sizeof(literal) - 1, .times = (count), \
        .pause_ns = (every_ns)                                                                   \
    }

#define HOSTILE_LISTS 4

struct hostile_tls; /* hostile_tls.h */

struct hostile_case {
    const struct hostile_step *steps[HOSTILE_LISTS]; /* each list ends with HOSTILE_END */
    const char *address;                             /* NULL: "127.0.0.1" */
    int port;                                        /* 0: any */
    const struct hostile_tls *tls;                   /* NULL: no TLS */
};

struct hostile;

struct hostile *hostile_new(void);

/* Returns the port. Steps, texts and tls must stay valid until the server is freed. */
int hostile_listen(struct hostile *server, const struct hostile_case *hostile_case);

/* hostile_refuse returns a port that refuses connections, hostile_black_hole one that never answers
 * a connect. */
int hostile_refuse(struct hostile *server);
int hostile_black_hole(struct hostile *server, const char *address, int port);

#define HOSTILE_TEXT_MAX 4096

struct hostile_request {
    int64_t at;     /* time of its last byte, by weir_clock_monotonic */
    int connection; /* number of the connection, from 0 */
    size_t bytes;   /* length of the request; `text` has the first bytes */
    char text[HOSTILE_TEXT_MAX + 1];
};

/* Copies the n-th request to that port, from 0. Returns false if there is none. */
bool hostile_request(struct hostile *server, int port, int n, struct hostile_request *ret_request);

int hostile_requests(struct hostile *server, int port);
int hostile_connections(struct hostile *server, int port);

/* Waits until this number of connections have ended on the server's side; fails the test after a
 * minute. */
void hostile_await_ended(struct hostile *server, int port, int connections);

/* Waits until the n-th connection to that port, from 0, has done `steps` steps; fails the test
 * after a minute. On loopback the client's socket has then received what the server sent in
 * them. */
void hostile_await_steps(struct hostile *server, int port, int connection, int steps);

void hostile_free(struct hostile *server);

#endif
