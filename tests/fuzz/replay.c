/* SPDX-License-Identifier: MIT */
/* replay.c - runs a fuzz target, with any compiler, on the files of its corpus: each whole, and
 * truncated at every length up to a few hundred. Usage: replay_NAME FOLDER|FILE... */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define FILE_MAX ((size_t)1 << 20) /* bytes; corpora are small */
#define CUTS_MAX ((size_t)256)     /* lengths at which a file is truncated */

/* Passes a block of exactly that size, so that a sanitizer reports the first read beyond it. */
static void feed(const uint8_t *data, size_t bytes)
{
    uint8_t *exact = malloc(bytes);
    if (exact == NULL && bytes > 0)
        abort();
    if (bytes > 0)
        memcpy(exact, data, bytes);
    if (LLVMFuzzerTestOneInput(exact, bytes) != 0)
        abort();
    free(exact);
}

static bool feed_file(const char *path)
{
    static uint8_t content[FILE_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    size_t bytes = fread(content, 1, sizeof content, file);
    bool whole = feof(file) && !ferror(file);
    fclose(file);
    printf("%s: %zu bytes\n", path, bytes);
    fflush(stdout); /* shows the file even if the target crashes */
    for (size_t cut = 0; cut < bytes && cut < CUTS_MAX; cut++)
        feed(content, cut);
    feed(content, bytes);
    return whole;
}

/* Runs the target on each file. Returns their number, or -1 if a file could not be read. */
static int feed_folder(const char *folder)
{
    char path[4096];
    int count = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return feed_file(folder) ? 1 : -1;
    for (struct dirent *entry; count >= 0 && (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count = feed_file(path) ? count + 1 : -1;
    }
    closedir(entries);
    return count;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int count = feed_folder(argv[i]);
        if (count <= 0) {
            fprintf(stderr, "%s: %s\n", argv[i], count == 0 ? "there is nothing in it" : "cannot be read");
            return 1;
        }
    }
    return argc > 1 ? 0 : 1;
}
