/* SPDX-License-Identifier: MIT */
/* key_source.h - parses the source of a key: global, ip, route, host, method, header:NAME,
 * token:NAME */
#ifndef WR_CORE_ADMIT_KEY_SOURCE_H
#define WR_CORE_ADMIT_KEY_SOURCE_H

#include "base/span.h"

#include <weir/admit.h>

/* The part of a request that becomes its key. */
enum wr_key_source {
    WR_KEY_FROM_GLOBAL,
    WR_KEY_FROM_IP,
    WR_KEY_FROM_ROUTE,
    WR_KEY_FROM_HOST,
    WR_KEY_FROM_METHOD,
    WR_KEY_FROM_HEADER,
    WR_KEY_FROM_TOKEN, /* a header with a secret value; the key is its digest */
};

/* Parses the source of a key. *ret_header becomes the header's name, inside `text`, or NULL if the
 * source is not a header. Returns 0, or WEIR_E_INVAL with a message. */
int wr_key_source_parse(const char *text, enum wr_key_source *ret_source, const char **ret_header);

#endif
