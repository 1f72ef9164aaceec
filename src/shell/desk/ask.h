/* SPDX-License-Identifier: MIT */
/* ask.h - one request to the control socket, and functions that write the parts of its response. */
#ifndef WR_SHELL_DESK_ASK_H
#define WR_SHELL_DESK_ASK_H

#include "base/json.h"
#include "shell/desk/desk.h"

#include <jansson.h>

struct wr_desk_ask {
    const struct wr_desk_source *source;
    const json_t *request;
    /* response so far, beginning with {"ok":true; members are appended with a leading comma */
    struct wr_buf *answer;
};

/* Return a member of the request. If it is absent or of another type, return an empty text, or
 * `otherwise`. */
struct wr_span wr_ask_text(const struct wr_desk_ask *ask, const char *name);
int64_t wr_ask_number(const struct wr_desk_ask *ask, const char *name, int64_t otherwise);
/* Reads the member "host" as a host key. Returns WEIR_E_INVAL if it is invalid. */
int wr_ask_key(const struct wr_desk_ask *ask, char ret_key[WEIR_PACE_KEY_MAX + 1]);

/* ---- values ---- */

/* Appends milliseconds, to the microsecond; null for WEIR_UNTIL_RELEASE and negative times. */
void wr_append_json_ms(struct wr_buf *buf, const char *before, int64_t ns);
/* Appends a wall-clock time in ms since 1970; null for 0. */
void wr_append_json_wall(struct wr_buf *buf, const char *before, int64_t wall_at);
/* Appends a rate per second; null if it is infinite, unknown or out of range. */
void wr_append_json_rate(struct wr_buf *buf, const char *before, double rate);
void wr_append_json_bool(struct wr_buf *buf, const char *before, bool is_true);
void wr_append_json_word(struct wr_buf *buf, const char *before, const char *word);

const char *wr_task_state_name(enum wr_task_state state);
const char *wr_breaker_name(weir_breaker_state state);
/* Append an object: a host in memory, a host in the store, a task. */
void wr_append_look_host(struct wr_buf *buf, const struct wr_look_host *host);
void wr_append_stored_host(struct wr_buf *buf, const struct wr_store_host *host);
void wr_append_task(struct wr_buf *buf, const struct wr_store_task *task);

/* Returns the job of a request. If it names none: the running job, or else the newest unfinished
 * one, or else the newest. Returns WEIR_E_INVAL if there is no such job. */
int wr_ask_job(const struct wr_desk_ask *ask, int64_t *ret_job);

/* ---- processes that share a crawl; only with a shared store ---- */

/* Appends "processes": those that work for the job (0: for any job). */
int wr_ask_processes(struct wr_desk_ask *ask, int64_t job, uint64_t *ret_count);

#define WR_DESK_CREW_JOBS 64 /* limit of counted jobs; further ones are ignored */
struct wr_desk_crew {
    struct {
        int64_t job;
        uint64_t processes;
    } jobs[WR_DESK_CREW_JOBS];
    size_t count;
};
int wr_ask_crew(struct wr_desk_ask *ask, struct wr_desk_crew *ret_crew);
uint64_t wr_desk_crew_of(const struct wr_desk_crew *crew, int64_t job);

/* ---- requests; return 0 or an error with weir_error_detail ---- */

int wr_ask_hosts(struct wr_desk_ask *ask);
int wr_ask_host(struct wr_desk_ask *ask);
int wr_ask_set(struct wr_desk_ask *ask);
int wr_ask_pause(struct wr_desk_ask *ask);
int wr_ask_resume(struct wr_desk_ask *ask);
int wr_ask_forget(struct wr_desk_ask *ask);
int wr_ask_why(struct wr_desk_ask *ask);
int wr_ask_jobs(struct wr_desk_ask *ask);
int wr_ask_tasks(struct wr_desk_ask *ask);
int wr_ask_cancel(struct wr_desk_ask *ask);
int wr_ask_drain(struct wr_desk_ask *ask);
int wr_ask_status(struct wr_desk_ask *ask);
int wr_ask_events(struct wr_desk_ask *ask);

#endif
