/* SPDX-License-Identifier: MIT */
/* test_output.c - tests that the output is on the disk before the store commits, and has the length
 * that the store has recorded (F4, T11, T12). */
#include "lib/alloc.h"
#include "lib/test.h"

#include "crawl/engine/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/limit.h>

/* ---- calls of fdatasync ---- */

static struct {
    int fd, count;
    off_t bytes; /* size of the file when it was synced */
    bool fails;
} synced;

int __wrap_fdatasync(int fd);

int __wrap_fdatasync(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    synced.fd = fd;
    synced.bytes = status.st_size;
    synced.count++;
    return synced.fails ? -1 : 0;
}

/* ---- an output file ---- */

struct output_fixture {
    test_allocator allocator;
    struct wr_output output;
    char path[256];
};

static void set_up(struct output_fixture *rig, const char *text)
{
    const char *folder = getenv("TMPDIR");
    memset(rig, 0, sizeof *rig);
    memset(&synced, 0, sizeof synced);
    test_allocator_init(&rig->allocator);
    (void)snprintf(rig->path, sizeof rig->path, "%s/weir-output-XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = mkstemp(rig->path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
    assert_int_equal(wr_output_open(&rig->output, rig->path, &rig->allocator.allocator), 0);
}

static void tear_down(struct output_fixture *rig)
{
    wr_output_close(&rig->output);
    assert_int_equal(rig->allocator.live, 0);
    assert_int_equal(unlink(rig->path), 0);
}

/* Adds a line to the buffer, as posting a page does. */
static void add_line(struct output_fixture *rig, const char *line)
{
    wr_buf_append_string(&rig->output.lines, line);
    rig->output.end += strlen(line);
}

static void assert_content(const struct output_fixture *rig, const char *expected)
{
    char text[256] = "";
    int fd = open(rig->path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = read(fd, text, sizeof text - 1);
    (void)close(fd);
    assert_int_equal(bytes, strlen(expected));
    assert_string_equal(text, expected);
}

/* T11, F4: the store commits the length of the output as soon as wr_output_sync returns. */
static void output_lines_are_written_and_synced_before_the_store_commits(void **state)
{
    struct output_fixture rig;
    (void)state;
    set_up(&rig, "");
    assert_int_equal(wr_output_begin(&rig.output, false, false, 0), 0);
    add_line(&rig, "one\n");
    assert_int_equal(wr_output_sync(&rig.output), 0);
    assert_int_equal(synced.count, 1);
    assert_int_equal(synced.fd, rig.output.fd);
    assert_int_equal(synced.bytes, 4);
    add_line(&rig, "two\n");
    add_line(&rig, "three\n");
    assert_int_equal(wr_output_sync(&rig.output), 0);
    assert_int_equal(synced.count, 2);
    assert_int_equal(synced.bytes, rig.output.end);
    assert_content(&rig, "one\ntwo\nthree\n");
    tear_down(&rig);
}

/* T11, F6. */
static void sync_that_fails_is_an_error(void **state)
{
    struct output_fixture rig;
    (void)state;
    set_up(&rig, "");
    assert_int_equal(wr_output_begin(&rig.output, false, false, 0), 0);
    add_line(&rig, "one\n");
    synced.fails = true;
    assert_int_equal(wr_output_sync(&rig.output), WEIR_E_SYSTEM);
    tear_down(&rig);
}

/* T12, F1: lines of a transaction that was not committed are cut off; their pages are fetched
 * again. */
static void output_is_truncated_to_the_length_in_the_store(void **state)
{
    struct output_fixture rig;
    struct stat status;
    (void)state;
    set_up(&rig, "one\ntwo\nthr");
    assert_int_equal(wr_output_begin(&rig.output, false, true, 4), 0);
    assert_int_equal(stat(rig.path, &status), 0);
    assert_int_equal(status.st_size, 4);
    add_line(&rig, "x\n"); /* shorter than the text that was cut off */
    assert_int_equal(wr_output_sync(&rig.output), 0);
    assert_int_equal(rig.output.end, 6);
    assert_content(&rig, "one\nx\n");
    tear_down(&rig);
}

static void output_shorter_than_its_length_in_the_store_is_refused_unchanged(void **state)
{
    struct output_fixture rig;
    (void)state;
    set_up(&rig, "one\n");
    assert_int_equal(wr_output_begin(&rig.output, false, true, 5), WEIR_E_SYSTEM);
    assert_content(&rig, "one\n");
    tear_down(&rig);
}

WEIR_TESTS(test(output_lines_are_written_and_synced_before_the_store_commits), test(sync_that_fails_is_an_error),
           test(output_is_truncated_to_the_length_in_the_store),
           test(output_shorter_than_its_length_in_the_store_is_refused_unchanged))
