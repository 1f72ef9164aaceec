/* SPDX-License-Identifier: MIT */
/* test_away.c - tests of the watchdog, which reports a loop that did not run its timers in time,
 * and why (M12, N1-2). */
#include "http/loop/watchdog.h"
#include "lib/test.h"
#include "limiter/clock/clock.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/time.h>

#define LONG_NS (200 * WEIR_MILLISECOND) /* CPU time of the thread */

/* Computes until the thread has used `ns` of CPU time. */
static void compute(int64_t ns)
{
    int64_t until = wr_thread_cpu_now() + ns;
    while (wr_thread_cpu_now() < until)
        ;
}

/* Runs `turn` as a loop's thread in a child process. Writes its stderr to ret_words. Returns true
 * if the child aborted. */
static bool is_ended(void (*turn)(void), char *ret_words, size_t room)
{
    int pipes[2], status = 0;
    if (test_is_emulated())
        SKIP("the emulator's own processor time counts as the test's");
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)dup2(pipes[1], STDERR_FILENO);
        (void)setenv("WEIR_TEST_WATCHDOG", "fail", 1);
        wr_watchdog_begin("a test");
        turn();
        _exit(0);
    }
    (void)close(pipes[1]);
    size_t length = 0;
    ssize_t count;
    while (length + 1 < room && (count = read(pipes[0], ret_words + length, room - 1 - length)) > 0)
        length += (size_t)count;
    ret_words[length] = '\0';
    (void)close(pipes[0]);
    assert_true(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void short_parts_and_a_long_one(void)
{
    for (int i = 0; i < 10; i++) {
        WR_DOING("a short part");
        compute(10 * WEIR_MICROSECOND);
    }
    {
        WR_DOING("around the long part");
        {
            WR_DOING("the long part");
            compute(LONG_NS);
        }
        compute(10 * WEIR_MICROSECOND);
    }
    wr_watchdog_turn();
}

static void long_turn_aborts_the_program_and_names_its_longest_part(void **state)
{
    char words[1024];
    (void)state;
    assert_true(is_ended(short_parts_and_a_long_one, words, sizeof words));
    assert_non_null(strstr(words, "away: a test did not check its timers for "));
    assert_non_null(strstr(words, " ms: the long part "));
}

static void many_short_turns(void)
{
    for (int i = 0; i < 200; i++) {
        WR_DOING("a short part");
        compute(WEIR_MILLISECOND);
        wr_watchdog_turn();
    }
}

static void short_turns_never_abort_the_program(void **state)
{
    char words[1024];
    (void)state;
    assert_false(is_ended(many_short_turns, words, sizeof words));
    assert_string_equal(words, "");
}

static void long_wait(void)
{
    struct timespec at = {.tv_nsec = 400 * WEIR_MILLISECOND};
    int pipes[2];
    WR_DOING("waiting");
    if (pipe(pipes) == 0) { /* nothing is ever written to the pipe */
        fd_set none;
        FD_ZERO(&none);
        FD_SET(pipes[0], &none);
        (void)pselect(pipes[0] + 1, &none, NULL, NULL, &at, NULL);
    }
    wr_watchdog_turn();
}

static void watchdog_does_not_count_time_without_a_processor(void **state)
{
    char words[1024];
    (void)state;
    assert_false(is_ended(long_wait, words, sizeof words));
}

/* While SIGPROF is blocked at most one tick is pending: each stall costs one tick, however long it
 * is. */
static void two_stalls(void)
{
    sigset_t ticks;
    (void)sigemptyset(&ticks);
    (void)sigaddset(&ticks, SIGPROF);
    for (int i = 0; i < 2; i++) {
        (void)pthread_sigmask(SIG_BLOCK, &ticks, NULL);
        compute(LONG_NS);
        (void)pthread_sigmask(SIG_UNBLOCK, &ticks, NULL);
    }
    wr_watchdog_turn();
}

static void watchdog_does_not_count_time_of_a_stalled_machine(void **state)
{
    char words[1024];
    (void)state;
    assert_false(is_ended(two_stalls, words, sizeof words));
}

static void excused_turn(void)
{
    wr_watchdog_excuse(WR_WATCHDOG_STOPPING);
    compute(LONG_NS);
    wr_watchdog_turn();
}

static void excused_turn_may_take_longer(void **state)
{
    char words[1024];
    (void)state;
    assert_false(is_ended(excused_turn, words, sizeof words));
}

static void turn_after_an_excused_one(void)
{
    wr_watchdog_excuse(WR_WATCHDOG_STOPPING);
    wr_watchdog_turn();
    compute(LONG_NS);
    wr_watchdog_turn();
}

static void watchdog_excuse_lasts_for_one_turn(void **state)
{
    char words[1024];
    (void)state;
    assert_true(is_ended(turn_after_an_excused_one, words, sizeof words));
}

WEIR_TESTS(test(long_turn_aborts_the_program_and_names_its_longest_part), test(short_turns_never_abort_the_program),
           test(watchdog_does_not_count_time_without_a_processor),
           test(watchdog_does_not_count_time_of_a_stalled_machine), test(excused_turn_may_take_longer),
           test(watchdog_excuse_lasts_for_one_turn))
