/* SPDX-License-Identifier: MIT */
/* crew.c - runs the same work on several threads at the same time. */
#include "cli/bench/crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <weir/error.h>
#include <weir/time.h>

struct crew {
    wr_crew_work *work;
    void *context;
    pthread_mutex_t lock; /* protects the fields below, which all threads share */
    pthread_cond_t decided;
    bool go, cancelled;
    int64_t first_start_at, last_end_at;
};

struct member {
    struct crew *crew;
    size_t thread;
    pthread_t id;
};

static bool wait_for_go(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    while (!crew->go && !crew->cancelled)
        pthread_cond_wait(&crew->decided, &crew->lock);
    bool go = crew->go;
    pthread_mutex_unlock(&crew->lock);
    return go;
}

static void *member_run(void *context)
{
    struct member *member = context;
    struct crew *crew = member->crew;
    if (!wait_for_go(crew))
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

static void decide(struct crew *crew, bool go)
{
    pthread_mutex_lock(&crew->lock);
    crew->go = go;
    crew->cancelled = !go;
    pthread_cond_broadcast(&crew->decided);
    pthread_mutex_unlock(&crew->lock);
}

int wr_crew_run(size_t threads, wr_crew_work *work, void *context, int64_t *ret_wall_ns)
{
    struct member members[WR_CREW_MAX];
    struct crew crew = {.work = work, .context = context, .first_start_at = INT64_MAX};
    size_t made = 0;
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.decided, NULL);
    for (; made < threads && made < WR_CREW_MAX; made++) {
        members[made] = (struct member){.crew = &crew, .thread = made};
        if (pthread_create(&members[made].id, NULL, member_run, &members[made]) != 0)
            break;
    }
    decide(&crew, made == threads);
    for (size_t i = 0; i < made; i++)
        pthread_join(members[i].id, NULL);
    pthread_cond_destroy(&crew.decided);
    pthread_mutex_destroy(&crew.lock);
    if (made < threads)
        return WEIR_E_SYSTEM;
    *ret_wall_ns = crew.last_end_at - crew.first_start_at;
    return 0;
}
