/* SPDX-License-Identifier: MIT */
/* test_kill.c - tests of kill -9 at random moments: a resumed crawl ends as if it had not been
 * killed. WEIR_TEST_KILLS sets the number of kills; the default is 26. */
#include "base/rng.h"
#include "engine/rig.h"

#include <signal.h>
#include <sys/wait.h>

#define HOSTS 8
#define PAGES 40

static void kill_child(pid_t child)
{
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static int await_exit(pid_t child)
{
    int status, waited = 0;
    for (int64_t until = monotonic() + 60 * WEIR_SECOND; waited == 0 && monotonic() < until; sleep_ns(5 * MS))
        waited = waitpid(child, &status, WNOHANG);
    if (waited == 0) {
        kill_child(child);
        fail_msg("the crawl does not end");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Returns a page that also links to the page of the same path at the next host. */
static struct origin_reply answer_rings(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    char more[1200];
    int host = rig_host(request);
    (void)snprintf(more, sizeof more, "<a href=\"http://127.0.0.%d:%d%s\">next</a>", host % HOSTS + 1, rig->port,
                   request->path);
    return rig_tree(rig, request, PAGES, more);
}

/* ---- pages that were stored before a kill are not fetched again ---- */

struct storage {
    bool has[HOSTS + 1][PAGES];
    uint64_t bytes; /* committed length of the output */
};

static void on_output(void *context, const struct wr_store_row *row)
{
    ((struct storage *)context)->bytes = row->output.bytes;
}

static bool parse_page(const char *url, int *ret_host, int *ret_page)
{
    *ret_page = 0;
    return sscanf(url, "http://127.0.0.%d:%*d/%d", ret_host, ret_page) >= 1;
}

/* Marks the pages that have a committed line in the output. */
static void look(const struct crawl_fixture *rig, struct storage *storage)
{
    char line[4096];
    struct wr_store *store;
    const struct wr_store_options options = {.path = rig->state};
    storage->bytes = 0;
    if (wr_store_open(&options, &store) != 0)
        return; /* it was killed before there was a store */
    assert_int_equal(
        wr_store_read(
            store, &(struct wr_store_query){.what = WR_STORE_OUTPUTS, .job = 1, .row = on_output, .context = storage}),
        0);
    wr_store_free(store);
    FILE *file = fopen(rig->out, "r");
    while (file != NULL && (uint64_t)ftell(file) < storage->bytes && fgets(line, sizeof line, file) != NULL) {
        int host = 0, page = 0;
        char *url = strstr(line, "http://");
        assert_true(url != NULL && parse_page(url, &host, &page));
        storage->has[host][page] = true;
    }
    if (file != NULL)
        (void)fclose(file);
}

static void assert_not_fetched_again(const struct crawl_fixture *rig, const struct storage *storage, int from)
{
    for (int i = from; i < origin_requests(rig->origin); i++) {
        struct origin_request request = origin_request(rig->origin, i);
        if (rig_is_robots(&request))
            continue;
        if (storage->has[rig_host(&request)][strtol(request.path + 1, NULL, 10)])
            fail_msg("%s of host %d was stored, and is fetched again", request.path, rig_host(&request));
    }
}

/* ---- one crawl, killed many times ---- */

/* Starts the crawl and kills it. Returns true if it ended before that. */
static bool run_and_kill(struct crawl_fixture *rig, struct wr_rng *rng, int seeds)
{
    int status, before = origin_requests(rig->origin);
    pid_t child = rig_spawn(rig, seeds);
    int64_t until = monotonic() + 10 * WEIR_SECOND;
    if (wr_rng_below(rng, 4) != 0) /* sometimes before the first request */
        while (origin_requests(rig->origin) == before && waitpid(child, &status, WNOHANG) == 0 && monotonic() < until)
            sleep_ns(MS);
    sleep_ns((int64_t)wr_rng_below(rng, 350) * MS);
    if (kill(child, 0) != 0 || waitpid(child, &status, WNOHANG) != 0)
        return true;
    kill_child(child);
    return false;
}

static int crawl_and_kill(struct wr_rng *rng, int seeds, uint32_t loops, int kills_left)
{
    struct crawl_fixture rig;
    int kills = 0, from = 0;
    static struct storage storage;
    memset(&storage, 0, sizeof storage);
    rig_set_up(&rig, answer_rings);
    rig.options.loops = loops;
    rig_space(&rig, 25 * MS);
    while (kills < kills_left && !run_and_kill(&rig, rng, seeds)) {
        assert_not_fetched_again(&rig, &storage, from);
        kills++;
        if (kills % 2 == 0) { /* else the crawl itself repairs the state */
            look(&rig, &storage);
            from = origin_requests(rig.origin);
        }
    }
    if (kills == kills_left)
        assert_int_equal(await_exit(rig_spawn(&rig, seeds)), 0);
    assert_not_fetched_again(&rig, &storage, from);
    rig_check_store(&rig);
    rig_read_lines(&rig);
    assert_int_equal(rig.line_count, HOSTS * PAGES);
    rig_assert_trees(&rig, 1, HOSTS, PAGES);
    rig_tear_down(&rig);
    return kills;
}

static void crawl_until_killed_often(int seeds, uint32_t loops, int share)
{
    struct wr_rng rng;
    const char *text = getenv("WEIR_TEST_KILLS");
    int kills = (text != NULL ? (int)strtol(text, NULL, 10) : 26) / share, done = 0;
    wr_rng_init(&rng, weir_test_seed());
    for (int crawls = 1; done < kills; crawls++) {
        done += crawl_and_kill(&rng, seeds, loops, kills - done);
        print_message("%d crawls, %d kills\n", crawls, done);
    }
}

/* V4, F1, L4. */
static void repeatedly_killed_crawl_ends_with_the_same_pages(void **state)
{
    (void)state;
    crawl_until_killed_often(HOSTS, 1, 2);
}

/* V4, F1. */
static void links_between_loops_survive_kill_9(void **state)
{
    (void)state;
    crawl_until_killed_often(1, 2, 2);
}

/* ---- a web with redirects and errors ---- */

/* Returns redirects to other hosts, and pages that are absent, denied, or fail at first. */
static struct origin_reply answer_rough(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    int host = rig_host(request);
    long n = strtol(request->path + 1, NULL, 10);
    if (rig_is_robots(request))
        return (struct origin_reply){.body = "User-agent: *\nDisallow: /2\n"};
    if (n % 7 == 3)
        return (struct origin_reply){
            .status = 302,
            .fields = rig_text(rig, "Location: http://127.0.0.%d:%d/%ld\r\n", host % HOSTS + 1, rig->port, n + 1)};
    if (n % 11 == 5)
        return (struct origin_reply){.status = 404};
    if (n % 13 == 6 && rig_asked_before(rig, request) == 0)
        return (struct origin_reply){.status = 500};
    return answer_rings(context, request);
}

/* Returns "URL verdict" of each line, in order; for free(). */
static char *summary_of(struct crawl_fixture *rig)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    rig_read_lines(rig);
    for (int host = 1; host <= HOSTS; host++)
        for (int page = 0; page <= PAGES; page++) {
            char path[16] = "/";
            if (page > 0)
                (void)snprintf(path, sizeof path, "/%d", page);
            const char *url = rig_url(rig, host, path);
            if (rig_has_line(rig, url)) /* fails if there are two */
                (void)fprintf(stream, "%s %s\n", url, rig_word(rig, url, "verdict"));
        }
    (void)fclose(stream);
    return text;
}

/* V4, F1: each page has the same verdict as in a crawl that is not killed. */
static void killed_crawl_of_redirects_and_errors_ends_like_an_undisturbed_one(void **state)
{
    struct crawl_fixture rig;
    struct wr_rng rng;
    int kills = 0;
    (void)state;
    wr_rng_init(&rng, weir_test_seed());
    rig_set_up(&rig, answer_rough);
    rig.options.loops = 2;
    assert_int_equal(await_exit(rig_spawn(&rig, 1)), 0);
    char *undisturbed = summary_of(&rig);
    size_t lines = rig.line_count;
    (void)snprintf(rig.state, sizeof rig.state, "%s/again.db", rig.folder);
    (void)snprintf(rig.out, sizeof rig.out, "%s/again.jsonl", rig.folder);
    rig_space(&rig, 25 * MS);
    while (kills < 8 && !run_and_kill(&rig, &rng, 1))
        kills++;
    if (kills == 8)
        assert_int_equal(await_exit(rig_spawn(&rig, 1)), 0);
    rig_check_store(&rig);
    char *killed = summary_of(&rig);
    print_message("%zu lines, %d kills\n", lines, kills);
    assert_string_equal(killed, undisturbed);
    assert_int_equal(rig.line_count, lines);
    assert_true(rig_verdicts(&rig, "redirect") > 5 && rig_verdicts(&rig, "robots") > 5);
    free(killed);
    free(undisturbed);
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(repeatedly_killed_crawl_ends_with_the_same_pages), test(links_between_loops_survive_kill_9),
             test(killed_crawl_of_redirects_and_errors_ends_like_an_undisturbed_one))
