/* SPDX-License-Identifier: MIT */
/* script.h - what runs inside the store, in one step each. */
#ifndef WR_SHELL_SHARE_SCRIPT_H
#define WR_SHELL_SHARE_SCRIPT_H

enum wr_script {
    WR_SCRIPT_CHARGE, /* charge.lua */
    WR_SCRIPT_SEAT,   /* seat.lua */
    WR_SCRIPT_BATON,  /* baton.lua */
    WR_SCRIPT_COUNT,
};

extern const char *const wr_scripts[]; /* their texts */

#endif
