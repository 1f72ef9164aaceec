/* SPDX-License-Identifier: MIT */
/* url_list.c - reads a text with one URL per line. */
#include "cli/kit/url_list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "cli/kit/console.h"

#define LOOK_EVERY_MS 200 /* interval at which a waiting read checks is_over */

bool wr_url_list_open(struct wr_url_list *ret_list, const char *name)
{
    bool is_standard = strcmp(name, "-") == 0;
    ret_list->name = is_standard ? "standard input" : name;
    ret_list->is_over = NULL;
    ret_list->line = 0;
    ret_list->has_failed = ret_list->is_end = ret_list->is_cut = false;
    ret_list->at = ret_list->end = 0;
    ret_list->fd = is_standard ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    if (ret_list->fd < 0)
        wr_complain_read_failed(NULL, name, errno);
    return ret_list->fd >= 0;
}

bool wr_url_list_close(struct wr_url_list *list)
{
    if (list->fd != STDIN_FILENO)
        (void)close(list->fd);
    return !list->has_failed;
}

static bool url_list_is_over(const struct wr_url_list *list)
{
    return list->is_over != NULL && list->is_over();
}

/* Reads more bytes into the buffer; waits for them until the list is over. */
static void read_more_bytes(struct wr_url_list *list)
{
    struct pollfd ready = {.fd = list->fd, .events = POLLIN};
    memmove(list->bytes, list->bytes + list->at, list->end - list->at);
    list->end -= list->at;
    list->at = 0;
    while (!url_list_is_over(list)) {
        int count = poll(&ready, 1, LOOK_EVERY_MS);
        if (count == 0 || (count < 0 && errno == EINTR))
            continue;
        ssize_t bytes = read(list->fd, list->bytes + list->end, sizeof list->bytes - 1 - list->end);
        if (bytes < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        list->has_failed = bytes < 0;
        if (list->has_failed)
            wr_complain_read_failed(NULL, list->name, errno);
        list->is_end = bytes <= 0;
        list->end += bytes > 0 ? (size_t)bytes : 0;
        return;
    }
}

/* Returns the next line without its line end, cut if it is longer than WR_URL_LIST_LINE_MAX. */
static bool take_list_line(struct wr_url_list *list, struct wr_span *ret_line)
{
    for (;;) {
        struct wr_span rest = {list->bytes + list->at, list->end - list->at};
        size_t bytes = wr_span_find(rest, '\n');
        bool is_whole = bytes < rest.bytes || (list->is_end && bytes > 0), was_cut = list->is_cut;
        if (url_list_is_over(list) || list->has_failed || (!is_whole && list->is_end))
            return false;
        if (!is_whole && rest.bytes <= WR_URL_LIST_LINE_MAX) {
            read_more_bytes(list);
            continue;
        }
        list->at += bytes < rest.bytes ? bytes + 1 : bytes;
        list->is_cut = !is_whole;
        if (was_cut)
            continue;
        *ret_line = (struct wr_span){rest.data, bytes};
        list->line++;
        return true;
    }
}

bool wr_url_list_next(struct wr_url_list *list, struct wr_span *ret_text)
{
    struct wr_span line;
    while (take_list_line(list, &line)) {
        if (line.bytes > 0 && line.data[line.bytes - 1] == '\r')
            line.bytes--;
        line = wr_span_trim(line);
        if (line.bytes == 0 || line.data[0] == '#')
            continue;
        /* Replaces a blank, the line end, or a spare byte. */
        list->bytes[(size_t)(line.data - list->bytes) + line.bytes] = '\0';
        *ret_text = line;
        return true;
    }
    return false;
}
