/* SPDX-License-Identifier: MIT */
/* crawl_files.c - checks the files that a crawl reads and writes. */
#include "cli/crawl/crawl_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kit/console.h"
#include "crawl/store/store.h"

#define PATH_ROOM 4096
#define FILES 7

/* ---- conflicts ---- */

struct crawl_file {
    const char *option, *path; /* option and its file; NULL: not given */
};

static void list_files(const struct wr_crawl_settings *settings, struct crawl_file ret_files[FILES])
{
    const char *state = wr_store_is_url(settings->state) ? NULL : settings->state;
    const char *out = wr_crawl_keeps_lines(settings) ? NULL : settings->out;
    const struct crawl_file files[FILES] = {{"--state", state},
                                            {"--out", out},
                                            {"--report", settings->report},
                                            {"--log", settings->log},
                                            {"--warc", settings->warc},
                                            {"--save-bodies", settings->save_bodies},
                                            {"--diff", settings->diff}};
    memcpy(ret_files, files, sizeof files);
}

static bool is_stream(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* Returns true if both are the same regular file, by name or by inode. "-" is no file. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    if (a == NULL || b == NULL || is_stream(a) || is_stream(b))
        return false;
    return strcmp(a, b) == 0 || (stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
                                 one.st_ino == other.st_ino && S_ISREG(one.st_mode));
}

static bool streams_fit(const struct wr_crawl_settings *settings)
{
    if (is_stream(settings->state) || is_stream(settings->warc))
        wr_complain("--%s cannot be standard output: name a file", is_stream(settings->state) ? "state" : "warc");
    else if (is_stream(settings->out) && settings->json)
        wr_complain("--json and --out - would mix on standard output; use --report FILE instead of --json");
    else if (is_stream(settings->out) && is_stream(settings->report))
        wr_complain("--report - and --out - would mix on standard output; name a file for one of them");
    else if (is_stream(settings->diff) && (is_stream(settings->out) || is_stream(settings->report) || settings->json))
        wr_complain("--diff - would mix with other output on standard output; name a file for one of them");
    else if (settings->json && is_stream(settings->report))
        wr_complain("--json and --report - are the same report on standard output; give one of them");
    else
        return true;
    return false;
}

bool wr_crawl_files_fit(const struct wr_crawl_settings *settings)
{
    struct crawl_file files[FILES];
    list_files(settings, files);
    for (size_t i = 0; i < FILES; i++) {
        if (files[i].path != NULL && files[i].path[0] == '\0') {
            wr_complain("%s is empty: name a file", files[i].option);
            return false;
        }
        for (size_t j = 0; j < i; j++)
            if (is_same_file(files[i].path, files[j].path)) {
                wr_complain("%s and %s name the same file, %s; give each its own", files[j].option, files[i].option,
                            files[i].path);
                return false;
            }
    }
    return streams_fit(settings);
}

/* ---- permissions ---- */

static bool may_write(const char *path, int how)
{
    return faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0;
}

/* Returns why a missing file cannot be created in its folder; NULL if it can. */
static const char *folder_obstacle(const char *path)
{
    char folder[PATH_ROOM] = ".";
    const char *slash = strrchr(path, '/');
    /* Includes the slash, because the folder may be "/" */
    size_t bytes = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    if (bytes >= sizeof folder)
        return "has a name that is too long; name another";
    if (bytes > 0) {
        memcpy(folder, path, bytes);
        folder[bytes] = '\0';
    }
    if (!may_write(folder, F_OK))
        return "cannot be created: its folder does not exist; create it, or name another";
    return may_write(folder, W_OK | X_OK) ? NULL : "cannot be created: its folder is not writable; name another";
}

/* Returns why a file cannot be written and what to do about it; NULL if it can. For an archive only
 * the folder is checked, because numbers are appended to its name. */
static const char *write_obstacle(const char *path, const struct wr_crawl_settings *settings)
{
    struct stat status;
    bool is_folder = path == settings->save_bodies;
    if (path == settings->warc)
        return folder_obstacle(path);
    if (stat(path, &status) != 0)
        return errno == EACCES ? "cannot be reached: permission denied; name another" : folder_obstacle(path);
    if (S_ISDIR(status.st_mode) != is_folder)
        return is_folder ? "is not a folder; name a folder" : "is a folder; name a file in it";
    return may_write(path, W_OK) ? NULL : "is not writable; change its permissions, or name another";
}

bool wr_crawl_files_writable(const struct wr_crawl_settings *settings)
{
    struct crawl_file files[FILES];
    list_files(settings, files);
    for (size_t i = 0; i < FILES; i++) {
        const char *why =
            files[i].path != NULL && !is_stream(files[i].path) ? write_obstacle(files[i].path, settings) : NULL;
        if (why != NULL) {
            wr_complain("%s: %s %s", files[i].option, files[i].path, why);
            return false;
        }
    }
    return true;
}

bool wr_crawl_keeps_lines(const struct wr_crawl_settings *settings)
{
    return strcmp(settings->out, "state") == 0;
}

/* An empty file has no results: its process died before the first. With a shared database the store
 * knows whether this machine created the file. */
bool wr_crawl_out_is_unused(struct wr_crawl_settings *settings)
{
    struct stat status;
    if (wr_store_is_url(settings->state) || settings->append || is_stream(settings->out) ||
        stat(settings->out, &status) != 0)
        return true;
    if (S_ISREG(status.st_mode) && status.st_size > 0) {
        wr_complain("%s exists already; --append adds to it, --out FILE names another, --resume continues",
                    settings->out);
        return false;
    }
    settings->append = !S_ISREG(status.st_mode); /* a pipe or device has no content to protect */
    return true;
}
