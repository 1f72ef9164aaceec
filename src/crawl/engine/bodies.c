/* SPDX-License-Identifier: MIT */
/* bodies.c - saves page bodies as files. */
#include "crawl/engine/bodies.h"

#include "base/ascii.h"
#include "base/error.h"
#include "core/web/http/field.h"
#include "crawl/engine/engine_state.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_MAX 100
#define DIGEST_BYTES 16 /* bytes used of the 32 of a SHA-256 */

/* ---- file names ---- */

static const struct {
    const char *type, *ending;
} endings[] = {
    {"text/html", "html"},
    {"application/xhtml+xml", "xhtml"},
    {"text/plain", "txt"},
    {"text/css", "css"},
    {"text/csv", "csv"},
    {"text/markdown", "md"},
    {"text/javascript", "js"},
    {"application/javascript", "js"},
    {"application/json", "json"},
    {"application/ld+json", "json"},
    {"application/xml", "xml"},
    {"text/xml", "xml"},
    {"application/rss+xml", "xml"},
    {"application/atom+xml", "xml"},
    {"application/pdf", "pdf"},
    {"application/zip", "zip"},
    {"application/gzip", "gz"},
    {"image/png", "png"},
    {"image/jpeg", "jpg"},
    {"image/gif", "gif"},
    {"image/webp", "webp"},
    {"image/avif", "avif"},
    {"image/svg+xml", "svg"},
    {"image/x-icon", "ico"},
    {"font/woff2", "woff2"},
    {"audio/mpeg", "mp3"},
    {"video/mp4", "mp4"},
    {"video/webm", "webm"},
};

static const char *extension_of(struct wr_span content_type)
{
    struct wr_span type = wr_span_trim((struct wr_span){content_type.data, wr_span_find(content_type, ';')});
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (wr_field_is(type, endings[i].type))
            return endings[i].ending;
    return "bin";
}

/* Appends the name of a host's folder. Some file systems take a name without a dot for a device,
 * and hide or drop a dot at either end. So '_' is added to the former, and replaces the latter. */
static void append_host_folder(struct wr_buf *buf, struct wr_span host)
{
    bool has_dot = false;
    for (size_t i = 0; i < host.bytes && i < FOLDER_MAX; i++) {
        char c = wr_ascii_lower(host.data[i]);
        bool is_edge = i == 0 || i + 1 == host.bytes || i + 1 == FOLDER_MAX;
        bool is_fine = wr_ascii_is_digit(c) || (c >= 'a' && c <= 'z') || (!is_edge && (c == '.' || c == '-'));
        has_dot |= c == '.' && is_fine;
        wr_buf_append_char(buf, is_fine ? c : '_');
    }
    wr_buf_append_string(buf, has_dot ? "" : "_");
}

void wr_body_name(const struct wr_url *url, struct wr_span content_type, char ret_name[WR_BODY_NAME_MAX + 1])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_name, WR_BODY_NAME_MAX + 1);
    append_host_folder(&buf, wr_url_part(url, url->host_at, url->path_at));
    wr_buf_append_char(&buf, '/');
    (void)EVP_Digest(url->text, url->fragment_at, digest, NULL, EVP_sha256(), NULL);
    for (int i = 0; i < DIGEST_BYTES; i++)
        wr_buf_append_hex(&buf, digest[i], 2, WR_HEX_SMALL);
    wr_buf_append_char(&buf, '.');
    wr_buf_append_string(&buf, extension_of(content_type));
}

/* ---- the folder ---- */

bool wr_folder_sync(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* The folder may be writable but not readable. */
    bool is_synced = fd >= 0 ? fsync(fd) == 0 : errno == EACCES;
    if (fd >= 0)
        (void)close(fd);
    return is_synced;
}

int wr_bodies_open(struct wr_engine *engine, const char *path)
{
    struct wr_archive *archive = &engine->archive;
    struct wr_bodies *bodies = &archive->bodies;
    struct wr_buf buf;
    bool is_new = mkdir(path, 0777) == 0;
    if (is_new || errno == EEXIST)
        bodies->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (bodies->fd < 0 || (is_new && !wr_folder_sync(bodies->fd, ".."))) {
        wr_error_set_text("the folder for bodies", path, strlen(path), "cannot be created, or is not a folder");
        return WEIR_E_SYSTEM;
    }
    wr_buf_init_fixed(&buf, bodies->part, sizeof bodies->part);
    wr_buf_append_string(&buf, ".part-");
    wr_buf_append_string(&buf, archive->mark);
    bodies->folder = realpath(path, NULL);
    if (archive->spill_folder == NULL && bodies->folder != NULL)
        archive->spill_folder = strdup(bodies->folder);
    return archive->spill_folder != NULL && bodies->folder != NULL ? 0 : WEIR_E_NOMEM;
}

static void forget_unsynced(struct wr_bodies *bodies)
{
    for (; bodies->count > 0; bodies->count--) {
        (void)close(bodies->unsynced[bodies->count - 1][0]);
        (void)close(bodies->unsynced[bodies->count - 1][1]);
    }
}

void wr_bodies_close(struct wr_bodies *bodies)
{
    forget_unsynced(bodies);
    if (bodies->fd >= 0)
        (void)close(bodies->fd);
    free(bodies->folder);
}

static int body_write_error(const struct wr_bodies *bodies)
{
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        return WEIR_E_FULL;
    wr_error_set_text("the folder for bodies", bodies->folder, strlen(bodies->folder), "cannot be written to");
    return WEIR_E_SYSTEM;
}

/* ---- a file ---- */

bool wr_body_append(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t wrote = write(fd, data, bytes);
        if (wrote < 0 && errno != EINTR)
            return false;
        data += wrote > 0 ? wrote : 0;
        bytes -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

static bool append_body_from(int fd, int from)
{
    struct stat status;
    if (fstat(from, &status) != 0)
        return false;
    size_t bytes = (size_t)status.st_size;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, from, 0);
    bool is_written = map != MAP_FAILED && wr_body_append(fd, map, bytes);
    int error = errno;
    if (map != MAP_FAILED)
        (void)munmap(map, bytes);
    errno = error;
    return is_written;
}

static bool close_both(int file, int folder)
{
    (void)close(folder);
    return close(file) == 0;
}

/* Writes a body under a temporary name, and renames the file when it is complete. */
static bool write_body_file(const struct wr_bodies *bodies, const struct wr_archive_piece *piece, int file, int folder)
{
    bool is_whole = piece->fd >= 0 ? append_body_from(file, piece->fd)
                                   : wr_body_append(file, piece->text.bytes, piece->text.length);
    return is_whole && renameat(folder, bodies->part, bodies->fd, piece->name) == 0;
}

static int open_host_folder(struct wr_bodies *bodies, const char *name)
{
    char host[WR_BODY_NAME_MAX + 1];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, host, sizeof host);
    wr_buf_append(&buf, name, wr_span_find(wr_span_of(name), '/'));
    if (mkdirat(bodies->fd, host, 0777) == 0)
        bodies->has_folder = true;
    else if (errno != EEXIST)
        return -1;
    return openat(bodies->fd, host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool open_body_part(struct wr_bodies *bodies, const char *name, int *ret_file, int *ret_folder)
{
    int folder = open_host_folder(bodies, name);
    if (folder < 0)
        return false;
    int file = openat(folder, bodies->part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0) {
        int error = errno;
        (void)close(folder);
        errno = error;
        return false;
    }
    *ret_file = file;
    *ret_folder = folder;
    return true;
}

int wr_body_write(struct wr_bodies *bodies, const struct wr_archive_piece *piece)
{
    int file, folder;
    bool is_open = open_body_part(bodies, piece->name, &file, &folder);
    if (!is_open && bodies->count > 0 && (errno == EMFILE || errno == ENFILE)) {
        int error = wr_bodies_sync(bodies); /* the sync closes the descriptors of synced files */
        if (error != 0)
            return error;
        is_open = open_body_part(bodies, piece->name, &file, &folder);
    }
    if (!is_open)
        return body_write_error(bodies);
    if (!write_body_file(bodies, piece, file, folder)) {
        int error = body_write_error(bodies);
        (void)close_both(file, folder);
        return error;
    }
    if (bodies->count < WR_BODIES_SYNC_EACH) {
        bodies->unsynced[bodies->count][0] = file;
        bodies->unsynced[bodies->count++][1] = folder;
        return 0;
    }
    bodies->has_more = true;
    return close_both(file, folder) ? 0 : body_write_error(bodies);
}

/* Syncs the bodies of a commit. A few are synced one by one, because a sync of the file system
 * includes what other programs wrote. For many, it is faster than a sync of each. */
int wr_bodies_sync(struct wr_bodies *bodies)
{
    bool well = !bodies->has_more || syncfs(bodies->fd) == 0;
    for (size_t i = 0; well && !bodies->has_more && i < bodies->count; i++)
        well = fdatasync(bodies->unsynced[i][0]) == 0 && fsync(bodies->unsynced[i][1]) == 0;
    if (well && bodies->has_folder && !bodies->has_more)
        well = fsync(bodies->fd) == 0;
    if (!well)
        return body_write_error(bodies);
    forget_unsynced(bodies);
    bodies->has_folder = bodies->has_more = false;
    return 0;
}
