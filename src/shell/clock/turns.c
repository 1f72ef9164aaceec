/* SPDX-License-Identifier: MIT */
/* turns.c - how soon a thread gets a processor: what the Linux scheduler may be asked for. */
#include "shell/clock/turns.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORT_NS 300000 /* some requests: with less it would itself be interrupted between them */

/* The kernel's struct sched_attr in its first size; neither glibc nor the kernel's headers have one that can be
 * included beside <sched.h> everywhere. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* As it is, but with other turns. A thread that the user has put elsewhere (chrt) stays there. */
static void ask(uint32_t policy, uint64_t runtime_ns)
{
    struct attributes is = {.size = sizeof is};
    if (syscall(SYS_sched_getattr, 0, &is, sizeof is, 0) != 0 || is.policy != SCHED_OTHER)
        return;
    is.policy = policy;
    is.runtime_ns = runtime_ns;
    (void)syscall(SYS_sched_setattr, 0, &is, 0);
}

void wr_turns_short(void)
{
    ask(SCHED_OTHER, SHORT_NS);
}

void wr_turns_long(void)
{
    ask(SCHED_BATCH, 0);
}
