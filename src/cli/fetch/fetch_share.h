/* SPDX-License-Identifier: MIT */
/* fetch_share.h - weir fetch --share: shares the gates of hosts with other processes. */
#ifndef WR_CLI_FETCH_FETCH_SHARE_H
#define WR_CLI_FETCH_FETCH_SHARE_H

#include <weir/pace.h>

struct wr_shared_gate;

/* Checks the URL of the Redis store, as wr_redis_address_parse does. */
int wr_check_store(const char *text);

/* Connects the pacer to the store. Must be called before the pacer is used. `prefix` may be NULL.
 * Returns false after printing an error. */
bool wr_fetch_share_start(const char *url, const char *prefix, weir_pacer *pacer, struct wr_shared_gate **ret_relay);

#endif
