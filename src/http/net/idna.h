/* SPDX-License-Identifier: MIT */
/* idna.h - converts internationalized domain names with libidn2. */
#ifndef WR_HTTP_NET_IDNA_H
#define WR_HTTP_NET_IDNA_H

#include "core/web/url/url.h"

/* Returns the converter for wr_url_parse; any thread may use it. It follows UTS 46
 * non-transitional, like browsers. But libidn2 also rejects what IDNA 2008 excludes: symbols and
 * emoji, unless they are A-labels ("xn--i-7iq.ws"), which are looked up unchanged; and '-' at the
 * ends of labels in names with non-ASCII characters. */
const struct wr_idna *wr_idna_libidn2(void);

#endif
