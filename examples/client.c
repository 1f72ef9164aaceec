/* SPDX-License-Identifier: MIT */
/* client.c - fetches pages one after the other, with robots.txt, pacing, redirects and retries.
 *
 *     cc client.c $(pkg-config --cflags --libs weir-http) -pthread
 */
#include "loopback.h"

#include <weir/client.h>

/* A site with a robots.txt, a page that has moved, and a page that fails on the first attempt. */
static const char *answer(const char *path, int before)
{
    if (strcmp(path, "/robots.txt") == 0)
        return "HTTP/1.1 200 OK\r\nContent-Length: 35\r\nConnection: close\r\n\r\n"
               "User-agent: *\r\nDisallow: /private\r\n";
    if (strcmp(path, "/old") == 0)
        return "HTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    if (strcmp(path, "/flaky") == 0 && before % 2 == 1)
        return "HTTP/1.1 502 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    return "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
}

static int show(weir_client *client, const char *url)
{
    weir_response *response;
    int error = weir_client_fetch(client, url, NULL, NULL, &response);
    if (error < 0)
        return error;          /* invalid URL, or no memory */
    if (response->status != 0) /* a response with any status: 200, 404, ...; see response->body */
        printf("status %d, %zu bytes, hops %u, attempts %u\n", response->status, response->body_bytes, response->hops,
               response->attempts);
    else
        printf("not fetched (%s): %s\n", weir_failure_name(response->failure), response->detail);
    weir_response_free(response);
    return 0;
}

int main(void)
{
    static const char *const paths[] = {"/flaky", "/old", "/private/diary"};
    struct loopback server = {.answer = answer};
    weir_client_options options;
    weir_client *client;

    /* Most programs use the defaults: weir_client_new(NULL, &client). */
    weir_client_options_init(&options);
    options.agent = "example/1.0 (+https://example.org/bot)"; /* identify yourself */
    options.allow_private = true;                             /* the server is on loopback */
    if (!loopback_start(&server) || weir_client_new(&options, &client) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        return 1;
    }

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char url[64];

        snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server.port, paths[i]);
        printf("%s: ", paths[i]);
        int error = show(client, url);
        if (error < 0) {
            fprintf(stderr, "%s\n", weir_error_text(error));
            return 1;
        }
    }

    weir_client_stats stats;
    weir_client_stats_get(client, &stats);
    printf("%d requests on the wire, %d of them for robots.txt\n", (int)stats.requests, (int)stats.robots);
    weir_client_free(client);
    loopback_stop(&server);
    return 0;
}
