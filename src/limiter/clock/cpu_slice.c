/* SPDX-License-Identifier: MIT */
/* cpu_slice.c - asks the Linux scheduler for short or long time slices for the calling thread. */
#include "limiter/clock/cpu_slice.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* time for a few requests; a shorter slice would let others interrupt the thread between them */
#define SHORT_NS 300000

/* The kernel's struct sched_attr in its first size. No header of glibc or the kernel that has it
 * can be included together with <sched.h> on every system. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* Changes the policy and the time slice of the calling thread. Leaves a thread alone if the user
 * has chosen another policy for it (chrt). */
static void set_time_slice(uint32_t policy, uint64_t runtime_ns)
{
    struct attributes is = {.size = sizeof is};
    if (syscall(SYS_sched_getattr, 0, &is, sizeof is, 0) != 0 || is.policy != SCHED_OTHER)
        return;
    is.policy = policy;
    is.runtime_ns = runtime_ns;
    (void)syscall(SYS_sched_setattr, 0, &is, 0);
}

void wr_cpu_slice_short(void)
{
    set_time_slice(SCHED_OTHER, SHORT_NS);
}

void wr_cpu_slice_long(void)
{
    set_time_slice(SCHED_BATCH, 0);
}
