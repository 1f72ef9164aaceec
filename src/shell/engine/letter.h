/* SPDX-License-Identifier: MIT */
/* letter.h - what loops of a crawl send each other, and how they are asked from other threads. */
#ifndef WR_SHELL_ENGINE_LETTER_H
#define WR_SHELL_ENGINE_LETTER_H

#include "shell/net/net.h"

#include <pthread.h>

struct wr_crawl_loop;

/* ---- letters (letter.c) ---- */

/* Something for another loop, or for a loop from the store's thread. Put it first, and cast. */
struct wr_letter {
    struct wr_net_call call;
    struct wr_crawl_loop *to;
    void (*read)(struct wr_crawl_loop *loop, struct wr_letter *letter); /* on the loop; frees it */
    void (*drop)(struct wr_letter *letter);                             /* there is no loop any more; frees it */
    bool is_question; /* nothing waits for it but who asks: the job may be over meanwhile */
};

/* From any thread. It is pending until it was read. */
void wr_letter_send(struct wr_crawl_loop *to, struct wr_letter *letter);

/* ---- questions (ask.c) ---- */

/* Put it first, and cast. `answer`, on the loop: false if it has more to do, and is to be called again soon. */
struct wr_question {
    struct wr_letter letter;
    struct wr_questions *asking;
    bool (*answer)(struct wr_crawl_loop *loop, struct wr_question *question);
};

struct wr_questions {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    uint32_t awaited;
    bool is_dropped;
};

void wr_questions_begin(struct wr_questions *ret_asking);
void wr_questions_send(struct wr_questions *asking, struct wr_crawl_loop *loop, struct wr_question *question);
/* Waits for all answers. WEIR_E_CLOSED: a loop had ended. */
int wr_questions_end(struct wr_questions *asking);
/* One question to one loop. */
int wr_ask_loop(struct wr_crawl_loop *loop, struct wr_question *question);

#endif
