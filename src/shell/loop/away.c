/* SPDX-License-Identifier: MIT */
/* away.c - how long a loop is away from its timers: the parts of a turn, and the end of one that took too long.
 *
 * To read a thread's processor time is a call into the kernel, half a microsecond: too dear for each of the many small
 * parts of a turn. So a part is measured by the clock on the wall, and by the processor's time only if that was long:
 * then the thread may have been without a processor. The turn as a whole is measured by the processor's time always.
 */
#include "shell/loop/away.h"

typedef int wr_away_is_there; /* a file of C is not empty */

#ifdef WR_AWAY

#include "base/buf.h"
#include "shell/clock/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PARTS_MAX 64
#define LONG_NS (200 * WEIR_MICROSECOND) /* of a part, by the clock on the wall */
#define TOLD_MAX 3                       /* parts in a line */
#define NOTED_NS (2 * WEIR_MILLISECOND)  /* a turn that is written to the file */

/* Code that a sanitizer watches takes so much longer; measured by the tests' own longest turns. */
#if defined(__SANITIZE_THREAD__)
#define SLOWER 15
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWER 6
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOWER 15
#elif __has_feature(address_sanitizer)
#define SLOWER 6
#endif
#endif
#ifndef SLOWER
#define SLOWER 1
#endif

struct part {
    const char *name;
    int64_t ns;
    uint32_t times;
};

static _Thread_local struct {
    const char *loop;             /* NULL: the thread runs none */
    const char *doing;            /* NULL: none of the parts */
    int64_t looked_at;            /* processor's time */
    int64_t known_at;             /* processor's time, as far as it is known */
    int64_t since;                /* wall: when the part began */
    const char *excuse;           /* of this turn */
    struct part parts[PARTS_MAX]; /* of this turn */
    int count;
} mine;

static struct {
    pthread_once_t once;
    bool is_on;
    const char *path; /* NULL: a long turn ends the program */
} watch = {.once = PTHREAD_ONCE_INIT};

static void read_wish(void)
{
    const char *wish = getenv("WEIR_TEST_AWAY");
    watch.is_on = wish != NULL && wish[0] != '\0';
    if (watch.is_on && strcmp(wish, "fail") != 0)
        watch.path = wish;
}

/* ---- parts ---- */

static struct part *part_of(const char *name)
{
    for (int i = 0; i < mine.count; i++)
        if (mine.parts[i].name == name)
            return &mine.parts[i];
    if (mine.count == PARTS_MAX)
        return &mine.parts[PARTS_MAX - 1];
    mine.parts[mine.count] = (struct part){.name = name};
    return &mine.parts[mine.count++];
}

/* What has passed since the last call belongs to what was done. */
static void charge(void)
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
    part_of(mine.doing != NULL ? mine.doing : otherwise)->ns += spent_ns;
    mine.since = now;
}

struct wr_away_part wr_away_enter(const char *name)
{
    if (!watch.is_on || mine.loop == NULL)
        return (struct wr_away_part){.is_on = false};
    struct wr_away_part part = {.before = mine.doing, .is_on = true};
    charge();
    mine.doing = name;
    part_of(name)->times++;
    return part;
}

void wr_away_leave(struct wr_away_part *part)
{
    if (!part->is_on)
        return;
    charge();
    mine.doing = part->before;
}

/* ---- turns ---- */

static void append_ms(struct wr_buf *buf, int64_t ns)
{
    wr_buf_append_u64(buf, (uint64_t)ns / WEIR_MILLISECOND);
    wr_buf_append_char(buf, '.');
    wr_buf_append_u64(buf, (uint64_t)ns / (100 * WEIR_MICROSECOND) % 10);
    wr_buf_append_string(buf, " ms");
}

static void append_longest_part(struct wr_buf *buf, int nth)
{
    struct part *longest = NULL;
    for (int i = 0; i < mine.count; i++)
        if (mine.parts[i].ns > 0 && (longest == NULL || mine.parts[i].ns > longest->ns))
            longest = &mine.parts[i];
    if (longest == NULL)
        return;
    wr_buf_append_string(buf, nth == 0 ? ": " : ", ");
    wr_buf_append_string(buf, longest->name);
    wr_buf_append_char(buf, ' ');
    append_ms(buf, longest->ns);
    if (longest->times > 0) {
        wr_buf_append_string(buf, " in ");
        wr_buf_append_u64(buf, longest->times);
    }
    longest->ns = 0;
}

static void tell(int64_t took_ns)
{
    char line[512];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, line, sizeof line);
    wr_buf_append_string(&buf, "away: ");
    wr_buf_append_string(&buf, mine.loop);
    wr_buf_append_string(&buf, " did not look at its timers for ");
    append_ms(&buf, took_ns);
    wr_buf_append_string(&buf, " of the processor's time, at most ");
    append_ms(&buf, WR_AWAY_MAX_MS * SLOWER * WEIR_MILLISECOND);
    for (int i = 0; i < TOLD_MAX; i++)
        append_longest_part(&buf, i);
    if (mine.excuse != NULL) {
        wr_buf_append_string(&buf, "; excused: ");
        wr_buf_append_string(&buf, mine.excuse);
    }
    wr_buf_append_char(&buf, '\n');
    int fd = watch.path != NULL ? open(watch.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : STDERR_FILENO;
    if (fd >= 0)
        (void)!write(fd, line, buf.length);
    if (watch.path == NULL)
        abort();
    if (fd >= 0)
        (void)close(fd);
}

static void begin_turn(void)
{
    mine.count = 0;
    mine.excuse = NULL;
    mine.looked_at = mine.known_at = wr_thread_cpu_now();
    mine.since = wr_monotonic_now();
}

void wr_away_begin(const char *loop)
{
    (void)pthread_once(&watch.once, read_wish);
    if (!watch.is_on)
        return;
    mine.loop = loop;
    mine.doing = NULL;
    begin_turn();
}

void wr_away_look(void)
{
    if (!watch.is_on || mine.loop == NULL)
        return;
    charge();
    int64_t took_ns = wr_thread_cpu_now() - mine.looked_at;
    if (watch.path != NULL ? took_ns > NOTED_NS
                           : took_ns > WR_AWAY_MAX_MS * SLOWER * WEIR_MILLISECOND && mine.excuse == NULL)
        tell(took_ns);
    begin_turn();
}

void wr_away_excuse(enum wr_away_excuse excuse)
{
    static const char *const reasons[] = {
#define X(name, why) why,
        WR_AWAY_EXCUSES(X)
#undef X
    };
    mine.excuse = reasons[excuse];
}

#endif
