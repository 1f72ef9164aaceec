/* SPDX-License-Identifier: MIT */
/* status.h - classifies HTTP statuses for retries, in a table that can be changed. */
#ifndef WR_CORE_WEB_HTTP_STATUS_H
#define WR_CORE_WEB_HTTP_STATUS_H

#include "base/span.h"

#include <stdint.h>

#define WR_STATUS_MAX 999

#define WR_STATUS_CLASSES(X)                                                              \
    X(WR_STATUS_DONE, "done")           /* no retry is needed */                          \
    X(WR_STATUS_TRANSIENT, "transient") /* a retry may succeed */                         \
    X(WR_STATUS_BLOCKING, "blocking")   /* the server refuses: retry when it allows it */ \
    X(WR_STATUS_PERMANENT, "permanent") /* a retry would fail the same way */

enum wr_status_class {
#define X(class, name) class,
    WR_STATUS_CLASSES(X)
#undef X
};

struct wr_statuses {
    uint8_t of[WR_STATUS_MAX + 1]; /* enum wr_status_class of each status; [0]: no response came */
};

enum wr_statuses_preset {
    WR_STATUSES_JOBS, /* refusals (core/pace/refusal.h), 403 and 503 are blocking */
    WR_STATUSES_API,  /* refusals and 503 are transient, 403 is permanent */
};

/* Fills the table. Common to both presets: 1xx to 3xx are done; no response, 408, 425, 500, 502,
 * 504 and 520 to 524 (Cloudflare) are transient; other 4xx and 5xx are permanent. */
void wr_statuses_init(struct wr_statuses *ret_statuses, enum wr_statuses_preset preset);

/* Changes entries: "403=permanent, 500=permanent, 0=permanent". "api" loads the whole preset and so
 * undoes the entries before it. Returns WEIR_E_INVAL, with the table unchanged, if the text is
 * invalid. */
int wr_statuses_parse(struct wr_statuses *statuses, const char *text);

/* Returns the class of a status. Invalid statuses such as 600 are permanent, because the response
 * was not HTTP. */
enum wr_status_class wr_status_class(const struct wr_statuses *statuses, int status);

#endif
