/* SPDX-License-Identifier: MIT */
/* rig.h - a server in this process, and clients that say exactly what a test wants them to. */
#ifndef WEIR_TEST_SERVE_RIG_H
#define WEIR_TEST_SERVE_RIG_H

#include "lib/test.h"

#include "base/buf.h"
#include "serve/server/http_server.h"

#include <stdatomic.h>

#define HEAR_MAX ((size_t)8 << 20)

/* What the rig's server answers:
 *     /ok          200 "ok\n"                  /empty    204
 *     /echo        200 with the body           /large    200 with 4 MB of 'x'
 *     /peer        200 with the peer           /         204
 *     /token       204 or 401                  /late     held until rig_release
 *     /stream      a stream; rig_stream writes to it
 */
struct rig {
    struct wr_http_server_options options;
    struct wr_http_listen_options listens[2];
    struct wr_http_server *server;
    atomic_int held, gone, ticks;
    struct wr_http_exchange *late; /* the one that is held last, or the stream */
    struct wr_http_posted_call note;
    struct wr_span wish; /* of rig_stream */
    atomic_int written;  /* what wr_http_stream_write said; 1: nothing yet */
};

/* Times that tests may change before rig_start are in options. Listens at 127.0.0.1. */
void rig_init(struct rig *rig);
void rig_start(struct rig *rig);
void rig_stop(struct rig *rig);

/* Answers what is held, in the server's thread. */
void rig_release(struct rig *rig);
/* Writes to the stream; what wr_http_stream_write says. */
int rig_stream(struct rig *rig, struct wr_span bytes);
/* Waits until it is, for some seconds. */
void wait_until(atomic_int *count, int least);
struct wr_http_server_stats rig_stats(const struct rig *rig);

/* ---- clients ---- */

int dial(const struct rig *rig);
int dial_unix(const char *path);
/* As most tests begin and end: nothing is changed, and one client has come. */
int rig_open(struct rig *rig);
void rig_close(struct rig *rig, int fd);
void say(int fd, const char *text);
void say_bytes(int fd, const void *bytes, size_t count);
ssize_t hear_some(int fd, void *to, size_t room); /* recv(), however often it is interrupted */
/* Reads until `count` answers are whole (by their Content-Length), or the end. The text is good until the next call. */
const char *hear(int fd, int count);
/* Until the other side closes; fails if it does not within 20 s. */
const char *hear_end(int fd);
/* Whether the other side closes without a word. */
bool is_hung_up(int fd);
int count_of(const char *text, const char *word);
/* The status of the first answer, which says that it is weir's. */
int status_of(const char *text);

#endif
