/* SPDX-License-Identifier: MIT */
/* test_policy_wait.c - tests of waiting for robots.txt, in threads and event loops: S4-10 to S4-12,
 * K1, K3, K4, B9. */
#include "unit/http/net/policy_rig.h"

#include "base/rng.h"

#include <limits.h>

#define A "http://a.test/robots.txt"
#define B "http://b.test/robots.txt"
#define SMALL_STACK_BYTES ((size_t)64 << 10)

/* ---- threads ---- */

struct caller {
    struct site *site;
    const char *url;
    int64_t timeout_ns;
    weir_cancel *cancel;
    bool acquires; /* acquires the host's gate, too */
    pthread_t thread;
    int result;
    struct wr_robots_decision ruling;
    weir_permit permit;
    char detail[200];
};

static void *call(void *context)
{
    struct caller *caller = context;
    struct target target;
    const struct wr_url *url = url_of(&target, caller->url);
    struct wr_policies *policies = caller->site->policies;
    caller->result = caller->acquires
                         ? wr_policies_acquire(policies, url, 0, caller->timeout_ns, caller->cancel, &caller->permit,
                                               &caller->ruling)
                         : wr_policies_await(policies, url, caller->timeout_ns, caller->cancel, &caller->ruling);
    (void)snprintf(caller->detail, sizeof caller->detail, "%s", weir_error_detail());
    return NULL;
}

/* Starts the caller and returns once it waits. */
static void caller_wait(struct caller *caller, struct site *site, const char *url, int64_t timeout_ns)
{
    int before = weir_clock_fake_waiters(site->pacing.clock);
    caller->site = site;
    caller->url = url;
    caller->timeout_ns = timeout_ns;
    assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
    test_await_waiters(site->pacing.clock, before + 1);
}

static int caller_join(struct caller *caller)
{
    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    return caller->result;
}

/* K4, S4-10 */
static void fifty_threads_asking_for_a_new_host_cause_one_fetch(void **state)
{
    (void)state;
    static struct caller callers[50];
    struct site site;
    site_set_up(&site);
    memset(callers, 0, sizeof callers);
    for (size_t i = 0; i < COUNT(callers); i++) {
        callers[i].site = &site;
        callers[i].url = i % 2 == 0 ? "http://a.test/x" : "http://a.test/y";
        callers[i].timeout_ns = WEIR_FOREVER;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    test_await_waiters(site.pacing.clock, COUNT(callers));
    assert_int_equal(atomic_load(&site.sent), 1);
    assert_int_equal(look(&site, A).waiters, COUNT(callers));
    site_answer_with(&site, A, 200, "User-agent: *\nDisallow: /x\n");
    for (size_t i = 0; i < COUNT(callers); i++) {
        assert_int_equal(caller_join(&callers[i]), 0);
        assert_string_equal(said(callers[i].ruling), i % 2 == 0 ? "deny@2" : "go");
    }
    assert_int_equal(atomic_load(&site.sent), 1);
    assert_int_equal(stats(&site).waiters, 0);
    site_tear_down(&site);
}

/* S4-11: asks for rulings about a known host while fetches of other hosts are pending. */
static void *ask_repeatedly(void *context)
{
    struct site *site = context;
    struct target target;
    const struct wr_url *url = url_of(&target, "http://a.test/");
    for (int i = 0; i < 10000; i++) {
        struct wr_robots_decision ruling;
        assert_int_equal(wr_policies_ask(site->policies, url, &ruling), 0);
        assert_int_equal(ruling.decision.verdict, WEIR_GO);
    }
    return NULL;
}

static void readers_of_known_hosts_never_wait_for_a_fetch(void **state)
{
    (void)state;
    struct site site;
    struct caller slow[3] = {{.cancel = NULL}};
    pthread_t readers[4];
    site_set_up(&site);
    assert_said(&site, "http://a.test/", "wait");
    site_answer_with(&site, A, 200, "");
    caller_wait(&slow[0], &site, "http://b.test/", WEIR_FOREVER);
    caller_wait(&slow[1], &site, "http://c.test/", WEIR_FOREVER);
    caller_wait(&slow[2], &site, "http://c.test/", WEIR_FOREVER);
    for (size_t i = 0; i < COUNT(readers); i++)
        assert_int_equal(pthread_create(&readers[i], NULL, ask_repeatedly, &site), 0);
    for (size_t i = 0; i < COUNT(readers); i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_int_equal(atomic_load(&site.sent), 3);
    site_answer_with(&site, B, 200, "");
    site_answer_with(&site, "http://c.test/robots.txt", 200, "");
    for (size_t i = 0; i < COUNT(slow); i++)
        assert_int_equal(caller_join(&slow[i]), 0);
    site_tear_down(&site);
}

/* S4-8, S4-10: the fetcher calls the registry, so no lock may be held while it is called. */
static void fetch_about_others(void *context, struct wr_robots_fetch *fetch)
{
    struct site *site = context;
    struct target target;
    struct wr_robots_decision ruling;
    if (strcmp(fetch->url.text, A) == 0) {
        assert_int_equal(wr_policies_ask(site->policies, url_of(&target, "http://b.test/"), &ruling), 0);
        assert_int_equal(ruling.decision.verdict, WEIR_GO);
        assert_int_equal(wr_policies_ask(site->policies, url_of(&target, "http://a.test/"), &ruling), 0);
        assert_int_equal(ruling.decision.verdict, WEIR_WAIT);
    }
    (void)atomic_fetch_add(&site->sent, 1);
    end_with(fetch, &(struct page){.status = 200, .body = "User-agent: *\nDisallow: /x\n"});
}

static void robots_fetcher_is_called_unlocked_and_may_end_at_once(void **state)
{
    (void)state;
    struct site site;
    site_init(&site, WEIR_PROFILE_UNLIMITED);
    site.options.fetch = fetch_about_others;
    site_start(&site);
    assert_said(&site, "http://a.test/x", "deny@2");
    assert_int_equal(atomic_load(&site.sent), 2);
    site_tear_down(&site);
}

/* L3: a fetcher that ends at once is called recursively for a redirect, at most five levels
 * deep. */
static void robots_redirects_fit_on_a_small_stack(void **state)
{
    (void)state;
    static const struct page pages[] = {{"http://z.test/robots.txt", 200, .body = "User-agent: *\nDisallow: /x\n"},
                                        {"http://y.test/robots.txt", 301, .location = "http://z.test/robots.txt"},
                                        {"http://x.test/robots.txt", 301, .location = "http://y.test/robots.txt"},
                                        {"http://w.test/robots.txt", 301, .location = "http://x.test/robots.txt"},
                                        {"http://v.test/robots.txt", 301, .location = "http://w.test/robots.txt"},
                                        {A, 301, .location = "http://v.test/robots.txt"}};
    struct site site;
    struct caller caller = {.site = &site, .url = "http://a.test/x"};
    pthread_attr_t attributes;
    if (SANITIZED || (size_t)PTHREAD_STACK_MIN > SMALL_STACK_BYTES)
        SKIP("sanitizers, or this machine's threads, need larger stacks");
    site_set_up(&site);
    site_serve_all(&site, pages);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK_BYTES), 0);
    assert_int_equal(pthread_create(&caller.thread, &attributes, call, &caller), 0);
    assert_int_equal(caller_join(&caller), 0);
    assert_string_equal(said(caller.ruling), "deny@2");
    assert_int_equal(atomic_load(&site.sent), 6);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    site_tear_down(&site);
}

/* S4-12, R11: callers that wait for a failing host cause one retry for all of them after the
 * backoff. */
static void waiting_threads_fetch_again_after_the_backoff(void **state)
{
    (void)state;
    struct site site;
    struct caller callers[3] = {{.cancel = NULL}};
    site_set_up(&site);
    for (size_t i = 0; i < COUNT(callers); i++)
        caller_wait(&callers[i], &site, "http://a.test/", WEIR_FOREVER);
    for (int round = 1; round <= 4; round++) {
        test_await_number(&site.sent, round);
        assert_int_equal(atomic_load(&site.sent), round);
        site_answer_with(&site, A, round < 4 ? 503 : 200, "");
        pass(&site.pacing, look(&site, A).retry_ns);
    }
    for (size_t i = 0; i < COUNT(callers); i++) {
        assert_int_equal(caller_join(&callers[i]), 0);
        assert_string_equal(said(callers[i].ruling), "go");
    }
    assert_int_equal(atomic_load(&site.sent), 4);
    site_tear_down(&site);
}

/* S4-12, K3 */
static void waiting_ends_by_deadline_cancellation_and_closing(void **state)
{
    (void)state;
    struct site site;
    struct caller late = {.ruling = {.line = 7}}, cancelled = {.ruling = {.line = 7}}, closed = {.ruling = {.line = 7}};
    weir_cancel *cancel;
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    site_set_up(&site);
    caller_wait(&late, &site, "http://a.test/", 10 * S);
    cancelled.cancel = cancel;
    caller_wait(&cancelled, &site, "http://a.test/", WEIR_FOREVER);
    caller_wait(&closed, &site, "http://a.test/", WEIR_FOREVER);
    pass(&site.pacing, 10 * S);
    assert_int_equal(caller_join(&late), WEIR_E_TIMEOUT);
    assert_string_equal(late.detail, "waiting for \"" A "\" took too long");
    weir_cancel_fire(cancel);
    assert_int_equal(caller_join(&cancelled), WEIR_E_CANCELLED);
    assert_string_equal(cancelled.detail, "waiting for \"" A "\" was cancelled");
    wr_policies_close(site.policies);
    wr_policies_close(site.policies);
    assert_int_equal(caller_join(&closed), WEIR_E_CLOSED);
    assert_int_equal(late.ruling.line + cancelled.ruling.line + closed.ruling.line, 21);
    struct target target;
    struct wr_robots_decision ruling;
    const struct wr_url *url = url_of(&target, "http://a.test/");
    assert_int_equal(wr_policies_ask(site.policies, url, &ruling), WEIR_E_CLOSED);
    assert_int_equal(wr_policies_await(site.policies, url, 0, NULL, &ruling), WEIR_E_CLOSED);
    assert_int_equal(wr_policies_await(site.policies, url, 0, cancel, &ruling), WEIR_E_CANCELLED);
    assert_int_equal(wr_policies_await(site.policies, url, -1, NULL, &ruling), WEIR_E_INVAL);
    site_answer_with(&site, A, 301, NULL);
    weir_cancel_free(cancel);
    site_tear_down(&site);
}

/* B9, S4-12: rules that change while a page waits at the gate are applied before it is sent. */
static void page_that_waits_at_the_gate_is_judged_again_before_it_is_sent(void **state)
{
    (void)state;
    struct site site;
    struct caller first = {.acquires = true}, second = {.acquires = true}, other = {.acquires = true};
    site_init(&site, WEIR_PROFILE_STRICT);
    site_start(&site);
    caller_wait(&first, &site, "http://a.test/x", WEIR_FOREVER);
    site_answer_with(&site, A, 200, "");
    assert_int_equal(caller_join(&first), 0);
    assert_string_equal(said(first.ruling), "go");
    tell(&first.permit, 200);
    pass(&site.pacing, 21 * H);
    weir_permit held = acquired(&site.pacing, "a.test", 0); /* the gate is busy for 1 s */
    assert_said(&site, "http://a.test/x", "go");            /* starts a refresh */
    caller_wait(&second, &site, "http://a.test/x", WEIR_FOREVER);
    caller_wait(&other, &site, "http://a.test/y", WEIR_FOREVER);
    tell(&held, 200);
    site_answer_with(&site, A, 200, "User-agent: *\nDisallow: /x\n");
    pass(&site.pacing, 2 * S);
    assert_int_equal(caller_join(&second), 0);
    assert_string_equal(said(second.ruling), "deny@2");
    assert_null(second.permit.pacer);
    assert_int_equal(caller_join(&other), 0); /* the denied page used no start of the gate */
    assert_string_equal(said(other.ruling), "go");
    assert_non_null(other.permit.pacer);
    assert_true(other.permit.sent);
    tell(&other.permit, 200);
    site_tear_down(&site);
}

static void acquiring_with_reports_sent_leaves_the_sending_to_the_caller(void **state)
{
    (void)state;
    static const struct page pages[] = {{A, 200, .body = "User-agent: *\nDisallow: /x\nCrawl-delay: 5\n"}};
    struct site site;
    struct target target;
    struct wr_robots_decision ruling;
    weir_permit permit;
    weir_cancel *cancel;
    site_set_up(&site);
    site_serve_all(&site, pages);
    const struct wr_url *url = url_of(&target, "http://a.test/");
    assert_int_equal(wr_policies_acquire(site.policies, url, WEIR_REPORTS_SENT, 0, NULL, &permit, &ruling), 0);
    assert_false(permit.sent);
    weir_permit_abandon(&permit);
    assert_int_equal(wr_policies_acquire(site.policies, url, 0, 0, NULL, &permit, &ruling), 0);
    assert_true(permit.sent); /* the first permit was given back */
    weir_permit_abandon(&permit);
    assert_int_equal(wr_policies_acquire(site.policies, url, 0, 4 * S - 5 * S, NULL, &permit, &ruling), WEIR_E_INVAL);
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    weir_cancel_fire(cancel);
    assert_int_equal(wr_policies_acquire(site.policies, url, 0, S, cancel, &permit, &ruling), WEIR_E_CANCELLED);
    weir_cancel_free(cancel);
    site_tear_down(&site);
}

/* ---- event loops ---- */

struct loop {
    struct site *site;
    struct wr_policy_ticket *ticket;
    atomic_int woken;
    bool frees; /* the wake frees its ticket */
};

static void wake_loop(void *context)
{
    struct loop *loop = context;
    (void)atomic_fetch_add(&loop->woken, 1);
    if (loop->frees) {
        wr_policy_ticket_free(loop->ticket);
        loop->ticket = NULL;
    }
}

static void enqueue(struct loop *loop, struct site *site, const char *url, int64_t timeout_ns)
{
    struct target target;
    loop->site = site;
    assert_int_equal(
        wr_policies_enqueue(site->policies, url_of(&target, url), timeout_ns, wake_loop, loop, &loop->ticket), 0);
}

static const char *polled(struct loop *loop, const char *path)
{
    struct wr_robots_decision ruling;
    int result = wr_policy_ticket_poll(loop->ticket, wr_span_of(path), &ruling);
    return result == 0 ? said(ruling) : weir_error_name(result);
}

static void ticket_is_woken_when_robots_is_known(void **state)
{
    (void)state;
    struct site site;
    struct loop first = {.frees = false}, second = {.frees = false}, third = {.frees = true};
    site_set_up(&site);
    enqueue(&first, &site, "http://a.test/x", WEIR_FOREVER);
    assert_int_equal(atomic_load(&site.sent), 0); /* the first poll starts the fetch */
    assert_string_equal(polled(&first, "/x"), "wait");
    enqueue(&second, &site, "http://a.test/y", WEIR_FOREVER);
    enqueue(&third, &site, "http://a.test/", WEIR_FOREVER);
    assert_string_equal(polled(&second, "/y"), "wait");
    assert_int_equal(atomic_load(&site.sent), 1);
    assert_int_equal(atomic_load(&first.woken), 0);
    site_answer_with(&site, A, 503, NULL);
    assert_int_equal(atomic_load(&first.woken), 1);
    assert_int_equal(atomic_load(&third.woken), 1);
    assert_null(third.ticket);
    int64_t wait_ns = look(&site, A).retry_ns;
    char words[40];
    (void)snprintf(words, sizeof words, "wait+%lld", (long long)(wait_ns / MS));
    assert_string_equal(polled(&first, "/x"), words);
    pass(&site.pacing, wait_ns);
    assert_string_equal(polled(&second, "/y"), "wait");
    assert_int_equal(atomic_load(&site.sent), 2);
    site_answer_with(&site, A, 200, "User-agent: *\nDisallow: /x\n");
    assert_int_equal(atomic_load(&first.woken), 2);
    assert_int_equal(atomic_load(&second.woken), 2);
    assert_string_equal(polled(&first, "/x"), "deny@2");
    assert_string_equal(polled(&first, "/y"), "go"); /* any page of the host */
    assert_string_equal(polled(&second, "/y"), "go");
    wr_policy_ticket_free(first.ticket);
    wr_policy_ticket_free(second.ticket);
    wr_policy_ticket_free(NULL);
    site_tear_down(&site);
}

static void policy_ticket_times_out_and_then_returns_known_rules(void **state)
{
    (void)state;
    struct site site;
    struct loop loop = {.frees = false};
    site_set_up(&site);
    enqueue(&loop, &site, "http://a.test/", 3 * S);
    assert_string_equal(polled(&loop, "/"), "wait+3000");
    site_answer_with(&site, A, 500, NULL);
    pass(&site.pacing, 2 * S);
    assert_string_equal(polled(&loop, "/"), "wait+1000");
    pass(&site.pacing, 1 * S);
    assert_string_equal(polled(&loop, "/"), "WEIR_E_TIMEOUT");
    pass(&site.pacing, 10 * S);
    site_serve(&site, &(struct page){A, 200, .body = ""}, 1);
    /* known rules are returned even after the deadline */
    assert_string_equal(polled(&loop, "/"), "go");
    wr_policy_ticket_free(loop.ticket);
    struct target target;
    assert_int_equal(
        wr_policies_enqueue(site.policies, url_of(&target, "http://a.test/"), -1, wake_loop, &loop, &loop.ticket),
        WEIR_E_INVAL);
    site_tear_down(&site);
}

/* K3 */
static void closing_wakes_every_ticket_and_memory_stays_until_the_last_fetch_ends(void **state)
{
    (void)state;
    struct site site;
    struct loop loops[6] = {{.frees = false}};
    site_set_up(&site);
    for (size_t i = 0; i < COUNT(loops); i++) {
        enqueue(&loops[i], &site, i % 2 == 0 ? "http://a.test/" : "http://b.test/", WEIR_FOREVER);
        assert_string_equal(polled(&loops[i], "/"), "wait");
    }
    wr_policies_free(site.policies);
    weir_pacer_free(site.pacing.pacer);
    site.pacing.pacer = NULL;
    for (size_t i = 0; i < COUNT(loops); i++) {
        assert_int_equal(atomic_load(&loops[i].woken), 1);
        assert_string_equal(polled(&loops[i], "/"), "WEIR_E_CLOSED");
        if (i == 2)
            site_answer_with(&site, A, 200, "User-agent: *\nCrawl-delay: 5\n");
        wr_policy_ticket_free(loops[i].ticket);
    }
    site_answer(&site, &(struct page){.url = B, .status = 301, .location = "http://c.test/"});
    assert_int_equal(atomic_load(&site.sent), 2); /* the redirect is not followed */
    site.policies = NULL;
    site_tear_down(&site);
}

/* ---- all calls at once ---- */

#define MESS_THREADS 8
#define MESS_STEPS (SANITIZED ? 1500 : 8000)
#define MESS_HOSTS 24

struct mess {
    struct site site;
    weir_cancel *cancel;
    uint64_t seed;
    atomic_int next, finished;
    struct wr_robots_fetch *held[4 * MESS_HOSTS];
    struct wr_rng rng; /* random responses; site.lock protects it */
    atomic_int on_wire[2 * MESS_HOSTS];
};

static size_t host_index(const struct wr_url *url)
{
    struct wr_span host = wr_url_host(url);
    return (size_t)(host.data[1] - 'a') * 2 + url->is_https;
}

static struct page any_answer(struct wr_rng *rng)
{
    static const struct page pages[] = {
        {.status = 200, .body = "User-agent: *\nDisallow: /x\nCrawl-delay: 1\n", .etag = "\"1\""},
        {.status = 200, .body = "", .cache_control = "max-age=3600"},
        {.status = 304},
        {.status = 404},
        {.status = 503},
        {.status = 429, .retry_after_ns = 30 * S},
        {.status = 0},
    };
    return pages[wr_rng_below(rng, COUNT(pages))];
}

/* Ends a fetch now or when a later one comes. Fails the test if an authority has two fetches at
 * once. */
static void mess_fetch(void *context, struct wr_robots_fetch *fetch)
{
    struct mess *mess = context;
    size_t host = host_index(&fetch->url);
    assert_int_equal(atomic_fetch_add(&mess->on_wire[host], 1), 0);
    (void)pthread_mutex_lock(&mess->site.lock);
    struct wr_robots_fetch *due = fetch;
    if (wr_rng_below(&mess->rng, 2) > 0) {
        size_t place = (size_t)wr_rng_below(&mess->rng, COUNT(mess->held));
        due = mess->held[place];
        mess->held[place] = fetch;
    }
    struct page page = any_answer(&mess->rng);
    (void)pthread_mutex_unlock(&mess->site.lock);
    if (due == NULL)
        return;
    (void)atomic_fetch_sub(&mess->on_wire[host_index(&due->url)], 1);
    end_with(due, &page);
}

/* Ends all fetches that are held. Returns their number. */
static size_t mess_flush(struct mess *mess)
{
    size_t count = 0;
    for (size_t i = 0; i < COUNT(mess->held); i++) {
        (void)pthread_mutex_lock(&mess->site.lock);
        struct wr_robots_fetch *due = mess->held[i];
        mess->held[i] = NULL;
        struct page page = any_answer(&mess->rng);
        (void)pthread_mutex_unlock(&mess->site.lock);
        if (due == NULL)
            continue;
        (void)atomic_fetch_sub(&mess->on_wire[host_index(&due->url)], 1);
        end_with(due, &page);
        count++;
    }
    return count;
}

static void mess_poll(struct mess *mess, struct wr_rng *rng, const struct wr_url *url)
{
    struct loop loop = {.site = &mess->site};
    struct wr_robots_decision ruling;
    int result = wr_policies_enqueue(mess->site.policies, url, S, wake_loop, &loop, &loop.ticket);
    if (result != 0) {
        assert_int_equal(result, WEIR_E_FULL);
        return;
    }
    for (uint64_t i = 0; i < wr_rng_below(rng, 4); i++)
        (void)wr_policy_ticket_poll(loop.ticket, wr_url_target(url), &ruling);
    wr_policy_ticket_free(loop.ticket);
}

static void mess_step(struct mess *mess, struct wr_rng *rng)
{
    struct target target;
    struct wr_robots_decision ruling;
    weir_permit permit;
    char text[40];
    (void)snprintf(text, sizeof text, "%s://%c%c.test/%s", wr_rng_below(rng, 2) > 0 ? "https" : "http", 'h',
                   (char)('a' + wr_rng_below(rng, MESS_HOSTS)), wr_rng_below(rng, 2) > 0 ? "x" : "y");
    const struct wr_url *url = url_of(&target, text);
    struct wr_policies *policies = mess->site.policies;
    switch (wr_rng_below(rng, 8)) {
    case 0:
        mess_poll(mess, rng, url);
        break;
    case 1:
        (void)wr_policies_await(policies, url, 10 * MS, mess->cancel, &ruling);
        break;
    case 2:
        if (wr_policies_acquire(policies, url, 0, 10 * MS, mess->cancel, &permit, &ruling) == 0 &&
            ruling.decision.verdict == WEIR_GO)
            tell(&permit, 200);
        break;
    case 3:
        (void)mess_flush(mess);
        break;
    case 4:
        pass(&mess->site.pacing, (int64_t)wr_rng_below(rng, 3) * 8 * H);
        break;
    default:
        (void)wr_policies_ask(policies, url, &ruling);
        break;
    }
}

static void *use_policies_at_random(void *context)
{
    struct mess *mess = context;
    struct wr_rng rng;
    wr_rng_init(&rng, mess->seed + (uint64_t)atomic_fetch_add(&mess->next, 1));
    for (int i = 0; i < MESS_STEPS; i++)
        mess_step(mess, &rng);
    (void)atomic_fetch_add(&mess->finished, 1);
    return NULL;
}

/* K1, K3, K4, L5 */
static void concurrent_asks_waits_and_evictions_never_fetch_robots_txt_twice(void **state)
{
    (void)state;
    static struct mess mess;
    pthread_t threads[MESS_THREADS];
    memset(&mess, 0, sizeof mess);
    mess.seed = weir_test_seed();
    wr_rng_init(&mess.rng, mess.seed);
    site_init(&mess.site, WEIR_PROFILE_UNLIMITED);
    mess.site.options.fetch = mess_fetch;
    mess.site.options.fetch_context = &mess;
    mess.site.options.max_hosts = MESS_HOSTS;
    site_start(&mess.site);
    assert_int_equal(weir_cancel_new(NULL, &mess.cancel), 0);
    for (int i = 0; i < MESS_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_policies_at_random, &mess), 0);
    for (int64_t until = patience_ends_at() + WEIR_MINUTE; atomic_load(&mess.finished) < MESS_THREADS;) {
        pass(&mess.site.pacing, MS); /* otherwise all threads might wait for the clock */
        keep_waiting(until);
        if (atomic_load(&mess.finished) == MESS_THREADS / 2)
            weir_cancel_fire(mess.cancel);
    }
    for (int i = 0; i < MESS_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)mess_flush(&mess);
    struct wr_policies_stats end = stats(&mess.site);
    assert_int_equal(end.waiters, 0);
    assert_int_equal(end.fetching, 0);
    assert_in_range(end.hosts, 1, MESS_HOSTS);
    assert_true(end.fetches > 100 && end.evicted > 10 && end.failures > 10);
    weir_cancel_free(mess.cancel);
    site_tear_down(&mess.site);
}

WEIR_TESTS(test(fifty_threads_asking_for_a_new_host_cause_one_fetch),
           test(readers_of_known_hosts_never_wait_for_a_fetch),
           test(robots_fetcher_is_called_unlocked_and_may_end_at_once), test(robots_redirects_fit_on_a_small_stack),
           test(waiting_threads_fetch_again_after_the_backoff), test(waiting_ends_by_deadline_cancellation_and_closing),
           test(page_that_waits_at_the_gate_is_judged_again_before_it_is_sent),
           test(acquiring_with_reports_sent_leaves_the_sending_to_the_caller),
           test(ticket_is_woken_when_robots_is_known), test(policy_ticket_times_out_and_then_returns_known_rules),
           test(closing_wakes_every_ticket_and_memory_stays_until_the_last_fetch_ends),
           test(concurrent_asks_waits_and_evictions_never_fetch_robots_txt_twice))
