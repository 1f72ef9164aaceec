/* SPDX-License-Identifier: MIT */
/* blocking_fetch.c - the blocking fetch. */
#include "base/error.h"
#include "http/client/client_internal.h"
#include "limiter/clock/clock.h"
#include "limiter/queue/queue.h"

struct blocking_fetch {
    struct wr_parker parker;
    bool is_done; /* guarded by the parker's lock */
    weir_response *response;
};

/* Holds the lock throughout, because the waiter destroys `waiting` as soon as it sees is_done. */
static void on_blocking_fetched(void *context, weir_response *response)
{
    struct blocking_fetch *waiting = context;
    (void)pthread_mutex_lock(&waiting->parker.lock);
    waiting->response = response;
    waiting->is_done = true;
    waiting->parker.unparked = true;
    (void)pthread_cond_signal(&waiting->parker.changed);
    (void)pthread_mutex_unlock(&waiting->parker.lock);
}

static bool is_done(struct blocking_fetch *waiting)
{
    (void)pthread_mutex_lock(&waiting->parker.lock);
    bool is = waiting->is_done;
    (void)pthread_mutex_unlock(&waiting->parker.lock);
    return is;
}

static void await_response(struct blocking_fetch *waiting, weir_client *client, weir_fetch *fetch, weir_cancel *cancel)
{
    struct wr_cancel_link link = {.parker = &waiting->parker};
    wr_cancel_join(cancel, &link);
    while (!is_done(waiting)) {
        if (wr_cancel_fired(cancel))
            weir_fetch_cancel(fetch);
        wr_park(&waiting->parker, client->clock, WEIR_FOREVER);
    }
    wr_cancel_leave(cancel, &link);
}

int weir_client_fetch(weir_client *client, const char *url, const weir_fetch_options *options, weir_cancel *cancel,
                      weir_response **ret_response)
{
    struct blocking_fetch waiting = {.is_done = false};
    weir_fetch *fetch;
    if (client == NULL || ret_response == NULL)
        return wr_invalid("client and ret_response must not be NULL");
    if (wr_client_loop_is_current(client))
        return wr_invalid("weir_client_fetch would wait for itself here; in a callback use weir_client_fetch_async");
    int error = wr_parker_init(&waiting.parker);
    if (error != 0)
        return error;
    error = weir_client_fetch_async(client, url, options, on_blocking_fetched, &waiting, &fetch);
    if (error == 0) {
        await_response(&waiting, client, fetch, cancel);
        weir_fetch_free(fetch);
        *ret_response = waiting.response;
    }
    wr_parker_release(&waiting.parker);
    return error;
}
