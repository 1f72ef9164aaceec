/* SPDX-License-Identifier: MIT */
/* types.h - URLs that by their ending are no pages. */
#ifndef WR_SHELL_ENGINE_TYPES_H
#define WR_SHELL_ENGINE_TYPES_H

#include "core/rules/url/url.h"

/* Whether the path ends like that of an image, a film, an archive, a style sheet …: nothing that has links. The query
 * does not count. */
bool wr_type_is_skipped(const struct wr_url *url);

#endif
