/* SPDX-License-Identifier: MIT */
/* crawl_loop.c - one thread of a crawl: asks its plan what to do next, and does it.
 *
 * The plan is asked before each wait for the network. When it is due, it is also asked between two
 * pages or messages that have arrived together, because hundreds of them take longer than a start
 * may be late. Timers of libuv are late by a millisecond, which is a percent at ten requests per
 * second and host. So a timer of the kernel keeps the plan's times.
 */
#include "base/alloc.h"
#include "crawl/engine/engine_state.h"

#include "base/error.h"
#include "http/loop/round.h"
#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"
#include "limiter/clock/cpu_slice.h"

#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Time for the plan before each wait; then the network has its turn. */
#define PLAN_NS WEIR_MILLISECOND
#define DUE_NS (200 * WEIR_MICROSECOND) /* time for the plan between two events */
#define TICK_MS 500
#define OFFERING_PAGES_MAX 64 /* pages with links that are not offered yet; then no more are fetched */

/* ---- the timer ---- */

static void set_plan_timer(struct wr_crawl_loop *loop, int64_t at)
{
    if (at == loop->timer_at)
        return;
    loop->timer_at = at;
    struct itimerspec when = {.it_value = {0, 0}};
    if (at != WEIR_FOREVER) {
        int64_t left_ns = at - wr_crawl_loop_now(loop);
        left_ns = left_ns > 0 ? left_ns : 1; /* 0 would disarm the timer */
        when.it_value.tv_sec = (time_t)(left_ns / WEIR_SECOND);
        when.it_value.tv_nsec = (long)(left_ns % WEIR_SECOND);
    }
    (void)timerfd_settime(loop->timer_fd, 0, &when, NULL);
}

static void on_plan_timer(uv_poll_t *poll, int status, int events)
{
    struct wr_crawl_loop *loop = poll->data;
    uint64_t times;
    (void)status, (void)events;
    (void)!read(loop->timer_fd, &times, sizeof times);
    loop->timer_at = WEIR_FOREVER;
}

/* ---- actions of the plan ---- */

static void start_action(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    if (atomic_load(&loop->engine->phase) >= WR_PHASE_DRAINS)
        wr_plan_task_given_back(loop->plan, action->task, wr_crawl_loop_now(loop));
    else
        wr_crawl_fetch_start(loop, action);
    wr_global_limits_count_start(loop);
    if (action->next_ns > 0 && action->next_ns != WEIR_FOREVER)
        /* Sends at once, because preparing other due requests takes time. Without a known next
         * start, pending events may come first. */
        wr_net_flush(loop->net);
}

static void carry_out_action(struct wr_crawl_loop *loop, const struct wr_plan_action *action)
{
    switch (action->kind) {
    case WR_PLAN_START:
    case WR_PLAN_ROBOTS:
    case WR_PLAN_ROBOTS_HOP:
        start_action(loop, action);
        break;
    case WR_PLAN_LOAD:
        wr_load_host(loop, action);
        break;
    case WR_PLAN_HOSTS:
        if (loop->engine->is_shared) /* shared hosts are claimed instead */
            wr_plan_hosts_end(loop->plan, action->job, 0, true, wr_crawl_loop_now(loop));
        else
            wr_load_host_list(loop, action);
        break;
    case WR_PLAN_END:
        wr_crawl_page_end_unsent(loop, action);
        break;
    case WR_PLAN_TAKE_BUDGET:
        /* Pages are drawn when they are offered: no loop keeps unused budget. */
        if (action->draw != WR_BUDGET_PAGES)
            (void)wr_job_take_budget(loop, action->draw, action->count);
        break;
    case WR_PLAN_OVER:
        wr_job_end(loop->engine, WR_END_BUDGET,
                   action->draw == WR_BUDGET_BYTES ? "the byte limit was reached (--max-bytes)"
                                                   : WR_TIME_LIMIT_REACHED);
        break;
    case WR_PLAN_DRAINED:
    case WR_PLAN_IDLE:
        break;
    }
}

/* Carries out actions of the plan for a limited time. Returns when to ask it next. */
static int64_t run_plan(struct wr_crawl_loop *loop, int64_t share_ns)
{
    WR_DOING("plan");
    struct wr_time_slice share = wr_time_slice_begin(share_ns);
    struct wr_plan_action action;
    int64_t now = wr_crawl_loop_now(loop);
    do {
        /* Stops asking: the loop is woken when there is room. */
        if (loop->is_stalled || loop->loads >= 2 * WR_LOADS_MAX || loop->telling >= OFFERING_PAGES_MAX)
            return loop->is_paused && wr_plan_reschedule_paused(loop->plan, now) ? now : WEIR_FOREVER;
        wr_plan_next(loop->plan, wr_crawl_loop_now(loop), &action);
        if (action.kind == WR_PLAN_IDLE)
            return action.at;
        carry_out_action(loop, &action);
    } while (wr_time_slice_lasts(&share));
    return 0;
}

static void run_due_plan(struct wr_crawl_loop *loop, int64_t share_ns)
{
    int64_t now = wr_crawl_loop_now(loop);
    if (loop->next_at > 0 && now >= loop->next_at)
        wr_histogram_add(&loop->counts.lag, &wr_lag_buckets, now - loop->next_at);
    loop->next_at = run_plan(loop, share_ns);
}

void wr_crawl_loop_run_due(struct wr_crawl_loop *loop)
{
    if (loop->accepts_messages && wr_crawl_loop_now(loop) >= loop->next_at)
        run_due_plan(loop, DUE_NS);
}

/* ---- phases of the engine ---- */

static void cancel_loop_fetches(struct wr_crawl_loop *loop)
{
    const struct wr_list *posts = &loop->lists[WR_CRAWL_FETCH_WAITS_TO_POST],
                         *flies = &loop->lists[WR_CRAWL_FETCH_IN_FLIGHT];
    while (posts->first != NULL)
        /* The pages stay queued in the store. */
        wr_crawl_fetch_recycle(WR_LINKED(posts->first, struct wr_crawl_fetch, link));
    for (struct wr_list_link *link = flies->first; link != NULL; link = link->next)
        wr_crawl_fetch_cancel(WR_LINKED(link, struct wr_crawl_fetch, link));
}

static void apply_engine_phase(struct wr_crawl_loop *loop, int phase)
{
    /* Paused, not ended: requests in flight may find pages for a resume. */
    if (phase >= WR_PHASE_OVER && !loop->is_paused)
        (void)wr_plan_job_pause(loop->plan, (uint32_t)loop->engine->job, wr_job_halt_reason(loop->engine));
    loop->is_paused |= phase >= WR_PHASE_OVER;
    if (phase >= WR_PHASE_STOPS)
        cancel_loop_fetches(loop);
}

void wr_crawl_loop_save_host(struct wr_crawl_loop *loop, struct wr_plan_host *host)
{
    struct wr_store_host note = {.key = wr_plan_host_key(host), .lease = wr_plan_host_lease_token(host)};
    if (loop->engine->is_shared && note.lease == 0)
        return; /* only the owner of a host stores it */
    wr_gate_remember(wr_plan_host_gate(host), wr_plan_host_options(loop->plan, host), wr_crawl_loop_now(loop),
                     weir_wall_now(), &note.memory);
    /* If the store is full, the host is noted with its next change. */
    (void)wr_store_note_host(loop->engine->store, &note);
}

static void save_changed_hosts(struct wr_crawl_loop *loop)
{
    const struct wr_plan_host *host;
    struct wr_store_host note = {.lease = 0};
    int64_t now = wr_crawl_loop_now(loop), wall_now = weir_wall_now();
    while ((host = wr_plan_next_unsaved_host(loop->plan, now, wall_now, &note.memory)) != NULL) {
        note.key = wr_plan_host_key(host);
        note.lease = wr_plan_host_lease_token(host);
        if (!loop->engine->is_shared || note.lease != 0)
            (void)wr_store_note_host(loop->engine->store, &note);
    }
}

static void publish_counts(struct wr_crawl_loop *loop)
{
    struct wr_plan_stats plan;
    struct wr_net_stats net;
    wr_plan_stats_get(loop->plan, &plan);
    wr_net_stats(loop->net, &net);
    wr_counts_copy(&loop->counts, &plan, &net);
}

static void on_loop_tick(uv_timer_t *timer)
{
    WR_DOING("tick");
    struct wr_crawl_loop *loop = timer->data;
    save_changed_hosts(loop);
    publish_counts(loop);
    wr_host_lease_tick(loop);
    wr_job_tick(loop);
}

static void on_loop_wakeup(struct wr_wakeup *wakeup)
{
    (void)wakeup; /* the event only ends the wait */
}

void wr_crawl_loop_wake(struct wr_crawl_loop *loop)
{
    (void)pthread_mutex_lock(&loop->message_lock);
    if (loop->accepts_messages)
        wr_wakeup_send(&loop->wakeup);
    (void)pthread_mutex_unlock(&loop->message_lock);
}

/* ---- starting and ending ---- */

static void close_crawl_loop_handles(struct wr_crawl_loop *loop)
{
    (void)pthread_mutex_lock(&loop->message_lock);
    loop->accepts_messages = false;
    (void)pthread_mutex_unlock(&loop->message_lock);
    save_changed_hosts(loop);
    publish_counts(loop);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_close((uv_handle_t *)&loop->ticks, NULL);
    wr_wakeup_close(&loop->wakeup, NULL);
    uv_close((uv_handle_t *)&loop->reads, NULL);
    wr_net_close(loop->net);
    loop->net = NULL;
}

static void on_loop_prepare(uv_prepare_t *prepare)
{
    struct wr_crawl_loop *loop = prepare->data;
    int phase = atomic_load(&loop->engine->phase);
    if (phase == WR_PHASE_IDLE)
        return; /* not all loops exist yet */
    if (phase == WR_PHASE_CLOSES) {
        close_crawl_loop_handles(loop);
        return;
    }
    apply_engine_phase(loop, phase);
    if (!loop->is_stalled || atomic_exchange(&loop->has_room, false))
        wr_crawl_page_retry_posts(loop);
    wr_crawl_sitemaps_resume(loop);
    if (atomic_exchange(&loop->lists_again, false))
        wr_load_all_hosts(loop);
    if (atomic_load(&loop->engine->relisting) == 0)
        run_due_plan(loop, PLAN_NS);
    set_plan_timer(loop, loop->next_at);
    atomic_store(&loop->is_drained, wr_plan_job_is_drained(loop->plan, (uint32_t)loop->engine->job));
    wr_job_check_end(loop->engine);
}

static int make_loop_net(struct wr_crawl_loop *loop)
{
    struct wr_engine *engine = loop->engine;
    const struct wr_engine_options *options = &engine->options;
    uint32_t share = wr_ledger_share(options->concurrency, loop->index, engine->loop_count);
    const struct wr_net_options net = {
        .allocator = engine->allocator,
        .clock = engine->clock,
        .loop = &loop->uv,
        .resolver = engine->resolver,
        .agent = engine->agent,
        .proxy = engine->proxy,
        .ca_file = engine->ca_file,
        .allow_private = options->allows_private,
        .judge = options->judge,
        .judge_context = options->judge_context,
        .transfers_max = 2 * share + 16, /* cancelled transfers take a moment to end */
        .connections_max = engine->connections,
        .body_max = options->body_max,
        .total_ns = options->request_ns,
    };
    return wr_net_new(&net, &loop->net);
}

int wr_crawl_loop_open(struct wr_crawl_loop *loop, struct wr_engine *engine, uint32_t index)
{
    loop->engine = engine;
    loop->index = index;
    loop->timer_at = loop->next_at = WEIR_FOREVER;
    loop->asleep_ns = wr_clock_suspended_ns();
    wr_referrers_init(loop);
    wr_robots_redirects_init(loop);
    wr_recrawl_visits_init(loop);
    loop->elsewhere = wr_alloc_array(engine->allocator, WR_SENT_URL_SLOTS, sizeof *loop->elsewhere, _Alignof(uint64_t));
    (void)pthread_mutex_init(&loop->message_lock, NULL);
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->elsewhere == NULL)
        return WEIR_E_NOMEM;
    if (loop->timer_fd < 0 || uv_loop_init(&loop->uv) != 0)
        return WEIR_E_SYSTEM;
    loop->has_uv = true;
    int error = wr_wakeup_init(&loop->wakeup, &loop->uv, on_loop_wakeup);
    if (error != 0)
        return error;
    (void)uv_prepare_init(&loop->uv, &loop->prepare);
    (void)uv_timer_init(&loop->uv, &loop->ticks);
    (void)uv_idle_init(&loop->uv, &loop->reads);
    (void)uv_poll_init(&loop->uv, &loop->timer, loop->timer_fd);
    loop->prepare.data = loop->ticks.data = loop->timer.data = loop->reads.data = loop;
    return 0;
}

struct loop_thread_start {
    struct wr_crawl_loop *loop;
    uv_sem_t done;
    int error;
};

static void *run_loop_thread(void *context)
{
    struct loop_thread_start *starting = context;
    struct wr_crawl_loop *loop = starting->loop;
    wr_cpu_slice_short();
    int error = make_loop_net(loop);
    if (error == 0 && loop->engine->archive.is_on)
        error = wr_warc_new(loop->engine->allocator, &loop->warc);
    starting->error = error;
    if (error == 0) {
        (void)pthread_mutex_lock(&loop->message_lock);
        loop->accepts_messages = true;
        (void)pthread_mutex_unlock(&loop->message_lock);
        (void)uv_prepare_start(&loop->prepare, on_loop_prepare);
        (void)uv_poll_start(&loop->timer, UV_READABLE, on_plan_timer);
        (void)uv_timer_start(&loop->ticks, on_loop_tick, TICK_MS, TICK_MS);
    }
    uv_sem_post(&starting->done);
    wr_watchdog_begin("the loop of a crawl");
    if (error == 0)
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    wr_watchdog_end();
    wr_engine_loop_ended(loop->engine);
    return NULL;
}

/* Starts the thread of a loop, with all signals blocked: the program's own threads handle them. */
int wr_crawl_loop_start_thread(struct wr_crawl_loop *loop)
{
    struct loop_thread_start starting = {.loop = loop};
    sigset_t all, before;
    if (uv_sem_init(&starting.done, 0) != 0)
        return WEIR_E_SYSTEM;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&loop->thread, NULL, run_loop_thread, &starting);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0) {
        loop->has_thread = true;
        uv_sem_wait(&starting.done);
    }
    uv_sem_destroy(&starting.done);
    if (failed != 0 || starting.error == WEIR_E_SYSTEM)
        wr_error_set("cannot start a thread or an event loop for it");
    return failed != 0 ? WEIR_E_SYSTEM : starting.error;
}

static void close_open_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void wr_crawl_loop_close(struct wr_crawl_loop *loop)
{
    if (loop->has_uv) {
        uv_walk(&loop->uv, close_open_handle, NULL); /* closes handles of a loop that never ran */
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
        (void)uv_loop_close(&loop->uv);
    }
    if (loop->engine == NULL)
        return;
    wr_crawl_fetches_free(loop);
    wr_robots_redirects_free(loop);
    wr_robots_hops_free(loop);
    wr_referrers_release(loop);
    wr_recrawl_visits_release(loop);
    wr_plan_free(loop->plan);
    wr_warc_free(loop->warc);
    wr_free(loop->engine->allocator, loop->changes, loop->changes_room * sizeof *loop->changes,
            _Alignof(struct wr_store_change));
    wr_free(loop->engine->allocator, loop->elsewhere, WR_SENT_URL_SLOTS * sizeof *loop->elsewhere, _Alignof(uint64_t));
    (void)pthread_mutex_destroy(&loop->message_lock);
    if (loop->timer_fd >= 0)
        (void)close(loop->timer_fd);
}
