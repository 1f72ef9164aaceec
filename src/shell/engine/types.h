/* SPDX-License-Identifier: MIT */
/* types.h - recognises URLs that are not pages by the extension of their path. */
#ifndef WR_SHELL_ENGINE_TYPES_H
#define WR_SHELL_ENGINE_TYPES_H

#include "core/rules/url/url.h"

/* Returns true if the path ends like that of a file without links: an image, a video, an archive, a
 * style sheet and so on. The query is ignored. */
bool wr_type_is_skipped(const struct wr_url *url);

#endif
