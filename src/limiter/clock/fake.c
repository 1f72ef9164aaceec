/* SPDX-License-Identifier: MIT */
/* fake.c - a clock for tests, which moves only when weir_clock_fake_set or _advance is called. */
#include "base/alloc.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <stdatomic.h>

/* Lock order: the clock's lock, then a parker's. A waiting thread arrives with its parker's lock
 * held. It releases that lock to enter the list, and then checks the time once more before it
 * sleeps. */
struct fake_clock {
    weir_clock clock;
    const weir_allocator *allocator;
    _Atomic int64_t now;
    pthread_mutex_t lock;     /* protects the list of parkers */
    struct wr_parker *parked; /* list of the parkers of all waiting threads */
    int waiters;              /* number of parkers in the list */
};

static struct fake_clock *fake_of(const weir_clock *clock)
{
    return (struct fake_clock *)(uintptr_t)clock;
}

static int64_t fake_now(const weir_clock *clock)
{
    return atomic_load(&fake_of(clock)->now);
}

static void list_parker(struct fake_clock *fake, struct wr_parker *parker)
{
    (void)pthread_mutex_lock(&fake->lock);
    parker->next = fake->parked;
    fake->parked = parker;
    fake->waiters++;
    (void)pthread_mutex_unlock(&fake->lock);
}

static void unlist_parker(struct fake_clock *fake, struct wr_parker *parker)
{
    (void)pthread_mutex_lock(&fake->lock);
    struct wr_parker **link = &fake->parked;
    while (*link != parker)
        link = &(*link)->next;
    *link = parker->next;
    fake->waiters--;
    (void)pthread_mutex_unlock(&fake->lock);
}

static void fake_wait(const weir_clock *clock, struct wr_parker *parker, int64_t until)
{
    struct fake_clock *fake = fake_of(clock);
    (void)pthread_mutex_unlock(&parker->lock);
    list_parker(fake, parker);
    (void)pthread_mutex_lock(&parker->lock);
    while (!parker->unparked && fake_now(clock) < until)
        (void)pthread_cond_wait(&parker->changed, &parker->lock);
    (void)pthread_mutex_unlock(&parker->lock);
    unlist_parker(fake, parker);
    (void)pthread_mutex_lock(&parker->lock);
}

int weir_clock_fake_new(int64_t start_at, const weir_allocator *allocator, weir_clock **ret_clock)
{
    if (ret_clock == NULL)
        return wr_invalid("ret_clock is NULL; it must point to where the clock goes");
    if (start_at < 0 || start_at > WEIR_DURATION_MAX)
        return wr_invalid("start_at must be 0 to WEIR_DURATION_MAX");
    allocator = wr_allocator_or_system(allocator);
    struct fake_clock *fake = wr_alloc(allocator, sizeof *fake, _Alignof(struct fake_clock));
    if (fake == NULL)
        return WEIR_E_NOMEM;
    fake->clock = (weir_clock){fake_now, fake_wait};
    fake->allocator = allocator;
    atomic_init(&fake->now, start_at);
    if (pthread_mutex_init(&fake->lock, NULL) != 0) {
        wr_free(allocator, fake, sizeof *fake, _Alignof(struct fake_clock));
        return WEIR_E_SYSTEM;
    }
    *ret_clock = &fake->clock;
    return 0;
}

/* Tells a fake clock from a real one, so that a real clock passed by mistake is rejected and not
 * overwritten. */
static bool is_fake(const weir_clock *clock)
{
    return clock != NULL && clock->now == fake_now;
}

int weir_clock_fake_set(weir_clock *clock, int64_t now)
{
    if (!is_fake(clock))
        return wr_invalid("clock must come from weir_clock_fake_new");
    if (now < 0 || now > WEIR_DURATION_MAX)
        return wr_invalid("now must be 0 to WEIR_DURATION_MAX");
    struct fake_clock *fake = fake_of(clock);
    atomic_store(&fake->now, now);
    (void)pthread_mutex_lock(&fake->lock);
    for (struct wr_parker *parker = fake->parked; parker != NULL; parker = parker->next) {
        (void)pthread_mutex_lock(&parker->lock);
        (void)pthread_cond_signal(&parker->changed);
        (void)pthread_mutex_unlock(&parker->lock);
    }
    (void)pthread_mutex_unlock(&fake->lock);
    return 0;
}

int weir_clock_fake_advance(weir_clock *clock, int64_t by_ns)
{
    if (!is_fake(clock))
        return wr_invalid("clock must come from weir_clock_fake_new");
    if (by_ns < -WEIR_DURATION_MAX || by_ns > WEIR_DURATION_MAX)
        return wr_invalid("by_ns must be within WEIR_DURATION_MAX either way");
    return weir_clock_fake_set(clock, fake_now(clock) + by_ns);
}

int weir_clock_fake_waiters(const weir_clock *clock)
{
    if (!is_fake(clock))
        return wr_invalid("clock must come from weir_clock_fake_new");
    struct fake_clock *fake = fake_of(clock);
    (void)pthread_mutex_lock(&fake->lock);
    int waiters = fake->waiters;
    (void)pthread_mutex_unlock(&fake->lock);
    return waiters;
}

void weir_clock_fake_free(weir_clock *clock)
{
    if (!is_fake(clock))
        return;
    struct fake_clock *fake = fake_of(clock);
    (void)pthread_mutex_destroy(&fake->lock);
    wr_free(fake->allocator, fake, sizeof *fake, _Alignof(struct fake_clock));
}
