/* SPDX-License-Identifier: MIT */
/* share.h - weir fetch --share: hosts' gates are those of other processes, too. */
#ifndef WR_CLI_FETCH_SHARE_H
#define WR_CLI_FETCH_SHARE_H

#include <weir/pace.h>

struct wr_relay;

/* Where they meet: a URL, as wr_store_address_parse takes it. */
int wr_check_store(const char *text);

/* Before anything is asked of the pacer; `prefix` may be NULL. False after a complaint. */
bool wr_share_start(const char *url, const char *prefix, weir_pacer *pacer, struct wr_relay **ret_relay);

#endif
