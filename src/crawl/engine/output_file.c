/* SPDX-License-Identifier: MIT */
/* output_file.c - writes the output file of lines before the commit that records its length.
 *
 * Lines wait in memory until the store commits their posts. Its thread then writes and syncs them.
 * If that fails, the store pauses or fails, as for a write of its own.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "crawl/engine/engine_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define READER_MS 200
#define LINES_MAX ((size_t)1 << 30)
/* Room for the lines of a full queue; unused room takes no memory. */
#define LINES_USUAL ((size_t)8 << 20)

static int refuse_output(const char *path, const char *what)
{
    wr_error_set_text("the output file", path, strlen(path), what);
    return WEIR_E_SYSTEM;
}

static const char *open_error_text(int error)
{
    switch (error) {
    case ENOENT:
        return "cannot be created: its folder does not exist";
    case EACCES:
    case EPERM:
    case EROFS:
        return "cannot be written to: permission denied";
    case EISDIR:
        return "is a folder";
    default:
        return "cannot be opened";
    }
}

static int open_output_file(const char *path, struct wr_output *output)
{
    struct stat status;
    bool is_pipe = stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (is_pipe ? O_NONBLOCK : 0);
    output->fd = open(path, flags | O_EXCL, 0666);
    output->was_made = output->fd >= 0;
    if (output->fd < 0 && errno == EEXIST)
        output->fd = open(path, flags, 0666);
    if (output->fd >= 0)
        return 0;
    if (errno == ENOSPC || errno == EDQUOT)
        return WEIR_E_FULL;
    return refuse_output(path, errno == ENXIO ? "is a pipe without a reader; start the reader first"
                                              : open_error_text(errno));
}

/* Locks the file, so that no other process writes to it. */
static int lock_output_file(struct wr_output *output, const char *path)
{
    struct stat status;
    if (fstat(output->fd, &status) != 0)
        return refuse_output(path, "cannot be inspected");
    output->is_file = S_ISREG(status.st_mode);
    if (!output->is_file)
        return 0;
    if (flock(output->fd, LOCK_EX | LOCK_NB) != 0)
        return refuse_output(path, "is being written to by another process; give each its own file");
    /* Checked now that no other process can remove it. */
    if (fstat(output->fd, &status) != 0 || status.st_nlink == 0)
        return refuse_output(path, "was removed");
    return 0;
}

/* Sets where the next line goes. A file with lines is added to only on request, so that no results
 * are lost by mistake. */
int wr_output_begin(struct wr_output *output, bool appends, bool has_length, uint64_t length)
{
    struct stat status;
    if (!output->is_file)
        return 0;
    if (fstat(output->fd, &status) != 0)
        return refuse_output(output->path, "cannot be inspected");
    if (!appends && !has_length && status.st_size > 0) {
        (void)refuse_output(output->path, "exists already; name another, or give --append to add to it");
        return WEIR_E_INVAL;
    }
    output->end = has_length ? length : (uint64_t)status.st_size;
    if ((uint64_t)status.st_size < output->end)
        return refuse_output(output->path, "is shorter than what was written to it; put it back, or start a new crawl");
    if (has_length && ftruncate(output->fd, (off_t)length) != 0)
        return refuse_output(output->path, "cannot be truncated to its stored length");
    return lseek(output->fd, (off_t)output->end, SEEK_SET) < 0 ? refuse_output(output->path, "cannot be written to")
                                                               : 0;
}

char *wr_output_path(const char *path)
{
    char *real = realpath(path, NULL);
    if (real != NULL)
        return real;
    /* The file does not exist: joins the path of its folder and its name. */
    char *copy = strdup(path), *joined = NULL;
    const char *slash = copy != NULL ? strrchr(copy, '/') : NULL;
    const char *name = slash != NULL ? path + (slash - copy) + 1 : path;
    if (slash != NULL)
        copy[slash - copy + (slash == copy)] = '\0';
    char *folder = copy != NULL ? realpath(slash != NULL ? copy : ".", NULL) : NULL;
    size_t bytes = folder != NULL ? strlen(folder) + strlen(name) + 2 : 0;
    struct wr_buf buf;
    if (folder != NULL && (joined = malloc(bytes)) != NULL) {
        wr_buf_init_fixed(&buf, joined, bytes);
        wr_buf_append_string(&buf, folder);
        wr_buf_append_string(&buf, "/");
        wr_buf_append_string(&buf, name);
    }
    free(folder);
    free(copy);
    return joined;
}

int wr_output_open(struct wr_output *output, const char *path, const weir_allocator *allocator)
{
    output->fd = -1;
    (void)pthread_mutex_init(&output->lock, NULL);
    wr_buf_init(&output->lines, allocator, LINES_MAX);
    wr_buf_init(&output->writing, allocator, LINES_MAX);
    if (path == NULL)
        return 0;
    wr_buf_reserve(&output->lines, LINES_USUAL);
    wr_buf_reserve(&output->writing, LINES_USUAL);
    if (strcmp(path, "-") == 0) {
        output->fd = STDOUT_FILENO;
        output->path = strdup(path);
        return output->path != NULL ? 0 : WEIR_E_NOMEM;
    }
    int error = open_output_file(path, output);
    if (error == 0)
        error = lock_output_file(output, path);
    output->path = realpath(path, NULL);
    return error == 0 && output->path == NULL ? refuse_output(path, "was removed") : error;
}

void wr_output_remove_new(struct wr_output *output)
{
    if (output->was_made && output->path != NULL)
        (void)unlink(output->path);
    output->was_made = false;
}

/* Waits until a pipe can take data. Returns false once the crawl is to stop. */
static bool await_reader(struct wr_output *output)
{
    struct pollfd ready = {.fd = output->fd, .events = POLLOUT};
    while (poll(&ready, 1, READER_MS) <= 0)
        if (atomic_load(&output->is_stopping))
            return false;
    return true;
}

int wr_output_write(struct wr_output *output, const char *bytes, size_t count, size_t *ret_written)
{
    for (*ret_written = 0; *ret_written < count;) {
        size_t left = count - *ret_written;
        if (!output->is_file && !await_reader(output))
            return refuse_output(output->path, "has no reader any more");
        if (!output->is_file && left > PIPE_BUF) /* a ready pipe takes this much without blocking */
            left = PIPE_BUF;
        ssize_t wrote = write(output->fd, bytes + *ret_written, left);
        if (wrote < 0 && errno != EINTR && errno != EAGAIN)
            return errno == ENOSPC || errno == EDQUOT || errno == EFBIG
                       ? WEIR_E_FULL
                       : refuse_output(output->path, "cannot be written to");
        *ret_written += wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

/* Writes the lines. Those that cannot be written now stay for the next call. */
static int write_output_lines(struct wr_output *output)
{
    size_t written;
    int error = wr_output_write(output, output->writing.bytes, output->writing.length, &written);
    if (error != 0)
        memmove(output->writing.bytes, output->writing.bytes + written, output->writing.length - written);
    wr_buf_cut(&output->writing, output->writing.length - written);
    return error;
}

/* Turns a refused line into spaces, which JSON allows before the next line. */
static void blank_line(struct wr_output *output, const struct wr_leased_line *line)
{
    /* Position of the lines that are posted after those in `writing`. */
    uint64_t begin = output->end - output->lines.length;
    char *bytes = output->writing.bytes;
    if (line->at >= begin - output->writing.length && line->at + line->bytes <= begin)
        memset(bytes + (line->at - (begin - output->writing.length)), ' ', line->bytes);
    else if (output->is_file) /* the line was written for a transaction that failed */
        for (size_t i = 0; i < line->bytes; i++)
            (void)!pwrite(output->fd, " ", 1, (off_t)(line->at + i));
}

/* Blanks lines whose posts the store refuses; this is known before the commit. The lock is held. */
static void blank_refused_lines(struct wr_output *output)
{
    for (struct wr_list_link *link = output->leased.first; link != NULL; link = link->next) {
        const struct wr_leased_line *line = WR_LINKED(link, struct wr_leased_line, link);
        if (line->is_refused)
            blank_line(output, line);
    }
}

/* Writes the lines that the last call left, then all that were posted since, because the store may
 * commit those as well. Then syncs. */
int wr_output_sync(struct wr_output *output)
{
    if (output->fd < 0)
        return 0;
    int error = write_output_lines(output);
    if (error != 0)
        return error;
    (void)pthread_mutex_lock(&output->lock);
    struct wr_buf empty = output->writing;
    output->writing = output->lines;
    output->lines = empty;
    blank_refused_lines(output);
    (void)pthread_mutex_unlock(&output->lock);
    error = write_output_lines(output);
    if (error != 0)
        return error;
    return output->is_file && fdatasync(output->fd) != 0 ? refuse_output(output->path, "cannot be synced") : 0;
}

void wr_output_close(struct wr_output *output)
{
    if (output->fd > STDERR_FILENO)
        (void)close(output->fd);
    output->fd = -1;
    free(output->path);
    output->path = NULL;
    wr_buf_release(&output->lines);
    wr_buf_release(&output->writing);
    (void)pthread_mutex_destroy(&output->lock);
}
