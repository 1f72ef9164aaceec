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
static bool is_example(const char *user, size_t bytes)
{
    static const char *const examples[] = {"USER@", "USER:PASSWORD@"};
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        if (strlen(examples[i]) == bytes && memcmp(examples[i], user, bytes) == 0)
            return true;
    return false;
}

/* No complaint shows the user or the password of a URL, whoever wrote it: this is behind all that hide them already. */
static void hide_users(char *line)
{
    for (char *next = strstr(line, "://"); next != NULL; next = strstr(next, "://")) {
        next += strlen("://");
        size_t bytes = strcspn(next, "/\\?# \"'");
        while (bytes > 0 && next[bytes - 1] != '@')
            bytes--;
        if (!is_example(next, bytes))
            memmove(next, next + bytes, strlen(next + bytes) + 1);
    }
}

__attribute__((format(printf, 1, 0))) static void complain(const char *format, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    hide_users(line);
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
