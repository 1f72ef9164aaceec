/* SPDX-License-Identifier: MIT */
/* url_host.h - parses the host of a URL in all spellings that browsers accept. */
#ifndef WR_CORE_WEB_URL_URL_HOST_H
#define WR_CORE_WEB_URL_URL_HOST_H

#include "core/web/url/url.h"

/* Appends the host written as `raw`, the text between "//" or '@' and ':' or '/'. The result is a
 * name in lower-case ASCII, an IPv4 address with four parts, or an IPv6 address in brackets. */
enum wr_url_fault wr_url_host_append(struct wr_buf *buf, struct wr_span raw, const struct wr_idna *idna);

/* Returns true for tabs and newlines, which the URL parser ignores at any place. */
static inline bool wr_url_ignores(char c)
{
    return c == '\t' || c == '\n' || c == '\r';
}

#endif
