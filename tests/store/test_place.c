/* SPDX-License-Identifier: MIT */
/* test_place.c - which files a store opens; all others are refused in one line and not changed. */
#include "crawl/store/backend.h"
#include "lib/sql.h"
#include "store/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_up(struct store_fixture *rig)
{
    rig_set_up(rig, rig_backends);
    rig->options.busy_ns = 50 * WEIR_MILLISECOND;
}

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static char *read_file(const char *path, size_t *ret_bytes)
{
    struct stat node;
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &node), 0);
    char *bytes = malloc((size_t)node.st_size + 1);
    assert_non_null(bytes);
    *ret_bytes = fread(bytes, 1, (size_t)node.st_size, file);
    assert_int_equal(*ret_bytes, node.st_size);
    (void)fclose(file);
    return bytes;
}

/* Expects that the store refuses with this error and a one-line message that has these words. */
static void expect_refusal(struct store_fixture *rig, int error, const char *words)
{
    assert_int_equal(wr_store_open(&rig->options, &rig->store), error);
    rig->store = NULL;
    if (strstr(weir_error_detail(), words) == NULL || strchr(weir_error_detail(), '\n') != NULL)
        fail_msg("\"%s\" does not say \"%s\"", weir_error_detail(), words);
}

/* Expects a refusal, and that the file is unchanged. */
static void expect_untouched(struct store_fixture *rig, int error, const char *words)
{
    size_t before_bytes, after_bytes;
    char *before = read_file(rig->path, &before_bytes);
    expect_refusal(rig, error, words);
    char *after = read_file(rig->path, &after_bytes);
    assert_int_equal(before_bytes, after_bytes);
    assert_memory_equal(before, after, before_bytes);
    free(before);
    free(after);
}

/* ---- new files ------------------------------------------------------------------------------- */

static void new_state_file_is_accessible_to_its_owner_only(void **state)
{
    (void)state;
    struct store_fixture rig;
    struct stat node;
    char wal[RIG_PATH + 24];
    mode_t before = umask(0);
    set_up(&rig);
    rig_open(&rig);
    (void)rig_job(&rig, "");
    (void)umask(before);
    assert_int_equal(stat(rig.path, &node), 0);
    assert_int_equal(node.st_mode & 0777, 0600);
    snprintf(wal, sizeof wal, "%s-wal", rig.path);
    assert_int_equal(stat(wal, &node), 0);
    assert_int_equal(node.st_mode & 0777, 0600);
    snprintf(wal, sizeof wal, "%s-shm", rig.path);
    /* no shared memory file: on a full disk, access to it would raise SIGBUS */
    assert_int_not_equal(stat(wal, &node), 0);
    rig_tear_down(&rig);
}

static void missing_state_file_is_created_only_on_request(void **state)
{
    (void)state;
    struct store_fixture rig;
    set_up(&rig);
    rig.options.may_create = false;
    expect_refusal(&rig, WEIR_E_ABSENT, "does not exist");
    assert_int_not_equal(access(rig.path, F_OK), 0);
    rig_tear_down(&rig);
}

static void missing_folder_of_a_state_file_is_named(void **state)
{
    (void)state;
    struct store_fixture rig;
    set_up(&rig);
    snprintf(rig.path, sizeof rig.path, "%s/no/x.db", rig.folder);
    expect_refusal(&rig, WEIR_E_SYSTEM, "check its folder");
    rig_tear_down(&rig);
}

/* ---- files that are no state files ----------------------------------------------------------- */

/* F7: empty, foreign and cut files. */
static void foreign_and_cut_files_are_refused_and_not_changed(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *words;
    } files[] = {
        {"", 0, "is empty"},
        {"hello", 5, "is not a state file"},
        {"SQLite format 3", 16, "it was truncated"}, /* with its NUL byte */
        {"SQLite format 3\0\x10\0\1\1\0\x40\x20\x20", 24, "it was truncated"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct store_fixture rig;
        set_up(&rig);
        write_file(rig.path, files[i].bytes, files[i].count);
        expect_untouched(&rig, WEIR_E_INVAL, files[i].words);
        rig_tear_down(&rig);
    }
}

static void database_of_another_program_is_refused_and_not_changed(void **state)
{
    (void)state;
    struct store_fixture rig;
    set_up(&rig);
    run_sql(rig.path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    assert_int_equal(chmod(rig.path, 0600), 0);
    expect_untouched(&rig, WEIR_E_INVAL, "another program's database");
    rig_tear_down(&rig);
}

static void state_file_of_a_newer_version_is_refused_and_not_changed(void **state)
{
    (void)state;
    struct store_fixture rig;
    set_up(&rig);
    rig_open(&rig);
    rig_close(&rig);
    run_sql(rig.path, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 99");
    expect_untouched(&rig, WEIR_E_INVAL, "newer weir");
    rig_tear_down(&rig);
}

/* The version in the log is newer than that in the first page of the file. */
static void newer_version_found_only_in_the_log_is_refused(void **state)
{
    (void)state;
    struct store_fixture rig;
    sqlite3 *db;
    set_up(&rig);
    rig_open(&rig);
    rig_close(&rig);
    pid_t child = fork(); /* ends without closing the database */
    if (child == 0) {
        if (sqlite3_open(rig.path, &db) != SQLITE_OK ||
            sqlite3_exec(db, "PRAGMA user_version = 99", 0, 0, 0) != SQLITE_OK)
            _exit(1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_refusal(&rig, WEIR_E_INVAL, "newer weir");
    rig_tear_down(&rig);
}

static void fill(struct store_fixture *rig)
{
    char url[64];

    rig_open(rig);
    int64_t job = rig_job(rig, "");
    for (int i = 0; i < 2000; i++) {
        snprintf(url, sizeof url, "https://h%d.example/%d", i % 50, i);
        assert_int_equal(rig_post_later(rig, rig_found(rig, job, "h", url, NULL)), 0);
    }
    rig_close(rig);
}

static void damaged_state_file_is_refused_and_not_changed(void **state)
{
    (void)state;
    struct store_fixture rig;
    size_t bytes;
    set_up(&rig);
    fill(&rig);
    char *sound = read_file(rig.path, &bytes);
    assert_true(bytes > 100 * 1024);
    char *bad = malloc(bytes);
    assert_non_null(bad);
    int refused = 0;
    /* overwrites a part of each page in turn */
    for (size_t page = 1; page < bytes / 4096; page++) {
        memcpy(bad, sound, bytes);
        memset(bad + page * 4096, 0xa5, 64);
        write_file(rig.path, bad, bytes);
        if (wr_store_open(&rig.options, &rig.store) == 0) { /* the page was free */
            rig_close(&rig);
            continue;
        }
        rig.store = NULL;
        assert_non_null(strstr(weir_error_detail(), "is damaged"));
        assert_non_null(strstr(weir_error_detail(), "sqlite3 FILE .recover may save what is in it"));
        refused++;
    }
    assert_true(refused > (int)(bytes / 4096) * 9 / 10);
    write_file(rig.path, sound, bytes / 2); /* only the first half of the file */
    expect_untouched(&rig, WEIR_E_INVAL, "is damaged");
    free(sound);
    free(bad);
    rig_tear_down(&rig);
}

static void look(void *context, const struct wr_store_row *row)
{
    size_t *rows = context;
    (void)row;
    ++*rows;
}

/* Makes every read of a crawl, and posts a page. Damage is reported as an error or stays
 * unnoticed. */
static void use(struct store_fixture *rig)
{
    static const enum wr_store_query_kind kinds[] = {WR_STORE_JOBS,         WR_STORE_HOSTS,     WR_STORE_TASKS,
                                                     WR_STORE_FINGERPRINTS, WR_STORE_ALL_TASKS, WR_STORE_REPORTS,
                                                     WR_STORE_SEEDS,        WR_STORE_ALL_HOSTS, WR_STORE_ONE_HOST,
                                                     WR_STORE_OUTPUTS,      WR_STORE_CHECK};
    size_t rows = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct wr_store_query query = {
            .what = kinds[i], .job = 1, .key = wr_span_of("h"), .row = look, .context = &rows};
        int error = wr_store_read(rig->store, &query);
        assert_true(error <= 0);
    }
    (void)rig_post_later(rig, rig_found(rig, 1, "h", "https://h1.example/new", NULL));
}

/* F7: in files too large for a check when they are opened, damage is found when it is read. */
static void flipped_bits_in_pages_are_harmless(void **state)
{
    (void)state;
    struct store_fixture rig;
    size_t bytes;
    int opened = 0;
    set_up(&rig);
    fill(&rig);
    rig.options.check_ns = -1;
    char *text = read_file(rig.path, &bytes);
    for (size_t page = 0; page < bytes / 4096; page++) {
        /* in the header, among the pointers and in the rows of the page */
        for (size_t i = 0; i < 3; i++) {
            static const size_t places[] = {8, 64, 4096};
            char *at = &text[page * 4096 + (page * 131 + i * 29) % places[i]];
            *at = (char)(*at ^ 1 << (page + i) % 8);
            write_file(rig.path, text, bytes);
            if (wr_store_open(&rig.options, &rig.store) == 0) {
                use(&rig);
                rig_close(&rig);
                opened++;
            }
            rig.store = NULL;
            *at = (char)(*at ^ 1 << (page + i) % 8);
        }
    }
    assert_true(opened > (int)(bytes / 4096));
    free(text);
    rig_tear_down(&rig);
}

static void state_file_with_missing_tables_is_refused(void **state)
{
    (void)state;
    static const char *const spoils[] = {
        "DROP TABLE outputs",  "ALTER TABLE tasks DROP COLUMN why", "DROP INDEX tasks_queued",
        "DELETE FROM secrets", "UPDATE secrets SET value = x'00'",  "PRAGMA user_version = 0",
    };
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        struct store_fixture rig;
        set_up(&rig);
        rig_open(&rig);
        rig_close(&rig);
        run_sql(rig.path, spoils[i]);
        expect_refusal(&rig, WEIR_E_INVAL, "is damaged");
        assert_null(strstr(weir_error_detail(), "not an error"));
        rig_tear_down(&rig);
    }
}

/* ---- kinds of files and permissions ---------------------------------------------------------- */

/* F8: only regular files are opened. */
static void links_folders_and_pipes_are_refused_as_state_files(void **state)
{
    (void)state;
    struct store_fixture rig;
    char target[RIG_PATH + 24];
    set_up(&rig);
    snprintf(target, sizeof target, "%s/target", rig.folder);
    assert_int_equal(symlink(target, rig.path), 0);
    expect_refusal(&rig, WEIR_E_SYSTEM, "symbolic link");
    assert_int_not_equal(access(target, F_OK), 0);
    assert_int_equal(unlink(rig.path), 0);
    assert_int_equal(mkdir(rig.path, 0700), 0);
    expect_refusal(&rig, WEIR_E_SYSTEM, "is a folder");
    assert_int_equal(rmdir(rig.path), 0);
    assert_int_equal(mkfifo(rig.path, 0600), 0);
    expect_refusal(&rig, WEIR_E_SYSTEM, "not a regular file");
    rig_tear_down(&rig);
}

static void symbolic_link_in_place_of_the_log_is_refused(void **state)
{
    (void)state;
    struct store_fixture rig;
    char wal[RIG_PATH + 24];
    set_up(&rig);
    rig_open(&rig);
    rig_close(&rig);
    snprintf(wal, sizeof wal, "%s-wal", rig.path);
    assert_int_equal(symlink("/etc/passwd", wal), 0);
    expect_refusal(&rig, WEIR_E_SYSTEM, "symbolic link");
    rig_tear_down(&rig);
}

static void world_writable_state_file_is_refused(void **state)
{
    (void)state;
    struct store_fixture rig;
    set_up(&rig);
    rig_open(&rig);
    rig_close(&rig);
    assert_int_equal(chmod(rig.path, 0666), 0);
    expect_untouched(&rig, WEIR_E_SYSTEM, "is writable by every user");
    rig_tear_down(&rig);
}

/* Opens the store as user nobody, if this process is root, whom no permission stops. Returns the
 * exit status. */
static int as_nobody(struct store_fixture *rig, const char *words)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && seteuid(65534) != 0)
            _exit(3);
        int error = wr_store_open(&rig->options, &rig->store);
        if (error != WEIR_E_SYSTEM || strstr(weir_error_detail(), words) == NULL)
            print_error("%d \"%s\"\n", error, weir_error_detail());
        _exit(error == WEIR_E_SYSTEM && strstr(weir_error_detail(), words) != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void file_of_another_user_and_read_only_folder_are_refused(void **state)
{
    (void)state;
    struct store_fixture rig;
    set_up(&rig);
    assert_int_equal(chmod(rig.folder, 0555), 0);
    assert_int_equal(as_nobody(&rig, "its folder is not writable"), 0);
    if (geteuid() == 0) {
        assert_int_equal(chmod(rig.folder, 0777), 0);
        rig_open(&rig);
        rig_close(&rig);
        assert_int_equal(as_nobody(&rig, "belongs to another user"), 0);
    }
    assert_int_equal(chmod(rig.folder, 0700), 0);
    rig_tear_down(&rig);
}

static void read_only_state_file_is_refused(void **state)
{
    (void)state;
    struct store_fixture rig;
    set_up(&rig);
    rig_open(&rig);
    rig_close(&rig);
    assert_int_equal(chmod(rig.path, 0400), 0);
    if (geteuid() == 0) { /* root could write it */
        assert_int_equal(chmod(rig.folder, 0777), 0);
        assert_int_equal(chown(rig.path, 65534, 65534), 0);
    }
    assert_int_equal(as_nobody(&rig, "cannot be written"), 0);
    rig_tear_down(&rig);
}

/* ---- other processes ------------------------------------------------------------------------- */

/* F9: a file is locked as long as its process lives, and no longer. */
static void state_file_in_use_is_refused_with_the_process_id(void **state)
{
    (void)state;
    struct store_fixture rig;
    char words[64];
    int ready[2];
    char byte;
    set_up(&rig);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (wr_store_open(&rig.options, &rig.store) != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(words, sizeof words, "is in use by process %d;", (int)child);
    expect_refusal(&rig, WEIR_E_SYSTEM, words);
    /* the refusal did not release the lock of the child */
    expect_refusal(&rig, WEIR_E_SYSTEM, words);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    rig_open(&rig);
    rig_tear_down(&rig);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void state_file_is_not_opened_twice_in_one_process(void **state)
{
    (void)state;
    struct store_fixture rig;
    struct wr_store *second;
    int status, ready[2];
    char go = 1;
    set_up(&rig);
    assert_int_equal(pipe(ready), 0);
    /* before there are threads: in the child, a malloc lock held by another thread would never be
     * released */
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        if (read(ready[0], &go, 1) != 1 || sqlite3_open(rig.path, &db) != SQLITE_OK)
            _exit(2);
        _exit(sqlite3_exec(db, "SELECT * FROM jobs", NULL, NULL, NULL) == SQLITE_BUSY ? 0 : 1);
    }
    rig_open(&rig);
    assert_int_equal(wr_store_open(&rig.options, &second), WEIR_E_SYSTEM);
    assert_non_null(strstr(weir_error_detail(), "in this process"));
    assert_int_equal(write(ready[1], &go, 1), 1); /* the file is still locked */
    (void)close(ready[0]);
    (void)close(ready[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rig_tear_down(&rig);
}

/* G8: another program reads or writes the file for a moment. */
static void short_lock_on_a_state_file_is_awaited_and_a_long_one_is_not(void **state)
{
    (void)state;
    struct store_fixture rig;
    sqlite3 *db;
    set_up(&rig);
    rig_open(&rig);
    rig_close(&rig);
    assert_int_equal(sqlite3_open(rig.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT", 0, 0, 0), SQLITE_OK);
    expect_refusal(&rig, WEIR_E_SYSTEM, "is in use by");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    rig_open(&rig);
    rig_tear_down(&rig);
}

WEIR_TESTS(test(new_state_file_is_accessible_to_its_owner_only), test(missing_state_file_is_created_only_on_request),
           test(missing_folder_of_a_state_file_is_named), test(foreign_and_cut_files_are_refused_and_not_changed),
           test(database_of_another_program_is_refused_and_not_changed),
           test(state_file_of_a_newer_version_is_refused_and_not_changed),
           test(newer_version_found_only_in_the_log_is_refused), test(damaged_state_file_is_refused_and_not_changed),
           test(flipped_bits_in_pages_are_harmless), test(state_file_with_missing_tables_is_refused),
           test(links_folders_and_pipes_are_refused_as_state_files), test(symbolic_link_in_place_of_the_log_is_refused),
           test(world_writable_state_file_is_refused), test(file_of_another_user_and_read_only_folder_are_refused),
           test(read_only_state_file_is_refused), test(state_file_in_use_is_refused_with_the_process_id),
           test(state_file_is_not_opened_twice_in_one_process),
           test(short_lock_on_a_state_file_is_awaited_and_a_long_one_is_not))
