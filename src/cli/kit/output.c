/* SPDX-License-Identifier: MIT */
/* output.c - what the program says, and whether it arrived. */
#include "cli/kit/output.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/rules/url/url.h"

#define LINE_BYTES 1024
#define CUT_BYTES 256 /* a URL as long at the end of a line may have been cut before its '@' */

static const char *complainer = "weir";
static int lost_errno; /* of the first write that failed; stdio only remembers that one did */

void wr_output_init(void)
{
    /* Read-only on purpose: what is written to a stream that was closed must fail, not vanish. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDONLY) != fd)
            _exit(WR_EXIT_FAILED);
    signal(SIGPIPE, SIG_IGN);
}

void wr_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vprintf(format, args) < 0 && lost_errno == 0)
        lost_errno = errno;
    va_end(args);
}

void wr_complain_as(const char *who)
{
    complainer = who;
}

/* What our own words say of a URL. */
static bool is_example(const char *authority)
{
    return strncmp(authority, "USER@", strlen("USER@")) == 0 ||
           strncmp(authority, "USER:PASSWORD@", strlen("USER:PASSWORD@")) == 0;
}

/* No complaint shows the user or the password of a URL, whoever wrote it: this is behind all that hide them already. */
static void hide_users(const char *line, char *ret_shown, size_t room)
{
    struct wr_buf shown;
    wr_buf_init_fixed(&shown, ret_shown, room);
    for (const char *next = strstr(line, "://"); next != NULL; next = strstr(line, "://")) {
        char url[LINE_BYTES];
        const char *authority = next + strlen("://");
        size_t bytes = strcspn(authority, " \"'");
        wr_buf_append(&shown, line, (size_t)(authority - line));
        bool has_at = memchr(authority, '@', bytes) != NULL;
        if (!has_at && authority[bytes] == '\0' && bytes >= CUT_BYTES) {
            wr_buf_append_string(&shown, "...");
        } else if (!has_at || is_example(authority)) {
            wr_buf_append(&shown, authority, bytes);
        } else {
            wr_url_show_bad((struct wr_span){next + 1, bytes + 2}, url, sizeof url);
            wr_buf_append_string(&shown, url + strspn(url, "/"));
        }
        line = authority + bytes;
    }
    wr_buf_append_string(&shown, line);
}

__attribute__((format(printf, 1, 0))) static void complain(const char *format, va_list args)
{
    char whole[LINE_BYTES], line[LINE_BYTES];
    vsnprintf(whole, sizeof whole, format, args);
    hide_users(whole, line, sizeof line);
    for (char *c = line; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    fprintf(stderr, "%s: %s\n", complainer, line);
}

void wr_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
}

bool wr_complain_soon(const char *format, ...)
{
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* what has room for one line may have none for two */
    struct pollfd there = {.fd = STDERR_FILENO, .events = POLLOUT};
    va_list args;
    va_start(args, format);
    (void)pthread_mutex_lock(&writing);
    bool has_room = poll(&there, 1, 0) == 1 && there.revents == POLLOUT;
    if (has_room)
        complain(format, args);
    (void)pthread_mutex_unlock(&writing);
    va_end(args);
    return has_room;
}

void wr_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list args;
    va_start(args, format);
    fputs("\r\033[K", stderr); /* to the line's start, and clear it */
    vfprintf(stderr, format, args);
    fflush(stderr);
    va_end(args);
}

void wr_print_lost(int error)
{
    if (lost_errno == 0)
        lost_errno = error;
}

bool wr_print_finish(void)
{
    if (fflush(stdout) != 0 && lost_errno == 0)
        lost_errno = errno;
    if (lost_errno == 0 && !ferror(stdout))
        return true;
    wr_complain("cannot write to standard output: %s", lost_errno != 0 ? strerror(lost_errno) : "write failed");
    return false;
}
