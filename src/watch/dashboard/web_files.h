/* SPDX-License-Identifier: MIT */
/* web_files.h - the files of web/, which embed.py builds into the program. */
#ifndef WR_WATCH_DASHBOARD_WEB_FILES_H
#define WR_WATCH_DASHBOARD_WEB_FILES_H

#include <stddef.h>

struct wr_dashboard_file {
    const char *path; /* URL path, such as "/app.js"; "/" for the page */
    const char *type;
    const char *tag; /* ETag: a quoted hash of the content */
    const unsigned char *data;
    size_t bytes;
};

extern const struct wr_dashboard_file wr_dashboard_files[];
extern const size_t wr_dashboard_files_count;

#endif
