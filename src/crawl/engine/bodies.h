/* SPDX-License-Identifier: MIT */
/* bodies.h - the files in which page bodies are saved.
 *
 *     a.example/217fbabc0e7aa17115435afd966b734a.html
 *
 * The folder is the host, with its port if there is one. The file name is the first half of the
 * SHA-256 of the URL, as in `printf %s URL | sha256sum`. The extension follows from the
 * Content-Type. Untrusted input chooses only the letters of the host, which are reduced to small
 * letters, digits, dots, hyphens and '_'. So no name leads elsewhere, exceeds WR_BODY_NAME_MAX, or
 * equals another where case is ignored.
 *
 * A file gets its name when it is complete. Until then it has one that no other crawl uses, because
 * two crawls may save to one folder.
 */
#ifndef WR_CRAWL_ENGINE_BODIES_H
#define WR_CRAWL_ENGINE_BODIES_H

#include "core/web/url/url.h"
#include "crawl/engine/archive.h"

struct wr_engine;

void wr_body_name(const struct wr_url *url, struct wr_span content_type, char ret_name[WR_BODY_NAME_MAX + 1]);

/* Opens the folder of bodies; creates it if missing. Returns 0, WEIR_E_SYSTEM or WEIR_E_NOMEM. */
int wr_bodies_open(struct wr_engine *engine, const char *path);
/* Writes a body to its file; on the store's thread, as wr_bodies_sync. Both return WEIR_E_FULL if
 * the disk is full, else WEIR_E_SYSTEM. */
int wr_body_write(struct wr_bodies *bodies, const struct wr_archive_piece *piece);
int wr_bodies_sync(struct wr_bodies *bodies);
void wr_bodies_close(struct wr_bodies *bodies);

/* Syncs a folder, so that the files that were created in it survive a crash. */
bool wr_folder_sync(int at, const char *path);
/* Writes all bytes to `fd`. Returns false and sets errno if that fails. */
bool wr_body_append(int fd, const char *data, size_t bytes);

#endif
