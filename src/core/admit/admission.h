/* SPDX-License-Identifier: MIT */
/* admission.h - what the rulings come to. */
#ifndef WR_CORE_ADMIT_ADMISSION_H
#define WR_CORE_ADMIT_ADMISSION_H

#include <weir/admit.h>

#define WR_NO_TIME (-1)

/* Whole seconds: a caller that believes us must never come too early. */
int64_t wr_seconds_up(int64_t ns);

/* Whether callers are told of it. */
bool wr_ruling_is_shown(const weir_ruling *ruling);

/* Until when a ruling's numbers hold: for what was refused, until it may be granted, so that the time is the same as
 * that of Retry-After (draft-ietf-httpapi-ratelimit-headers-10, section 6); else until all is there again. WR_NO_TIME
 * if no clock tells. */
int64_t wr_ruling_until_ns(const weir_ruling *ruling);

/* Seconds after which a refused request may come again: rounded up, at least 1; 0 if that will not help. */
int64_t wr_retry_after_s(const weir_ruling *ruling);

#endif
