/* SPDX-License-Identifier: MIT */
/* rig.h - test fixture: an HTTP server in this process, and clients that send exactly the bytes of
 * a test. */
#ifndef WEIR_TEST_SERVE_RIG_H
#define WEIR_TEST_SERVE_RIG_H

#include "lib/test.h"

#include "base/buf.h"
#include "serve/server/http_server.h"

#include <stdatomic.h>

#define HEAR_MAX ((size_t)8 << 20)

/* Responses of the fixture's server:
 *     /ok          200 "ok\n"                  /empty    204
 *     /echo        200 with the body           /large    200 with 4 MB of 'x'
 *     /peer        200 with the peer           /         204
 *     /token       204 or 401                  /late     held until rig_release
 *     /stream      a stream; rig_stream writes to it
 */
struct http_server_fixture {
    struct wr_http_server_options options;
    struct wr_http_listen_options listens[2];
    struct wr_http_server *server;
    atomic_int held, gone, ticks;
    struct wr_http_exchange *late; /* the exchange that was held last, or the stream */
    struct wr_http_posted_call note;
    struct wr_span wish; /* bytes for rig_stream to write */
    atomic_int written;  /* result of wr_http_stream_write; 1: not written yet */
};

/* Sets the options of a server on 127.0.0.1. A test may change them before rig_start. */
void rig_init(struct http_server_fixture *rig);
void rig_start(struct http_server_fixture *rig);
void rig_stop(struct http_server_fixture *rig);

/* Answers the held exchange in the server's thread. */
void rig_release(struct http_server_fixture *rig);
/* Writes to the stream. Returns the result of wr_http_stream_write. */
int rig_stream(struct http_server_fixture *rig, struct wr_span bytes);
/* Waits until the count is at least this; fails the test after a minute. */
void wait_until(atomic_int *count, int least);
struct wr_http_server_stats rig_stats(const struct http_server_fixture *rig);

/* ---- clients ---- */

int dial(const struct http_server_fixture *rig);
int dial_unix(const char *path);
/* Start and end of most tests: a server with default options and one connected client. */
int rig_open(struct http_server_fixture *rig);
void rig_close(struct http_server_fixture *rig, int fd);
void say(int fd, const char *text);
void say_bytes(int fd, const void *bytes, size_t count);
ssize_t hear_some(int fd, void *to, size_t room); /* recv() that restarts after an interrupt */
/* Reads until `count` responses are complete (by their Content-Length) or the connection ends. The
 * text is valid until the next call. */
const char *hear(int fd, int count);
/* Reads until the other side closes; fails the test after a minute of silence. */
const char *hear_end(int fd);
/* Returns true if the other side closes without sending anything. */
bool is_hung_up(int fd);
int count_of(const char *text, const char *word);
/* Returns the status of the first response, which must have weir's mark. */
int status_of(const char *text);

#endif
