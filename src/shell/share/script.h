/* SPDX-License-Identifier: MIT */
/* script.h - the Lua scripts that the store runs, each as one atomic step. */
#ifndef WR_SHELL_SHARE_SCRIPT_H
#define WR_SHELL_SHARE_SCRIPT_H

enum wr_script {
    WR_SCRIPT_CHARGE, /* charge.lua */
    WR_SCRIPT_SEAT,   /* seat.lua */
    WR_SCRIPT_BATON,  /* baton.lua */
    WR_SCRIPT_COUNT,
};

extern const char *const wr_scripts[]; /* texts of the scripts */

#endif
