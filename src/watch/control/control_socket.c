/* SPDX-License-Identifier: MIT */
/* control_socket.c - opens and connects to the socket beside a state file. */
#include "watch/control/control_socket.h"

#include "base/buf.h"
#include "base/error.h"
#include "limiter/clock/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SUFFIX ".sock"
#define CONTROL_BACKLOG 16
#define CONNECT_TIMEOUT_S 3 /* limit for connecting: a stopped crawl does not accept */

static char *socket_path_of(const char *state_path)
{
    size_t bytes = strlen(state_path) + sizeof SUFFIX;
    char *path = malloc(bytes);
    struct wr_buf buf;
    if (path == NULL)
        return NULL;
    wr_buf_init_fixed(&buf, path, bytes);
    wr_buf_append_string(&buf, state_path);
    wr_buf_append_string(&buf, SUFFIX);
    return path;
}

/* Opens the folder of a path that is too long for a socket address, which then names the descriptor
 * instead. Returns -1 on failure. */
static int open_folder(const char *path, const char *name)
{
    char *folder = strndup(path, (size_t)(name - path));
    int fd = folder != NULL ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    return fd;
}

/* Makes the address of a socket. *ret_folder must stay open until the address was used; -1 if it is
 * not needed. */
static int socket_address_of(const char *path, struct sockaddr_un *ret_address, int *ret_folder)
{
    const char *slash = strrchr(path, '/');
    struct wr_buf buf;
    bool is_long = strlen(path) >= sizeof ret_address->sun_path;
    int folder = is_long && slash != NULL ? open_folder(path, slash + 1) : -1;
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    wr_buf_init_fixed(&buf, ret_address->sun_path, sizeof ret_address->sun_path);
    if (folder >= 0) {
        wr_buf_append_string(&buf, "/proc/self/fd/");
        wr_buf_append_u64(&buf, (uint64_t)folder);
    }
    wr_buf_append_string(&buf, folder >= 0 ? slash : path);
    *ret_folder = folder;
    if (buf.error == 0)
        return 0;
    if (folder >= 0)
        (void)close(folder);
    return wr_invalid("the state file's name is too long for a socket beside it; use at most 80 bytes");
}

static int fail_and_close(int fd, int folder, const char *path)
{
    int number = errno;
    if (fd >= 0)
        (void)close(fd);
    if (folder >= 0)
        (void)close(folder);
    wr_error_set_cause("the socket", path, strerror(number));
    return WEIR_E_SYSTEM;
}

/* ---- listen ---- */

/* Removes a socket left over from an earlier crawl. Fails if another kind of file has this name. */
static int remove_stale_control_socket(const char *path)
{
    struct stat node;
    if (lstat(path, &node) != 0)
        return 0;
    if (!S_ISSOCK(node.st_mode))
        return wr_invalid("another file has the name of the control socket beside the state file; remove it");
    (void)unlink(path);
    return 0;
}

int wr_control_socket_listen(struct wr_control_socket *ret_place, const char *state_path, int *ret_fd)
{
    struct wr_control_socket control_socket = {.path = socket_path_of(state_path)};
    struct sockaddr_un address;
    struct stat node;
    int folder = -1;
    int error = control_socket.path == NULL ? WEIR_E_NOMEM : remove_stale_control_socket(control_socket.path);
    if (error == 0)
        error = socket_address_of(control_socket.path, &address, &folder);
    if (error != 0) {
        free(control_socket.path);
        return error;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* the socket file gets the mode that the socket has at bind, so at no moment can others
     * connect */
    if (fd < 0 || fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, CONTROL_BACKLOG) != 0 || lstat(control_socket.path, &node) != 0) {
        error = fail_and_close(fd, folder, control_socket.path);
        free(control_socket.path);
        return error;
    }
    if (folder >= 0)
        (void)close(folder);
    control_socket.device = node.st_dev;
    control_socket.inode = node.st_ino;
    *ret_place = control_socket;
    *ret_fd = fd;
    return 0;
}

void wr_control_socket_remove(struct wr_control_socket *control_socket)
{
    struct stat node;
    if (lstat(control_socket->path, &node) == 0 && node.st_dev == control_socket->device &&
        node.st_ino == control_socket->inode)
        (void)unlink(control_socket->path);
    free(control_socket->path);
    control_socket->path = NULL;
}

/* ---- connect ---- */

bool wr_control_peer_is_ours(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

/* Connects within PATIENCE_S in all, regardless of signals. Returns 0 or an errno. */
static int connect_with_timeout(int fd, const struct sockaddr_un *address)
{
    const int64_t until = wr_monotonic_now() + CONNECT_TIMEOUT_S * WEIR_SECOND;
    for (;;) {
        int64_t left_us = (until - wr_monotonic_now()) / WEIR_MICROSECOND;
        if (left_us <= 0)
            return EAGAIN;
        const struct timeval left = {(time_t)(left_us / 1000000), (suseconds_t)(left_us % 1000000)};
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof left) != 0)
            return errno;
        if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
            return 0;
        if (errno != EINTR) /* with a timeout set, the kernel does not restart the call */
            return errno;
    }
}

int wr_control_socket_connect(const char *state_path, int *ret_fd)
{
    char *path = socket_path_of(state_path);
    struct sockaddr_un address;
    int folder = -1;
    int error = path == NULL ? WEIR_E_NOMEM : socket_address_of(path, &address, &folder);
    free(path);
    if (error != 0)
        return error == WEIR_E_INVAL ? WEIR_E_ABSENT : error;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_and_close(fd, folder, state_path);
    int failed = connect_with_timeout(fd, &address);
    if (folder >= 0)
        (void)close(folder);
    if (failed == 0 && wr_control_peer_is_ours(fd)) {
        *ret_fd = fd;
        return 0;
    }
    (void)close(fd);
    if (failed == ENOENT || failed == ECONNREFUSED || failed == ENOTDIR)
        return WEIR_E_ABSENT;
    if (failed == EAGAIN) {
        wr_error_set_text("the control socket of", state_path, strlen(state_path),
                          "accepts no connection; its crawl may be stopped");
        return WEIR_E_SYSTEM;
    }
    errno = failed != 0 ? failed : EPERM; /* the socket belongs to another user */
    return fail_and_close(-1, -1, state_path);
}
