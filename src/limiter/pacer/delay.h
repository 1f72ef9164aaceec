/* SPDX-License-Identifier: MIT */
/* delay.h - The delay of a host, for the management of connections. */
#ifndef WR_LIMITER_PACER_DELAY_H
#define WR_LIMITER_PACER_DELAY_H

#include "base/seam.h"

#include <weir/pace.h>

/* Returns the time between two starts of a host, without temporary waits; 0 if starts are not
 * spaced. The key must be valid. */
WR_SEAM int64_t wr_pacer_delay(weir_pacer *pacer, const char *key, size_t key_bytes);

#endif
