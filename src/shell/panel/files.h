/* SPDX-License-Identifier: MIT */
/* files.h - the files of web/, built into the program by embed.py. */
#ifndef WR_SHELL_PANEL_FILES_H
#define WR_SHELL_PANEL_FILES_H

#include <stddef.h>

struct wr_panel_file {
    const char *path; /* "/app.js"; the page is "/" */
    const char *type;
    const char *tag; /* of just this content, quoted: for ETag */
    const unsigned char *data;
    size_t bytes;
};

extern const struct wr_panel_file wr_panel_files[];
extern const size_t wr_panel_files_count;

#endif
