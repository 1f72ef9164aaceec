/* SPDX-License-Identifier: MIT */
/* desk.h - where people ask a crawl what it does and tell it what to do: a private socket beside its state file.
 *
 *     wr_desk_open("weir.db", engine, &desk);             the crawl: listens at weir.db.sock, on a thread of its own
 *     wr_desk_close(desk);                                before wr_engine_finish
 *
 *     error = wr_desk_connect("weir.db", &fd);            somebody else: WEIR_E_ABSENT, if no crawl listens
 *     wr_desk_call(fd, request, &answer);
 *
 * Requests and answers are lines of JSON: {"ask": "hosts", "sort": "wait"} and {"ok": true, "hosts": [...]}, or {"ok":
 * false, "error": "..."}. docs/internals/desk.md lists them. The same questions can be asked of a state file that no
 * crawl has: wr_desk_answer with a store alone.
 *
 * Private: the socket can be opened by its owner alone (0600), and whoever connects must be that user or root. Bounded:
 * WR_DESK_CLIENTS at a time, requests of WR_DESK_REQUEST_MAX bytes, answers of WR_DESK_ANSWER_MAX; who does not read
 * its answer within ten seconds is hung up on, and so is who says nothing, when others come and there is no room. The
 * crawl never waits for the desk.
 */
#ifndef WR_SHELL_DESK_DESK_H
#define WR_SHELL_DESK_DESK_H

#include "base/buf.h"
#include "shell/engine/look.h"

#define WR_DESK_CLIENTS 16
#define WR_DESK_REQUEST_MAX ((size_t)65536)
#define WR_DESK_ANSWER_MAX ((size_t)8 << 20)
#define WR_DESK_AGENT_ROOM 512

/* Who is asked: a crawl and its store, or (engine NULL) a store alone. */
struct wr_desk_source {
    struct wr_engine *engine;
    struct wr_store *store;
    /* Of a store alone: as whom a job with these settings goes; untouched: nobody knows. May be NULL. */
    void (*agent_of)(struct wr_span settings, char ret_agent[WR_DESK_AGENT_ROOM]);
};

/* Answers one request by one line. Waits for the loops or the store, some milliseconds. */
void wr_desk_answer(const struct wr_desk_source *source, struct wr_span request, struct wr_buf *answer);

struct wr_desk;

/* WEIR_E_SYSTEM, WEIR_E_INVAL (weir_error_detail says why), WEIR_E_NOMEM. The crawl can do without. */
int wr_desk_open(const char *state_path, struct wr_engine *engine, struct wr_desk **ret_desk);
/* NULL is fine. */
void wr_desk_close(struct wr_desk *desk);

/* WEIR_E_ABSENT: nobody listens. WEIR_E_SYSTEM: somebody does who is not the user, or root, or who lets nobody in
 * within three seconds. */
int wr_desk_connect(const char *state_path, int *ret_fd);

/* Sends the request, which is one line without its end, and appends the answer, without its end either. WEIR_E_CLOSED:
 * the crawl has ended. WEIR_E_TIMEOUT: no answer within 30 s. */
int wr_desk_call(int fd, struct wr_span request, struct wr_buf *answer);

#endif
