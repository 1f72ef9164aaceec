/* SPDX-License-Identifier: MIT */
/* registrable_domain.c - finds the registrable domain of a host key. */
#include "crawl/engine/registrable_domain.h"

#include <string.h>
#include <weir/web.h>

struct wr_span wr_registrable_domain(struct wr_span key)
{
    const char *port = memchr(key.data, ':', key.bytes);
    size_t host_bytes = port != NULL ? (size_t)(port - key.data) : key.bytes;
    size_t bytes = weir_registrable_domain(NULL, key.data, host_bytes);
    return bytes > 0 ? (struct wr_span){key.data + host_bytes - bytes, bytes} : key;
}
