/* SPDX-License-Identifier: MIT */
/* loop_message.h - messages between the loops of a crawl, and questions to loops from other
 * threads. */
#ifndef WR_CRAWL_ENGINE_LOOP_MESSAGE_H
#define WR_CRAWL_ENGINE_LOOP_MESSAGE_H

#include "http/net/net.h"

#include <pthread.h>

struct wr_crawl_loop;

/* ---- messages (loop_message.c) ---- */

/* A message to a loop, from another loop or from the store's thread. It is the first member of a
 * larger struct, so that it can be cast. */
struct wr_loop_message {
    struct wr_net_posted_call call;
    struct wr_crawl_loop *to;
    /* Handles and frees the message, on the loop. */
    void (*read)(struct wr_crawl_loop *loop, struct wr_loop_message *message);
    void (*drop)(struct wr_loop_message *message); /* frees the message: the loop has ended */
    /* A question: only its sender waits, so the job may end meanwhile. */
    bool is_question;
};

/* Sends a message; from any thread. It counts as pending until it was read, except a question. */
void wr_loop_message_send(struct wr_crawl_loop *to, struct wr_loop_message *message);

/* ---- questions (loop_query.c) ---- */

/* A question to a loop; the first member of a larger struct. `answer` runs on the loop; it returns
 * false to be called a second time after other work. */
struct wr_loop_query {
    struct wr_loop_message message;
    struct wr_loop_queries *asking;
    bool (*answer)(struct wr_crawl_loop *loop, struct wr_loop_query *question);
};

struct wr_loop_queries {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    uint32_t awaited;
    bool is_dropped;
};

void wr_loop_queries_begin(struct wr_loop_queries *ret_asking);
void wr_loop_queries_send(struct wr_loop_queries *asking, struct wr_crawl_loop *loop, struct wr_loop_query *question);
/* Waits for all answers. Returns WEIR_E_CLOSED if a loop had ended. */
int wr_loop_queries_wait(struct wr_loop_queries *asking);
/* Asks one loop one question, and waits for the answer. Returns 0 or WEIR_E_CLOSED. */
int wr_loop_query_run(struct wr_crawl_loop *loop, struct wr_loop_query *question);

#endif
