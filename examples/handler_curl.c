/* SPDX-License-Identifier: MIT */
/* handler_curl.c - paces your own libcurl code: weir_curl_perform in place of curl_easy_perform.
 *
 *     cc handler_curl.c $(pkg-config --cflags --libs weir-http libcurl) -pthread
 */
#include "loopback.h"

#include <weir/curl.h>

/* A server that answers the second request with 429 and Retry-After: 1, and redirects /old to
 * /new. */
static const char *answer(const char *path, int before)
{
    if (before == 1)
        return "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    if (strcmp(path, "/old") == 0)
        return "HTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    return "HTTP/1.1 200 OK\r\nRateLimit: \"day\";r=41;t=3600\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n";
}

static size_t ignore_body(char *data, size_t size, size_t count, void *context)
{
    (void)data, (void)context;
    return size * count;
}

int main(void)
{
    struct loopback server = {.answer = answer};
    weir_pacer *pacer;
    weir_handler *handler;
    weir_handler_options options;
    weir_pace_options pace;
    CURL *easy = curl_easy_init();

    /* Most programs let the pacer learn each host's limit: weir_pacer_new(NULL, NULL, &pacer). */
    weir_handler_options_init(&options);
    if (easy == NULL || !loopback_start(&server) || weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED) < 0 ||
        weir_pacer_new(&pace, NULL, &pacer) < 0)
        return 1;
    options.pacer = pacer;
    options.reports_sent = true; /* weir_curl_perform reports when it writes */
    if (weir_handler_new(&options, &handler) < 0)
        return 1;

    /* The options of your own handle. */
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore_body);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);

    static const char *const paths[] = {"/a", "/b", "/b", "/old"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char url[64];
        CURLcode code = CURLE_OK;
        weir_server_limits said = {-1, -1, -1, -1};
        long status = 0;
        int64_t began_at = weir_clock_now(weir_clock_monotonic());

        snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server.port, paths[i]);
        curl_easy_setopt(easy, CURLOPT_URL, url);
        int error = weir_curl_perform(handler, easy, NULL, NULL, &code, &said);
        if (error < 0 || code != CURLE_OK) {
            fprintf(stderr, "%s\n", error < 0 ? weir_error_text(error) : curl_easy_strerror(code));
            return 1;
        }
        int64_t took_ns = weir_clock_now(weir_clock_monotonic()) - began_at;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        printf("%-4s %ld, remaining %d, waited a second: %s\n", paths[i], status, (int)said.remaining,
               took_ns >= WEIR_SECOND ? "yes" : "no");
    }

    weir_pacer_stats stats;
    weir_pacer_stats_get(pacer, &stats);
    printf("%d requests passed the gate\n", (int)stats.requests); /* redirects are requests, too */
    weir_handler_free(handler);
    weir_pacer_free(pacer);
    curl_easy_cleanup(easy);
    loopback_stop(&server);
    return 0;
}
