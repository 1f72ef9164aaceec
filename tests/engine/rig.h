/* SPDX-License-Identifier: MIT */
/* rig.h - a fixture for tests of whole crawls: a folder for the crawl, and a small web on loopback.
 *
 *     rig_set_up(&rig, answer);                       one server, at every 127.x.y.z: many hosts
 *     rig.options.loops = 2;                          nothing is paced, robots.txt is obeyed
 *     rig_start(&rig);
 *     rig_seed(&rig, "http://127.0.0.1:%d/", rig.port);
 *     rig_finish(&rig);                               waits; then rig.result, rig_word(...), ...
 *     rig_start(&rig); rig_finish(&rig);              resumes a job that is not over
 *     rig_tear_down(&rig);
 *
 * Tests judge a crawl by what the server received: rig.origin, rig_arrivals.
 */
#ifndef WEIR_TEST_ENGINE_RIG_H
#define WEIR_TEST_ENGINE_RIG_H

#include "crawl/engine/engine.h"
#include "lib/origin.h"
#include "lib/rig.h"

#include <jansson.h>
#include <sys/types.h>

#define MS WEIR_MILLISECOND
#define RIG_PATH 256
#define RIG_URL 512

/* The kernel stamps arrivals, but a loaded machine may delay a sender between its decision and its
 * write. */
#define STAMP_SLACK_NS (15 * MS)

struct rig_count;

struct crawl_fixture {
    struct origin *origin; /* NULL: no server */
    int port;
    char folder[RIG_PATH], state[RIG_PATH + 16], out[RIG_PATH + 16];
    struct wr_engine_options options; /* set by rig_set_up; change them before rig_start */
    struct wr_engine *engine;
    struct wr_engine_result result;
    bool is_new;   /* true if rig_start created a new job */
    int files_max; /* limit of descriptors of a child process; 0: as here */
    char **texts;  /* texts of rig_text */
    size_t text_count;
    struct rig_count *asked; /* counts of rig_asked_before */
    size_t asked_count;
    json_t **lines; /* lines of the output */
    size_t line_count;
    atomic_int waits; /* number of warnings that begin with "waiting: " */
    void *site;       /* for the test */
};

/* `answer` gets the rig as its context. NULL: no server. */
void rig_set_up(struct crawl_fixture *rig, origin_answer *answer);
void rig_tear_down(struct crawl_fixture *rig);

/* Sets the least time between two starts at a host. */
void rig_space(struct crawl_fixture *rig, int64_t interval_ns);
void rig_profile(struct crawl_fixture *rig, weir_profile profile);

/* ---- the web: for `answer`, which is called with a lock held ---- */

/* Returns the number of the request's host: 256 * 0 + 2 for "Host: 127.0.0.2:8080". */
int rig_host(const struct origin_request *request);

/* Returns a text that is valid until rig_tear_down. */
const char *rig_text(struct crawl_fixture *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns a page of a tree: the n-th, at "/n", links to 2n + 1 and 2n + 2; "/" is the first.
 * Returns 404 for other paths. */
struct origin_reply rig_tree(struct crawl_fixture *rig, const struct origin_request *request, int pages,
                             const char *more);
struct origin_reply rig_html(const char *body);
bool rig_is_robots(const struct origin_request *request);
/* Returns how often `answer` has called this before for the same path and host. */
int rig_asked_before(struct crawl_fixture *rig, const struct origin_request *request);

/* ---- the crawl ---- */

/* Opens the state file, and resumes a job that is not over or starts a new one. */
void rig_start(struct crawl_fixture *rig);
void rig_seed(struct crawl_fixture *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rig_seeded(struct crawl_fixture *rig);
bool rig_await_end(struct crawl_fixture *rig, int64_t timeout_ns);
void rig_await_requests(struct crawl_fixture *rig, int count);
/* Reports that there are no more seeds, waits for the end, frees the engine, and reads the
 * output. */
void rig_finish(struct crawl_fixture *rig);

void rig_read_lines(struct crawl_fixture *rig);

/* ---- results ---- */

/* Returns the URL of a path at a host. It is valid until the fourth call after it. */
const char *rig_url(const struct crawl_fixture *rig, int host, const char *path);
/* Returns the line of a URL. Fails the test if there is no line or more than one. */
json_t *rig_line(const struct crawl_fixture *rig, const char *url);
bool rig_has_line(const struct crawl_fixture *rig, const char *url);
const char *rig_word(const struct crawl_fixture *rig, const char *url, const char *key);
int rig_number(const struct crawl_fixture *rig, const char *url, const char *key);
/* Returns the number of lines with this verdict. */
int rig_verdicts(const struct crawl_fixture *rig, const char *verdict);
/* Fails the test unless the output has exactly these pages of rig_tree, each fetched once. */
void rig_assert_trees(const struct crawl_fixture *rig, int first_host, int hosts, int pages);

/* Returns the times of all arrivals at a host (-1: all hosts), in order; for free(). */
int64_t *rig_arrivals(const struct crawl_fixture *rig, int host, int *ret_count);
void rig_assert_spaced(const struct crawl_fixture *rig, int host, int64_t least_ns);
/* Returns the number of requests for the path at a host (-1: all hosts). */
int rig_asked(const struct crawl_fixture *rig, int host, const char *path);

/* Fails the test unless the state file is valid and its counts agree. */
void rig_check_store(const struct crawl_fixture *rig);

/* ---- a crawl that can be killed ---- */

/* Starts this program again as a crawl with the same folder, loops and interval, which resumes a
 * job that is there. It exits with 0 when the job is over. */
pid_t rig_spawn(const struct crawl_fixture *rig, int seeds);
/* Is called by main. Runs the crawl and exits if rig_spawn started this program. */
void rig_be_child(int argc, char **argv);

#define ENGINE_TESTS(...)                                                          \
    int main(int argc, char **argv)                                                \
    {                                                                              \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                           \
        rig_be_child(argc, argv);                                                  \
        return weir_tests_main(argc, argv, tests, sizeof tests / sizeof tests[0]); \
    }

static inline int64_t monotonic(void)
{
    return weir_clock_now(weir_clock_monotonic());
}

static inline void sleep_ns(int64_t ns)
{
    const struct timespec nap = {(time_t)(ns / WEIR_SECOND), (long)(ns % WEIR_SECOND)};
    (void)nanosleep(&nap, NULL);
}

#endif
