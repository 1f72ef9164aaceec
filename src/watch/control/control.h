/* SPDX-License-Identifier: MIT */
/* control.h - the control socket of a crawl: a private socket beside its state file, for queries
 * and commands.
 *
 *     wr_control_open("weir.db", engine, &control);       the crawl: listens at weir.db.sock, in a thread
 *     wr_control_close(control);                          before wr_engine_finish
 *
 *     error = wr_control_connect("weir.db", &fd);      another process; WEIR_E_ABSENT: no crawl
 *     wr_control_call(fd, request, &answer);
 *
 * Requests and responses are lines of JSON: {"ask": "hosts", "sort": "wait"} and {"ok": true,
 * "hosts": [...]}, or {"ok": false, "error": "..."}. docs/internals/control.md lists them.
 * wr_control_answer can also answer them from a state file without a running crawl, given only a
 * store.
 *
 * Access: only the owner can open the socket (0600), and the peer must be the same user or root.
 * Limits: WR_CONTROL_CLIENTS at a time, requests of WR_CONTROL_REQUEST_MAX bytes, responses of
 * WR_CONTROL_ANSWER_MAX. A client that does not read its response within ten seconds is
 * disconnected. A silent client is disconnected when another one connects and there is no room. The
 * crawl never waits for this socket.
 */
#ifndef WR_WATCH_CONTROL_CONTROL_H
#define WR_WATCH_CONTROL_CONTROL_H

#include "base/buf.h"
#include "crawl/engine/crawl_inspect.h"

#define WR_CONTROL_CLIENTS 16
#define WR_CONTROL_REQUEST_MAX ((size_t)65536)
#define WR_CONTROL_ANSWER_MAX ((size_t)8 << 20)
#define WR_CONTROL_AGENT_ROOM 512

/* What answers requests: a crawl and its store, or a store alone (engine NULL). */
struct wr_control_source {
    struct wr_engine *engine;
    struct wr_store *store;
    /* For a store alone: writes the user agent of a job with these settings, if it is known. May be
     * NULL. */
    void (*agent_of)(struct wr_span settings, char ret_agent[WR_CONTROL_AGENT_ROOM]);
};

/* Answers one request with one line. Waits for the loops or the store, for some milliseconds. */
void wr_control_answer(const struct wr_control_source *source, struct wr_span request, struct wr_buf *answer);

struct wr_control;

/* Opens the socket and starts its thread. Returns WEIR_E_SYSTEM, WEIR_E_INVAL (see
 * weir_error_detail) or WEIR_E_NOMEM on failure; the crawl can run without it. */
int wr_control_open(const char *state_path, struct wr_engine *engine, struct wr_control **ret_desk);
/* Accepts NULL. */
void wr_control_close(struct wr_control *control);

/* Connects to a crawl. Returns WEIR_E_ABSENT if no process listens; WEIR_E_SYSTEM if the socket
 * belongs to another user (except root), or does not accept within three seconds. */
int wr_control_connect(const char *state_path, int *ret_fd);

/* Sends a request, and appends the response; both are one line, without its newline. Returns
 * WEIR_E_CLOSED if the crawl has ended, WEIR_E_TIMEOUT after 30 s. */
int wr_control_call(int fd, struct wr_span request, struct wr_buf *answer);

#endif
