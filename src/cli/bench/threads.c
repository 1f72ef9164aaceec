/* SPDX-License-Identifier: MIT */
/* threads.c - runs the same work on several threads at the same time. */
#include "cli/bench/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <weir/error.h>
#include <weir/time.h>

struct thread_group {
    wr_bench_thread_work *work;
    void *context;
    pthread_mutex_t lock; /* protects the fields below, which all threads share */
    pthread_cond_t decided;
    bool go, cancelled;
    int64_t first_start_at, last_end_at;
};

struct group_thread {
    struct thread_group *crew;
    size_t thread;
    pthread_t id;
};

static bool wait_for_start(struct thread_group *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (!crew->go && !crew->cancelled)
        pthread_cond_wait(&crew->decided, &crew->lock);
    bool go = crew->go;
    pthread_mutex_unlock(&crew->lock);
    return go;
}

static void *run_group_thread(void *context)
{
    struct group_thread *member = context;
    struct thread_group *crew = member->crew;
    if (!wait_for_start(crew))
        return NULL;
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    crew->work(crew->context, member->thread);
    int64_t end_at = weir_clock_now(weir_clock_monotonic());
    pthread_mutex_lock(&crew->lock);
    if (start_at < crew->first_start_at)
        crew->first_start_at = start_at;
    if (end_at > crew->last_end_at)
        crew->last_end_at = end_at;
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static void decide_start(struct thread_group *crew, bool go)
{
    pthread_mutex_lock(&crew->lock);
    crew->go = go;
    crew->cancelled = !go;
    pthread_cond_broadcast(&crew->decided);
    pthread_mutex_unlock(&crew->lock);
}

int wr_bench_threads_run(size_t threads, wr_bench_thread_work *work, void *context, int64_t *ret_wall_ns)
{
    struct group_thread members[WR_BENCH_THREADS_MAX];
    struct thread_group crew = {.work = work, .context = context, .first_start_at = INT64_MAX};
    size_t made = 0;
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.decided, NULL);
    for (; made < threads && made < WR_BENCH_THREADS_MAX; made++) {
        members[made] = (struct group_thread){.crew = &crew, .thread = made};
        if (pthread_create(&members[made].id, NULL, run_group_thread, &members[made]) != 0)
            break;
    }
    decide_start(&crew, made == threads);
    for (size_t i = 0; i < made; i++)
        pthread_join(members[i].id, NULL);
    pthread_cond_destroy(&crew.decided);
    pthread_mutex_destroy(&crew.lock);
    if (made < threads)
        return WEIR_E_SYSTEM;
    *ret_wall_ns = crew.last_end_at - crew.first_start_at;
    return 0;
}
