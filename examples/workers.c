/* SPDX-License-Identifier: MIT */
/* workers.c - threads that share a limiter: at most two requests at once, and 100 a second.
 *
 *     cc workers.c $(pkg-config --cflags --libs weir) -pthread
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/limit.h>

#define WORKERS 4
#define JOBS 20

static weir_limiter *limiter;
static atomic_int jobs_left = JOBS, done, running, most_running;

static void work(void)
{
    int now_running = atomic_fetch_add(&running, 1) + 1;
    int most = atomic_load(&most_running);
    while (now_running > most && !atomic_compare_exchange_weak(&most_running, &most, now_running))
        ;
    atomic_fetch_add(&done, 1);
    atomic_fetch_sub(&running, 1);
}

static void *worker(void *unused)
{
    (void)unused;
    while (atomic_fetch_sub(&jobs_left, 1) > 0) {
        /* Blocks until both rules grant; waiters are granted in order. Fails after five seconds. */
        int error = weir_limiter_acquire(limiter, 1, 5 * WEIR_SECOND, NULL, NULL, NULL);
        if (error < 0) {
            fprintf(stderr, "%s\n", weir_error_text(error));
            return NULL;
        }
        work();
        weir_limiter_release(limiter, 1); /* ends the request for the concurrency rule */
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    weir_limit limits[2];

    if (weir_limit_concurrency(&limits[0], 2) < 0 || weir_limit_token_bucket(&limits[1], 1, 100, WEIR_SECOND) < 0 ||
        weir_limiter_new(limits, 2, NULL, &limiter) < 0) {
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

    /* The first job starts at once, the other 19 follow 10 ms apart. */
    printf("%d jobs done\n", done);
    printf("in less than 180 ms: %s\n", passed_ns < 180 * WEIR_MILLISECOND ? "yes" : "no");
    printf("more than two at once: %s\n", most_running > 2 ? "yes" : "no");
    weir_limiter_free(limiter);
    return done == JOBS && most_running <= 2 && passed_ns >= 180 * WEIR_MILLISECOND ? 0 : 1;
}
