/* SPDX-License-Identifier: MIT */
/* control_client.c - sends a request to the control socket of a crawl, and receives the
 * response. */
#include "base/error.h"
#include "watch/control/control.h"
#include "watch/control/control_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>

#define CALL_TIMEOUT_S 30

int wr_control_connect(const char *state_path, int *ret_fd)
{
    static const struct timeval patience = {.tv_sec = CALL_TIMEOUT_S};
    int error = wr_control_socket_connect(state_path, ret_fd);
    if (error != 0)
        return error;
    (void)setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(*ret_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return 0;
}

static int socket_failure(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? WEIR_E_TIMEOUT : WEIR_E_CLOSED;
}

static int send_text_to_crawl(int fd, struct wr_span text)
{
    while (text.bytes > 0) {
        ssize_t sent = send(fd, text.data, text.bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return socket_failure(sent);
        text = wr_span_after(text, (size_t)sent);
    }
    return 0;
}

int wr_control_call(int fd, struct wr_span request, struct wr_buf *answer)
{
    char piece[16384];
    int error = send_text_to_crawl(fd, request);
    if (error == 0)
        error = send_text_to_crawl(fd, wr_span_of("\n"));
    while (error == 0) {
        ssize_t got = recv(fd, piece, sizeof piece, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return socket_failure(got);
        bool is_end = piece[got - 1] == '\n';
        wr_buf_append(answer, piece, (size_t)got - is_end);
        error = answer->error;
        if (is_end)
            break;
    }
    return error;
}
