/* SPDX-License-Identifier: MIT */
/* client_callbacks.c - fetches many pages at once with a callback for each, and cancels one fetch.
 *
 *     cc client_callbacks.c $(pkg-config --cflags --libs weir-http) -pthread
 */
#include "loopback.h"

#include <stdatomic.h>
#include <weir/client.h>

#define PAGES 40

static atomic_int finished, answered, cancelled;
static atomic_long bytes;

static const char *answer(const char *path, int before)
{
    (void)path, (void)before;
    return "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
}

/* Runs on the client's thread, one call at a time. It must be short and must not block. */
static void fetched(void *context, weir_response *response)
{
    (void)context;
    if (response->status == 200)
        answered++;
    if (response->failure == WEIR_FAILURE_CANCELLED)
        cancelled++;
    bytes += (long)response->body_bytes;
    weir_response_free(response);
    finished++;
}

/* Gets the body as it comes; nothing is kept in memory. */
static bool on_body(void *context, const char *data, size_t count)
{
    (void)context, (void)data, (void)count;
    return true;
}

int main(void)
{
    struct loopback server = {.answer = answer};
    weir_client_options options;
    weir_pace_options pace;
    weir_fetch_options how;
    weir_client *client;
    weir_fetch *last;
    char url[64];

    weir_client_options_init(&options);
    weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED); /* our own server */
    options.pace = &pace;
    options.robots = WEIR_ROBOTS_IGNORE;
    options.allow_private = true;
    options.concurrency = 8;
    if (!loopback_start(&server) || weir_client_new(&options, &client) < 0)
        return 1;

    weir_fetch_options_init(&how);
    how.on_body = on_body;
    for (int i = 0; i < PAGES; i++) {
        snprintf(url, sizeof url, "http://127.0.0.1:%d/%d", server.port, i);
        if (weir_client_fetch_async(client, url, &how, fetched, NULL, NULL) < 0)
            return 1;
    }
    /* A fetch from a port without a server, with a deadline. It is cancelled at once. */
    how.deadline_ns = WEIR_MINUTE;
    if (weir_client_fetch_async(client, "http://127.0.0.1:1/", &how, fetched, NULL, &last) < 0)
        return 1;
    weir_fetch_cancel(last);
    weir_fetch_free(last);

    while (finished < PAGES + 1)
        usleep(1000); /* your program would do other work here */
    printf("%d answered with %ld bytes, %d cancelled\n", answered, bytes, cancelled);
    weir_client_free(client);
    loopback_stop(&server);
    return 0;
}
