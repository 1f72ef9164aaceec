/* SPDX-License-Identifier: MIT */
/* group.c - finds the registrable domain of a host key. */
#include "shell/engine/group.h"

#include "shell/hosts/hosts.h"

struct wr_span wr_group_domain(struct wr_span key)
{
    size_t at = 0, bytes = wr_domain_find(key.data, key.bytes, &at);
    return bytes > 0 ? (struct wr_span){key.data + at, bytes} : key;
}
