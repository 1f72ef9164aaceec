/* SPDX-License-Identifier: MIT */
/* test_kill.c - kill -9 at random moments: everything reported as stored is there, no change is
 * stored in part, and the output file is cut to its stored length. WEIR_TEST_KILLS is the number of
 * kills; the default is 25. */
#include "base/rng.h"
#include "store/rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT "crawl.jsonl"
#define KILLS_OF_ONE 25
#define LONGEST_US 60000 /* longest time before a kill */

/* ---- the crawl that is killed ---------------------------------------------------------------- */

struct crawl {
    struct store_fixture *rig;
    int output;
    int told; /* pipe: numbers of pages reported as stored */
};

struct page {
    struct crawl *crawl;
    int number;
};

static int sync_output(void *context)
{
    return fdatasync(((struct crawl *)context)->output) == 0 ? 0 : WEIR_E_SYSTEM;
}

static void tell_parent(void *context, int error, const char *why)
{
    struct page *page = context;

    (void)why;
    if (error != 0 || write(page->crawl->told, &page->number, sizeof page->number) != sizeof page->number)
        _exit(3);
    free(page);
}

static void url_of(int number, char ret_url[64])
{
    snprintf(ret_url, 64, "https://host-%d.example/%06d", number % 3, number);
}

static void host_of(int number, char ret_host[32])
{
    snprintf(ret_host, 32, "host-%d.example", number % 3);
}

/* Simulates a crawl: each page ends, adds a line to the output and finds the next page. */
static void crawl_on(struct crawl *crawl, int64_t job, int from, uint64_t output_bytes)
{
    for (int i = from;; i++) {
        char url[64], next[64], host[32], line[80];
        url_of(i, url);
        url_of(i + 1, next);
        host_of(i + 1, host);
        snprintf(line, sizeof line, "%s\n", url);
        if (write(crawl->output, line, strlen(line)) != (ssize_t)strlen(line))
            _exit(4);
        output_bytes += strlen(line);
        struct wr_store_host memory = {.key = wr_span_of(host), .memory = {.delay_ns = (i + 1) * WEIR_MILLISECOND}};
        const struct wr_store_change changes[] = {
            rig_ended(crawl->rig, job, url, false, "fetched"),
            rig_found(crawl->rig, job, host, next, url),
            rig_output(job, OUTPUT, output_bytes),
            {.kind = WR_STORE_HOST, .host = memory},
        };
        struct page *page = malloc(sizeof *page);
        *page = (struct page){crawl, i};
        while (wr_store_post(crawl->rig->store, changes, 4, tell_parent, page) == WEIR_E_FULL)
            (void)usleep(500);
        if (i % 16 == 0)
            (void)usleep(200);
    }
}

/* Crawls in the child process. Does not return. */
static void run_child(struct store_fixture *rig, int64_t job, int from, uint64_t output_bytes, int told)
{
    char path[RIG_PATH + 16];
    struct crawl crawl = {.rig = rig, .told = told};

    snprintf(path, sizeof path, "%s/" OUTPUT, rig->folder);
    crawl.output = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (crawl.output < 0 || ftruncate(crawl.output, (off_t)output_bytes) != 0)
        _exit(5);
    rig->options.sync = sync_output;
    rig->options.context = &crawl;
    rig->options.room = NULL;
    rig->options.changed = NULL;
    rig->options.queue_changes = 256;
    /* the check takes longer the larger the file is; the parent checks everything after each
     * kill */
    rig->options.check_ns = -1;
    if (wr_store_open(&rig->options, &rig->store) != 0) {
        print_error("%s\n", weir_error_detail());
        _exit(6);
    }
    crawl_on(&crawl, job, from, output_bytes);
}

/* ---- checks after a kill --------------------------------------------------------------------- */

/* Kills the child this many µs after its start, or after its first stored page. Returns the last
 * page that it reported as stored, or `last` if it reported none. */
static int watch_and_kill(pid_t child, int told, bool after_page, unsigned us, int last)
{
    struct pollfd page = {.fd = told, .events = POLLIN};
    int number, status;

    if (after_page)
        (void)poll(&page, 1, -1);
    (void)usleep(us);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (read(told, &number, sizeof number) == sizeof number) {
        assert_int_equal(number, last + 1); /* in order, without gaps */
        last = number;
    }
    return last;
}

static uint64_t stored_output(struct store_fixture *rig, int64_t job)
{
    size_t count;
    struct rig_row *rows = rig_read(rig, (struct wr_store_query){.what = WR_STORE_OUTPUTS, .job = job}, &count);
    uint64_t bytes = count > 0 ? rows[0].row.output.bytes : 0;

    free(rows);
    return bytes;
}

/* Checks that the stored length of the output has every page once, in order. */
static void check_output(struct store_fixture *rig, uint64_t bytes, int pages)
{
    char path[RIG_PATH + 16], line[80], url[64];
    FILE *file;
    int seen = 0;

    snprintf(path, sizeof path, "%s/" OUTPUT, rig->folder);
    file = fopen(path, "r");
    if (file == NULL && bytes == 0) { /* killed before it created the file */
        assert_int_equal(pages, 0);
        return;
    }
    assert_non_null(file);
    while ((uint64_t)ftell(file) < bytes && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        url_of(seen++, url);
        assert_string_equal(line, url);
    }
    assert_int_equal(ftell(file), bytes);
    assert_int_equal(seen, pages);
    (void)fclose(file);
}

/* Checks the store after a kill. Returns the number of finished pages. */
static int check_store(struct store_fixture *rig, int64_t job, int last_told)
{
    char url[64], host[32];
    rig->options.context = rig;
    rig_open(rig);
    rig_check(rig);
    struct wr_store_job seen = rig_look_job(rig, job);
    int done = (int)seen.done;
    assert_true(done >= last_told + 1); /* every reported page is stored */
    assert_int_equal(seen.queued, 1);   /* the page that it found is stored, too */
    url_of(done, url);
    host_of(done, host);
    char *queue = rig_queue(rig, job, host);
    assert_string_equal(queue, url);
    free(queue);
    check_output(rig, stored_output(rig, job), done);
    return done;
}

/* Kills one crawl this many times. Returns how many kills came after new pages. */
static int kill_crawl(struct wr_rng *rng, int kills, int *pages)
{
    struct store_fixture rig;
    int done = 0, with_loss = 0;

    rig_set_up(&rig, rig_backends);
    rig.options.batch_changes = 64;
    rig_open(&rig);
    int64_t job = rig_job(&rig, "");
    rig_post(&rig, rig_found(&rig, job, "host-0.example", "https://host-0.example/000000", NULL));
    rig.options.may_create = false;
    for (int round = 0; round < kills; round++) {
        int told[2];
        uint64_t output_bytes = stored_output(&rig, job);
        rig_close(&rig);
        assert_int_equal(pipe(told), 0);
        (void)fcntl(told[1], F_SETPIPE_SZ, 1 << 20);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            run_child(&rig, job, done, output_bytes, told[1]);
        (void)close(told[1]);
        unsigned us = 3000 + (unsigned)wr_rng_below(rng, LONGEST_US);
        int last = watch_and_kill(child, told[0], round % 2 == 0, us, done - 1);
        (void)close(told[0]);
        int before = done;
        done = check_store(&rig, job, last);
        with_loss += done > before;
    }
    rig_tear_down(&rig);
    *pages += done;
    return with_loss;
}

/* F1, F11, L4, V4, V5: every reported page is stored. */
static void pages_reported_as_stored_survive_kill_9_at_any_moment(void **state)
{
    (void)state;
    struct wr_rng rng;
    const char *kills_text = getenv("WEIR_TEST_KILLS");
    int kills = kills_text != NULL ? (int)strtol(kills_text, NULL, 10) : 25, with_loss = 0, pages = 0;
    wr_rng_init(&rng, weir_test_seed());
    /* after each kill the whole crawl is checked, so that one crawl must not grow too large */
    for (int left = kills; left > 0; left -= KILLS_OF_ONE)
        with_loss += kill_crawl(&rng, left < KILLS_OF_ONE ? left : KILLS_OF_ONE, &pages);
    print_message("%d pages, %d kills, %d of them with pages done\n", pages, kills, with_loss);
    assert_true(with_loss >= kills / 2);
}

WEIR_TESTS(test(pages_reported_as_stored_survive_kill_9_at_any_moment))
