/* SPDX-License-Identifier: MIT */
/* bodies.h - the files that bodies are saved in.
 *
 *     a.example/217fbabc0e7aa17115435afd966b734a.html
 *
 * The folder is the host, and its port if there is one; the name is that of the URL: the first half of its SHA-256, as
 * in `printf %s URL | sha256sum`. The ending says what the server called it. Nothing of it can be chosen by a stranger
 * but the host's own letters, which are small letters, digits, dots and hyphens here, whatever they were: no name leads
 * elsewhere, is longer than WR_BODY_NAME_MAX, or is the same as another where capitals do not count.
 *
 * A file has its name when it is whole. Until then it has one that no other crawl uses, for two may save in one folder.
 */
#ifndef WR_SHELL_ENGINE_BODIES_H
#define WR_SHELL_ENGINE_BODIES_H

#include "core/rules/url/url.h"
#include "shell/engine/archive.h"

struct wr_engine;

void wr_body_name(const struct wr_url *url, struct wr_span content_type, char ret_name[WR_BODY_NAME_MAX + 1]);

/* WEIR_E_SYSTEM, WEIR_E_NOMEM. */
int wr_bodies_open(struct wr_engine *engine, const char *path);
/* On the store's thread. WEIR_E_FULL: not now; WEIR_E_SYSTEM. */
int wr_body_write(struct wr_bodies *bodies, const struct wr_piece *piece);
int wr_bodies_sync(struct wr_bodies *bodies);
void wr_bodies_close(struct wr_bodies *bodies);

/* So that what was made in it is there after a crash. */
bool wr_folder_sync(int at, const char *path);
/* All of it; errno says why not. */
bool wr_body_append(int fd, const char *data, size_t bytes);

#endif
