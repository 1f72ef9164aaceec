/* SPDX-License-Identifier: MIT */
/* group.h - the registrable domain of a host key. */
#ifndef WR_SHELL_ENGINE_GROUP_H
#define WR_SHELL_ENGINE_GROUP_H

#include "base/span.h"

/* Returns the registrable domain of the host, or the key itself if it has none. */
struct wr_span wr_group_domain(struct wr_span key);

#endif
