/* SPDX-License-Identifier: MIT */
/* shared_gate_state.h - internals of the relay that shares gates among processes.
 *
 *     callers' threads -- want, told, news --> called legs --> the relay's thread -- wire --> store
 *
 * A gate_turn is the state of one host: whether its gate is in this process, and letters to the
 * process that has it. A letter reports a request to that process. The relay's lock protects a
 * gate_turn's letters and its place in lists; only the relay's thread uses the rest.
 */
#ifndef WR_CLUSTER_GATE_SHARED_GATE_STATE_H
#define WR_CLUSTER_GATE_SHARED_GATE_STATE_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "cluster/gate/shared_gate.h"
#include "core/cluster/gate_lease.h"
#include "http/loop/wakeup.h"
#include "limiter/pacer/remote_gate.h"

#include <pthread.h>

#define WR_PEER_NAME_DIGITS 16
/* limit of waiting letters per host, bytes; further ones are dropped */
#define WR_GATE_REPORTS_MAX ((size_t)1 << 18)

/* A report of a request for the process that has the gate. */
struct wr_gate_report {
    struct wr_gate_start start;
    weir_outcome outcome; /* the outcome; empty if `word` is WR_REMOTE_SENT_LATE */
    enum wr_remote_report_kind word;
};

struct wr_gate_turn {
    struct wr_list_link link; /* membership in relay->called */
    struct wr_heap_item due;
    struct wr_shared_gate *relay;
    struct wr_buf letters; /* array of struct wr_gate_report */
    bool has_news;
    int64_t wanted_at;   /* when a caller last asked for the gate; 0: not since the gate was here */
    size_t letters_sent; /* bytes of `letters` that the current call has */
    bool news_sent;
    uint32_t asked_mark; /* value of wr_clock_sleep_mark at the last call */
    struct wr_gate_lease gate_lease;
    uint64_t read; /* number of the last letter that the gate has processed */
    size_t key_bytes;
    char key[];
};

struct wr_shared_gate {
    const weir_allocator *allocator;
    weir_pacer *pacer;
    struct wr_shared_gate_options options; /* copy of the options without their texts */
    char prefix[WR_SHARED_GATE_PREFIX_MAX + 1];
    char who[WR_PEER_NAME_DIGITS + 1];
    struct wr_hash_key hash_key;
    pthread_mutex_t lock;
    struct wr_map legs;    /* all legs by key; protected by the lock */
    struct wr_list called; /* legs to look at; protected by the lock */
    bool is_called, is_ending;
    struct wr_shared_gate_view view; /* statistics, protected by the lock */
    /* Only the relay's thread uses the fields from here on. */
    pthread_t thread;
    uv_loop_t loop;
    struct wr_wakeup wakeup;
    uv_timer_t timer, patience;
    struct wr_redis_connection *wire;
    struct wr_heap dues;
    bool is_leaving; /* all legs were called to pass their gates on */
    bool is_closing, was_down;
    bool lacks_memory; /* no memory for the times of called legs; retried soon */
    void *packed;      /* a packed gate to be sent */
    size_t packed_bytes;
};

/* ---- gate_turn.c: one host
 * ------------------------------------------------------------------------- */

/* Decides what to do for a gate_turn now, and does it. May free the gate_turn. */
void wr_gate_turn_step(struct wr_gate_turn *gate_turn);

/* ---- shared_gate.c ---- */

/* Sets when the gate_turn is to be looked at again. */
void wr_gate_turn_set_due(struct wr_gate_turn *gate_turn, int64_t at);

/* Frees a gate_turn without state. Returns false if a caller needs it after all. */
bool wr_gate_turn_end(struct wr_gate_turn *gate_turn);

/* Notices changes of the connection to the store. */
void wr_shared_gate_update_connection(struct wr_shared_gate *relay);

/* Closes the loop if the relay is ending and has passed all gates on. */
void wr_shared_gate_close_if_done(struct wr_shared_gate *relay);

/* ---- gate_report.c ---- */

/* Appends a letter as a line of text. `now` is by the pacer's clock. */
void wr_gate_report_write(struct wr_buf *text, const struct wr_gate_report *letter, int64_t now);

/* Reads one letter, a line of the text, that was written at least `age_ns` ago. Returns false at
 * the end and if the text is invalid. */
bool wr_gate_report_read(struct wr_span *text, int64_t age_ns, int64_t now, struct wr_gate_report *ret_letter);

#endif
