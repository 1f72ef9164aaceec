/* SPDX-License-Identifier: MIT */
/* moment.c - writes and parses instants that another process will read. */
#include "limiter/clock/moment.h"

#include "base/parse.h"
#include "limiter/clock/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool is_start_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-';
}

static bool is_start(struct wr_span name)
{
    if (name.bytes != WR_BOOT_ID_ROOM - 1)
        return false;
    for (size_t i = 0; i < name.bytes; i++)
        if (!is_start_char(name.data[i]))
            return false;
    return true;
}

/* Reads the kernel's boot ID. Writes "" if it is not readable, as in some sandboxes. */
static void read_start(char ret_start[WR_BOOT_ID_ROOM])
{
    char text[WR_BOOT_ID_ROOM] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

    if (fd >= 0)
        (void)close(fd);
    bool is_known = got > 0 && is_start((struct wr_span){text, (size_t)got});
    memcpy(ret_start, is_known ? text : "", is_known ? sizeof text : 1);
}

void wr_moment_now(struct wr_moment *ret_moment)
{
    *ret_moment = (struct wr_moment){.wall_at = weir_wall_now(), .start_at = wr_boottime_now()};
    read_start(ret_moment->start);
}

int64_t wr_moment_between(const struct wr_moment *then, const struct wr_moment *now)
{
    bool is_one_start = then->start[0] != '\0' && strcmp(then->start, now->start) == 0;

    if (is_one_start && now->start_at >= then->start_at)
        return now->start_at - then->start_at;
    return now->wall_at > then->wall_at ? now->wall_at - then->wall_at : 0;
}

void wr_moment_append(struct wr_buf *text, const struct wr_moment *moment)
{
    wr_buf_append_u64(text, (uint64_t)moment->wall_at);
    if (moment->start[0] == '\0')
        return;
    wr_buf_append_char(text, ' ');
    wr_buf_append_string(text, moment->start);
    wr_buf_append_char(text, ' ');
    wr_buf_append_u64(text, (uint64_t)moment->start_at);
}

static bool parse_instant(struct wr_span text, int64_t *ret_at)
{
    uint64_t at;

    if (!wr_scan_u64(text.data, text.bytes, 0, INT64_MAX, &at))
        return false;
    *ret_at = (int64_t)at;
    return true;
}

bool wr_moment_parse(struct wr_span text, struct wr_moment *ret_moment)
{
    size_t wall_bytes = wr_span_find(text, ' ');
    struct wr_moment moment = {0};

    if (!parse_instant((struct wr_span){text.data, wall_bytes}, &moment.wall_at))
        return false;
    if (wall_bytes < text.bytes) {
        struct wr_span rest = wr_span_after(text, wall_bytes + 1);
        struct wr_span name = {rest.data, wr_span_find(rest, ' ')};
        if (!is_start(name) || name.bytes == rest.bytes ||
            !parse_instant(wr_span_after(rest, name.bytes + 1), &moment.start_at))
            return false;
        memcpy(moment.start, name.data, name.bytes);
    }
    *ret_moment = moment;
    return true;
}
