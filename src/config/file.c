/* SPDX-License-Identifier: MIT */
/* file.c - reads the text of a configuration file, up to the size limit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "config/config.h"

#define PIPE_WAIT_MS 10000 /* wait limit for a pipe without data */

static int fail_with_path(const char *path, const char *wrong, char *ret_why, size_t why_bytes)
{
    struct wr_buf why;
    wr_buf_init_fixed(&why, ret_why, why_bytes);
    wr_buf_append_string(&why, path);
    wr_buf_append_string(&why, ": ");
    wr_buf_append_string(&why, wrong);
    return WEIR_E_SYSTEM;
}

/* Reads the descriptor to its end. It may be a pipe whose writer is slow or missing. The wait is
 * limited, because a daemon that hangs in a reload would ignore SIGTERM. Returns 0 or an errno. */
static int read_descriptor(int fd, struct wr_buf *text)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char piece[4096];
    for (;;) {
        int found = poll(&ready, 1, PIPE_WAIT_MS);
        if (found == 0)
            return ETIMEDOUT;
        if (found < 0 && errno == EINTR)
            continue;
        ssize_t got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EAGAIN)
            continue;
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0)
            wr_buf_append(text, piece, (size_t)got);
        if (text->error != 0)
            return 0;
    }
}

/* Returns a hint to append to the error text; "" if the error text is enough. */
static const char *errno_advice(int failure)
{
    switch (failure) {
    case ENOENT:
        return "; name a file that exists, or write one as docs/guide/configuring.md shows";
    case EISDIR:
        return "; name a file in it";
    case ENOTDIR:
        return "; name a file in a folder";
    case ETIMEDOUT:
        return "; nothing was written to it for 10 s; name a regular file, or start its writer first";
    case EACCES:
        return "; let this user read it";
    default:
        return "";
    }
}

static int fail_to_read(const char *path, int failure, char *ret_why, size_t why_bytes)
{
    char words[128], wrong[256];
    struct wr_buf text;
    wr_buf_init_fixed(&text, wrong, sizeof wrong);
    wr_buf_append_string(&text, strerror_r(failure, words, sizeof words));
    wr_buf_append_string(&text, errno_advice(failure));
    return fail_with_path(path, wrong, ret_why, why_bytes);
}

static int read_config_text(const char *path, struct wr_buf *text, char *ret_why, size_t why_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int failure = fd < 0 ? errno : read_descriptor(fd, text);
    if (fd >= 0)
        close(fd);
    if (failure != 0)
        return fail_to_read(path, failure, ret_why, why_bytes);
    if (text->error == WEIR_E_SPACE) {
        fail_with_path(path, "longer than 1 MiB; use at most 1 MiB", ret_why, why_bytes);
        return WEIR_E_INVAL;
    }
    if (text->error == WEIR_E_NOMEM) {
        fail_with_path(path, "out of memory", ret_why, why_bytes);
        return WEIR_E_NOMEM;
    }
    return 0;
}

int wr_config_read(const struct wr_config_schema *schema, const char *path, const weir_allocator *allocator,
                   void *settings, char *ret_why, size_t why_bytes)
{
    struct wr_buf text;
    wr_buf_init(&text, allocator, WR_CONFIG_BYTES_MAX);
    int error = read_config_text(path, &text, ret_why, why_bytes);
    if (error == 0)
        error = wr_config_parse(schema, path, text.bytes, text.length, allocator, settings, ret_why, why_bytes);
    wr_buf_release(&text);
    return error;
}
