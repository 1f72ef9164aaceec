/* SPDX-License-Identifier: MIT */
/* loop_query.c - sends questions to loops as messages, and waits for the answers. */
#include "crawl/engine/engine_state.h"
#include "http/loop/watchdog.h"

static struct wr_loop_query *query_of_message(struct wr_loop_message *message)
{
    return (struct wr_loop_query *)(void *)message;
}

static void count_query_answer(struct wr_loop_query *question, bool is_dropped)
{
    struct wr_loop_queries *asking = question->asking;
    (void)pthread_mutex_lock(&asking->lock);
    asking->is_dropped |= is_dropped;
    asking->awaited--;
    (void)pthread_cond_signal(&asking->answered);
    (void)pthread_mutex_unlock(&asking->lock);
}

static void answer_query(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    WR_DOING("a question");
    struct wr_loop_query *question = query_of_message(message);
    if (question->answer(loop, question))
        count_query_answer(question, false);
    else
        wr_loop_message_send(loop, message); /* continues after the other messages of the loop */
}

static void drop_query(struct wr_loop_message *message)
{
    count_query_answer(query_of_message(message), true);
}

void wr_loop_queries_begin(struct wr_loop_queries *ret_asking)
{
    *ret_asking = (struct wr_loop_queries){.awaited = 0};
    (void)pthread_mutex_init(&ret_asking->lock, NULL);
    (void)pthread_cond_init(&ret_asking->answered, NULL);
}

void wr_loop_queries_send(struct wr_loop_queries *asking, struct wr_crawl_loop *loop, struct wr_loop_query *question)
{
    question->message = (struct wr_loop_message){.read = answer_query, .drop = drop_query, .is_question = true};
    question->asking = asking;
    (void)pthread_mutex_lock(&asking->lock);
    asking->awaited++;
    (void)pthread_mutex_unlock(&asking->lock);
    wr_loop_message_send(loop, &question->message);
}

int wr_loop_queries_wait(struct wr_loop_queries *asking)
{
    (void)pthread_mutex_lock(&asking->lock);
    while (asking->awaited > 0)
        (void)pthread_cond_wait(&asking->answered, &asking->lock);
    bool is_dropped = asking->is_dropped;
    (void)pthread_mutex_unlock(&asking->lock);
    (void)pthread_cond_destroy(&asking->answered);
    (void)pthread_mutex_destroy(&asking->lock);
    return is_dropped ? WEIR_E_CLOSED : 0;
}

int wr_loop_query_run(struct wr_crawl_loop *loop, struct wr_loop_query *question)
{
    struct wr_loop_queries asking;
    wr_loop_queries_begin(&asking);
    wr_loop_queries_send(&asking, loop, question);
    return wr_loop_queries_wait(&asking);
}
