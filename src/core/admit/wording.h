/* SPDX-License-Identifier: MIT */
/* wording.h - limits and keys, as people write them.
 *
 *     10/s                     a token bucket: 10 a second, and as many at once
 *     10/s burst=20            … 20 at once
 *     1000/h sliding_window    another algorithm: fixed_window, sliding_window, sliding_log, leaky_bucket
 *     concurrent=20            so many in flight
 *
 *     global, ip, route, host, method, header:NAME, token:NAME
 */
#ifndef WR_CORE_ADMIT_WORDING_H
#define WR_CORE_ADMIT_WORDING_H

#include "base/span.h"

#include <weir/admit.h>

/* WEIR_E_INVAL. */
int wr_limit_parse(const char *text, weir_limit *ret_limit);

/* What a key is made of. */
enum wr_key_source {
    WR_KEY_FROM_GLOBAL,
    WR_KEY_FROM_IP,
    WR_KEY_FROM_ROUTE,
    WR_KEY_FROM_HOST,
    WR_KEY_FROM_METHOD,
    WR_KEY_FROM_HEADER,
    WR_KEY_FROM_TOKEN, /* a header whose value is a secret: only its digest is kept */
};

/* *ret_header is the header's name, inside `text`; NULL if there is none. WEIR_E_INVAL. */
int wr_key_source_parse(const char *text, enum wr_key_source *ret_source, const char **ret_header);

#endif
