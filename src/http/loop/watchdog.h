/* SPDX-License-Identifier: MIT */
/* watchdog.h - for tests: measures how long a loop does not look at its timers, and what it does
 * then.
 *
 *     wr_watchdog_begin("a crawl's loop");    this thread runs a loop from here on
 *     wr_watchdog_turn();                     a turn begins: the loop looks at its timers
 *     WR_DOING("links");                  names what the rest of the block does
 *     wr_watchdog_excuse(WR_WATCHDOG_STOPPING);       this turn may take longer; the table has the reason
 *     wr_watchdog_end();                      the loop has ended
 *
 * A turn is measured by the CPU time of the thread, so that a busy machine causes no false alarm. A
 * turn longer than WR_WATCHDOG_MAX_MS aborts the program. The message names the loop and the three
 * longest parts of the turn.
 *
 * A stalled machine must not abort the program either. Some kernels charge a thread for time that
 * the hypervisor took from the CPU, so that its CPU time jumps. Therefore the kernel's clock must
 * also have found the thread running for enough ticks: those that fit into WR_WATCHDOG_MAX_MS (at
 * least 1), and 2 more. A stall adds one tick however long it is, because missed ticks are not made
 * up for. One long system call also adds only one tick; its time depends on the machine more than
 * on this code. The price is precision. With a tick of 4 ms, a turn of 8 ms may be detected and one
 * of 12 ms is; with a tick of 1 ms, one of 7 ms is. Tests of the abort hold a loop for longer.
 *
 * Only builds with tests contain this code (WR_AWAY). It measures only if WEIR_TEST_WATCHDOG is
 * set:
 * `fail` aborts on a long turn; a path appends each turn of 2 ms or more, with its ticks, to that
 * file. Without the variable a call costs a load and a branch; in a build without tests, nothing.
 * Leave the variable unset under a sanitizer or valgrind, which slow all code down ten times.
 */
#ifndef WR_HTTP_LOOP_WATCHDOG_H
#define WR_HTTP_LOOP_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#define WR_WATCHDOG_MAX_MS 5

/* Reasons why a turn of a loop may take longer than WR_WATCHDOG_MAX_MS. */
#define WR_WATCHDOG_EXCUSES(X)                                                                                       \
    X(WR_WATCHDOG_CERTIFICATES, "libcurl reads the certificates that it trusts within one call, once for each loop") \
    X(WR_WATCHDOG_HOST_METRICS, "the user asked for the numbers of more than 100 hosts at once (--listen-hosts)")    \
    X(WR_WATCHDOG_STOPPING, "the crawl stops and gives up its work: nothing is due any more")

enum wr_watchdog_excuse {
#define X(name, why) name,
    WR_WATCHDOG_EXCUSES(X)
#undef X
};

#ifdef WR_AWAY

/* The part of a turn that a WR_DOING block measures; `before` is the enclosing part. */
struct wr_watchdog_part {
    const char *before;
    bool is_on;
};

void wr_watchdog_begin(const char *loop);
void wr_watchdog_end(void);
void wr_watchdog_turn(void);
void wr_watchdog_excuse(enum wr_watchdog_excuse excuse);
struct wr_watchdog_part wr_watchdog_enter(const char *name);
void wr_watchdog_leave(struct wr_watchdog_part *part);

#define WR_DOING_JOIN(a, b) a##b
#define WR_DOING_PART(line) WR_DOING_JOIN(wr_watchdog_part_, line)
#define WR_DOING(name)                                                                                    \
    __attribute__((cleanup(wr_watchdog_leave), unused)) struct wr_watchdog_part WR_DOING_PART(__LINE__) = \
        wr_watchdog_enter(name)

#else

#define wr_watchdog_begin(loop) ((void)0)
#define wr_watchdog_end() ((void)0)
#define wr_watchdog_turn() ((void)0)
#define wr_watchdog_excuse(excuse) ((void)0)
#define WR_DOING(name) ((void)0)

#endif

#endif
