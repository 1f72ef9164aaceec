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

static void count_signal(int number)
{
    if (atomic_fetch_add(&seen, 1) + 1 < atomic_load(&last))
        return;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void set_signal_mask(int how)
{
    sigset_t ours;
    (void)sigemptyset(&ours);
    for (size_t i = 0; i < NUMBERS; i++)
        (void)sigaddset(&ours, numbers[i]);
    (void)pthread_sigmask(how, &ours, NULL);
}

void wr_signals_block(void)
{
    set_signal_mask(SIG_BLOCK);
}

static void install_signal_counter(int number)
{
    struct sigaction action = {.sa_handler = count_signal}, before;
    if (number == SIGHUP && sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return;
    (void)sigaction(number, &action, NULL);
}

void wr_signals_listen(unsigned deadly)
{
    atomic_store(&last, deadly);
    for (size_t i = 0; i < NUMBERS; i++)
        install_signal_counter(numbers[i]);
    set_signal_mask(SIG_UNBLOCK);
}

unsigned wr_signals_count(void)
{
    return atomic_load(&seen);
}
