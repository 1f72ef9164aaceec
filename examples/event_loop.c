/* SPDX-License-Identifier: MIT */
/* event_loop.c - waits in the queue of a limiter without a thread: tickets in a poll(2) loop.
 *
 * Requests enter the queue with weir_limiter_enqueue. The loop sleeps until the first ticket is
 * worth polling, or until a wake, and serves the requests that were granted. Two requests may be in
 * flight here, and each ends in the pass of the loop that granted it.
 *
 *     cc event_loop.c $(pkg-config --cflags --libs weir)
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <weir/limit.h>

#define REQUESTS 6

static int wake_pipe[2];

/* Wakes the loop. It does nothing else, because it may be called from any thread. */
static void wake_loop(void *unused)
{
    (void)unused;
    if (write(wake_pipe[1], "", 1) != 1)
        return; /* the pipe is full: the loop will wake anyway */
}

/* Sleeps until `wait_ns` has passed, or until woken. */
static void sleep_until_woken(int64_t wait_ns)
{
    struct pollfd pipe_end = {.fd = wake_pipe[0], .events = POLLIN};
    int timeout_ms = -1; /* only a release can change the answer */
    char bytes[64];
    if (wait_ns < WEIR_SECOND)
        timeout_ms = (int)((wait_ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND);
    else if (wait_ns != WEIR_UNTIL_RELEASE)
        timeout_ms = 1000; /* poll again after one second */
    if (poll(&pipe_end, 1, timeout_ms) > 0 && read(wake_pipe[0], bytes, sizeof bytes) < 0)
        perror("read");
}

/* Polls all waiting tickets. Returns how many were granted, or -1 on an error. *ret_wait_ns is the
 * time until the next poll. */
static int poll_tickets(weir_ticket *tickets[REQUESTS], int64_t *ret_wait_ns)
{
    int granted = 0;
    *ret_wait_ns = WEIR_UNTIL_RELEASE;
    for (int i = 0; i < REQUESTS; i++) {
        weir_decision decision;
        if (tickets[i] == NULL)
            continue;
        if (weir_ticket_poll(tickets[i], &decision) < 0)
            return -1;
        if (decision.verdict == WEIR_GO) {
            printf("request %d goes\n", i + 1);
            weir_ticket_free(tickets[i]);
            tickets[i] = NULL;
            granted++;
        } else if (decision.wait_ns < *ret_wait_ns)
            *ret_wait_ns = decision.wait_ns;
    }
    return granted;
}

int main(void)
{
    weir_limit limits[2];
    weir_limiter *limiter;
    weir_ticket *tickets[REQUESTS];
    int served = 0;

    /* At most two in flight, and one per 10 ms after a burst of three. */
    if (pipe(wake_pipe) < 0 || weir_limit_concurrency(&limits[0], 2) < 0 ||
        weir_limit_token_bucket(&limits[1], 3, 100, WEIR_SECOND) < 0 || weir_limiter_new(limits, 2, NULL, &limiter) < 0)
        return 1;

    for (int i = 0; i < REQUESTS; i++)
        if (weir_limiter_enqueue(limiter, 1, 5 * WEIR_SECOND, wake_loop, NULL, &tickets[i]) < 0)
            return 1;

    while (served < REQUESTS) {
        int64_t wait_ns;
        int granted = poll_tickets(tickets, &wait_ns);
        if (granted < 0)
            return 1;
        served += granted;
        if (granted > 0)
            weir_limiter_release(limiter, (uint32_t)granted); /* ends them and wakes waiters */
        else
            sleep_until_woken(wait_ns);
    }
    printf("%d served\n", served);

    weir_limiter_free(limiter);
    close(wake_pipe[0]);
    close(wake_pipe[1]);
    return 0;
}
