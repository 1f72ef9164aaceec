/* SPDX-License-Identifier: MIT */
/* loopback.h - a small web server on 127.0.0.1 for the examples. Not part of weir. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct loopback {
    /* Called on the server's thread with the requested path and the number of requests that were
     * answered before. Returns the whole response. */
    const char *(*answer)(const char *path, int before);
    int port;
    int listener;
    pthread_t thread;
};

static void loopback_serve(const struct loopback *server, int client, int before)
{
    char request[4096] = "", path[1024] = "/";
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && strstr(request, "\r\n\r\n") == NULL && length < sizeof request - 1) {
        got = recv(client, request + length, sizeof request - 1 - length, 0);
        length += got > 0 ? (size_t)got : 0;
        request[length] = '\0';
    }
    if (sscanf(request, "%*s %1023s", path) == 1) {
        const char *response = server->answer(path, before);
        (void)!write(client, response, strlen(response));
    }
    close(client);
}

static void *loopback_run(void *context)
{
    const struct loopback *server = context;
    int client;
    for (int before = 0; (client = accept(server->listener, NULL, NULL)) >= 0; before++)
        loopback_serve(server, client, before);
    return NULL;
}

/* Starts the server. Responses must have "Connection: close". Returns false on an error. */
static inline bool loopback_start(struct loopback *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server->listener, (struct sockaddr *)&address, bytes) < 0 || listen(server->listener, 100) < 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &bytes) < 0)
        return false;
    server->port = ntohs(address.sin_port);
    return pthread_create(&server->thread, NULL, loopback_run, server) == 0;
}

static inline void loopback_stop(struct loopback *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

#endif
