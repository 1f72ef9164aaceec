/* SPDX-License-Identifier: MIT */
/* registrable_domain.h - the registrable domain of a host key. */
#ifndef WR_CRAWL_ENGINE_REGISTRABLE_DOMAIN_H
#define WR_CRAWL_ENGINE_REGISTRABLE_DOMAIN_H

#include "base/span.h"

/* Returns the registrable domain of the host, or the key itself if it has none. */
struct wr_span wr_registrable_domain(struct wr_span key);

#endif
