/* SPDX-License-Identifier: MIT */
/* letter.c - from thread to thread. */
#include "shell/engine/state.h"

static void arrive(struct wr_net_call *call)
{
    struct wr_letter *letter = (struct wr_letter *)(void *)call;
    struct wr_crawl_loop *loop = letter->to;
    bool is_question = letter->is_question;
    letter->read(loop, letter);
    if (!is_question)
        wr_pending_done(loop->engine);
}

void wr_letter_send(struct wr_crawl_loop *to, struct wr_letter *letter)
{
    bool is_question = letter->is_question;
    if (!is_question)
        (void)atomic_fetch_add(&to->engine->pending, 1);
    letter->to = to;
    letter->call.run = arrive;
    (void)pthread_mutex_lock(&to->mail_lock);
    bool is_taken = to->takes_mail;
    if (is_taken)
        wr_net_post(to->net, &letter->call);
    (void)pthread_mutex_unlock(&to->mail_lock);
    if (is_taken)
        return;
    letter->drop(letter);
    if (!is_question)
        wr_pending_done(to->engine);
}
