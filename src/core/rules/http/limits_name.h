/* SPDX-License-Identifier: MIT */
/* limits_name.h - which part a header field has in telling of limits, by its name. */
#ifndef WR_CORE_RULES_HTTP_LIMITS_NAME_H
#define WR_CORE_RULES_HTTP_LIMITS_NAME_H

#include "base/span.h"

#include <stdint.h>

enum wr_limits_role {
    WR_ROLE_DATE,
    WR_ROLE_RETRY,      /* Retry-After and its kin */
    WR_ROLE_STRUCTURED, /* RateLimit */
    WR_ROLE_POLICY,     /* RateLimit-Policy */
    WR_ROLE_LIMIT,      /* the others are of families such as X-RateLimit-Limit */
    WR_ROLE_REMAINING,
    WR_ROLE_RESET,       /* a duration or an instant */
    WR_ROLE_RESET_AFTER, /* a duration */
};

struct wr_limits_name {
    enum wr_limits_role role;
    bool is_ms;         /* the name says milliseconds */
    bool is_other_unit; /* it is tokens, bytes or the like that are counted */
    uint64_t quota;     /* a hash of all that is not the role: fields of one quota have the same */
};

/* False for a name that has no part in it. */
bool wr_limits_name_parse(struct wr_span name, uint64_t seed, struct wr_limits_name *ret_name);

/* FNV-1a, going on from `hash`. */
uint64_t wr_limits_name_hash(uint64_t hash, struct wr_span text);

#endif
