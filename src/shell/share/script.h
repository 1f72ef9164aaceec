/* SPDX-License-Identifier: MIT */
/* script.h - what runs inside the store, in one step each. */
#ifndef WR_SHELL_SHARE_SCRIPT_H
#define WR_SHELL_SHARE_SCRIPT_H

enum wr_script {
    WR_SCRIPT_CHARGE, /* KEYS state; ARGV permits, extra, state last seen, then for each limit: kind, permits, refill,
                         period in us. Returns granted, extra given, wait, wait for all (us), left, reset (us), state */
    WR_SCRIPT_SEAT,   /* KEYS seats; ARGV who, how many seats, for how long (ms). Returns 1 or 0 */
    WR_SCRIPT_COUNT,
};

const char *wr_script_text(enum wr_script script);

#endif
