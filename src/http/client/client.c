/* SPDX-License-Identifier: MIT */
/* client.c - creates, inspects and frees clients. */
#include "base/alloc.h"
#include "base/error.h"
#include "http/client/client_internal.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

static int set_pacer(weir_client *client, const weir_client_options *options)
{
    weir_pacer_options own;
    client->owns_pacer = options == NULL || options->pacer == NULL;
    if (!client->owns_pacer) {
        client->pacer = options->pacer;
        return 0;
    }
    weir_pacer_options_init(&own);
    own.allocator = client->allocator;
    return weir_pacer_new(options != NULL ? options->pace : NULL, &own, &client->pacer);
}

static void free_client(weir_client *client)
{
    if (client->owns_pacer)
        weir_pacer_free(client->pacer);
    if (client->texts != NULL)
        wr_free(client->allocator, client->texts, client->texts_bytes + 1, 1);
    (void)pthread_mutex_destroy(&client->lock);
    (void)pthread_mutex_destroy(&client->joining);
    wr_free(client->allocator, client, sizeof *client, _Alignof(weir_client));
}

static int init_client(weir_client *client, const weir_client_options *options)
{
    int error = wr_client_options_copy(client, options);
    if (error == 0)
        error = set_pacer(client, options);
    if (error == 0)
        error = wr_client_loop_start(client);
    return error;
}

int weir_client_new(const weir_client_options *options, weir_client **ret_client)
{
    if (ret_client == NULL)
        return wr_invalid("ret_client is NULL; it must point to where the client goes");
    const weir_allocator *allocator = wr_allocator_or_system(options != NULL ? options->allocator : NULL);
    weir_client *client = wr_alloc(allocator, sizeof *client, _Alignof(weir_client));
    if (client == NULL)
        return WEIR_E_NOMEM;
    client->allocator = allocator;
    client->clock = wr_clock_or_fast(NULL);
    (void)pthread_mutex_init(&client->lock, NULL);
    (void)pthread_mutex_init(&client->joining, NULL);
    int error = init_client(client, options);
    if (error == 0)
        *ret_client = client;
    else
        free_client(client);
    return error;
}

weir_pacer *weir_client_pacer(weir_client *client)
{
    return client != NULL ? client->pacer : NULL;
}

int weir_client_stats_get(weir_client *client, weir_client_stats *ret_stats)
{
    if (client == NULL || ret_stats == NULL)
        return wr_invalid("client and ret_stats must not be NULL");
    *ret_stats = (weir_client_stats){
        .requests = atomic_load(&client->requests),
        .retries = atomic_load(&client->retries),
        .robots = atomic_load(&client->robots),
        .finished = atomic_load(&client->finished),
        .body_bytes = atomic_load(&client->body_bytes),
        .unfinished = atomic_load(&client->unfinished),
        .in_flight = atomic_load(&client->in_flight),
    };
    return 0;
}

void weir_client_close(weir_client *client)
{
    if (client != NULL)
        wr_client_loop_end(client);
}

void weir_client_free(weir_client *client)
{
    if (client == NULL)
        return;
    weir_client_close(client);
    free_client(client);
}
