/* SPDX-License-Identifier: MIT */
/* letter.h - messages between the loops of a crawl, and questions to loops from other threads. */
#ifndef WR_SHELL_ENGINE_LETTER_H
#define WR_SHELL_ENGINE_LETTER_H

#include "shell/net/net.h"

#include <pthread.h>

struct wr_crawl_loop;

/* ---- messages (letter.c) ---- */

/* A message to a loop, from another loop or from the store's thread. It is the first member of a
 * larger struct, so that it can be cast. */
struct wr_letter {
    struct wr_net_call call;
    struct wr_crawl_loop *to;
    /* Handles and frees the message, on the loop. */
    void (*read)(struct wr_crawl_loop *loop, struct wr_letter *letter);
    void (*drop)(struct wr_letter *letter); /* frees the message: the loop has ended */
    /* A question: only its sender waits, so the job may end meanwhile. */
    bool is_question;
};

/* Sends a message; from any thread. It counts as pending until it was read, except a question. */
void wr_letter_send(struct wr_crawl_loop *to, struct wr_letter *letter);

/* ---- questions (ask.c) ---- */

/* A question to a loop; the first member of a larger struct. `answer` runs on the loop; it returns
 * false to be called a second time after other work. */
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
/* Waits for all answers. Returns WEIR_E_CLOSED if a loop had ended. */
int wr_questions_end(struct wr_questions *asking);
/* Asks one loop one question, and waits for the answer. Returns 0 or WEIR_E_CLOSED. */
int wr_ask_loop(struct wr_crawl_loop *loop, struct wr_question *question);

#endif
