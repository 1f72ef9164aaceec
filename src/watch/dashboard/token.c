/* SPDX-License-Identifier: MIT */
/* token.c - generates tokens, and reads them and other secrets from files. */
#include "watch/dashboard/token.h"

#include "base/buf.h"
#include "base/error.h"
#include "limiter/memory/memory.h"
#include "watch/dashboard/dashboard_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MISSING_FILE "there is no such file; write one with a single line, and chmod 600"

int wr_dashboard_token_generate(char ret_token[WR_DASHBOARD_TOKEN_ROOM])
{
    uint32_t numbers[4];
    struct wr_buf text;
    if (wr_random(numbers, sizeof numbers) != 0) {
        wr_error_set("the system's random source failed");
        return WEIR_E_SYSTEM;
    }
    wr_buf_init_fixed(&text, ret_token, WR_DASHBOARD_TOKEN_ROOM);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        wr_buf_append_hex(&text, numbers[i], 8, WR_HEX_SMALL);
    return 0;
}

static int make_token_file(const char *path, char ret_token[WR_DASHBOARD_TOKEN_ROOM])
{
    char token[WR_DASHBOARD_TOKEN_ROOM];
    int error = wr_dashboard_token_generate(token);
    if (error != 0)
        return error;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t bytes = strlen(token);
    bool written = fd >= 0 && write(fd, token, bytes) == (ssize_t)bytes && write(fd, "\n", 1) == 1;
    if (fd >= 0 && close(fd) != 0)
        written = false;
    if (!written) {
        int failure = errno;
        if (fd >= 0)
            (void)unlink(path);
        wr_error_set_cause("cannot create", path,
                           failure == ENOENT ? "its folder does not exist; create it first" : strerror(failure));
        return WEIR_E_SYSTEM;
    }
    memcpy(ret_token, token, bytes + 1);
    return 0;
}

static int refuse_secret_file(const char *path, const char *why)
{
    wr_error_set_cause("cannot use", path, why);
    return WEIR_E_INVAL;
}

/* Checks the first line of what was read from a file, and copies it. */
static int check_secret_line(const char *path, struct wr_span line, size_t min,
                             char ret_secret[WR_DASHBOARD_TOKEN_ROOM])
{
    line.bytes = wr_span_find(line, '\n');
    if (line.bytes < min || line.bytes > WR_DASHBOARD_TOKEN_MAX)
        return refuse_secret_file(path, min == WR_DASHBOARD_TOKEN_MIN
                                            ? "the file must hold one line of 16 to 255 characters"
                                            : "the file must hold one line of 1 to 255 characters");
    for (size_t i = 0; i < line.bytes; i++)
        if (line.data[i] <= ' ' || line.data[i] > '~')
            return refuse_secret_file(path, "the line must have visible ASCII characters only");
    memcpy(ret_secret, line.data, line.bytes);
    ret_secret[line.bytes] = '\0';
    return 0;
}

/* Returns true if other users can read the file. systemd gives a service its credentials by an ACL:
 * such files belong to root, and the mask of the ACL appears in the group's bits. */
static bool others_may_read(const struct stat *status)
{
    bool is_root = status->st_uid == 0 && status->st_gid == 0;
    return (status->st_mode & (S_IRWXO | (is_root ? S_IWGRP : S_IRWXG))) != 0;
}

int wr_dashboard_secret_read(const char *path, size_t min, char ret_secret[WR_DASHBOARD_TOKEN_ROOM])
{
    char text[WR_DASHBOARD_TOKEN_ROOM];
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = -1;
    if (fd >= 0 && fstat(fd, &status) == 0 && !S_ISREG(status.st_mode)) {
        (void)close(fd);
        return refuse_secret_file(path, S_ISDIR(status.st_mode) ? "it is a folder; name a file in it"
                                                                : "it is not a regular file; name another");
    }
    if (fd >= 0)
        got = read(fd, text, sizeof text);
    int failure = errno;
    if (fd >= 0)
        (void)close(fd);
    if (got < 0) {
        wr_error_set_cause("cannot read", path, failure == ENOENT ? MISSING_FILE : strerror(failure));
        return failure == ENOENT ? WEIR_E_ABSENT : WEIR_E_SYSTEM;
    }
    if (others_may_read(&status))
        return refuse_secret_file(path, "the file can be read by others; chmod 600 makes it private");
    return check_secret_line(path, (struct wr_span){text, (size_t)got}, min, ret_secret);
}

int wr_dashboard_token_read(const char *path, char ret_token[WR_DASHBOARD_TOKEN_ROOM])
{
    int error = wr_dashboard_secret_read(path, WR_DASHBOARD_TOKEN_MIN, ret_token);
    return error == WEIR_E_ABSENT ? make_token_file(path, ret_token) : error;
}
