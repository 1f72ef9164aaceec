/* SPDX-License-Identifier: MIT */
/* console.c - prints results and error messages and checks that they were written. */
#include "cli/kit/console.h"

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

#include "core/web/url/url.h"

#define LINE_BYTES 1024
#define CUT_BYTES 256 /* a URL this long at the end of a line may have been cut before its '@' */

static const char *complainer = "weir";
/* Error of the first write that failed; stdio only remembers that a write failed. */
static int lost_errno;

void wr_output_init(void)
{
    /* Opened for reading only: a write to a stream that was closed must fail, not vanish. */
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

/* Returns true for the placeholders of a URL in weir's own messages. */
static bool is_example(const char *authority)
{
    return strncmp(authority, "USER@", strlen("USER@")) == 0 ||
           strncmp(authority, "USER:PASSWORD@", strlen("USER:PASSWORD@")) == 0;
}

/* Removes users and passwords from the URLs in an error message. This is a second line of defence
 * behind the functions that hide them already. */
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
            wr_url_redact_invalid((struct wr_span){next + 1, bytes + 2}, url, sizeof url);
            wr_buf_append_string(&shown, url + strspn(url, "/"));
        }
        line = authority + bytes;
    }
    wr_buf_append_string(&shown, line);
}

/* Returns how many bytes of UTF-8 at `c` are a control character (C0, DEL, C1) or change the
 * direction of the text (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069); 0 if none are. A file
 * name may contain them, and a terminal obeys them. */
static size_t control_bytes(const char *c)
{
    const unsigned char *byte = (const unsigned char *)c;
    if (iscntrl(byte[0]))
        return 1;
    if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f)
        return 2;
    if (byte[0] != 0xe2 || byte[1] == '\0')
        return 0;
    bool turns = (byte[1] == 0x80 && ((byte[2] >= 0x8e && byte[2] <= 0x8f) || (byte[2] >= 0xaa && byte[2] <= 0xae))) ||
                 (byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9);
    return turns ? 3 : 0;
}

__attribute__((format(printf, 1, 0))) static void complain(const char *format, va_list args)
{
    char whole[LINE_BYTES], line[LINE_BYTES];
    vsnprintf(whole, sizeof whole, format, args);
    hide_users(whole, line, sizeof line);
    for (char *c = line; *c != '\0';) {
        size_t bytes = control_bytes(c);
        memset(c, '?', bytes);
        c += bytes > 0 ? bytes : 1;
    }
    fprintf(stderr, "%s: %s\n", complainer, line);
}

void wr_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
}

bool wr_complain_nowait(const char *format, ...)
{
    /* There may be room for one line, but not for two. */
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
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

/* ---- files ---- */

static const struct {
    int error;
    const char *read, *write; /* advice for a file to read, and for a file to write */
} advices[] = {
    {ENOENT, "check the path", "make its folder first, or name another file"},
    {ENOTDIR, "check the path", "name a file in a folder"},
    {EISDIR, "name a file in it", "name a file in it"},
    {EACCES, "let this user read it", "let this user write there, or name another file"},
    {EPERM, "let this user read it", "let this user write there, or name another file"},
    {EROFS, NULL, "name a file on a disk that can be written"},
    {EEXIST, NULL, "name another file, or remove it"},
    {ENOSPC, NULL, "make room on its disk, or name a file on another"},
    {ENXIO, "name a file", "nothing reads this pipe or socket; begin with its reader, or name a file"},
    {EDQUOT, NULL, "make room in this user's quota, or name a file elsewhere"},
};

static void complain_of_file(const char *option, const char *path, int error, bool writes)
{
    const char *advice = NULL;

    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        if (advices[i].error == error)
            advice = writes ? advices[i].write : advices[i].read;
    wr_complain("%s%scannot %s %s: %s%s%s", option != NULL ? option : "", option != NULL ? ": " : "",
                writes ? "write" : "read", path, strerror(error), advice != NULL ? "; " : "",
                advice != NULL ? advice : "");
}

FILE *wr_file_create(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    int fd = open(path, flags | O_NONBLOCK, 0666);
    FILE *file = fd >= 0 && fcntl(fd, F_SETFL, flags & ~(O_CREAT | O_TRUNC | O_CLOEXEC)) == 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL && fd >= 0)
        (void)close(fd);
    return file;
}

void wr_complain_write_failed(const char *option, const char *path, int error)
{
    complain_of_file(option, path, error, true);
}

void wr_complain_read_failed(const char *option, const char *path, int error)
{
    complain_of_file(option, path, error, false);
}

void wr_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list args;
    va_start(args, format);
    fputs("\r\033[K", stderr); /* escape sequence: go to the start of the line and clear it */
    vfprintf(stderr, format, args);
    fflush(stderr);
    va_end(args);
}

void wr_print_note_error(int error)
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
