/* SPDX-License-Identifier: MIT */
/* away.h - how long a loop is away from its timers, and what it does meanwhile: measured by the tests.
 *
 *     wr_away_begin("a crawl's loop");    the thread runs a loop from here on
 *     wr_away_look();                     a turn of the loop: its timers are looked at
 *     WR_DOING("links");                  what the rest of the block does
 *     wr_away_excuse(WR_AWAY_ENDS);       this turn may take longer, for the reason in the table
 *     wr_away_end();                      the loop has ended
 *
 * What counts between two looks is the processor's time of the thread, so a busy machine makes no loop late. More than
 * WR_AWAY_MAX_MS of it ends the program, with a line that names the loop and the three parts that took longest.
 *
 * A machine that stalls must end nothing either. Some kernels book on a thread what the hypervisor took from the
 * processor, so that its time jumps. Therefore a turn is too long only if the kernel's clock has found the thread
 * running often enough, too: by so many ticks as fit into WR_AWAY_MAX_MS (at least 1), and 2 more. However long a stall
 * is, it adds one tick: those that are missed are not made up for. So does one call into the kernel, whose time is
 * the machine's more than ours. The price: with a tick of 4 ms, a turn of 8 ms may
 * be seen and one of 12 ms is; with one of 1 ms, one of 7 ms is. Tests for a fault hold a loop for longer than that.
 *
 * All of it is there in builds with tests only (WR_AWAY), and measures only where WEIR_TEST_AWAY is set: `fail` ends
 * the program, a path has each turn of 2 ms and more written to that file instead, with its ticks. Else it costs a load
 * and a branch; in a build without tests nothing. Under a sanitizer or valgrind, where all takes ten times as long, it
 * stays unset.
 */
#ifndef WR_SHELL_LOOP_AWAY_H
#define WR_SHELL_LOOP_AWAY_H

#include <stdbool.h>
#include <stdint.h>

#define WR_AWAY_MAX_MS 5

/* Turns that may take longer, and why. */
#define WR_AWAY_EXCUSES(X)                                                                                 \
    X(WR_AWAY_TRUSTS, "libcurl reads the certificates that it trusts within one call, once for each loop") \
    X(WR_AWAY_ASKED, "the user asked for the numbers of more than 100 hosts at once (--listen-hosts)")     \
    X(WR_AWAY_ENDS, "all is given up or given away: nothing is due any more")

enum wr_away_excuse {
#define X(name, why) name,
    WR_AWAY_EXCUSES(X)
#undef X
};

#ifdef WR_AWAY

/* What a block does, and what the thread did before. */
struct wr_away_part {
    const char *before;
    bool is_on;
};

void wr_away_begin(const char *loop);
void wr_away_end(void);
void wr_away_look(void);
void wr_away_excuse(enum wr_away_excuse excuse);
struct wr_away_part wr_away_enter(const char *name);
void wr_away_leave(struct wr_away_part *part);

#define WR_DOING_JOIN(a, b) a##b
#define WR_DOING_PART(line) WR_DOING_JOIN(wr_away_part_, line)
#define WR_DOING(name) \
    __attribute__((cleanup(wr_away_leave), unused)) struct wr_away_part WR_DOING_PART(__LINE__) = wr_away_enter(name)

#else

#define wr_away_begin(loop) ((void)0)
#define wr_away_end() ((void)0)
#define wr_away_look() ((void)0)
#define wr_away_excuse(excuse) ((void)0)
#define WR_DOING(name) ((void)0)

#endif

#endif
