/* SPDX-License-Identifier: MIT */
/* skipped_types.c - recognises URLs that are not pages by the extension of their path. */
#include "crawl/engine/skipped_types.h"

#include <stdlib.h>

#include "base/ascii.h"

#define ENDING_MAX 5

/* Sorted extensions of files without links. Documents (pdf, doc, csv) are not listed, because a
 * crawl for content wants them. */
static const char endings[][ENDING_MAX + 1] = {
    "3gp",  "7z",   "aac",  "aiff", "apk",  "avi",  "avif", "bin", "bmp",  "bz2",   "css",  "deb",  "dmg", "dwg", "eot",
    "eps",  "exe",  "flac", "flv",  "gif",  "gz",   "heic", "ico", "img",  "iso",   "jar",  "jpeg", "jpg", "js",  "jxl",
    "lz",   "m3u8", "m4a",  "m4v",  "map",  "mid",  "mjs",  "mkv", "mov",  "mp3",   "mp4",  "mpeg", "mpg", "msi", "oga",
    "ogg",  "ogv",  "opus", "otf",  "pkg",  "png",  "psd",  "rar", "rpm",  "svg",   "svgz", "swf",  "tar", "tgz", "tif",
    "tiff", "ttf",  "wasm", "wav",  "webm", "webp", "wma",  "wmv", "woff", "woff2", "xz",   "zip",  "zst",
};

static int compare_ending(const void *key, const void *element)
{
    return strcmp(key, element);
}

bool wr_url_has_skipped_type(const struct wr_url *url)
{
    char ending[ENDING_MAX + 1];
    size_t bytes = 0, end = url->query_at;
    while (bytes < ENDING_MAX && wr_ascii_is_alnum(url->text[end - 1 - bytes]))
        bytes++; /* stops at the '/' that begins the path */
    if (bytes == 0 || url->text[end - 1 - bytes] != '.')
        return false;
    for (size_t i = 0; i < bytes; i++)
        ending[i] = wr_ascii_lower(url->text[end - bytes + i]);
    ending[bytes] = '\0';
    return bsearch(ending, endings, sizeof endings / sizeof endings[0], sizeof endings[0], compare_ending) != NULL;
}
