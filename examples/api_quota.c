/* SPDX-License-Identifier: MIT */
/* api_quota.c - calls an API that states its quota only in response headers, and never exceeds it.
 *
 *     cc api_quota.c $(pkg-config --cflags --libs weir-http) -pthread
 */
#include "loopback.h"

#include <weir/client.h>

#define CALLS 12
#define QUOTA 5 /* calls per second; main() does not know it */

static int overruns;

static int64_t now_ns(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

/* An API with QUOTA calls per second. Each response has the number of calls left. */
static const char *answer(const char *path, int before)
{
    static char response[256];
    static int64_t window_at;
    static int used;

    (void)path, (void)before;
    if (used == 0 || now_ns() - window_at >= WEIR_SECOND) {
        window_at = now_ns();
        used = 0;
    }
    used++;
    if (used > QUOTA) {
        overruns++;
        return "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    }
    snprintf(response, sizeof response,
             "HTTP/1.1 200 OK\r\nRateLimit-Limit: %d\r\nRateLimit-Remaining: %d\r\nRateLimit-Reset: 1\r\n"
             "Content-Length: 2\r\nConnection: close\r\n\r\n{}",
             QUOTA, QUOTA - used);
    return response;
}

int main(void)
{
    static const char *const headers[] = {"Authorization: Bearer 1234", "Accept: application/json", NULL};
    struct loopback server = {.answer = answer};
    weir_client_options options;
    weir_pace_options pace;
    weir_fetch_options how;
    weir_client *client;
    char url[64];
    int good = 0;

    weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED); /* only the limits of the API apply */
    weir_client_options_init(&options);
    options.pace = &pace;
    options.robots = WEIR_ROBOTS_IGNORE; /* APIs have no robots.txt */
    options.headers = headers;
    options.allow_private = true;
    if (!loopback_start(&server) || weir_client_new(&options, &client) < 0)
        return 1;

    weir_fetch_options_init(&how);
    how.key = "token-1234"; /* the API counts by token, not by host */
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1/things", server.port);
    int64_t began_at = now_ns();
    for (int i = 0; i < CALLS; i++) {
        weir_response *response;
        if (weir_client_fetch(client, url, &how, NULL, &response) < 0)
            return 1;
        good += response->status == 200;
        weir_response_free(response);
    }

    printf("%d of %d calls answered, %d over the quota\n", good, CALLS, overruns);
    printf("in at least two seconds: %s\n", now_ns() - began_at >= 2 * WEIR_SECOND ? "yes" : "no");
    weir_client_free(client);
    loopback_stop(&server);
    return 0;
}
