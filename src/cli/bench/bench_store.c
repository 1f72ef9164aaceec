/* SPDX-License-Identifier: MIT */
/* bench_store.c - weir bench store: measures the cost of a page in the state file. */
#include "crawl/store/store.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "cli/bench/bench.h"
#include "cli/bench/resident.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"

#define PATH_BYTES 512
#define READS_AHEAD 256
#define QUEUED_LEAST 256 /* minimum number of pages in the queue */
/* Maximum number of unanswered changes, more than the store takes at once. */
#define CHANGES_AHEAD 20000

struct bench_store_settings {
    uint64_t pages, hosts, links;
    const char *folder;
    bool json;
};

static const struct wr_option options[] = {
    {"pages", WR_COUNT(struct bench_store_settings, pages), .value = "N", .min = 1, .max = 100000000,
     .help = "Pages to crawl"},
    {"hosts", WR_COUNT(struct bench_store_settings, hosts), .value = "N", .min = 1, .max = 10000000,
     .help = "Number of hosts"},
    {"links", WR_COUNT(struct bench_store_settings, links), .value = "N", .min = 0, .max = 1000,
     .help = "Known links per page"},
    {"folder", WR_STRING(struct bench_store_settings, folder), .value = "PATH", .help = "Folder for the state file"},
    {"json", WR_FLAG(struct bench_store_settings, json), .help = "Print JSON"},
};

static const struct wr_usage usage = {
    .who = "weir bench store",
    .about = "Measures what a page of a crawl costs the state file: each page is found by a\n"
             "link, finishes, and adds one new page. Then all pages are read as --resume does.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

struct store_bench_result {
    double write_s, post_cpu_s, store_cpu_s, open_s, known_s, hosts_s, load_s;
    uint64_t commits, known, loaded, hosts;
    size_t file_bytes, resident_bytes;
};

/* ---- the crawl ------------------------------------------------------------------------------ */

struct bench_crawl {
    const struct bench_store_settings *settings;
    char path[PATH_BYTES];
    struct wr_store *store;
    int64_t job;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t ahead; /* number of posts without an answer */
    int error;
    uint64_t rows;
    int64_t last_id;
};

struct bench_crawl_page {
    char url[96], host[48];
    uint64_t fingerprint;
};

static void make_bench_page(const struct bench_crawl *crawl, uint64_t number, struct bench_crawl_page *ret_page)
{
    assert(crawl->settings->hosts > 0);
    uint64_t host = number % crawl->settings->hosts;
    (void)snprintf(ret_page->host, sizeof ret_page->host, "www.host-%" PRIu64 ".example", host);
    int bytes = snprintf(ret_page->url, sizeof ret_page->url, "https://%s/articles/2026/november/%" PRIu64 ".html",
                         ret_page->host, number);

    ret_page->fingerprint = wr_hash(wr_store_hash_key(crawl->store), ret_page->url, (size_t)bytes);
}

static struct wr_store_change make_found_change(const struct bench_crawl *crawl, const struct bench_crawl_page *page,
                                                uint64_t parent)
{
    return (struct wr_store_change){.kind = WR_STORE_TASK_FOUND,
                                    .found = {.job = crawl->job,
                                              .fingerprint = page->fingerprint,
                                              .host = wr_span_of(page->host),
                                              .url = wr_span_of(page->url),
                                              .parent = parent,
                                              .depth = 1}};
}

static void on_post_answered(void *context, int error, const char *why)
{
    struct bench_crawl *crawl = context;

    (void)why;
    (void)pthread_mutex_lock(&crawl->lock);
    crawl->ahead--;
    crawl->error = crawl->error != 0 ? crawl->error : error;
    (void)pthread_cond_signal(&crawl->moved);
    (void)pthread_mutex_unlock(&crawl->lock);
}

/* Waits until at most `most` posts are unanswered. Returns the first error of an answer, or 0. */
static int await_answers(struct bench_crawl *crawl, uint64_t most)
{
    (void)pthread_mutex_lock(&crawl->lock);
    while (crawl->ahead > most)
        (void)pthread_cond_wait(&crawl->moved, &crawl->lock);
    int error = crawl->error;
    (void)pthread_mutex_unlock(&crawl->lock);
    return error;
}

static void count_ahead(struct bench_crawl *crawl)
{
    (void)pthread_mutex_lock(&crawl->lock);
    crawl->ahead++;
    (void)pthread_mutex_unlock(&crawl->lock);
}

static int post_bench_changes(struct bench_crawl *crawl, const struct wr_store_change *changes, size_t count)
{
    int error = await_answers(crawl, CHANGES_AHEAD / (crawl->settings->links + 3));

    if (error != 0)
        return error;
    count_ahead(crawl);
    return wr_store_post(crawl->store, changes, count, on_post_answered, crawl);
}

static uint64_t seed_count(const struct bench_store_settings *settings)
{
    return settings->hosts > QUEUED_LEAST ? settings->hosts : QUEUED_LEAST;
}

#define VALIDATOR "\"6789abcd-12345\"" /* ETag in the form that most servers use */
#define DIGEST "xxh128:0123456789abcdef0123456789abcdef"

/* Posts the end of a page and the URLs that it links to: all known except one new page. */
static int post_page(struct bench_crawl *crawl, uint64_t number)
{
    static struct wr_store_change changes[1 + 1 + 1 + 1000];
    static struct bench_crawl_page links[1 + 1000];
    size_t count = 0;
    struct bench_crawl_page page;

    make_bench_page(crawl, number, &page);
    changes[count++] = (struct wr_store_change){
        .kind = WR_STORE_TASK_ENDED,
        .ended = {.job = crawl->job,
                  .fingerprint = page.fingerprint,
                  .status = 200,
                  .attempts = 1,
                  .bytes = 12345,
                  .verdict = wr_span_of("fetched"),
                  .visit = {.validator = wr_span_of(VALIDATOR), .digest = wr_span_of(DIGEST)}}};
    for (uint64_t i = 0; i <= crawl->settings->links; i++) {
        uint64_t to = i == 0 ? number + seed_count(crawl->settings) : (number * 7 + i * 13) % (number + 1);
        make_bench_page(crawl, to, &links[i]);
        changes[count++] = make_found_change(crawl, &links[i], page.fingerprint);
    }
    changes[count++] = (struct wr_store_change){
        .kind = WR_STORE_OUTPUT, .output = {.job = crawl->job, .path = wr_span_of("out"), .bytes = number * 1000}};
    return post_bench_changes(crawl, changes, count);
}

static int run_bench_crawl(struct bench_crawl *crawl)
{
    int error = 0;

    for (uint64_t i = 0; i < seed_count(crawl->settings) && error == 0; i++) {
        struct bench_crawl_page seed;
        make_bench_page(crawl, i, &seed);
        struct wr_store_change change = make_found_change(crawl, &seed, 0);
        error = post_bench_changes(crawl, &change, 1);
    }
    for (uint64_t i = 0; i < crawl->settings->pages && error == 0; i++)
        error = post_page(crawl, i);
    int last = await_answers(crawl, 0);
    return error != 0 ? error : last;
}

/* ---- resume --------------------------------------------------------------------------------- */

static void count_task_row(void *context, const struct wr_store_row *row)
{
    (void)row;
    ((struct bench_crawl *)context)->rows++;
}

/* Reads all fingerprints at once, as a resumed crawl does. */
static int read_known(struct bench_crawl *crawl, struct store_bench_result *result)
{
    struct wr_store_query query = {
        .what = WR_STORE_FINGERPRINTS, .job = crawl->job, .row = count_task_row, .context = crawl};
    int64_t start_at = weir_clock_now(weir_clock_monotonic());

    query.after.id = INT64_MIN;
    int error = wr_store_read(crawl->store, &query);
    result->known_s = (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / 1e9;
    result->known = crawl->rows;
    crawl->rows = 0;
    return error;
}

struct bench_host_list {
    struct bench_crawl *crawl;
    size_t count;
    char (*keys)[48];
};

static void take_host_key(void *context, const struct wr_store_row *row)
{
    struct bench_host_list *list = context;
    struct wr_span key = row->host.key;

    list->crawl->last_id = row->host.id;
    memcpy(list->keys[list->count], key.data, key.bytes < 47 ? key.bytes : 47);
    list->keys[list->count++][key.bytes < 47 ? key.bytes : 47] = '\0';
}

/* Lists the hosts with work in batches of 1000, then loads up to 10 tasks of each. */
static int measure_resume(struct bench_crawl *crawl, struct store_bench_result *result)
{
    struct bench_host_list list = {.crawl = crawl,
                                   .keys = calloc(wr_size_of(crawl->settings->hosts + 1000), sizeof list.keys[0])};
    struct wr_store_query query = {.what = WR_STORE_HOSTS, .job = crawl->job, .limit = 1000, .row = take_host_key};
    size_t before;
    int error = list.keys == NULL ? WEIR_E_NOMEM : 0;
    int64_t start_at = weir_clock_now(weir_clock_monotonic());

    query.context = &list;
    do {
        before = list.count;
        query.after.id = crawl->last_id;
        error = error != 0 ? error : wr_store_read(crawl->store, &query);
    } while (error == 0 && list.count > before);
    result->hosts_s = (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / 1e9;
    start_at = weir_clock_now(weir_clock_monotonic());
    query = (struct wr_store_query){.what = WR_STORE_TASKS,
                                    .job = crawl->job,
                                    .limit = 10,
                                    .row = count_task_row,
                                    .after = WR_STORE_FIRST_POSITION,
                                    .context = crawl};
    query.done = on_post_answered;
    for (size_t i = 0; i < list.count && error == 0; i++) {
        query.key = wr_span_of(list.keys[i]);
        error = await_answers(crawl, READS_AHEAD);
        count_ahead(crawl);
        error = error != 0 ? error : wr_store_read(crawl->store, &query);
    }
    int last = await_answers(crawl, 0);
    error = error != 0 ? error : last;
    result->load_s = (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / 1e9;
    result->hosts = list.count;
    result->loaded = crawl->rows;
    free(list.keys);
    return error;
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* Returns the processor time of this thread (RUSAGE_THREAD) or of the process (RUSAGE_SELF), s. */
static double cpu_s(int whose)
{
    struct rusage used;

    (void)getrusage(whose, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static int open_bench_store(struct bench_crawl *crawl)
{
    return wr_store_open(&(struct wr_store_options){.path = crawl->path, .may_create = true}, &crawl->store);
}

static int measure_write(struct bench_crawl *crawl, struct store_bench_result *result)
{
    struct wr_store_stats stats;
    int error = open_bench_store(crawl);

    if (error != 0)
        return error;
    error = wr_store_add_job(crawl->store, wr_span_of("{}"), 0, &crawl->job);
    double all_s = cpu_s(RUSAGE_SELF), own_s = cpu_s(RUSAGE_THREAD);
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    error = error != 0 ? error : run_bench_crawl(crawl);
    result->write_s = (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / 1e9;
    result->post_cpu_s = cpu_s(RUSAGE_THREAD) - own_s;
    result->store_cpu_s = cpu_s(RUSAGE_SELF) - all_s - result->post_cpu_s;
    wr_store_stats_get(crawl->store, &stats);
    result->commits = stats.commits;
    result->resident_bytes = wr_resident_bytes();
    wr_store_free(crawl->store);
    return error;
}

static int measure_store(struct bench_crawl *crawl, struct store_bench_result *result)
{
    struct stat file;
    int error = measure_write(crawl, result);

    if (error != 0)
        return error;
    result->file_bytes = stat(crawl->path, &file) == 0 ? (size_t)file.st_size : 0;
    int64_t start_at = weir_clock_now(weir_clock_monotonic());
    error = open_bench_store(crawl);
    if (error != 0)
        return error;
    result->open_s = (double)(weir_clock_now(weir_clock_monotonic()) - start_at) / 1e9;
    error = read_known(crawl, result);
    error = error != 0 ? error : measure_resume(crawl, result);
    wr_store_free(crawl->store);
    return error;
}

static void print_store_result(const struct bench_store_settings *settings, const struct store_bench_result *result)
{
    double pages = (double)settings->pages, tasks = (double)result->known;

    wr_print(
        settings->json
            ? "{\"pages\": %" PRIu64 ", \"hosts\": %" PRIu64 ", \"links\": %" PRIu64 ", \"pages_per_s\": %.0f, "
              "\"us_per_page\": %.2f, \"store_cpu_us_per_page\": %.2f, \"post_cpu_us_per_page\": %.2f, \"commits\": "
              "%" PRIu64 ", \"bytes_per_task\": %.1f, \"open_s\": %.3f, \"known\": %" PRIu64
              ", \"known_s\": %.3f, \"hosts_listed\": %" PRIu64 ", \"list_s\": %.3f, \"tasks_loaded\": %" PRIu64
              ", \"load_s\": %.3f, \"resident_mb\": %.1f}\n"
            : "%" PRIu64 " pages on %" PRIu64 " hosts, %" PRIu64 " known links on each\n"
              "%.0f pages/s, %.2f us per page, of processor time %.2f us in the store and %.2f us before it; %" PRIu64
              " commits\n"
              "%.1f bytes per task\n"
              "opening %.3f s; %" PRIu64 " fingerprints read in %.3f s; %" PRIu64 " hosts listed in %.3f s; %" PRIu64
              " tasks loaded in %.3f s\n"
              "%.1f MB resident\n",
        settings->pages, settings->hosts, settings->links, pages / result->write_s, result->write_s * 1e6 / pages,
        result->store_cpu_s * 1e6 / pages, result->post_cpu_s * 1e6 / pages, result->commits,
        (double)result->file_bytes / tasks, result->open_s, result->known, result->known_s, result->hosts,
        result->hosts_s, result->loaded, result->load_s, (double)result->resident_bytes / 1e6);
}

int wr_bench_store_run(int argc, char **argv)
{
    struct bench_store_settings settings = {.pages = 100000, .hosts = 1000, .links = 0, .folder = "/tmp"};
    struct bench_crawl crawl = {
        .settings = &settings, .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    struct store_bench_result result = {0};
    char folder[PATH_BYTES - 16];
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    snprintf(folder, sizeof folder, "%s/weir-bench-XXXXXX", settings.folder);
    if (mkdtemp(folder) == NULL) {
        wr_complain_write_failed("--folder", settings.folder, errno);
        return WR_EXIT_FAILED;
    }
    snprintf(crawl.path, sizeof crawl.path, "%s/weir.db", folder);
    int error = measure_store(&crawl, &result);
    (void)unlink(crawl.path);
    (void)rmdir(folder);
    if (error != 0) {
        wr_complain("%s", error == WEIR_E_NOMEM ? weir_error_text(error) : weir_error_detail());
        return WR_EXIT_FAILED;
    }
    print_store_result(&settings, &result);
    return WR_EXIT_OK;
}
