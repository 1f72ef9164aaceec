/* SPDX-License-Identifier: MIT */
/* ask.c - sends questions to loops as messages, and waits for the answers. */
#include "shell/engine/state.h"
#include "shell/loop/away.h"

static struct wr_question *question_of(struct wr_letter *letter)
{
    return (struct wr_question *)(void *)letter;
}

static void done(struct wr_question *question, bool is_dropped)
{
    struct wr_questions *asking = question->asking;
    (void)pthread_mutex_lock(&asking->lock);
    asking->is_dropped |= is_dropped;
    asking->awaited--;
    (void)pthread_cond_signal(&asking->answered);
    (void)pthread_mutex_unlock(&asking->lock);
}

static void read_question(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    WR_DOING("a question");
    struct wr_question *question = question_of(letter);
    if (question->answer(loop, question))
        done(question, false);
    else
        wr_letter_send(loop, letter); /* continues after the other messages of the loop */
}

static void drop_question(struct wr_letter *letter)
{
    done(question_of(letter), true);
}

void wr_questions_begin(struct wr_questions *ret_asking)
{
    *ret_asking = (struct wr_questions){.awaited = 0};
    (void)pthread_mutex_init(&ret_asking->lock, NULL);
    (void)pthread_cond_init(&ret_asking->answered, NULL);
}

void wr_questions_send(struct wr_questions *asking, struct wr_crawl_loop *loop, struct wr_question *question)
{
    question->letter = (struct wr_letter){.read = read_question, .drop = drop_question, .is_question = true};
    question->asking = asking;
    (void)pthread_mutex_lock(&asking->lock);
    asking->awaited++;
    (void)pthread_mutex_unlock(&asking->lock);
    wr_letter_send(loop, &question->letter);
}

int wr_questions_end(struct wr_questions *asking)
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

int wr_ask_loop(struct wr_crawl_loop *loop, struct wr_question *question)
{
    struct wr_questions asking;
    wr_questions_begin(&asking);
    wr_questions_send(&asking, loop, question);
    return wr_questions_end(&asking);
}
