/* SPDX-License-Identifier: MIT */
/* test_disk.c - tests of keys that are written to a slow, full or broken disk. The linker replaces
 * write, fsync and rename of the C library by those below. */
#include "rig.h"

#include "lib/test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/time.h>

static enum health {
    WELL,
    HALF,        /* each write takes one byte */
    INTERRUPTED, /* every second write fails with EINTR */
    FULL,
    UNSAFE,  /* fsync fails */
    UNNAMED, /* rename fails */
} disk;
static int calls, syncs;

ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    if (disk == FULL || (disk == INTERRUPTED && calls++ % 2 == 0)) {
        errno = disk == FULL ? ENOSPC : EINTR;
        return -1;
    }
    return __real_write(fd, data, disk == HALF && bytes > 1 ? 1 : bytes);
}

int __wrap_fsync(int fd)
{
    syncs++;
    if (disk != UNSAFE)
        return __real_fsync(fd);
    errno = EIO;
    return -1;
}

int __wrap_rename(const char *from, const char *to)
{
    if (disk != UNNAMED)
        return __real_rename(from, to);
    errno = EXDEV;
    return -1;
}

static char path[64], new_path[80];
static const char yaml[] = "rules:\n  - {name: a, limit: 60/h fixed_window}\n";

static void begin(struct rules_fixture *rig)
{
    memcpy(path, "/tmp/weir-disk-XXXXXX", 22);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(new_path, sizeof new_path, "%s.new", path);
    disk = WELL;
    calls = syncs = 0;
    rig_open(rig, yaml);
}

static void end(struct rules_fixture *rig)
{
    disk = WELL;
    assert_int_equal(access(new_path, F_OK), -1);
    assert_int_equal(unlink(path), 0);
    rig_close(rig);
}

/* Returns how many requests of this caller a new instance allows after it has loaded the file. */
static int left(const char *peer)
{
    struct rules_fixture rig;
    struct call call = {.peer = peer};
    rig_open(&rig, yaml);
    assert_int_equal(wr_rules_load_keys(rig.book, path, rig.why, sizeof rig.why), 0);
    int allowed = rig_count(&rig, &call, 100);
    rig_close(&rig);
    return allowed;
}

static void partial_and_interrupted_writes_are_completed(void **state)
{
    (void)state;
    struct rules_fixture rig;
    begin(&rig);
    static const struct call call = {.peer = "1.1.1.1"}, other = {.peer = "2.2.2.2"};
    assert_int_equal(rig_count(&rig, &call, 20) + rig_count(&rig, &other, 30), 50);
    for (int i = 0; i < 2; i++) {
        disk = i == 0 ? HALF : INTERRUPTED;
        assert_int_equal(wr_rules_save_keys(rig.book, path, rig.why, sizeof rig.why), 0);
        disk = WELL;
        assert_int_equal(left("1.1.1.1"), 40);
        assert_int_equal(left("2.2.2.2"), 30);
    }
    end(&rig);
}

static void failing_disk_leaves_the_old_keys_and_an_error_message(void **state)
{
    (void)state;
    static const struct {
        enum health disk;
        const char *words;
    } rows[] = {
        {FULL, "No space left on device"}, {UNSAFE, "Input/output error"}, {UNNAMED, "Invalid cross-device link"}};
    for (size_t i = 0; i < 3; i++) {
        struct rules_fixture rig;
        char words[160];
        begin(&rig);
        static const struct call call = {.peer = "1.1.1.1"};
        assert_int_equal(rig_count(&rig, &call, 20), 20);
        assert_int_equal(wr_rules_save_keys(rig.book, path, rig.why, sizeof rig.why), 0);
        assert_int_equal(rig_count(&rig, &call, 20), 20);
        disk = rows[i].disk;
        assert_int_equal(wr_rules_save_keys(rig.book, path, rig.why, sizeof rig.why), WEIR_E_SYSTEM);
        snprintf(words, sizeof words, "%s: %s", path, rows[i].words);
        assert_string_equal(rig.why, words);
        disk = WELL;
        assert_int_equal(left("1.1.1.1"), 40);
        end(&rig);
    }
}

static void save_syncs_the_keys_to_disk_and_copy_does_not(void **state)
{
    (void)state;
    struct rules_fixture rig;
    struct wr_rules_copy copy = {false, 0};
    begin(&rig);
    assert_int_equal(wr_rules_save_keys(rig.book, path, rig.why, sizeof rig.why), 0);
    assert_int_equal(syncs, 2); /* the file, and the folder with its name */
    assert_int_equal(wr_rules_copy(rig.book, &copy, false, path, rig.why, sizeof rig.why), 0);
    assert_int_equal(syncs, 2);
    disk = UNSAFE;
    assert_int_equal(wr_rules_copy(rig.book, &copy, true, path, rig.why, sizeof rig.why), 0);
    end(&rig);
}

static void file_of_many_pieces_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct rules_fixture rig;
    char peer[32];
    struct call call = {.peer = peer};
    begin(&rig);
    for (int i = 0; i < 9000; i++) { /* about 200 kB */
        snprintf(peer, sizeof peer, "10.0.%d.%d", i / 250, i % 250);
        assert_true(rig_try(&rig, &call));
    }
    assert_int_equal(wr_rules_save_keys(rig.book, path, rig.why, sizeof rig.why), 0);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > 200000);
    struct rules_fixture next;
    struct wr_rules_view view;
    rig_open(&next, yaml);
    assert_int_equal(wr_rules_load_keys(next.book, path, next.why, sizeof next.why), 0);
    wr_rules_view_get(next.book, &view);
    assert_int_equal(view.restored, 9000);
    snprintf(peer, sizeof peer, "10.0.35.249");
    assert_int_equal(rig_count(&next, &call, 100), 59);
    rig_close(&next);
    end(&rig);
}

static void unreadable_key_file_is_reported_with_the_reason(void **state)
{
    (void)state;
    struct rules_fixture rig;
    begin(&rig);
    char words[128], inside[80];
    snprintf(inside, sizeof inside, "%s/keys", path); /* `path` is a file, not a folder */
    assert_int_equal(wr_rules_load_keys(rig.book, inside, rig.why, sizeof rig.why), WEIR_E_SYSTEM);
    snprintf(words, sizeof words, "%s: Not a directory", inside);
    assert_string_equal(rig.why, words);
    static const struct call call = {.peer = "1.1.1.1"};
    assert_true(rig_try(&rig, &call));
    assert_int_equal(wr_rules_save_keys(rig.book, path, rig.why, sizeof rig.why), 0);
    struct rules_fixture next;
    rig_open(&next, yaml);
    next.memory.fail_at = 1;
    assert_int_equal(wr_rules_load_keys(next.book, path, next.why, sizeof next.why), WEIR_E_NOMEM);
    snprintf(words, sizeof words, "%s: out of memory", path);
    assert_string_equal(next.why, words);
    next.memory.fail_at = 0;
    rig_close(&next);
    end(&rig);
}

WEIR_TESTS(test(partial_and_interrupted_writes_are_completed),
           test(failing_disk_leaves_the_old_keys_and_an_error_message),
           test(save_syncs_the_keys_to_disk_and_copy_does_not), test(file_of_many_pieces_is_read_as_it_was_written),
           test(unreadable_key_file_is_reported_with_the_reason))
