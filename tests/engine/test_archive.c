/* SPDX-License-Identifier: MIT */
/* test_archive.c - tests of archives and bodies in trouble: full disks, bounded memory.
 * tests/archive reads archives with the reader of another project. */
#include "engine/rig.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BODY_BYTES ((size_t)900 << 10)
#define PAGES 200
#define HELD_PAGES 170 /* bodies of this size in 128 MiB, plus those in flight */

/* ---- system calls that the tests observe ---- */

int __real_syncfs(int fd);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_openat64(int at, const char *path, int flags, ...);
void *__real_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_syncfs(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_openat64(int at, const char *path, int flags, ...);
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

static atomic_int system_syncs, body_syncs, folder_syncs, closes_to_fail;
static atomic_int bodies_open, bodies_refused, bodies_open_max; /* 0: no limit */
static atomic_int maps_to_fail;                                 /* number of mmap calls to fail */
static char synced_folder[PATH_MAX];                            /* folder whose syncs are counted */
/* descriptors with synced content */
static atomic_bool synced[1024];

static void path_of(int fd, char ret_path[PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, ret_path, PATH_MAX - 1);
    ret_path[bytes > 0 ? bytes : 0] = '\0';
}

static bool is_body(int fd)
{
    char path[PATH_MAX];
    struct stat status;
    path_of(fd, path);
    return strstr(path, "/bodies/") != NULL && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

int __wrap_syncfs(int fd)
{
    atomic_fetch_add(&system_syncs, 1);
    for (int i = 0; i < 1024; i++)
        atomic_store(&synced[i], true);
    return __real_syncfs(fd);
}

int __wrap_fdatasync(int fd)
{
    atomic_fetch_add(&body_syncs, is_body(fd));
    atomic_store(&synced[fd % 1024], true);
    return __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
    char path[PATH_MAX];
    path_of(fd, path);
    atomic_fetch_add(&folder_syncs, strcmp(path, synced_folder) == 0);
    return __real_fsync(fd);
}

int __wrap_openat64(int at, const char *path, int flags, ...)
{
    int most = atomic_load(&bodies_open_max);
    bool is_part = most > 0 && strncmp(path, ".part-", 6) == 0;
    if (is_part && atomic_load(&bodies_open) == most) {
        atomic_fetch_add(&bodies_refused, 1);
        errno = EMFILE;
        return -1;
    }
    atomic_fetch_add(&bodies_open, is_part);
    return __real_openat64(at, path, flags, 0666);
}

void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    char path[PATH_MAX] = "";
    if (fd >= 0 && atomic_load(&maps_to_fail) > 0)
        path_of(fd, path);
    if (strstr(path, "/.weir-") == NULL || atomic_fetch_sub(&maps_to_fail, 1) <= 0)
        return __real_mmap64(address, bytes, protection, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

int __wrap_close(int fd)
{
    atomic_fetch_sub(&bodies_open, atomic_load(&bodies_open_max) > 0 && is_body(fd));
    bool may_fail = !atomic_exchange(&synced[(unsigned)fd % 1024], false) && atomic_load(&closes_to_fail) > 0;
    bool fails = may_fail && is_body(fd) && atomic_fetch_sub(&closes_to_fail, 1) > 0;
    int error = __real_close(fd);
    errno = fails ? EDQUOT : errno;
    return fails ? -1 : error;
}

static char *noise; /* a body that hardly compresses */

static void make_noise(void)
{
    uint64_t x = 1;
    if (noise == NULL)
        noise = malloc(BODY_BYTES + 1);
    for (size_t i = 0; i < BODY_BYTES; i++)
        noise[i] = (char)('0' + (x = x * UINT64_C(6364136223846793005) + 1442695040888963407) / (UINT64_MAX / 64 + 1));
    noise[BODY_BYTES] = '\0';
}

/* Returns the home page with links to all other pages, which are noise. */
static struct origin_reply answer_noise(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    if (rig_is_robots(request))
        return (struct origin_reply){.status = 404};
    if (strcmp(request->path, "/") != 0)
        return (struct origin_reply){.fields = "Content-Type: text/plain\r\n", .body = noise};
    char links[16384] = "";
    size_t at = 0;
    for (int i = 1; i < PAGES; i++)
        at += (size_t)snprintf(links + at, sizeof links - at, "<a href=\"/%d\">x</a>", i);
    return rig_html(rig_text(rig, "%s", links));
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static struct wr_engine_stats look(struct crawl_fixture *rig)
{
    struct wr_engine_stats stats;
    assert_false(rig_await_end(rig, 0));
    wr_engine_stats_get(rig->engine, &stats);
    return stats;
}

static void await_pause(struct crawl_fixture *rig)
{
    for (int64_t until = monotonic() + 60 * WEIR_SECOND; !look(rig).is_paused; sleep_ns(5 * MS))
        assert_true(monotonic() < until);
}

/* Waits until no more requests are made. Returns their number. */
static uint64_t await_standstill(struct crawl_fixture *rig)
{
    uint64_t before = 0, now = look(rig).requests;
    while (now != before) {
        before = now;
        sleep_ns(700 * MS);
        now = look(rig).requests;
    }
    return now;
}

static int files_in(const char *folder)
{
    int count = 0;
    char path[RIG_PATH * 4];
    DIR *hosts = opendir(folder);
    assert_non_null(hosts);
    for (struct dirent *host; (host = readdir(hosts)) != NULL;) {
        if (host->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, host->d_name);
        DIR *files = opendir(path);
        for (struct dirent *file; (file = readdir(files)) != NULL;) {
            char whole[RIG_PATH * 8];
            if (file->d_name[0] != '.')
                count++;
            (void)snprintf(whole, sizeof whole, "%s/%s", path, file->d_name);
            if (file->d_type == DT_REG)
                (void)unlink(whole);
        }
        (void)closedir(files);
        (void)rmdir(path);
    }
    (void)closedir(hosts);
    (void)rmdir(folder);
    return count;
}

/* F5, V6: bodies that wait to be written are bounded, and none is lost. */
static void full_disk_under_bodies_pauses_the_crawl_within_bounded_memory(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16];
    (void)state;
    make_noise();
    rig_set_up(&rig, answer_noise);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)snprintf(folder, sizeof folder, "%s/bodies", rig.folder);
    rig.options.body_folder = folder;
    rig.options.concurrency = 8;
    rig_start(&rig);
    limit_files(512 << 10);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    await_pause(&rig);
    uint64_t requests = await_standstill(&rig);
    assert_true(requests > 20 && requests < HELD_PAGES);
    limit_files(RLIM_INFINITY);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "fetched"), PAGES);
    assert_int_equal(files_in(folder), PAGES);
    rig_check_store(&rig);
    rig_tear_down(&rig);
}

/* Returns the number of records of this type in a file, which must consist of whole records. */
static int records_in(const char *path, const char *type)
{
    static char text[1 << 16];
    char wanted[64];
    int count = 0;
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    (void)snprintf(wanted, sizeof wanted, "WARC-Type: %s\r\n", type);
    while (gzgets(file, text, sizeof text) != NULL)
        count += strcmp(text, wanted) == 0;
    int error;
    (void)gzerror(file, &error);
    assert_true(error == Z_OK || error == Z_STREAM_END);
    assert_int_equal(gzclose(file), Z_OK);
    return count;
}

/* Finished records are posted while others wait for room. */
static void crawl_continues_when_all_records_wait_for_room_in_the_archive(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16], prefix[RIG_PATH + 16], file[RIG_PATH + 64];
    (void)state;
    make_noise();
    noise[150000] = '\0';
    rig_set_up(&rig, answer_noise);
    (void)snprintf(folder, sizeof folder, "%s/bodies", rig.folder);
    (void)snprintf(prefix, sizeof prefix, "%s/archive", rig.folder);
    (void)snprintf(file, sizeof file, "%s-00000.warc.gz", prefix);
    rig.options.body_folder = folder;
    rig.options.warc_path = prefix;
    rig.options.pieces_max = 1 << 20;
    rig.options.concurrency = 100;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "fetched"), PAGES);
    assert_int_equal(files_in(folder), PAGES);
    assert_int_equal(records_in(file, "request"), PAGES);
    assert_int_equal(unlink(file), 0);
    rig_tear_down(&rig);
}

/* F5. */
static void full_disk_under_an_archive_pauses_the_crawl(void **state)
{
    struct crawl_fixture rig;
    char prefix[RIG_PATH + 16], file[RIG_PATH + 64];
    (void)state;
    make_noise();
    noise[6000] = '\0';
    rig_set_up(&rig, answer_noise);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)snprintf(prefix, sizeof prefix, "%s/archive", rig.folder);
    (void)snprintf(file, sizeof file, "%s-00000.warc.gz", prefix);
    rig.options.warc_path = prefix;
    rig.options.concurrency = 8;
    rig_start(&rig);
    limit_files(60001);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_seeded(&rig);
    await_pause(&rig);
    limit_files(RLIM_INFINITY);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "fetched"), PAGES);
    assert_int_equal(records_in(file, "warcinfo"), 1);
    assert_int_equal(records_in(file, "request"), PAGES);
    assert_int_equal(records_in(file, "response") + records_in(file, "revisit"), PAGES);
    rig_check_store(&rig);
    assert_int_equal(unlink(file), 0);
    rig_tear_down(&rig);
}

/* ---- the files of an archive ---- */

/* The content is synced with each commit; the name of a new file is synced with its folder. */
static void folder_of_the_first_archive_file_is_synced(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16], prefix[RIG_PATH + 32], file[RIG_PATH + 64];
    (void)state;
    make_noise();
    noise[6000] = '\0';
    rig_set_up(&rig, answer_noise);
    (void)snprintf(folder, sizeof folder, "%s/archives", rig.folder);
    (void)snprintf(prefix, sizeof prefix, "%s/archive", folder);
    (void)snprintf(file, sizeof file, "%s-00000.warc.gz", prefix);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_non_null(realpath(folder, synced_folder));
    atomic_store(&folder_syncs, 0);
    rig.options.warc_path = prefix;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/1"));
    rig_finish(&rig);
    assert_true(atomic_load(&folder_syncs) > 0);
    assert_int_equal(records_in(file, "request"), 1);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
    rig_tear_down(&rig);
}

/* ---- bodies ---- */

/* Returns the size of all files in the folders of a folder. */
static size_t bytes_in(const char *folder)
{
    char pattern[RIG_PATH + 32];
    glob_t found;
    struct stat status;
    size_t bytes = 0;
    (void)snprintf(pattern, sizeof pattern, "%s/*/*", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        bytes += stat(found.gl_pathv[i], &status) == 0 ? (size_t)status.st_size : 0;
    globfree(&found);
    return bytes;
}

static void start_with_bodies(struct crawl_fixture *rig, char ret_folder[RIG_PATH + 16])
{
    make_noise();
    noise[6000] = '\0';
    rig_set_up(rig, answer_noise);
    (void)snprintf(ret_folder, RIG_PATH + 16, "%s/bodies", rig->folder);
    rig->options.body_folder = ret_folder;
}

static void parent_of_a_new_body_folder_is_synced(void **state)
{
    struct crawl_fixture rig;
    char above[RIG_PATH + 16], folder[RIG_PATH + 32];
    (void)state;
    start_with_bodies(&rig, above);
    (void)snprintf(folder, sizeof folder, "%s/new", above);
    rig.options.body_folder = folder;
    assert_int_equal(mkdir(above, 0777), 0);
    assert_non_null(realpath(above, synced_folder));
    atomic_store(&folder_syncs, 0);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/1"));
    rig_finish(&rig);
    assert_int_equal(atomic_load(&folder_syncs), 1);
    assert_int_equal(files_in(folder), 1);
    assert_int_equal(rmdir(above), 0);
    rig_tear_down(&rig);
}

/* Two crawls may save in one folder, so the temporary files of unfinished bodies have different
 * names. */
static void unfinished_body_of_another_crawl_is_not_touched(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16], host[RIG_PATH + 64], other[RIG_PATH + 128];
    struct stat status;
    (void)state;
    start_with_bodies(&rig, folder);
    (void)snprintf(host, sizeof host, "%s/127.0.0.1_%d", folder, rig.port);
    (void)snprintf(other, sizeof other, "%s/.part", host);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(mkdir(host, 0777), 0);
    FILE *file = fopen(other, "w");
    assert_true(file != NULL && fputs("half a page", file) >= 0 && fclose(file) == 0);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/1"));
    rig_finish(&rig);
    assert_int_equal(stat(other, &status), 0);
    assert_int_equal(status.st_size, 11);
    assert_int_equal(files_in(folder), 1);
    rig_tear_down(&rig);
}

static void few_bodies_are_synced_without_the_rest_of_the_file_system(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16];
    (void)state;
    start_with_bodies(&rig, folder);
    (void)snprintf(synced_folder, sizeof synced_folder, "%s/127.0.0.1_%d", folder, rig.port);
    atomic_store(&system_syncs, 0);
    atomic_store(&body_syncs, 0);
    atomic_store(&folder_syncs, 0);
    rig_start(&rig);
    for (int i = 1; i <= 3; i++)
        rig_seed(&rig, "%s%d", rig_url(&rig, 1, "/"), i);
    rig_finish(&rig);
    assert_int_equal(atomic_load(&system_syncs), 0);
    assert_int_equal(atomic_load(&body_syncs), 3);
    assert_true(atomic_load(&folder_syncs) > 0);
    assert_int_equal(files_in(folder), 3);
    rig_tear_down(&rig);
}

/* F5: some file systems report a full disk only when a file is closed. */
static void body_whose_close_fails_on_a_full_disk_is_written_again(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16];
    (void)state;
    start_with_bodies(&rig, folder);
    atomic_store(&closes_to_fail, 1);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    assert_true(atomic_load(&closes_to_fail) <= 0);
    assert_true(atomic_load(&rig.waits) > 0);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "fetched"), PAGES);
    assert_int_equal(files_in(folder), PAGES);
    rig_tear_down(&rig);
}

/* F5: a body that is too large for its share of memory is spilled to a file, and the disk may be
 * full. */
static void body_without_room_on_disk_is_fetched_again_later(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16];
    (void)state;
    start_with_bodies(&rig, folder);
    make_noise();
    (void)signal(SIGXFSZ, SIG_IGN);
    rig.options.concurrency = 1000; /* 256 KiB for each body */
    rig_start(&rig);
    limit_files(300 << 10);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/1"));
    rig_seeded(&rig);
    for (int64_t until = monotonic() + 60 * WEIR_SECOND; atomic_load(&rig.waits) == 0; sleep_ns(5 * MS))
        assert_true(monotonic() < until && !rig_await_end(&rig, 0));
    limit_files(RLIM_INFINITY);
    rig_finish(&rig);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/1"), "verdict"), "fetched");
    assert_int_equal(rig_number(&rig, rig_url(&rig, 1, "/1"), "bytes"), BODY_BYTES);
    assert_int_equal(bytes_in(folder), BODY_BYTES);
    assert_int_equal(files_in(folder), 1);
    rig_tear_down(&rig);
}

static void body_over_the_archive_size_limit_is_too_large_and_not_saved(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16];
    (void)state;
    start_with_bodies(&rig, folder);
    rig.options.kept_max = 5999;
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/1"));
    rig_finish(&rig);
    assert_string_equal(rig_word(&rig, rig_url(&rig, 1, "/1"), "verdict"), "too_large");
    assert_true(json_is_null(json_object_get(rig_line(&rig, rig_url(&rig, 1, "/1")), "body")));
    assert_int_equal(rmdir(folder), 0); /* the folder is empty */
    rig_tear_down(&rig);
}

/* E5: bodies that wait for the next commit hold descriptors. */
static void bodies_are_synced_earlier_when_descriptors_are_short(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16];
    (void)state;
    start_with_bodies(&rig, folder);
    atomic_store(&bodies_open_max, 2);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/"));
    rig_finish(&rig);
    assert_true(atomic_load(&bodies_refused) > 0);
    atomic_store(&bodies_open_max, 0);
    assert_int_equal(rig.result.end, WR_END_COMPLETED);
    assert_int_equal(rig_verdicts(&rig, "fetched"), PAGES);
    assert_int_equal(files_in(folder), PAGES);
    rig_tear_down(&rig);
}

/* L2: V4, V5. */
static void page_whose_body_finds_no_memory_stays_queued(void **state)
{
    struct crawl_fixture rig;
    char folder[RIG_PATH + 16];
    (void)state;
    start_with_bodies(&rig, folder);
    make_noise();
    rig.options.concurrency = 1000; /* 256 KiB for each body: it is spilled */
    atomic_store(&maps_to_fail, 1);
    rig_start(&rig);
    rig_seed(&rig, "%s", rig_url(&rig, 1, "/1"));
    rig_finish(&rig);
    assert_true(atomic_load(&maps_to_fail) <= 0);
    assert_int_equal(rig.result.end, WR_END_BROKEN);
    assert_int_equal(rig_verdicts(&rig, "fetched"), 0);
    assert_int_equal(rmdir(folder), 0); /* the folder is empty */
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(bodies_are_synced_earlier_when_descriptors_are_short),
             test(page_whose_body_finds_no_memory_stays_queued), test(folder_of_the_first_archive_file_is_synced),
             test(parent_of_a_new_body_folder_is_synced), test(unfinished_body_of_another_crawl_is_not_touched),
             test(few_bodies_are_synced_without_the_rest_of_the_file_system),
             test(body_whose_close_fails_on_a_full_disk_is_written_again),
             test(body_without_room_on_disk_is_fetched_again_later),
             test(body_over_the_archive_size_limit_is_too_large_and_not_saved),
             test(crawl_continues_when_all_records_wait_for_room_in_the_archive),
             test(full_disk_under_bodies_pauses_the_crawl_within_bounded_memory),
             test(full_disk_under_an_archive_pauses_the_crawl))
