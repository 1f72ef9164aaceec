/* SPDX-License-Identifier: MIT */
/* listen_socket.c - opens listening sockets, and checks which peers may connect to Unix sockets. */
#include "serve/server/http_server_internal.h"

#include "base/address.h"
#include "base/error.h"
#include "core/web/url/url.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096
#define GROUPS_MAX 256

/* ---- addresses ---- */

/* Reports an invalid address. Users may give a URL by mistake, so a password in it is masked. */
static int refuse_address(const char *text, const char *why)
{
    char shown[512];
    if (strchr(text, '@') != NULL || strstr(text, "://") != NULL) {
        wr_url_redact_invalid((struct wr_span){text, strlen(text)}, shown, sizeof shown);
        text = shown;
    }
    return wr_invalid_text("listening address", text, strlen(text), why, WR_NOWHERE,
                           "use 127.0.0.1:8080, [::1]:8080, :8080 (loopback) or unix:/path/to.sock");
}

static int parse_port(const char *text, struct wr_span digits, uint16_t *ret_port)
{
    uint32_t port = 0;
    if (digits.bytes == 0 || digits.bytes > 5)
        return refuse_address(text, "no port");
    for (size_t i = 0; i < digits.bytes; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return refuse_address(text, "the port is not a number");
        port = port * 10 + (uint32_t)(digits.data[i] - '0');
    }
    if (port > UINT16_MAX)
        return refuse_address(text, "the port is more than 65535");
    *ret_port = (uint16_t)port;
    return 0;
}

static int parse_inet(const char *text, struct sockaddr_in6 *ret_v6, struct sockaddr_in *ret_v4, bool *ret_is_v4)
{
    const char *colon = strrchr(text, ':');
    struct wr_address address = {{0}};
    uint16_t port = 0;
    if (colon == NULL)
        return refuse_address(text, "no port");
    struct wr_span host = {text, (size_t)(colon - text)};
    int error = parse_port(text, wr_span_of(colon + 1), &port);
    if (error != 0)
        return error;
    bool has_brackets = host.bytes >= 2 && host.data[0] == '[' && host.data[host.bytes - 1] == ']';
    if (host.bytes == 0 || wr_span_is(host, "localhost"))
        (void)wr_address_parse(wr_span_of("127.0.0.1"), &address);
    else if (has_brackets ? !wr_address_parse_v6((struct wr_span){host.data + 1, host.bytes - 2}, &address)
                          : !wr_address_parse(host, &address) || !wr_address_is_v4(&address))
        return refuse_address(text, "the host is not an address");
    *ret_is_v4 = !has_brackets;
    *ret_v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&ret_v4->sin_addr, address.bytes + 12, 4);
    *ret_v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&ret_v6->sin6_addr, address.bytes, 16);
    return 0;
}

static int check_socket_path(const char *path)
{
    size_t bytes = strlen(path);
    if (bytes > 0 && bytes < sizeof((struct sockaddr_un *)NULL)->sun_path)
        return 0;
    return wr_invalid_text("listening address", path, bytes, "the socket's path is empty or too long", WR_NOWHERE,
                           "use at most 107 bytes");
}

int wr_http_address_check(const char *address)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;
    bool is_v4;
    return strncmp(address, "unix:", 5) == 0 ? check_socket_path(address + 5) : parse_inet(address, &v6, &v4, &is_v4);
}

/* ---- listening ---- */

/* Returns a message that explains the error number and how to solve it. */
static const char *listen_error_text(int number)
{
    switch (number) {
    case ENOENT:
        return "its folder does not exist; create it first";
    case EADDRINUSE:
        return "already in use: another program listens there; stop it, or name another address";
    case EADDRNOTAVAIL:
        return "no interface of this machine has this address; name one that \"ip address\" shows";
    case EACCES:
    case EPERM:
        return "permission denied; let this user write the folder, or name a port of 1024 or more";
    default:
        return strerror(number);
    }
}

static int fail_to_listen(int fd, const char *address)
{
    int number = errno;
    if (fd >= 0)
        (void)close(fd);
    wr_error_set_cause("cannot listen at", address, listen_error_text(number));
    return WEIR_E_SYSTEM;
}

static int open_inet(const char *address, struct wr_http_listen_socket *ret_listen_socket)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;
    bool is_v4 = false;
    int on = 1, error = parse_inet(address, &v6, &v4, &is_v4);
    if (error != 0)
        return error;
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (!is_v4 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
        bind(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, is_v4 ? sizeof v4 : sizeof v6) != 0 ||
        listen(fd, BACKLOG) != 0)
        return fail_to_listen(fd, address);
    ret_listen_socket->fd = fd;
    return 0;
}

/* Unlinks a socket file at which no process listens any more. Fails if the file is in use or not a
 * socket. */
static int unlink_stale_socket(const char *path, const struct sockaddr_un *address)
{
    struct stat node;
    if (lstat(path, &node) != 0)
        return 0;
    if (!S_ISSOCK(node.st_mode))
        return wr_invalid_text("listening address", path, strlen(path), "a file that is not a socket has this name",
                               WR_NOWHERE, "remove it, or name another address");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_to_listen(fd, path);
    bool is_dead = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    if (!is_dead) {
        errno = EADDRINUSE;
        return fail_to_listen(-1, path);
    }
    (void)unlink(path);
    return 0;
}

static int open_unix(const char *path, struct wr_http_listen_socket *listen_socket)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat node;
    int error = check_socket_path(path);
    if (error != 0)
        return error;
    memcpy(address.sun_path, path, strlen(path));
    error = unlink_stale_socket(path, &address);
    if (error != 0)
        return error;
    listen_socket->path = strdup(path);
    if (listen_socket->path == NULL)
        return WEIR_E_NOMEM;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* The socket file gets the mode that the socket has at bind, so at no moment can others
     * connect. Group and other permissions are added last, when the file has its group. */
    bool is_bound = fd >= 0 && fchmod(fd, listen_socket->mode & 0600) == 0 &&
                    bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (!is_bound || listen(fd, BACKLOG) != 0 || lstat(path, &node) != 0 ||
        (listen_socket->has_group && lchown(path, (uid_t)-1, listen_socket->group) != 0) ||
        ((listen_socket->mode & 0077) != 0 && chmod(path, listen_socket->mode) != 0)) {
        error = fail_to_listen(fd, path);
        if (is_bound)
            (void)unlink(path);
        free(listen_socket->path);
        listen_socket->path = NULL;
        return error;
    }
    listen_socket->fd = fd;
    listen_socket->device = node.st_dev;
    listen_socket->inode = node.st_ino;
    return 0;
}

/* For a socket that was passed in, the mode and group of its file decide which peers may
 * connect. */
static void take_file_mode(struct wr_http_listen_socket *listen_socket, const struct sockaddr_un *address,
                           socklen_t bytes)
{
    char path[sizeof address->sun_path + 1] = "";
    struct stat node;
    memcpy(path, address->sun_path, bytes - offsetof(struct sockaddr_un, sun_path));
    if (stat(path, &node) != 0 || !S_ISSOCK(node.st_mode))
        return;
    listen_socket->mode = node.st_mode & 0777;
    listen_socket->group = node.st_gid;
    listen_socket->has_group = true;
}

/* Records the file of an inherited Unix socket, which is to be unlinked at the end. */
static int inherit_socket_file(struct wr_http_listen_socket *listen_socket, const char *address)
{
    struct stat node;
    if (strncmp(address, "unix:", 5) != 0 || lstat(address + 5, &node) != 0)
        return 0;
    listen_socket->path = strdup(address + 5);
    listen_socket->device = node.st_dev;
    listen_socket->inode = node.st_ino;
    return listen_socket->path == NULL ? WEIR_E_NOMEM : 0;
}

/* Uses a descriptor that already listens, from socket activation or a handover. */
static int use_given_descriptor(const struct wr_http_listen_options *listen,
                                struct wr_http_listen_socket *listen_socket)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t bytes = sizeof address, listens_bytes = sizeof(int);
    int listens = 0;
    if (getsockname(listen->fd, (struct sockaddr *)&address, &bytes) != 0 ||
        getsockopt(listen->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_bytes) != 0 || listens == 0)
        return wr_invalid("a given descriptor is not a listening socket");
    if (fcntl(listen->fd, F_SETFL, O_NONBLOCK) != 0 || fcntl(listen->fd, F_SETFD, FD_CLOEXEC) != 0)
        return fail_to_listen(-1, "a given descriptor");
    listen_socket->is_unix = address.ss_family == AF_UNIX;
    listen_socket->fd = listen->fd;
    if (listen_socket->is_unix)
        take_file_mode(listen_socket, (const struct sockaddr_un *)&address, bytes);
    return listen_socket->is_unix && listen->is_inherited ? inherit_socket_file(listen_socket, listen->address) : 0;
}

int wr_http_listen_socket_open(const struct wr_http_listen_options *listen,
                               struct wr_http_listen_socket *ret_listen_socket)
{
    struct wr_http_listen_socket listen_socket = {
        .fd = -1,
        .mode = listen->mode != 0 ? listen->mode : 0600,
        .group = listen->group,
        .has_group = listen->has_group,
        .user = listen->user,
        .has_user = listen->has_user,
    };
    int error = 0;
    listen_socket.is_unix = !listen->has_fd && strncmp(listen->address, "unix:", 5) == 0;
    if (listen->has_fd)
        error = use_given_descriptor(listen, &listen_socket);
    else
        error = listen_socket.is_unix ? open_unix(listen->address + 5, &listen_socket)
                                      : open_inet(listen->address, &listen_socket);
    if (error == 0)
        *ret_listen_socket = listen_socket;
    return error;
}

void wr_http_listen_socket_close(struct wr_http_listen_socket *listen_socket)
{
    struct stat node;
    if (listen_socket->path != NULL && lstat(listen_socket->path, &node) == 0 && node.st_dev == listen_socket->device &&
        node.st_ino == listen_socket->inode)
        (void)unlink(listen_socket->path);
    free(listen_socket->path);
    listen_socket->path = NULL;
    if (listen_socket->fd >= 0)
        (void)close(listen_socket->fd);
    listen_socket->fd = -1;
}

void wr_http_listen_socket_forget_file(struct wr_http_listen_socket *listen_socket)
{
    free(listen_socket->path);
    listen_socket->path = NULL;
}

/* ---- peers ---- */

static bool is_in_group(int fd, gid_t first, gid_t group)
{
    gid_t groups[GROUPS_MAX];
    socklen_t bytes = sizeof groups;
    if (first == group)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0)
        return false;
    for (size_t i = 0; i < bytes / sizeof groups[0]; i++)
        if (groups[i] == group)
            return true;
    return false;
}

bool wr_http_listen_socket_admits(const struct wr_http_listen_socket *listen_socket, int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (!listen_socket->is_unix || ((listen_socket->mode & 0002) != 0 && !listen_socket->has_user))
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return false;
    if (peer.uid == geteuid() || peer.uid == 0 || (listen_socket->has_user && peer.uid == listen_socket->user))
        return true;
    gid_t group = listen_socket->has_group ? listen_socket->group : getegid();
    return (listen_socket->mode & 0020) != 0 && is_in_group(fd, peer.gid, group);
}
