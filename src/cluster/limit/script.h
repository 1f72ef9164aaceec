/* SPDX-License-Identifier: MIT */
/* script.h - the Lua scripts that the store runs, each as one atomic step. */
#ifndef WR_CLUSTER_LIMIT_SCRIPT_H
#define WR_CLUSTER_LIMIT_SCRIPT_H

enum wr_redis_script {
    WR_SCRIPT_CHARGE,     /* charge.lua */
    WR_SCRIPT_MEMBERSHIP, /* membership.lua */
    WR_SCRIPT_GATE_LEASE, /* gate_lease.lua */
    WR_SCRIPT_COUNT,
};

extern const char *const wr_redis_script_texts[]; /* texts of the scripts */

#endif
