/* SPDX-License-Identifier: MIT */
/* refusal.h - Defines the HTTP statuses that mean "too many requests". */
#ifndef WR_CORE_PACE_REFUSAL_H
#define WR_CORE_PACE_REFUSAL_H

#include <stdbool.h>

/* Returns true for 429 (RFC 6585) and the statuses that some services send instead. 503 is
 * excluded: it can also mean that the server is down. */
static inline bool wr_status_refuses(int status)
{
    switch (status) {
    case 420: /* "Enhance Your Calm", sent by the former Twitter API */
    case 429:
    case 430: /* Shopify */
    case 509: /* Bandwidth Limit Exceeded: cPanel, Apache modules */
    case 529: /* overloaded: Anthropic, Qualys */
    case 999: /* LinkedIn, Yahoo */
        return true;
    default:
        return false;
    }
}

#endif
