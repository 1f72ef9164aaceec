/* SPDX-License-Identifier: MIT */
/* rig.h - a crawl in a folder of its own, and a small web on loopback for it.
 *
 *     rig_set_up(&rig, answer);                       one server, at every 127.x.y.z: many hosts
 *     rig.options.loops = 2;                          nothing is paced, robots.txt is obeyed
 *     rig_start(&rig);
 *     rig_seed(&rig, "http://127.0.0.1:%d/", rig.port);
 *     rig_finish(&rig);                               waits; then rig.result, rig_word(&rig, url, "verdict"), …
 *     rig_start(&rig); rig_finish(&rig);              goes on with a job that is not over
 *     rig_tear_down(&rig);
 *
 * What the crawl did is judged by what the server saw: rig.origin, rig_arrivals.
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

/* Arrivals are stamped by the kernel, but a loaded machine may hold a sender up between asking and writing. */
#define STAMP_SLACK_NS (15 * MS)

struct rig_count;

struct rig {
    struct origin *origin; /* NULL: none */
    int port;
    char folder[RIG_PATH], state[RIG_PATH + 16], out[RIG_PATH + 16];
    struct wr_engine_options options; /* change them before rig_start */
    struct wr_engine *engine;
    struct wr_engine_result result;
    bool is_new;   /* the job that was started */
    int files_max; /* descriptors of a child; 0: as many as here */
    char **texts;  /* of the web */
    size_t text_count;
    struct rig_count *asked; /* of rig_asked_before */
    size_t asked_count;
    json_t **lines; /* of the output */
    size_t line_count;
    atomic_int waits; /* warnings that say so */
    void *site;       /* the test's */
};

/* The context of `answer` is the rig. NULL: no server. */
void rig_set_up(struct rig *rig, origin_answer *answer);
void rig_tear_down(struct rig *rig);

/* The least time between two starts of a host. */
void rig_space(struct rig *rig, int64_t interval_ns);
void rig_profile(struct rig *rig, weir_profile profile);

/* ---- the web: for the answer, which is called with a lock held ---- */

/* The host of "Host: 127.0.0.2:8080": the last two numbers of its address, 256 * 0 + 2. */
int rig_host(const struct origin_request *request);

/* A text that stays until the end. */
const char *rig_text(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Pages 0 to pages - 1 of a host: the n-th, at "/n", leads to 2n + 1 and 2n + 2; "/" is the first. 404 for others. */
struct origin_reply rig_tree(struct rig *rig, const struct origin_request *request, int pages, const char *more);
struct origin_reply rig_html(const char *body);
bool rig_is_robots(const struct origin_request *request);
/* How often its path was asked for at its host before, by what the answer counts here. */
int rig_asked_before(struct rig *rig, const struct origin_request *request);

/* ---- the crawl ---- */

/* Opens the state file; goes on with a job that is not over, or starts one. */
void rig_start(struct rig *rig);
void rig_seed(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rig_seeded(struct rig *rig);
bool rig_await_end(struct rig *rig, int64_t timeout_ns);
void rig_await_requests(struct rig *rig, int count);
/* Says that there are no more seeds, waits for the end, frees the engine, and reads the output. */
void rig_finish(struct rig *rig);

void rig_read_lines(struct rig *rig);

/* ---- what came of it ---- */

const char *rig_url(const struct rig *rig, int host, const char *path); /* good until the fourth call after it */
/* The line of a URL; fails if there is none, or more than one. */
json_t *rig_line(const struct rig *rig, const char *url);
bool rig_has_line(const struct rig *rig, const char *url);
const char *rig_word(const struct rig *rig, const char *url, const char *key);
int rig_number(const struct rig *rig, const char *url, const char *key);
/* How many lines have this verdict. */
int rig_verdicts(const struct rig *rig, const char *verdict);
/* The output has exactly these pages of rig_tree, each fetched once. */
void rig_assert_trees(const struct rig *rig, int first_host, int hosts, int pages);

/* When what arrived at a host (all: -1), in order; for free(). */
int64_t *rig_arrivals(const struct rig *rig, int host, int *ret_count);
void rig_assert_spaced(const struct rig *rig, int host, int64_t least_ns);
/* How often the path was asked for at a host (all: -1). */
int rig_asked(const struct rig *rig, int host, const char *path);

/* The state file is sound, and its books agree. */
void rig_check_store(const struct rig *rig);

/* ---- a crawl that can be killed ---- */

/* This program again, as a crawl of its own with the same folder, loops and interval; a job that is there is gone on
 * with. It exits with 0 when the job is over. */
pid_t rig_spawn(const struct rig *rig, int seeds);
/* Of the program's main; never returns if this is what it was started for. */
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
