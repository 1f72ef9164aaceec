/* SPDX-License-Identifier: MIT */
/* get.c - the blocking fetch. */
#include "base/error.h"
#include "shell/client/client.h"
#include "shell/clock/clock.h"
#include "shell/line/line.h"

struct waiting {
    struct wr_parker parker;
    bool is_done; /* guarded by the parker's lock */
    weir_response *response;
};

/* Holds the lock throughout, because the waiter destroys `waiting` as soon as it sees is_done. */
static void end_wait(void *context, weir_response *response)
{
    struct waiting *waiting = context;
    (void)pthread_mutex_lock(&waiting->parker.lock);
    waiting->response = response;
    waiting->is_done = true;
    waiting->parker.unparked = true;
    (void)pthread_cond_signal(&waiting->parker.changed);
    (void)pthread_mutex_unlock(&waiting->parker.lock);
}

static bool is_done(struct waiting *waiting)
{
    (void)pthread_mutex_lock(&waiting->parker.lock);
    bool is = waiting->is_done;
    (void)pthread_mutex_unlock(&waiting->parker.lock);
    return is;
}

static void await(struct waiting *waiting, weir_client *client, weir_fetch *fetch, weir_cancel *cancel)
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

int weir_client_get(weir_client *client, const char *url, const weir_fetch_options *options, weir_cancel *cancel,
                    weir_response **ret_response)
{
    struct waiting waiting = {.is_done = false};
    weir_fetch *fetch;
    if (client == NULL || ret_response == NULL)
        return wr_invalid("client and ret_response must not be NULL");
    if (wr_loop_is_here(client))
        return wr_invalid("weir_client_get would wait for itself here; in a callback use weir_client_fetch");
    int error = wr_parker_init(&waiting.parker);
    if (error != 0)
        return error;
    error = weir_client_fetch(client, url, options, end_wait, &waiting, &fetch);
    if (error == 0) {
        await(&waiting, client, fetch, cancel);
        weir_fetch_free(fetch);
        *ret_response = waiting.response;
    }
    wr_parker_release(&waiting.parker);
    return error;
}
