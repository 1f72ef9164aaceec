/* SPDX-License-Identifier: MIT */
/* admission_result.h - derives the result of an admission from its rulings. */
#ifndef WR_CORE_ADMIT_ADMISSION_RESULT_H
#define WR_CORE_ADMIT_ADMISSION_RESULT_H

#include <weir/admit.h>

#define WR_NO_TIME (-1)

/* Returns `ns` in whole seconds, rounded up: a caller that waits for so long must not come too
 * early. */
int64_t wr_seconds_up(int64_t ns);

/* Returns true if response headers list the ruling. */
bool wr_ruling_is_shown(const weir_ruling *ruling);

/* Returns the time for which a ruling's numbers hold, ns. For a refused request that is the time
 * until it may be granted, the same as Retry-After (draft-ietf-httpapi-ratelimit-headers-10,
 * section 6). For others it is the time until the quota is full. Returns WR_NO_TIME if neither
 * depends on time. */
int64_t wr_ruling_until_ns(const weir_ruling *ruling);

/* Returns the seconds after which a refused request may be repeated: rounded up, at least 1.
 * Returns 0 if repeating it is pointless. */
int64_t wr_retry_after_s(const weir_ruling *ruling);

#endif
