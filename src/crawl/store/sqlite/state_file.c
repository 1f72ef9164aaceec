/* SPDX-License-Identifier: MIT */
/* state_file.c - checks the state file before SQLite could change it, and creates new ones.
 *
 * A new file is completed under a temporary name and then renamed, so that a crash leaves either no
 * state file or a sound one. An empty file therefore means damage, and is refused.
 */
#include "base/buf.h"
#include "base/error.h"
#include "crawl/store/sqlite/sqlite.h"
#include "limiter/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEADER_BYTES 100 /* header of a SQLite file; sqlite.org/fileformat2.html 1.3 */
#define VERSION_AT 60
#define APPLICATION_AT 68
#define NAME_BYTES (WR_STORE_PATH_MAX + 32)

#define LOCK_AT 0x40000000 /* offset of SQLite's lock bytes: pending, reserved, shared */
#define LOCK_BYTES 512

int wr_state_file_refuse(const char *path, int error, const char *why)
{
    wr_error_set_text("state file", path, strlen(path), why);
    return error;
}

static int refuse_with_errno(const char *path, const char *what)
{
    char text[128], words[96];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_string(&buf, what);
    wr_buf_append_string(&buf, strerror_r(errno, words, sizeof words));
    return wr_state_file_refuse(path, WEIR_E_SYSTEM, text);
}

/* ---- an existing file ------------------------------------------------------------------------ */

static int check_node(const char *path, const struct stat *node)
{
    if (S_ISLNK(node->st_mode))
        return wr_state_file_refuse(path, WEIR_E_SYSTEM, "is a symbolic link; name the file itself");
    if (S_ISDIR(node->st_mode))
        return wr_state_file_refuse(path, WEIR_E_SYSTEM, "is a folder; name a file in it");
    if (!S_ISREG(node->st_mode))
        return wr_state_file_refuse(path, WEIR_E_SYSTEM, "is not a regular file");
    if (node->st_uid != geteuid())
        return wr_state_file_refuse(path, WEIR_E_SYSTEM, "belongs to another user");
    if ((node->st_mode & S_IWOTH) != 0)
        return wr_state_file_refuse(path, WEIR_E_SYSTEM, "is writable by every user; chmod 600 it if you trust it");
    return 0;
}

/* Checks SQLite's own files beside the database, which no other user may have placed there. */
static int check_beside(const char *path, const char *ending)
{
    char name[NAME_BYTES];
    struct wr_buf buf;
    struct stat node;

    wr_buf_init_fixed(&buf, name, sizeof name);
    wr_buf_append_string(&buf, path);
    wr_buf_append_string(&buf, ending);
    if (lstat(name, &node) != 0)
        return 0;
    return check_node(name, &node);
}

static void folder_of(const char *path, char ret_name[NAME_BYTES])
{
    struct wr_buf buf;
    const char *slash = strrchr(path, '/');

    wr_buf_init_fixed(&buf, ret_name, NAME_BYTES);
    if (slash == NULL)
        wr_buf_append_string(&buf, ".");
    else
        wr_buf_append(&buf, path, (size_t)(slash - path) + 1);
}

static int check_folder(const char *path)
{
    char name[NAME_BYTES];

    folder_of(path, name);
    if (faccessat(AT_FDCWD, name, F_OK, AT_EACCESS) != 0)
        return refuse_with_errno(path, "cannot be opened; check its folder: ");
    if (faccessat(AT_FDCWD, name, W_OK | X_OK, AT_EACCESS) != 0)
        return refuse_with_errno(path, "cannot be used; its folder is not writable: ");
    return 0;
}

static uint32_t header_number_at(const uint8_t *header, size_t at)
{
    return (uint32_t)header[at] << 24 | (uint32_t)header[at + 1] << 16 | (uint32_t)header[at + 2] << 8 | header[at + 3];
}

static int check_sqlite_header(const char *path, const uint8_t *header, size_t bytes)
{
    if (bytes == 0)
        return wr_state_file_refuse(path, WEIR_E_INVAL, "is empty, so its content is lost; remove it to start again");
    if (bytes < 16 || memcmp(header, "SQLite format 3", 16) != 0)
        return wr_state_file_refuse(path, WEIR_E_INVAL, "is not a state file of weir; name another");
    if (bytes < HEADER_BYTES)
        return wr_state_file_refuse(path, WEIR_E_INVAL, "is damaged: it was truncated" WR_SQLITE_ADVICE);
    if (header_number_at(header, APPLICATION_AT) != WR_SQLITE_APPLICATION)
        return wr_state_file_refuse(path, WEIR_E_INVAL, "is another program's database; name another");
    if (header_number_at(header, VERSION_AT) > WR_SQLITE_VERSION)
        return wr_state_file_refuse(path, WEIR_E_INVAL, "was written by a newer weir; use that one");
    return 0;
}

int wr_state_file_check(const char *path)
{
    uint8_t header[HEADER_BYTES];
    struct stat node;

    if (strlen(path) > WR_STORE_PATH_MAX)
        return wr_invalid("a state file's path must have at most 4095 bytes");
    int error = check_folder(path);
    if (error != 0)
        return error;
    if (lstat(path, &node) != 0)
        return errno == ENOENT ? wr_state_file_refuse(path, WEIR_E_ABSENT, "does not exist")
                               : refuse_with_errno(path, "cannot be opened: ");
    error = check_node(path, &node);
    if (error == 0)
        error = check_beside(path, "-wal");
    if (error == 0)
        error = check_beside(path, "-journal");
    if (error != 0)
        return error;
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0)
        return refuse_with_errno(path, "cannot be written: ");
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return refuse_with_errno(path, "cannot be opened: ");
    ssize_t got = pread(file, header, sizeof header, 0);
    error = got < 0 ? refuse_with_errno(path, "cannot be read: ") : check_sqlite_header(path, header, (size_t)got);
    (void)close(file);
    return error;
}

pid_t wr_state_file_lock_owner(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_AT, .l_len = LOCK_BYTES};
    int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (file < 0)
        return 0;
    bool is_held = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    (void)close(file); /* would drop this process's locks on the file, but it has none */
    return is_held && lock.l_pid > 0 ? lock.l_pid : 0;
}

/* ---- a new file ------------------------------------------------------------------------------ */

static bool write_image(int file, const unsigned char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t wrote = write(file, bytes, count);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes += wrote;
        count -= (size_t)wrote;
    }
    return fsync(file) == 0;
}

/* Renames the file, unless `path` exists by now. Returns false if it could not. */
static bool put_in_place(const char *name, const char *path)
{
    /* renameat2(2) is declared in <stdio.h>, which only cli may include */
    if (syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    /* for file systems without RENAME_NOREPLACE */
    return link(name, path) == 0 && unlink(name) == 0;
}

/* Syncs the folder, so that the name survives a power cut. Some file systems cannot do that; the
 * error is ignored. */
static void sync_state_folder(const char *path)
{
    char name[NAME_BYTES];

    folder_of(path, name);
    int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    (void)fsync(folder);
    (void)close(folder);
}

static int create_as(const char *path, const char *name, const unsigned char *image, size_t bytes)
{
    int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (file < 0)
        return refuse_with_errno(path, "cannot be created: ");
    bool is_whole = write_image(file, image, bytes);
    int why = errno;
    is_whole = close(file) == 0 && is_whole;
    if (is_whole && put_in_place(name, path)) {
        sync_state_folder(path);
        return 0;
    }
    why = is_whole ? errno : why;
    (void)unlink(name);
    if (is_whole && why == EEXIST)
        return 0; /* another process created it meanwhile; it is checked like any existing file */
    errno = why;
    return refuse_with_errno(path, "cannot be created: ");
}

int wr_state_file_create(const char *path)
{
    char name[NAME_BYTES];
    uint8_t secret[WR_HASH_SECRET_BYTES];
    uint64_t number; /* random, because a killed process with the same id may have left its file */
    struct wr_buf buf;
    size_t bytes;

    if (wr_random(secret, sizeof secret) != 0 || wr_random(&number, sizeof number) != 0)
        return wr_state_file_refuse(path, WEIR_E_SYSTEM, "cannot be created: the system has no random bytes");
    unsigned char *image = wr_sqlite_new_image(secret, sizeof secret, &bytes);
    if (image == NULL)
        return WEIR_E_NOMEM;
    wr_buf_init_fixed(&buf, name, sizeof name);
    wr_buf_append_string(&buf, path);
    wr_buf_append_string(&buf, "-new-");
    wr_buf_append_u64(&buf, number);
    int error = create_as(path, name, image, bytes);
    sqlite3_free(image);
    return error;
}
