/* SPDX-License-Identifier: MIT */
/* fields.h - when to come again. */
#ifndef WR_CORE_ADMIT_FIELDS_H
#define WR_CORE_ADMIT_FIELDS_H

#include <weir/admit.h>

/* Seconds after which a refused request may come again: rounded up, at least 1; 0 if that will not help. */
int64_t wr_retry_after_s(const weir_ruling *ruling);

#endif
