/* SPDX-License-Identifier: MIT */
/* letter.c - sends messages to loops, and finds the loop of a host. */
#include "shell/engine/group.h"
#include "shell/engine/state.h"

uint32_t wr_engine_loop_of(const struct wr_engine *engine, struct wr_span key)
{
    if (engine->loop_count == 1)
        return 0;
    if (engine->options.group == WR_GROUP_DOMAIN)
        key = wr_group_domain(key);
    return (uint32_t)(wr_hash(&engine->hash_key, key.data, key.bytes) % engine->loop_count);
}

uint32_t wr_engine_loop_of_url(const struct wr_engine *engine, const struct wr_url *url)
{
    char memory[WEIR_PACE_KEY_MAX + 1];
    struct wr_buf key;
    if (engine->loop_count == 1)
        return 0;
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_url_append_key(&key, url);
    return wr_engine_loop_of(engine, wr_buf_from(&key, 0));
}

static void arrive(struct wr_net_call *call)
{
    struct wr_letter *letter = (struct wr_letter *)(void *)call;
    struct wr_crawl_loop *loop = letter->to;
    bool is_question = letter->is_question;
    letter->read(loop, letter);
    if (!is_question)
        wr_pending_done(loop->engine);
    wr_crawl_loop_due(loop);
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
