/* SPDX-License-Identifier: MIT */
/* test_archive.c - archives and bodies in trouble: disks that are full, and more than memory may have. What is in
 * archives is read by somebody else's reader, in tests/archive. */
#include "engine/rig.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BODY_BYTES ((size_t)900 << 10)
#define PAGES 200
#define HELD_PAGES 170 /* of those bodies, that 128 MiB hold, and as many as may be in flight */

static char *noise; /* that cannot be packed, after a link to the next page */

static void make_noise(void)
{
    uint64_t x = 1;
    if (noise == NULL)
        noise = malloc(BODY_BYTES + 1);
    for (size_t i = 0; i < BODY_BYTES; i++)
        noise[i] = (char)('0' + (x = x * UINT64_C(6364136223846793005) + 1442695040888963407) / (UINT64_MAX / 64 + 1));
    noise[BODY_BYTES] = '\0';
}

/* "/" leads to all others, which are noise. */
static struct origin_reply answer_noise(void *context, const struct origin_request *request)
{
    struct rig *rig = context;
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

static struct wr_engine_stats look(struct rig *rig)
{
    struct wr_engine_stats stats;
    assert_false(rig_await_end(rig, 0));
    wr_engine_stats_get(rig->engine, &stats);
    return stats;
}

static void await_pause(struct rig *rig)
{
    for (int64_t until = monotonic() + 60 * WEIR_SECOND; !look(rig).is_paused; sleep_ns(5 * MS))
        assert_true(monotonic() < until);
}

/* Until nothing is asked for any more. */
static uint64_t await_standstill(struct rig *rig)
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

/* F5, V6: what waits to be written is bounded, and nothing is lost. */
static void full_disk_under_bodies_holds_the_crawl_before_memory_is_full(void **state)
{
    struct rig rig;
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

/* How many records of this kind there are in a file that is nothing but whole records. */
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

/* Those that are made are posted while others wait for them to be written. */
static void crawl_goes_on_when_all_wait_for_room_in_the_archive(void **state)
{
    struct rig rig;
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
    struct rig rig;
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

ENGINE_TESTS(test(crawl_goes_on_when_all_wait_for_room_in_the_archive),
             test(full_disk_under_bodies_holds_the_crawl_before_memory_is_full),
             test(full_disk_under_an_archive_pauses_the_crawl))
