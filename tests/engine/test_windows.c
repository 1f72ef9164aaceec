/* SPDX-License-Identifier: MIT */
/* test_windows.c - tests of pauses that responses begin: which host they apply to, and when they
 * are stored (T13, T14, V2, E7, F2). */
#include "crawl/engine/engine_state.h"
#include "engine/rig.h"

#include <string.h>

/* ---- order of calls: wr_plan_page_finished, wr_store_note_host, wr_store_post ---- */

#define WINDOWS (WR_GATE_CHANGE_RETRY_AFTER | WR_GATE_CHANGE_BREAKER)

struct wr_task_outcome __real_wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                    uint64_t bytes, int64_t now);
int __real_wr_store_note_host(struct wr_store *store, const struct wr_store_host *host);
int __real_wr_store_post(struct wr_store *store, const struct wr_store_change *changes, size_t count,
                         wr_store_done *done, void *context);
struct wr_task_outcome __wrap_wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                    uint64_t bytes, int64_t now);
int __wrap_wr_store_note_host(struct wr_store *store, const struct wr_store_host *host);
int __wrap_wr_store_post(struct wr_store *store, const struct wr_store_change *changes, size_t count,
                         wr_store_done *done, void *context);

/* Pauses that the last response of this thread began and that are not noted yet. */
static _Thread_local uint32_t unnoted;
static atomic_int windows[WINDOWS + 1], late_windows;

struct wr_task_outcome __wrap_wr_plan_page_finished(struct wr_plan *plan, uint32_t number, const weir_outcome *outcome,
                                                    uint64_t bytes, int64_t now)
{
    struct wr_task_outcome fate = __real_wr_plan_page_finished(plan, number, outcome, bytes, now);
    unnoted = fate.news & WINDOWS;
    if (unnoted != 0)
        atomic_fetch_add(&windows[unnoted], 1);
    return fate;
}

int __wrap_wr_store_note_host(struct wr_store *store, const struct wr_store_host *host)
{
    unnoted = 0;
    return __real_wr_store_note_host(store, host);
}

int __wrap_wr_store_post(struct wr_store *store, const struct wr_store_change *changes, size_t count,
                         wr_store_done *done, void *context)
{
    atomic_fetch_add(&late_windows, unnoted != 0);
    return __real_wr_store_post(store, changes, count, done, context);
}

/* Returns Retry-After for the first hosts, 500 for the others. */
static struct origin_reply answer_windows(void *context, const struct origin_request *request)
{
    (void)context;
    if (rig_is_robots(request))
        return (struct origin_reply){.status = 404};
    if (rig_host(request) <= 20)
        return (struct origin_reply){.status = 429, .fields = "Retry-After: 1000\r\n"};
    return (struct origin_reply){.status = 500};
}

/* T14: a crash in between would lose the pause but keep the attempt. The head reports the pause,
 * too. But the end may lengthen it by jitter, and only the end opens a breaker. */
static void pause_begun_by_a_response_is_noted_before_its_page_is_posted(void **state)
{
    struct crawl_fixture rig;
    (void)state;
    rig_set_up(&rig, answer_windows);
    rig.options.loops = 2;
    /* robots.txt arrives sooner, also on a busy machine */
    rig.options.max_defer_ns = 10 * WEIR_SECOND;
    rig.options.failure_threshold = UINT32_MAX;
    rig.options.pace.breaker = true;
    rig.options.pace.consecutive_failures = 2;
    rig.options.pace.open_ns = WEIR_HOUR;
    rig_start(&rig);
    for (int host = 1; host <= 25; host++)
        rig_seed(&rig, "%s", rig_url(&rig, host, "/"));
    rig_finish(&rig);
    print_message("%d waits that grew, %d breakers\n", atomic_load(&windows[WR_GATE_CHANGE_RETRY_AFTER]),
                  atomic_load(&windows[WR_GATE_CHANGE_BREAKER]));
    assert_true(atomic_load(&windows[WR_GATE_CHANGE_RETRY_AFTER]) > 0);
    assert_true(atomic_load(&windows[WR_GATE_CHANGE_BREAKER]) > 0);
    assert_int_equal(atomic_load(&late_windows), 0);
    rig_tear_down(&rig);
}

/* ---- Retry-After of a proxy ---- */

/* Acts as a proxy that at first cannot reach the host. */
static struct origin_reply answer_as_proxy(void *context, const struct origin_request *request)
{
    struct crawl_fixture *rig = context;
    const int *status = rig->site;
    if (strstr(request->path, "/robots.txt") != NULL)
        return (struct origin_reply){.status = 404};
    if (rig_asked_before(rig, request) == 0)
        return (struct origin_reply){.status = *status, .fields = "Retry-After: 1000\r\n"};
    return rig_html("well");
}

/* T13, E7: the proxy reports its own pause, which does not pause the host. */
static void retry_after_of_a_proxy_pauses_no_host(void **state)
{
    static int statuses[] = {502, 504};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct crawl_fixture rig;
        char proxy[64];
        rig_set_up(&rig, answer_as_proxy);
        rig.site = &statuses[i];
        (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", rig.port);
        rig.options.proxy = proxy;
        rig.options.max_defer_ns = 100 * MS; /* a held page fails soon */
        rig_start(&rig);
        rig_seed(&rig, "http://127.0.0.1:9/");
        rig_finish(&rig);
        assert_string_equal(rig_word(&rig, "http://127.0.0.1:9/", "verdict"), "fetched");
        assert_int_equal(rig_number(&rig, "http://127.0.0.1:9/", "attempts"), 2);
        rig_tear_down(&rig);
    }
}

ENGINE_TESTS(test(pause_begun_by_a_response_is_noted_before_its_page_is_posted),
             test(retry_after_of_a_proxy_pauses_no_host))
