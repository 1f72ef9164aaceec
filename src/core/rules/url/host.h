/* SPDX-License-Identifier: MIT */
/* host.h - the host of a URL, in all the spellings that browsers take. */
#ifndef WR_CORE_RULES_URL_HOST_H
#define WR_CORE_RULES_URL_HOST_H

#include "core/rules/url/url.h"

/* Appends the host that `raw` (what stands between "//" or '@' and ':' or '/') means: a name in lower-case ASCII, an
 * IPv4 address with four parts, or an IPv6 address in brackets. */
enum wr_url_fault wr_url_host_append(struct wr_buf *buf, struct wr_span raw, const struct wr_idna *idna);

/* Tabs and newlines are no part of a URL, wherever they are. */
static inline bool wr_url_ignores(char c)
{
    return c == '\t' || c == '\n' || c == '\r';
}

#endif
