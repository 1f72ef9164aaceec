/* SPDX-License-Identifier: MIT */
/* watchdog.c - measures how long a loop does not look at its timers, and reports turns that are too
 * long.
 *
 * Reading a thread's CPU time is a system call of half a microsecond: too slow for each of the many
 * small parts of a turn. So a part is measured by wall time. Only if that is long is the CPU time
 * read, because the thread may have been without a CPU. The whole turn is always measured by CPU
 * time.
 */
#include "http/loop/watchdog.h"

typedef int wr_watchdog_is_there; /* ISO C does not allow an empty file */

#ifdef WR_AWAY

#include "base/buf.h"
#include "limiter/clock/clock.h"

#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PARTS_MAX 64
#define LONG_NS (200 * WEIR_MICROSECOND) /* wall time; longer parts are timed in CPU time */
#define REPORTED_PARTS_MAX 3             /* most parts named in a report */
#define NOTED_NS (2 * WEIR_MILLISECOND)  /* turns longer than this are written to the file */
#define TICK_NS WEIR_MILLISECOND         /* period of the timer; a kernel whose tick is longer rounds it up */
#define STALLS 2                         /* ticks that a round may lose to other programs */
#define STACKS_MAX 3                     /* most stacks printed, one for each tick */
#define CALLS_MAX 24                     /* most frames of a stack */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc has no name for this member */
#endif

struct turn_part {
    const char *name;
    int64_t ns;
    uint32_t times;
};

static _Thread_local struct {
    const char *loop;  /* name of the loop; NULL: this thread runs no loop */
    const char *doing; /* current part of the turn; NULL: outside all parts */
    int64_t looked_at; /* CPU time at the start of the turn, ns */
    /* CPU time at the last measurement, ns; after a short part estimated from wall time. */
    int64_t known_at;
    int64_t since;                     /* wall time when the current part began, ns */
    const char *excuse;                /* reason why this turn may take longer, or NULL */
    struct turn_part parts[PARTS_MAX]; /* parts of the current turn */
    int count;
    timer_t timer;
    volatile sig_atomic_t ticks; /* kernel ticks that found the thread running in this turn */
    void *stacks[STACKS_MAX][CALLS_MAX];
    int depths[STACKS_MAX];
} mine;

static struct {
    pthread_once_t once;
    bool is_on;
    const char *path; /* file for long turns; NULL: a long turn aborts */
    int ticks_min;    /* fewest ticks of a turn that was certainly long */
} watch = {.once = PTHREAD_ONCE_INIT};

static void on_cpu_tick(int unused)
{
    (void)unused;
    if (mine.ticks < STACKS_MAX)
        mine.depths[mine.ticks] = backtrace(mine.stacks[mine.ticks], CALLS_MAX);
    mine.ticks++;
}

static void read_environment(void)
{
    const struct sigaction action = {.sa_handler = on_cpu_tick, .sa_flags = SA_RESTART};
    const char *wish = getenv("WEIR_TEST_WATCHDOG");
    struct timespec tick = {.tv_nsec = 0};
    if (wish == NULL || wish[0] == '\0' || sigaction(SIGPROF, &action, NULL) != 0)
        return;
    (void)clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    int fit = tick.tv_nsec > 0 ? (int)(WR_WATCHDOG_MAX_MS * WEIR_MILLISECOND / tick.tv_nsec) : 0;
    watch.ticks_min = fit > 1 ? fit + STALLS : 1 + STALLS;
    watch.path = strcmp(wish, "fail") != 0 ? wish : NULL;
    watch.is_on = true;
}

/* Starts a timer on the thread's CPU time. The kernel checks such timers when its clock ticks, so
 * that each tick raises a signal. */
static bool begin_ticks(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    const struct itimerspec often = {{.tv_nsec = TICK_NS}, {.tv_nsec = TICK_NS}};
    sigset_t ticks;
    event.sigev_notify_thread_id = gettid();
    (void)sigemptyset(&ticks);
    (void)sigaddset(&ticks, SIGPROF);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &mine.timer) != 0)
        return false;
    (void)pthread_sigmask(SIG_UNBLOCK, &ticks, NULL);
    (void)timer_settime(mine.timer, 0, &often, NULL);
    return true;
}

/* ---- parts ---- */

static struct turn_part *find_turn_part(const char *name)
{
    for (int i = 0; i < mine.count; i++)
        if (mine.parts[i].name == name)
            return &mine.parts[i];
    if (mine.count == PARTS_MAX)
        return &mine.parts[PARTS_MAX - 1];
    mine.parts[mine.count] = (struct turn_part){.name = name};
    return &mine.parts[mine.count++];
}

/* Adds the time since the last call to the current part. */
static void charge_time(void)
{
    static const char otherwise[] = "otherwise";
    int64_t now = wr_monotonic_now(), spent_ns = now - mine.since;
    if (spent_ns >= LONG_NS) {
        int64_t cpu = wr_thread_cpu_now();
        spent_ns = cpu - mine.known_at;
        spent_ns = spent_ns > 0 ? spent_ns : 0;
        mine.known_at = cpu;
        now = wr_monotonic_now();
    } else {
        mine.known_at += spent_ns;
    }
    find_turn_part(mine.doing != NULL ? mine.doing : otherwise)->ns += spent_ns;
    mine.since = now;
}

struct wr_watchdog_part wr_watchdog_enter(const char *name)
{
    if (!watch.is_on || mine.loop == NULL)
        return (struct wr_watchdog_part){.is_on = false};
    struct wr_watchdog_part part = {.before = mine.doing, .is_on = true};
    charge_time();
    mine.doing = name;
    find_turn_part(name)->times++;
    return part;
}

void wr_watchdog_leave(struct wr_watchdog_part *part)
{
    if (!part->is_on)
        return;
    charge_time();
    mine.doing = part->before;
}

/* ---- turns ---- */

static void append_milliseconds(struct wr_buf *buf, int64_t ns)
{
    wr_buf_append_u64(buf, (uint64_t)ns / WEIR_MILLISECOND);
    wr_buf_append_char(buf, '.');
    wr_buf_append_u64(buf, (uint64_t)ns / (100 * WEIR_MICROSECOND) % 10);
    wr_buf_append_string(buf, " ms");
}

static void append_longest_part(struct wr_buf *buf, int nth)
{
    struct turn_part *longest = NULL;
    for (int i = 0; i < mine.count; i++)
        if (mine.parts[i].ns > 0 && (longest == NULL || mine.parts[i].ns > longest->ns))
            longest = &mine.parts[i];
    if (longest == NULL)
        return;
    wr_buf_append_string(buf, nth == 0 ? ": " : ", ");
    wr_buf_append_string(buf, longest->name);
    wr_buf_append_char(buf, ' ');
    append_milliseconds(buf, longest->ns);
    if (longest->times > 0) {
        wr_buf_append_string(buf, " in ");
        wr_buf_append_u64(buf, longest->times);
    }
    longest->ns = 0;
}

/* Prints the stacks that the ticks recorded, for addr2line. They show the cause if no part does. */
static void print_stacks(int fd)
{
    for (int i = 0; i < mine.ticks && i < STACKS_MAX; i++) {
        backtrace_symbols_fd(mine.stacks[i], mine.depths[i], fd);
        (void)!write(fd, "\n", 1);
    }
}

static void report_turn(int64_t took_ns)
{
    char line[512];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, line, sizeof line);
    wr_buf_append_string(&buf, "away: ");
    wr_buf_append_string(&buf, mine.loop);
    wr_buf_append_string(&buf, " did not check its timers for ");
    append_milliseconds(&buf, took_ns);
    wr_buf_append_string(&buf, " of the processor's time, at most ");
    append_milliseconds(&buf, WR_WATCHDOG_MAX_MS * WEIR_MILLISECOND);
    for (int i = 0; i < REPORTED_PARTS_MAX; i++)
        append_longest_part(&buf, i);
    wr_buf_append_string(&buf, "; ticks: ");
    wr_buf_append_u64(&buf, (uint64_t)mine.ticks);
    if (mine.excuse != NULL) {
        wr_buf_append_string(&buf, "; excused: ");
        wr_buf_append_string(&buf, mine.excuse);
    }
    wr_buf_append_char(&buf, '\n');
    int fd = watch.path != NULL ? open(watch.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : STDERR_FILENO;
    if (fd >= 0)
        (void)!write(fd, line, buf.length);
    if (watch.path == NULL) {
        print_stacks(fd);
        (void)signal(SIGABRT, SIG_DFL); /* a test's handler would not end the program */
        abort();
    }
    if (fd >= 0)
        (void)close(fd);
}

static void begin_turn(void)
{
    mine.count = 0;
    mine.excuse = NULL;
    mine.ticks = 0;
    mine.looked_at = mine.known_at = wr_thread_cpu_now();
    mine.since = wr_monotonic_now();
}

void wr_watchdog_begin(const char *loop)
{
    (void)pthread_once(&watch.once, read_environment);
    if (!watch.is_on || !begin_ticks())
        return;
    /* The first call allocates, which a signal handler must not do. */
    (void)backtrace(mine.stacks[0], CALLS_MAX);
    mine.loop = loop;
    mine.doing = NULL;
    begin_turn();
}

void wr_watchdog_end(void)
{
    if (mine.loop == NULL)
        return;
    mine.loop = NULL;
    (void)timer_delete(mine.timer);
}

static bool is_too_long(int64_t took_ns)
{
    return took_ns > WR_WATCHDOG_MAX_MS * WEIR_MILLISECOND && mine.ticks >= watch.ticks_min && mine.excuse == NULL;
}

void wr_watchdog_turn(void)
{
    if (!watch.is_on || mine.loop == NULL)
        return;
    charge_time();
    int64_t took_ns = wr_thread_cpu_now() - mine.looked_at;
    if (watch.path != NULL ? took_ns > NOTED_NS : is_too_long(took_ns))
        report_turn(took_ns);
    begin_turn();
}

void wr_watchdog_excuse(enum wr_watchdog_excuse excuse)
{
    static const char *const reasons[] = {
#define X(name, why) why,
        WR_WATCHDOG_EXCUSES(X)
#undef X
    };
    mine.excuse = reasons[excuse];
}

#endif
