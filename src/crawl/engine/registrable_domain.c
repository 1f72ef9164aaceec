/* SPDX-License-Identifier: MIT */
/* registrable_domain.c - finds the registrable domain of a host key. */
#include "crawl/engine/registrable_domain.h"

#include "limiter/pacer/pacer.h"

struct wr_span wr_registrable_domain(struct wr_span key)
{
    size_t at = 0, bytes = wr_domain_find(key.data, key.bytes, &at);
    return bytes > 0 ? (struct wr_span){key.data + at, bytes} : key;
}
