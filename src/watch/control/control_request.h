/* SPDX-License-Identifier: MIT */
/* control_request.h - one request to the control socket, and functions that write the parts of its
 * response. */
#ifndef WR_WATCH_CONTROL_CONTROL_REQUEST_H
#define WR_WATCH_CONTROL_CONTROL_REQUEST_H

#include "base/json.h"
#include "watch/control/control.h"

#include <jansson.h>

struct wr_control_request {
    const struct wr_control_source *source;
    const json_t *request;
    /* response so far, beginning with {"ok":true; members are appended with a leading comma */
    struct wr_buf *answer;
};

/* Return a member of the request. If it is absent or of another type, return an empty text, or
 * `otherwise`. */
struct wr_span wr_control_request_text(const struct wr_control_request *ask, const char *name);
int64_t wr_control_request_number(const struct wr_control_request *ask, const char *name, int64_t otherwise);
/* Reads the member "host" as a host key. Returns WEIR_E_INVAL if it is invalid. */
int wr_control_request_host_key(const struct wr_control_request *ask, char ret_key[WEIR_PACE_KEY_MAX + 1]);

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
void wr_append_live_host(struct wr_buf *buf, const struct wr_host_view *host);
void wr_append_stored_host(struct wr_buf *buf, const struct wr_store_host *host);
void wr_append_task(struct wr_buf *buf, const struct wr_store_task *task);

/* Returns the job of a request. If it names none: the running job, or else the newest unfinished
 * one, or else the newest. Returns WEIR_E_INVAL if there is no such job. */
int wr_control_request_job(const struct wr_control_request *ask, int64_t *ret_job);

/* ---- processes that share a crawl; only with a shared store ---- */

/* Appends "processes": those that work for the job (0: for any job). */
int wr_control_append_processes(struct wr_control_request *ask, int64_t job, uint64_t *ret_count);

#define WR_CONTROL_COUNTED_JOBS 64 /* limit of counted jobs; further ones are ignored */
struct wr_control_process_counts {
    struct {
        int64_t job;
        uint64_t processes;
    } jobs[WR_CONTROL_COUNTED_JOBS];
    size_t count;
};
int wr_control_count_processes(struct wr_control_request *ask, struct wr_control_process_counts *ret_crew);
uint64_t wr_control_processes_of(const struct wr_control_process_counts *counts_of_process, int64_t job);

/* ---- requests; return 0 or an error with weir_error_detail ---- */

int wr_control_answer_hosts(struct wr_control_request *ask);
int wr_control_answer_host(struct wr_control_request *ask);
int wr_control_answer_set(struct wr_control_request *ask);
int wr_control_answer_pause(struct wr_control_request *ask);
int wr_control_answer_resume(struct wr_control_request *ask);
int wr_control_answer_forget(struct wr_control_request *ask);
int wr_control_answer_why(struct wr_control_request *ask);
int wr_control_answer_jobs(struct wr_control_request *ask);
int wr_control_answer_tasks(struct wr_control_request *ask);
int wr_control_answer_cancel(struct wr_control_request *ask);
int wr_control_answer_drain(struct wr_control_request *ask);
int wr_control_answer_status(struct wr_control_request *ask);
int wr_control_answer_events(struct wr_control_request *ask);

#endif
