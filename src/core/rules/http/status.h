/* SPDX-License-Identifier: MIT */
/* status.h - what an answer's status means for the question whether to try again: a table that may be changed. */
#ifndef WR_CORE_RULES_HTTP_STATUS_H
#define WR_CORE_RULES_HTTP_STATUS_H

#include "base/span.h"

#include <stdint.h>

#define WR_STATUS_MAX 999

#define WR_STATUS_CLASSES(X)                                                            \
    X(WR_STATUS_DONE, "done")           /* there is nothing to try again */             \
    X(WR_STATUS_TRANSIENT, "transient") /* may go well next time */                     \
    X(WR_STATUS_BLOCKING, "blocking")   /* the server turns us away: when it says so */ \
    X(WR_STATUS_PERMANENT, "permanent") /* will fail again */

enum wr_status_class {
#define X(class, name) class,
    WR_STATUS_CLASSES(X)
#undef X
};

struct wr_statuses {
    uint8_t of[WR_STATUS_MAX + 1]; /* enum wr_status_class; [0]: no answer came */
};

enum wr_statuses_preset {
    WR_STATUSES_JOBS, /* refusals (core/pace/refusal.h), 403 and 503 are blocking */
    WR_STATUSES_API,  /* refusals and 503 are transient, 403 is permanent */
};

/* Otherwise alike: 1xx to 3xx are done; no answer, 408, 425, 500, 502, 504 and Cloudflare's 520 to 524 are transient;
 * other 4xx and 5xx are permanent. */
void wr_statuses_init(struct wr_statuses *ret_statuses, enum wr_statuses_preset preset);

/* "403=permanent, 500=permanent, 0=permanent": changes these; "api": takes all of that preset, undoing what stands
 * before it. WEIR_E_INVAL, and nothing is changed. */
int wr_statuses_parse(struct wr_statuses *statuses, const char *text);

/* Numbers that are no status, such as 600, are permanent: that was not HTTP. */
enum wr_status_class wr_status_class(const struct wr_statuses *statuses, int status);

#endif
