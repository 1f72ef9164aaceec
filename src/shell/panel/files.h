/* SPDX-License-Identifier: MIT */
/* files.h - the files of web/, which embed.py builds into the program. */
#ifndef WR_SHELL_PANEL_FILES_H
#define WR_SHELL_PANEL_FILES_H

#include <stddef.h>

struct wr_panel_file {
    const char *path; /* URL path, such as "/app.js"; "/" for the page */
    const char *type;
    const char *tag; /* ETag: a quoted hash of the content */
    const unsigned char *data;
    size_t bytes;
};

extern const struct wr_panel_file wr_panel_files[];
extern const size_t wr_panel_files_count;

#endif
