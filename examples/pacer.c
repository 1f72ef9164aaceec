/* SPDX-License-Identifier: MIT */
/* pacer.c - workers that fetch from one host with 20 ms between starts, and obey its Retry-After.
 *
 *     cc pacer.c $(pkg-config --cflags --libs weir) -pthread
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/pace.h>

#define WORKERS 4
#define PAGES 12

static weir_pacer *pacer;
static atomic_int pages_left = PAGES, pages_done, requests;

/* Simulates an HTTP client, and a host that answers the fourth request with 429 and a Retry-After
 * of 100 ms. */
static weir_outcome fetch(void)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = 200};
    if (atomic_fetch_add(&requests, 1) == 3) {
        outcome.status = 429;
        outcome.has_retry_after = true;
        outcome.retry_after_ns = 100 * WEIR_MILLISECOND;
    }
    return outcome;
}

/* Fetches one page. Returns the status, or a negative error. */
static int get(const char *key, size_t key_bytes)
{
    weir_permit permit;
    int error;
    do {
        /* Waits until the request may start, for at most two minutes. */
        error = weir_pacer_acquire(pacer, key, key_bytes, WEIR_REPORTS_SENT, 2 * WEIR_MINUTE, NULL, &permit, NULL);
        if (error < 0)
            return error;
        /* ... connect, and when the request is written: */
        error = weir_permit_sent(&permit);
    } while (error == WEIR_E_WITHDRAWN); /* the host refuses now: do not write it */
    weir_outcome outcome = fetch();
    weir_permit_finish(&permit, &outcome); /* the host's gate learns */
    return outcome.status;
}

static void *worker(void *unused)
{
    (void)unused;
    while (atomic_fetch_sub(&pages_left, 1) > 0) {
        int status;
        do
            status = get("www.example.org", 15);
        while (status == 429); /* fetch this page again; the pacer waits as the host asked */
        if (status < 0) {
            fprintf(stderr, "%s\n", weir_error_text(status));
            return NULL;
        }
        atomic_fetch_add(&pages_done, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    weir_pace_options pace;
    weir_pacer_stats stats;

    /* Most programs let the pacer learn each host's limit: weir_pacer_new(NULL, NULL, &pacer). */
    if (weir_pace_options_profile(&pace, WEIR_PROFILE_UNLIMITED) < 0 ||
        weir_pace_options_set(&pace, "min_interval", "20ms") < 0 || weir_pacer_new(&pace, NULL, &pacer) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        return 1;
    }

    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, worker, NULL) != 0)
            return 1;
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    int64_t passed_ns = weir_clock_now(weir_clock_monotonic()) - start_at;

    /* 13 starts: the first at once, 11 of them 20 ms after the one before, and one after 100 ms. */
    weir_pacer_stats_get(pacer, &stats);
    printf("%d pages with %d requests, %d of them turned away\n", pages_done, requests, (int)stats.rejected);
    bool polite = passed_ns >= 320 * WEIR_MILLISECOND;
    printf("in %s\n", polite ? "320 ms or more, as the host asked" : "too short a time");
    weir_pacer_free(pacer);
    return polite ? 0 : 1;
}
