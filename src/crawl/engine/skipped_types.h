/* SPDX-License-Identifier: MIT */
/* skipped_types.h - recognises URLs that are not pages by the extension of their path. */
#ifndef WR_CRAWL_ENGINE_SKIPPED_TYPES_H
#define WR_CRAWL_ENGINE_SKIPPED_TYPES_H

#include "core/web/url/url.h"

/* Returns true if the path ends like that of a file without links: an image, a video, an archive, a
 * style sheet and so on. The query is ignored. */
bool wr_url_has_skipped_type(const struct wr_url *url);

#endif
