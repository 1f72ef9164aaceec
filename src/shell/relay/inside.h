/* SPDX-License-Identifier: MIT */
/* inside.h - what a relay is made of.
 *
 *     callers' threads ── want, told, news ──▶ legs that are to be looked at ──▶ the relay's thread ── wire ──▶ store
 *
 * A leg is one host's part of the way: whether its gate is here, and letters to where it is. Its letters and its place
 * in the lists are under the relay's lock; the rest is the thread's.
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
#define WR_LETTERS_MAX ((size_t)1 << 18) /* bytes of letters that wait; further ones are lost */

/* What became of a request, for who has the gate. */
struct wr_letter {
    struct wr_gate_start start;
    weir_outcome outcome; /* WR_WORD_LATE: nothing */
    enum wr_word word;
};

struct wr_leg {
    struct wr_list_link link; /* in relay->called */
    struct wr_heap_item due;
    struct wr_relay *relay;
    struct wr_buf letters; /* of struct wr_letter */
    bool has_news;
    int64_t wanted_at;   /* somebody will wait, or tries; 0: nobody said so since the gate was here */
    size_t letters_sent; /* bytes of them that are on their way */
    bool news_sent;
    uint32_t asked_mark; /* wr_clock_sleep_mark */
    struct wr_baton baton;
    uint64_t read; /* the number of the last letter that the gate was told */
    size_t key_bytes;
    char key[];
};

struct wr_relay {
    const weir_allocator *allocator;
    weir_pacer *pacer;
    struct wr_relay_options options; /* without texts */
    char prefix[WR_RELAY_PREFIX_MAX + 1];
    char who[WR_WHO_DIGITS + 1];
    struct wr_hash_key hash_key;
    pthread_mutex_t lock;
    struct wr_map legs;    /* under the lock */
    struct wr_list called; /* under the lock: legs that are to be looked at */
    bool is_called, is_ending;
    struct wr_relay_view view; /* under the lock */
    /* The thread's. */
    pthread_t thread;
    uv_loop_t loop;
    struct wr_wakeup wakeup;
    uv_timer_t timer, patience;
    struct wr_wire *wire;
    struct wr_heap dues;
    bool is_leaving; /* all legs were told that it is ending */
    bool is_closing, was_down;
    bool lacks_memory; /* for when legs that are called are due: they are looked at soon */
    void *packed;      /* a gate on its way out */
    size_t packed_bytes;
};

/* ---- leg.c: one host ---- */

/* Looks at it, and does what is to be done. It may be gone then. */
void wr_leg_step(struct wr_leg *leg);

/* ---- relay.c ---- */

/* It is looked at again then. */
void wr_leg_due(struct wr_leg *leg, int64_t at);

/* Nothing is known of the host any more; false: somebody wants it after all. */
bool wr_leg_end(struct wr_leg *leg);

/* Whether the store can be reached has perhaps changed. */
void wr_relay_watch(struct wr_relay *relay);

/* Ends the loop if it is time for that, and all has been passed on. */
void wr_relay_rest(struct wr_relay *relay);

/* ---- letter.c ---- */

/* As a line of text, at `now` by the pacer's clock. */
void wr_letter_write(struct wr_buf *text, const struct wr_letter *letter, int64_t now);

/* Reads letters line by line, written `age_ns` ago and before: false at the end, or where the text is not ours. */
bool wr_letter_read(struct wr_span *text, int64_t age_ns, int64_t now, struct wr_letter *ret_letter);

#endif
