/* SPDX-License-Identifier: MIT */
/* inside.h - internals of the relay that shares gates among processes.
 *
 *     callers' threads -- want, told, news --> called legs --> the relay's thread -- wire --> store
 *
 * A leg is the state of one host: whether its gate is in this process, and letters to the process
 * that has it. A letter reports a request to that process. The relay's lock protects a leg's
 * letters and its place in lists; only the relay's thread uses the rest.
 */
#ifndef WR_SHELL_RELAY_INSIDE_H
#define WR_SHELL_RELAY_INSIDE_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "core/share/baton.h"
#include "shell/hosts/lend.h"
#include "shell/loop/wakeup.h"
#include "shell/relay/relay.h"

#include <pthread.h>

#define WR_WHO_DIGITS 16
/* limit of waiting letters per host, bytes; further ones are dropped */
#define WR_LETTERS_MAX ((size_t)1 << 18)

/* A report of a request for the process that has the gate. */
struct wr_letter {
    struct wr_gate_start start;
    weir_outcome outcome; /* the outcome; empty if `word` is WR_WORD_LATE */
    enum wr_word word;
};

struct wr_leg {
    struct wr_list_link link; /* membership in relay->called */
    struct wr_heap_item due;
    struct wr_relay *relay;
    struct wr_buf letters; /* array of struct wr_letter */
    bool has_news;
    int64_t wanted_at;   /* when a caller last asked for the gate; 0: not since the gate was here */
    size_t letters_sent; /* bytes of `letters` that the current call has */
    bool news_sent;
    uint32_t asked_mark; /* value of wr_clock_sleep_mark at the last call */
    struct wr_baton baton;
    uint64_t read; /* number of the last letter that the gate has processed */
    size_t key_bytes;
    char key[];
};

struct wr_relay {
    const weir_allocator *allocator;
    weir_pacer *pacer;
    struct wr_relay_options options; /* copy of the options without their texts */
    char prefix[WR_RELAY_PREFIX_MAX + 1];
    char who[WR_WHO_DIGITS + 1];
    struct wr_hash_key hash_key;
    pthread_mutex_t lock;
    struct wr_map legs;    /* all legs by key; protected by the lock */
    struct wr_list called; /* legs to look at; protected by the lock */
    bool is_called, is_ending;
    struct wr_relay_view view; /* statistics, protected by the lock */
    /* Only the relay's thread uses the fields from here on. */
    pthread_t thread;
    uv_loop_t loop;
    struct wr_wakeup wakeup;
    uv_timer_t timer, patience;
    struct wr_wire *wire;
    struct wr_heap dues;
    bool is_leaving; /* all legs were called to pass their gates on */
    bool is_closing, was_down;
    bool lacks_memory; /* no memory for the times of called legs; retried soon */
    void *packed;      /* a packed gate to be sent */
    size_t packed_bytes;
};

/* ---- leg.c: one host ------------------------------------------------------------------------- */

/* Decides what to do for a leg now, and does it. May free the leg. */
void wr_leg_step(struct wr_leg *leg);

/* ---- relay.c ---- */

/* Sets when the leg is to be looked at again. */
void wr_leg_due(struct wr_leg *leg, int64_t at);

/* Frees a leg without state. Returns false if a caller needs it after all. */
bool wr_leg_end(struct wr_leg *leg);

/* Notices changes of the connection to the store. */
void wr_relay_watch(struct wr_relay *relay);

/* Closes the loop if the relay is ending and has passed all gates on. */
void wr_relay_rest(struct wr_relay *relay);

/* ---- letter.c ---- */

/* Appends a letter as a line of text. `now` is by the pacer's clock. */
void wr_letter_write(struct wr_buf *text, const struct wr_letter *letter, int64_t now);

/* Reads one letter, a line of the text, that was written at least `age_ns` ago. Returns false at
 * the end and if the text is invalid. */
bool wr_letter_read(struct wr_span *text, int64_t age_ns, int64_t now, struct wr_letter *ret_letter);

#endif
