/* SPDX-License-Identifier: MIT */
/* delay.h - what whoever keeps connections wants to know of a host. */
#ifndef WR_SHELL_HOSTS_DELAY_H
#define WR_SHELL_HOSTS_DELAY_H

#include <weir/pace.h>

/* What lies between two starts there, waiting times apart; 0 if nothing does. The key must be sound. */
int64_t wr_pacer_delay(weir_pacer *pacer, const char *key, size_t key_bytes);

#endif
