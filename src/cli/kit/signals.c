/* SPDX-License-Identifier: MIT */
/* signals.c - counts SIGINT, SIGTERM and SIGHUP for commands that end in order. */
#include "cli/kit/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

static atomic_uint seen;
static atomic_uint last; /* number of the signal that kills the process */

static void note(int number)
{
    if (atomic_fetch_add(&seen, 1) + 1 < atomic_load(&last))
        return;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void mask(int how)
{
    sigset_t ours;
    (void)sigemptyset(&ours);
    for (size_t i = 0; i < NUMBERS; i++)
        (void)sigaddset(&ours, numbers[i]);
    (void)pthread_sigmask(how, &ours, NULL);
}

void wr_signals_hold(void)
{
    mask(SIG_BLOCK);
}

static void listen_to(int number)
{
    struct sigaction action = {.sa_handler = note}, before;
    if (number == SIGHUP && sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return;
    (void)sigaction(number, &action, NULL);
}

void wr_signals_listen(unsigned deadly)
{
    atomic_store(&last, deadly);
    for (size_t i = 0; i < NUMBERS; i++)
        listen_to(numbers[i]);
    mask(SIG_UNBLOCK);
}

unsigned wr_signals_count(void)
{
    return atomic_load(&seen);
}
