/* SPDX-License-Identifier: MIT */
/* bare.c - the program that `weir fetch` is compared with: libcurl's multi-socket interface on
 * epoll, and nothing else.
 *
 *     bare IN_FLIGHT < URLS
 *
 * Set up as well as libcurl 7.88 can be: handles are reused, the connection cache never fills
 * (otherwise each returned connection scans all of it), and the DNS cache is never pruned
 * (otherwise each finished transfer walks it).
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 256

static CURLM *multi;
static int epoll, failed;
static long timeout_ms = 0;

static size_t ignore(char *data, size_t size, size_t count, void *context)
{
    (void)data, (void)context;
    return size * count;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct epoll_event event = {.data.fd = fd};
    (void)easy, (void)context;
    if (what == CURL_POLL_REMOVE)
        return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL), 0;
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    (void)epoll_ctl(epoll, known == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    (void)curl_multi_assign(multi, fd, &epoll);
    return 0;
}

static int on_timer(CURLM *unused, long ms, void *context)
{
    (void)unused, (void)context;
    timeout_ms = ms;
    return 0;
}

/* Reads the next URL of the list; returns false at its end. */
static int start(CURL *easy)
{
    static char line[16384];
    if (fgets(line, sizeof line, stdin) == NULL)
        return 0;
    line[strcspn(line, "\n")] = '\0';
    curl_easy_setopt(easy, CURLOPT_URL, line);
    curl_multi_add_handle(multi, easy);
    return 1;
}

static CURL *new_easy(void)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "bare");
    return easy;
}

static int finish(int under_way)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        CURL *easy = message->easy_handle;
        failed += message->data.result != CURLE_OK;
        curl_multi_remove_handle(multi, easy);
        under_way -= !start(easy);
    }
    return under_way;
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS];
    int in_flight = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 64, under_way = 0, running;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    epoll = epoll_create1(0);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 100000L);
    while (under_way < in_flight && start(new_easy()))
        under_way++;
    while (under_way > 0) {
        int count = epoll_wait(epoll, events, EVENTS, (int)timeout_ms);
        if (count <= 0) {
            timeout_ms = -1; /* the timer fires once; waiting 0 ms again would be a busy loop */
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        for (int i = 0; i < count; i++) {
            int what = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                       (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                       (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(multi, events[i].data.fd, what, &running);
        }
        under_way = finish(under_way);
    }
    if (failed > 0)
        fprintf(stderr, "bare: %d failed\n", failed);
    return failed > 0;
}
