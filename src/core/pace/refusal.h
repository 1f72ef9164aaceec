/* SPDX-License-Identifier: MIT */
/* refusal.h - the statuses that mean "too many requests". */
#ifndef WR_CORE_PACE_REFUSAL_H
#define WR_CORE_PACE_REFUSAL_H

#include <stdbool.h>

/* 429 (RFC 6585), and the statuses that some services send instead of it. 503 is not among them: it can also mean that
 * the server is down. */
static inline bool wr_status_refuses(int status)
{
    switch (status) {
    case 420: /* Enhance Your Calm: the old API of Twitter */
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
