/* SPDX-License-Identifier: MIT */
/* ask.h - one request at the desk, and the parts of its answer. */
#ifndef WR_SHELL_DESK_ASK_H
#define WR_SHELL_DESK_ASK_H

#include "base/json.h"
#include "shell/desk/desk.h"

#include <jansson.h>

struct wr_desk_ask {
    const struct wr_desk_source *source;
    const json_t *request;
    struct wr_buf *answer; /* {"ok": true so far: members are appended with a comma before them */
};

/* Of the request's members; what is missing, or of another kind, is the second argument, or empty. */
struct wr_span wr_ask_text(const struct wr_desk_ask *ask, const char *name);
int64_t wr_ask_number(const struct wr_desk_ask *ask, const char *name, int64_t otherwise);
/* The host that "host" names, as a key. WEIR_E_INVAL. */
int wr_ask_key(const struct wr_desk_ask *ask, char ret_key[WEIR_PACE_KEY_MAX + 1]);

/* ---- values ---- */

/* Milliseconds, to the microsecond; null for WEIR_UNTIL_RELEASE and what is negative. */
void wr_append_json_ms(struct wr_buf *buf, const char *before, int64_t ns);
/* An instant of the wall clock in ms since 1970; null for 0. */
void wr_append_json_wall(struct wr_buf *buf, const char *before, int64_t wall_at);
/* A second; null: any, or none. */
void wr_append_json_rate(struct wr_buf *buf, const char *before, double rate);
void wr_append_json_bool(struct wr_buf *buf, const char *before, bool is_true);
void wr_append_json_word(struct wr_buf *buf, const char *before, const char *word);

const char *wr_task_state_name(enum wr_task_state state);
const char *wr_breaker_name(weir_breaker_state state);
/* Objects, of a host in memory and of one in the store. */
void wr_append_look_host(struct wr_buf *buf, const struct wr_look_host *host);
void wr_append_stored_host(struct wr_buf *buf, const struct wr_store_host *host);
void wr_append_task(struct wr_buf *buf, const struct wr_store_task *task);

/* The job that is meant where none is named: that runs, or the newest that is not over, or the newest. WEIR_E_ABSENT.
 */
int wr_ask_job(const struct wr_desk_ask *ask, int64_t *ret_job);

/* ---- processes that share a crawl; none where nobody can ---- */

/* Appends those that work for the job (0: any) as "processes". */
int wr_ask_processes(struct wr_desk_ask *ask, int64_t job, uint64_t *ret_count);

#define WR_DESK_CREW_JOBS 64 /* more are not looked at */
struct wr_desk_crew {
    struct {
        int64_t job;
        uint64_t processes;
    } jobs[WR_DESK_CREW_JOBS];
    size_t count;
};
int wr_ask_crew(struct wr_desk_ask *ask, struct wr_desk_crew *ret_crew);
uint64_t wr_desk_crew_of(const struct wr_desk_crew *crew, int64_t job);

/* ---- what can be asked (0, or why not: weir_error_detail) ---- */

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
