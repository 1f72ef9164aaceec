/* SPDX-License-Identifier: MIT */
/* group.h - the registrable domain of a host's key. */
#ifndef WR_SHELL_ENGINE_GROUP_H
#define WR_SHELL_ENGINE_GROUP_H

#include "base/span.h"

/* The key itself, where there is none. */
struct wr_span wr_group_domain(struct wr_span key);

#endif
