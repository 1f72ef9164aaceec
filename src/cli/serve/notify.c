/* SPDX-License-Identifier: MIT */
/* notify.c - takes sockets from the service manager and reports the daemon's state to it. */
#include "cli/serve/notify.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"

#define SOCKETS_MAX 16

static uint64_t environment_number(const char *name, uint64_t max)
{
    const char *text = getenv(name);
    uint64_t number = 0;
    if (text == NULL || wr_parse_u64(text, strlen(text), 0, max, &number) != 0)
        return 0;
    return number;
}

int wr_notify_sockets(void)
{
    uint64_t process = environment_number("LISTEN_PID", INT32_MAX);
    uint64_t count = environment_number("LISTEN_FDS", SOCKETS_MAX);
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return process == (uint64_t)getpid() ? (int)count : 0;
}

void wr_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t bytes = path == NULL ? 0 : strlen(path);
    if (bytes < 2 || bytes >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, bytes);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length);
    (void)close(fd);
}
