/* SPDX-License-Identifier: MIT */
/* terminal.c - opens a terminal for drawing and reads its keys. */
#include "cli/view/terminal.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH 80 /* size of a terminal that does not report one */
#define HEIGHT 24

bool wr_terminal_fits(void)
{
    const char *name = getenv("TERM");

    return isatty(STDERR_FILENO) && isatty(STDIN_FILENO) && name != NULL && strcmp(name, "dumb") != 0;
}

bool wr_terminal_has_color(void)
{
    const char *none = getenv("NO_COLOR");

    return none == NULL || none[0] == '\0';
}

/* Checks the locale variables like the C library, but without setlocale, which would change the
 * format of numbers. */
bool wr_terminal_has_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value == NULL || value[0] == '\0')
            continue;
        const char *dot = strchr(value, '.');
        return dot != NULL && (strncasecmp(dot, ".utf-8", 6) == 0 || strncasecmp(dot, ".utf8", 5) == 0);
    }
    return false;
}

static void write_to_stderr(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

bool wr_terminal_open(struct wr_terminal *ret_terminal)
{
    struct termios raw;

    *ret_terminal = (struct wr_terminal){.is_open = false};
    if (tcgetattr(STDIN_FILENO, &ret_terminal->before) != 0)
        return false;
    raw = ret_terminal->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_iflag &= ~(tcflag_t)ICRNL;
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* no Ctrl-Z: the shell would be left with this screen */
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0)
        return false;
    ret_terminal->is_open = true;
    write_to_stderr("\033[?1049h\033[?25l\033[2J"); /* alternate screen, cursor off, clear */
    return true;
}

void wr_terminal_close(struct wr_terminal *terminal)
{
    if (!terminal->is_open)
        return;
    terminal->is_open = false;
    write_to_stderr("\033[0m\033[?25h\033[?1049l");
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
}

void wr_terminal_size(int *ret_width, int *ret_height)
{
    struct winsize size;
    bool is_told = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;

    *ret_width = is_told ? size.ws_col : WIDTH;
    *ret_height = is_told ? size.ws_row : HEIGHT;
}

static int sequence_key(char last, char digit)
{
    switch (last) {
    case 'A':
        return WR_KEY_UP;
    case 'B':
        return WR_KEY_DOWN;
    case '~':
        return digit == '5' ? WR_KEY_PAGE_UP : digit == '6' ? WR_KEY_PAGE_DOWN : WR_KEY_OTHER;
    default:
        return WR_KEY_OTHER;
    }
}

/* Parses a key: ESC [ digits letter, ESC O letter, or ESC alone. */
int wr_key_code_parse(const char *typed, int bytes, int *ret_used)
{
    int at = 2;

    *ret_used = 1;
    if (bytes < 1)
        return WR_KEY_NONE;
    if (typed[0] == '\n')
        return WR_KEY_ENTER;
    if (typed[0] == '\b')
        return WR_KEY_ERASE;
    if (typed[0] != WR_KEY_ESCAPE)
        return (unsigned char)typed[0] < 128 && typed[0] != '\0' ? typed[0] : WR_KEY_OTHER;
    if (bytes < 3 || (typed[1] != '[' && typed[1] != 'O'))
        return WR_KEY_ESCAPE;
    while (at < bytes - 1 && ((typed[at] >= '0' && typed[at] <= '9') || typed[at] == ';'))
        at++;
    *ret_used = at + 1;
    return sequence_key(typed[at], typed[2]);
}

int wr_terminal_key(struct wr_terminal *terminal)
{
    struct pollfd stdin_ready = {.fd = STDIN_FILENO, .events = POLLIN};
    int used;

    if (terminal->typed_bytes == 0 && poll(&stdin_ready, 1, 0) == 1) {
        ssize_t bytes = read(STDIN_FILENO, terminal->typed, sizeof terminal->typed);
        terminal->typed_bytes = bytes > 0 ? (int)bytes : 0;
    }
    if (terminal->typed_bytes == 0)
        return WR_KEY_NONE;
    int key = wr_key_code_parse(terminal->typed, terminal->typed_bytes, &used);
    terminal->typed_bytes -= used;
    memmove(terminal->typed, terminal->typed + used, (size_t)terminal->typed_bytes);
    return key;
}
