/* SPDX-License-Identifier: MIT */
/* limit_field_name.h - parses the names of header fields that report rate limits. */
#ifndef WR_CORE_WEB_HTTP_LIMIT_FIELD_NAME_H
#define WR_CORE_WEB_HTTP_LIMIT_FIELD_NAME_H

#include "base/span.h"

#include <stdint.h>

enum wr_limit_field_role {
    WR_ROLE_DATE,
    WR_ROLE_RETRY,      /* Retry-After and similar fields */
    WR_ROLE_STRUCTURED, /* the field RateLimit */
    WR_ROLE_POLICY,     /* the field RateLimit-Policy */
    WR_ROLE_LIMIT,      /* this and the next three: families such as X-RateLimit-Limit */
    WR_ROLE_REMAINING,
    WR_ROLE_RESET,       /* reset time: a duration or an instant */
    WR_ROLE_RESET_AFTER, /* reset time: always a duration */
};

struct wr_limit_field_name {
    enum wr_limit_field_role role;
    bool is_ms;         /* the name says milliseconds */
    bool is_other_unit; /* the quota counts tokens, bytes or the like */
    uint64_t quota;     /* hash of the name without the role: equal for fields of one quota */
};

/* Parses a field name. Returns false if it reports no limits. */
bool wr_limit_field_name_parse(struct wr_span name, uint64_t seed, struct wr_limit_field_name *ret_name);

/* Continues the FNV-1a hash `hash` with the bytes of `text`. */
uint64_t wr_limit_field_name_hash(uint64_t hash, struct wr_span text);

#endif
