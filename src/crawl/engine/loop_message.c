/* SPDX-License-Identifier: MIT */
/* loop_message.c - sends messages to loops, and finds the loop of a host. */
#include "crawl/engine/engine_state.h"
#include "crawl/engine/registrable_domain.h"

uint32_t wr_engine_loop_of(const struct wr_engine *engine, struct wr_span key)
{
    if (engine->loop_count == 1)
        return 0;
    if (engine->options.group == WR_GROUP_DOMAIN)
        key = wr_registrable_domain(key);
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

static void deliver_message(struct wr_net_posted_call *call)
{
    struct wr_loop_message *message = (struct wr_loop_message *)(void *)call;
    struct wr_crawl_loop *loop = message->to;
    bool is_question = message->is_question;
    message->read(loop, message);
    if (!is_question)
        wr_job_pending_done(loop->engine);
    wr_crawl_loop_run_due(loop);
}

void wr_loop_message_send(struct wr_crawl_loop *to, struct wr_loop_message *message)
{
    bool is_question = message->is_question;
    if (!is_question)
        (void)atomic_fetch_add(&to->engine->pending, 1);
    message->to = to;
    message->call.run = deliver_message;
    (void)pthread_mutex_lock(&to->message_lock);
    bool is_taken = to->accepts_messages;
    if (is_taken)
        wr_net_post(to->net, &message->call);
    (void)pthread_mutex_unlock(&to->message_lock);
    if (is_taken)
        return;
    message->drop(message);
    if (!is_question)
        wr_job_pending_done(to->engine);
}
