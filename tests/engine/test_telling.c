/* SPDX-License-Identifier: MIT */
/* test_telling.c - tests that the number of pages whose links wait for the plan is bounded (D1,
 * V6). */
#include "crawl/engine/engine_state.h"
#include "engine/rig.h"
#include "http/loop/round.h"

#define HOSTS 200
#define LINKS 600 /* links of a page, which take several parts */
#define CONCURRENCY 16
#define TELLING 64 /* the constant of src/crawl/engine/crawl_loop.c */

/* ---- links that take long ---- */

bool __real_wr_page_report(struct wr_page *page, wr_page_found *found, void *context);
bool __wrap_wr_page_report(struct wr_page *page, wr_page_found *found, void *context);
struct wr_task_outcome __real_wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                    uint64_t bytes, int64_t now);
struct wr_task_outcome __wrap_wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                    uint64_t bytes, int64_t now);
void __real_wr_crawl_page_post(struct wr_crawl_fetch *fetch);
void __wrap_wr_crawl_page_post(struct wr_crawl_fetch *fetch);

/* Returns the CPU time of the thread, in which shares of a loop's time are measured. */
static int64_t thread_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * WEIR_SECOND + now.tv_nsec;
}

static atomic_int came, posted, most; /* pages */

/* Makes each part of a page's links take a whole share of the loop's time. */
bool __wrap_wr_page_report(struct wr_page *page, wr_page_found *found, void *context)
{
    for (int64_t until = thread_ns() + WR_TIME_SLICE_NS; thread_ns() < until;)
        continue;
    return __real_wr_page_report(page, found, context);
}

struct wr_task_outcome __wrap_wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                    uint64_t bytes, int64_t now)
{
    int waiting = atomic_fetch_add(&came, 1) + 1 - atomic_load(&posted);
    if (waiting > atomic_load(&most))
        atomic_store(&most, waiting);
    return __real_wr_plan_page_finished(plan, number, outcome, bytes, now);
}

void __wrap_wr_crawl_page_post(struct wr_crawl_fetch *fetch)
{
    atomic_fetch_add(&posted, fetch->action.kind == WR_PLAN_START);
    __real_wr_crawl_page_post(fetch);
}

/* ---- the crawl ---- */

static bool is_page_wanted(void *context, const struct wr_url *url)
{
    (void)context, (void)url;
    return false;
}

/* Returns a page with many links, which are all out of scope. */
static struct origin_reply answer_links(void *context, const struct origin_request *request)
{
    static char body[LINKS * 32];
    (void)context, (void)request;
    if (body[0] == '\0')
        for (size_t i = 0, at = 0; i < LINKS; i++) /* all different */
            at += (size_t)snprintf(body + at, sizeof body - at, "<a href=/%zu>x</a>", i);
    return rig_html(body);
}

static void pages_whose_links_wait_are_bounded_in_number(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_links);
    rig.options.loops = 1;
    rig.options.concurrency = CONCURRENCY;
    rig.options.ignores_robots = true;
    rig.options.in_scope = is_page_wanted;
    rig_start(&rig);
    for (int host = 1; host <= HOSTS; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_finish(&rig);
    assert_int_equal(rig_verdicts(&rig, "fetched"), HOSTS);
    if (atomic_load(&most) > TELLING + CONCURRENCY || atomic_load(&most) < TELLING)
        fail_msg("%d pages waited", atomic_load(&most));
    rig_tear_down(&rig);
}

ENGINE_TESTS(test(pages_whose_links_wait_are_bounded_in_number))
