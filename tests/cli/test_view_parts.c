/* SPDX-License-Identifier: MIT */
/* test_view_parts.c - the live view: its frame, its table and its keys, without a terminal. */
#include "lib/test.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/view/terminal.h"
#include "cli/view/text_frame.h"
#include "cli/view/view_hosts.h"

static struct wr_text_frame frame;

static const char *row(int number)
{
    static char text[WR_TEXT_FRAME_LINE_ROOM + 1];
    memcpy(text, frame.lines[number].text, frame.lines[number].bytes);
    text[frame.lines[number].bytes] = '\0';
    return text;
}

static void begin(int width, int height)
{
    memset(&frame, 0, sizeof frame);
    wr_text_frame_begin(&frame, width, height);
}

static void overlong_text_is_cut_at_the_frame_edge(void **state)
{
    (void)state;
    begin(10, 2);
    wr_text_frame_put(&frame, 0, "%s", "0123456789abc");
    wr_text_frame_put(&frame, 0, "more");
    wr_text_frame_put(&frame, 2, "outside");
    wr_text_frame_put(&frame, -1, "outside");
    assert_string_equal(row(0), "0123456789");
    assert_string_equal(row(1), "");
}

static void control_characters_of_servers_cannot_move_the_cursor(void **state)
{
    (void)state;
    begin(40, 1);
    wr_text_frame_put(&frame, 0, "a\033[2Jb\r\nc\x7f\xe2\x80\xae");
    assert_string_equal(row(0), "a?[2Jb??c????");
}

static void without_colours_only_the_selected_line_is_highlighted(void **state)
{
    (void)state;
    begin(40, 1);
    wr_text_frame_style(&frame, 0, WR_STYLE_BAD);
    wr_text_frame_style(&frame, 0, WR_STYLE_CHOSEN);
    assert_string_equal(row(0), "\033[7m");
    begin(40, 1);
    frame.has_color = true;
    wr_text_frame_style(&frame, 0, WR_STYLE_BAD);
    assert_string_equal(row(0), "\033[31m");
}

static void bars_use_unicode_only_if_the_terminal_has_it(void **state)
{
    (void)state;
    begin(3, 1);
    for (unsigned level = 0; level <= WR_TEXT_FRAME_LEVELS + 1; level += 4)
        wr_text_frame_bar(&frame, 0, level);
    assert_string_equal(row(0), " -#");
    begin(2, 1);
    frame.has_unicode = true;
    wr_text_frame_bar(&frame, 0, 8);
    wr_text_frame_bar(&frame, 0, 1);
    wr_text_frame_bar(&frame, 0, 1);
    assert_string_equal(row(0), "█▁");
}

/* Returns the number of bytes that were written to the pipe. */
static size_t written(int pipe_fd)
{
    char bin[65536];
    ssize_t bytes = read(pipe_fd, bin, sizeof bin);
    return bytes > 0 ? (size_t)bytes : 0;
}

static void live_view_writes_only_changed_lines(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    begin(40, 10);
    for (int turn = 0; turn < 3; turn++) {
        wr_text_frame_begin(&frame, 40, 10);
        for (int i = 0; i < 10; i++)
            wr_text_frame_put(&frame, i, "line %d", turn == 2 && i == 3 ? 33 : i);
        wr_text_frame_write(&frame, ends[1]);
        size_t bytes = written(ends[0]);
        assert_true(turn == 0 ? bytes > 100 : turn == 1 ? bytes == 0 : bytes > 0 && bytes < 30);
    }
    wr_text_frame_begin(&frame, 41, 10); /* after a change of size everything is drawn again */
    wr_text_frame_write(&frame, ends[1]);
    assert_true(written(ends[0]) > 50);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void unwritten_line_is_written_with_the_next_frame(void **state)
{
    int ends[2];
    char text[4096];

    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    memset(text, 'x', sizeof text);
    begin(40, 1);
    wr_text_frame_put(&frame, 0, "shown");
    while (write(ends[1], text, sizeof text) > 0) /* fills the pipe, which has no reader */
        continue;
    wr_text_frame_write(&frame, ends[1]);
    while (read(ends[0], text, sizeof text) > 0)
        continue;
    wr_text_frame_write(&frame, ends[1]);
    ssize_t bytes = read(ends[0], text, sizeof text);
    assert_true(bytes > 0 && memmem(text, (size_t)bytes, "shown", 5) != NULL);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void host_table_fits_every_width_and_shows_host_and_reason(void **state)
{
    struct wr_host_view host = {.key = "a-rather-long-name-of-a-host.example.org:8443",
                                .state = WR_HOST_HELD,
                                .why = {WEIR_WAIT, WEIR_REASON_RETRY_AFTER, 72 * WEIR_SECOND},
                                .rate = 12.3,
                                .allowed_rate = INFINITY,
                                .rejected = 123456789,
                                .queued = UINT64_MAX,
                                .starts = {1, 2, 3, 65535}};

    (void)state;
    for (int width = 20; width <= 300; width++) {
        begin(width, 2);
        wr_view_draw_hosts_head(&frame, 0);
        wr_view_draw_host(&frame, 1, &host, width % 2 == 0);
        assert_true(frame.lines[0].columns <= width && frame.lines[1].columns <= width);
        assert_non_null(strstr(row(1), "a-rather-long"));
        if (width >= 40)
            assert_non_null(strstr(row(1), "retry_after 72.0 s"));
        if (width >= 66)
            assert_non_null(strstr(row(1), "12.3/s"));
        assert_true((strchr(row(1), '>') != NULL) == (width % 2 == 0));
    }
}

static void terminal_input_is_parsed_into_keys(void **state)
{
    static const struct {
        const char *typed;
        int key, used;
    } rows[] = {
        {"p", 'p', 1},
        {"\033[A", WR_KEY_UP, 3},
        {"\033OB", WR_KEY_DOWN, 3},
        {"\033[5~", WR_KEY_PAGE_UP, 4},
        {"\033[6~q", WR_KEY_PAGE_DOWN, 4},
        {"\033[1;5Cq", WR_KEY_OTHER, 6},
        {"\033", WR_KEY_ESCAPE, 1},
        {"\033x", WR_KEY_ESCAPE, 1},
        {"\r", WR_KEY_ENTER, 1},
        {"\n", WR_KEY_ENTER, 1},
        {"\b", WR_KEY_ERASE, 1},
        {"\x7f", WR_KEY_ERASE, 1},
        {"\xc3\xa4", WR_KEY_OTHER, 1},
        {"", WR_KEY_NONE, 1},
    };
    int used;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(wr_key_code_parse(rows[i].typed, (int)strlen(rows[i].typed), &used), rows[i].key);
        assert_int_equal(used, rows[i].used);
    }
}

static void colours_and_unicode_follow_the_environment(void **state)
{
    (void)state;
    (void)setenv("NO_COLOR", "1", 1);
    assert_false(wr_terminal_has_color());
    (void)setenv("NO_COLOR", "", 1);
    assert_true(wr_terminal_has_color());
    (void)unsetenv("LC_ALL");
    (void)setenv("LC_CTYPE", "de_DE.UTF-8", 1);
    assert_true(wr_terminal_has_unicode());
    (void)setenv("LC_ALL", "C", 1); /* LC_ALL overrides the others */
    assert_false(wr_terminal_has_unicode());
    (void)setenv("LC_ALL", "C.utf8", 1);
    assert_true(wr_terminal_has_unicode());
}

WEIR_TESTS(test(overlong_text_is_cut_at_the_frame_edge), test(control_characters_of_servers_cannot_move_the_cursor),
           test(without_colours_only_the_selected_line_is_highlighted),
           test(bars_use_unicode_only_if_the_terminal_has_it), test(live_view_writes_only_changed_lines),
           test(unwritten_line_is_written_with_the_next_frame),
           test(host_table_fits_every_width_and_shows_host_and_reason), test(terminal_input_is_parsed_into_keys),
           test(colours_and_unicode_follow_the_environment))
