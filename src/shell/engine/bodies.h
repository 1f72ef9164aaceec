/* SPDX-License-Identifier: MIT */
/* bodies.h - the names of files that bodies are saved in.
 *
 *     a.example/217fbabc0e7aa17115435afd966b734a.html
 *
 * The folder is the host, and its port if there is one; the name is that of the URL: the first half of its SHA-256, as
 * in `printf %s URL | sha256sum`. The ending says what the server called it. Nothing of it can be chosen by a stranger
 * but the host's own letters, which are small letters, digits, dots and hyphens here, whatever they were: no name leads
 * elsewhere, is longer than WR_BODY_NAME_MAX, or is the same as another where capitals do not count.
 */
#ifndef WR_SHELL_ENGINE_BODIES_H
#define WR_SHELL_ENGINE_BODIES_H

#include "core/rules/url/url.h"
#include "shell/engine/archive.h"

void wr_body_name(const struct wr_url *url, struct wr_span content_type, char ret_name[WR_BODY_NAME_MAX + 1]);

#endif
