/* SPDX-License-Identifier: MIT */
/* test_resolver.c - tests of the resolver, which looks names up on a bounded pool of threads (E1,
 * D3, D5). */
#include "lib/rig.h"

#include "http/net/resolver.h"
#include "lib/alloc.h"

/* A fake lookup. Names that begin with "slow" block until the test releases them. */
struct dns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int lets_go; /* number of slow lookups that may end */
    atomic_int lookups, slow_running, slow_most, slow_ended;
};

struct resolver_fixture {
    test_allocator memory;
    weir_clock *clock;
    struct dns dns;
    struct wr_resolver *resolver;
    atomic_int answers;
};

struct asked {
    struct wr_dns_query query; /* must be the first member */
    atomic_int *answers;
    atomic_int is_answered;
};

static void wait_for_release(struct dns *dns)
{
    int running = atomic_fetch_add(&dns->slow_running, 1) + 1;

    if (running > atomic_load(&dns->slow_most))
        atomic_store(&dns->slow_most, running);
    (void)pthread_mutex_lock(&dns->lock);
    while (dns->lets_go == 0)
        (void)pthread_cond_wait(&dns->changed, &dns->lock);
    dns->lets_go--;
    (void)pthread_mutex_unlock(&dns->lock);
    atomic_fetch_sub(&dns->slow_running, 1);
    atomic_fetch_add(&dns->slow_ended, 1);
}

static void release_slow(struct dns *dns, int count)
{
    (void)pthread_mutex_lock(&dns->lock);
    dns->lets_go += count;
    (void)pthread_cond_broadcast(&dns->changed);
    (void)pthread_mutex_unlock(&dns->lock);
}

static void look_up(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    struct dns *dns = context;
    struct wr_address address;

    atomic_fetch_add(&dns->lookups, 1);
    *ret_answer = (struct wr_dns_answer){.kind = WR_DNS_ABSENT};
    if (strncmp(name, "slow", 4) == 0)
        wait_for_release(dns);
    if (strncmp(name, "failed", 6) == 0)
        ret_answer->kind = WR_DNS_FAILED;
    if (strncmp(name, "absent", 6) == 0 || strncmp(name, "failed", 6) == 0)
        return;
    assert_true(wr_address_parse(wr_span_of("192.0.2.1"), &address));
    wr_dns_answer_add(ret_answer, &address);
    ret_answer->kind = WR_DNS_FOUND;
}

static void set_up(struct resolver_fixture *rig, uint32_t threads, uint32_t names_max)
{
    memset(rig, 0, sizeof *rig);
    test_allocator_init(&rig->memory);
    rig->clock = fake_clock();
    assert_int_equal(pthread_mutex_init(&rig->dns.lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&rig->dns.changed, NULL), 0);
    struct wr_resolver_options options = {.allocator = &rig->memory.allocator,
                                          .clock = rig->clock,
                                          .threads = threads,
                                          .names_max = names_max,
                                          .lookup = look_up,
                                          .lookup_context = &rig->dns};
    assert_int_equal(wr_resolver_new(&options, &rig->resolver), 0);
}

static void tear_down(struct resolver_fixture *rig)
{
    wr_resolver_free(rig->resolver);
    assert_int_equal(rig->memory.live, 0);
    weir_clock_fake_free(rig->clock);
    (void)pthread_cond_destroy(&rig->dns.changed);
    (void)pthread_mutex_destroy(&rig->dns.lock);
}

static void note_answer(struct wr_dns_query *query)
{
    struct asked *asked = (struct asked *)query;

    atomic_fetch_add(asked->answers, 1);
    atomic_store(&asked->is_answered, 1); /* now the asker may reuse it */
}

/* Returns true if the answer was ready at once. */
static bool ask(struct resolver_fixture *rig, const char *name, struct asked *ret_asked)
{
    bool is_ready;

    memset(ret_asked, 0, sizeof *ret_asked);
    ret_asked->query.on_answer = note_answer;
    ret_asked->answers = &rig->answers;
    assert_int_equal(wr_resolver_resolve(rig->resolver, wr_span_of(name), &ret_asked->query, &is_ready), 0);
    return is_ready;
}

static void ask_and_wait(struct resolver_fixture *rig, const char *name, struct asked *ret_asked)
{
    if (!ask(rig, name, ret_asked))
        test_await_number(&ret_asked->is_answered, 1);
}

/* ---- queries ---- */

static void name_is_looked_up_once_for_all_queries(void **state)
{
    struct resolver_fixture rig;
    struct asked asked[10];

    (void)state;
    set_up(&rig, 4, 0);
    for (int i = 0; i < 10; i++)
        assert_false(ask(&rig, "slow.example", &asked[i]));
    test_await_number(&rig.dns.lookups, 1);
    release_slow(&rig.dns, 1);
    test_await_number(&rig.answers, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(asked[i].query.answer.kind, WR_DNS_FOUND);
        assert_int_equal(asked[i].query.answer.count, 1);
    }
    assert_true(ask(&rig, "slow.example", &asked[0]));
    assert_int_equal(asked[0].query.answer.count, 1);
    assert_int_equal(rig.dns.lookups, 1);
    tear_down(&rig);
}

static void answers_are_kept_for_their_time(void **state)
{
    static const struct {
        const char *name;
        enum wr_dns_answer_kind kind;
        int64_t kept_ns;
    } rows[] = {
        {"found.example", WR_DNS_FOUND, 5 * WEIR_MINUTE},
        {"absent.example", WR_DNS_ABSENT, 30 * WEIR_SECOND},
        {"failed.example", WR_DNS_FAILED, 5 * WEIR_SECOND},
    };
    struct resolver_fixture rig;
    struct asked asked;

    (void)state;
    set_up(&rig, 2, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ask_and_wait(&rig, rows[i].name, &asked);
        assert_int_equal(asked.query.answer.kind, rows[i].kind);
        advance(rig.clock, rows[i].kept_ns - 1);
        assert_true(ask(&rig, rows[i].name, &asked));
        assert_int_equal(asked.query.answer.kind, rows[i].kind);
        advance(rig.clock, 1);
        int before = rig.dns.lookups;
        ask_and_wait(&rig, rows[i].name, &asked);
        assert_int_equal(rig.dns.lookups, before + 1);
    }
    tear_down(&rig);
}

static void slow_names_use_half_of_the_pool_and_delay_no_others(void **state)
{
    struct resolver_fixture rig;
    struct asked slow[6], quick;
    char name[32];

    (void)state;
    set_up(&rig, 4, 0);
    assert_false(ask(&rig, "slow0.here.example", &slow[0]));
    assert_false(ask(&rig, "slow1.here.example", &slow[1]));
    test_await_number(&rig.dns.slow_running, 2);
    /* two young lookups fill the pool's young half */
    assert_false(ask(&rig, "quick0.example", &quick));
    advance(rig.clock, WEIR_SECOND); /* now they are slow, and so is their domain */
    test_await_number(&quick.is_answered, 1);
    for (int i = 2; i < 6; i++) {
        snprintf(name, sizeof name, "slow%d.here.example", i);
        assert_false(ask(&rig, name, &slow[i]));
    }
    for (int i = 1; i < 20; i++) {
        snprintf(name, sizeof name, "quick%d.there.example", i);
        ask_and_wait(&rig, name, &quick);
    }
    assert_int_equal(rig.dns.slow_running, 2);
    release_slow(&rig.dns, 6);
    for (int i = 0; i < 6; i++)
        test_await_number(&slow[i].is_answered, 1);
    assert_int_equal(rig.dns.slow_most, 2);
    tear_down(&rig);
}

static void a_quick_answer_clears_a_slow_domain(void **state)
{
    struct resolver_fixture rig;
    struct asked slow[2], quick[2];

    (void)state;
    set_up(&rig, 2, 0); /* one thread for young lookups, one for slow ones */
    assert_false(ask(&rig, "slow.here.example", &slow[0]));
    test_await_number(&rig.dns.slow_running, 1);
    advance(rig.clock, WEIR_SECOND);
    /* its domain is slow, so it waits for the slow thread */
    assert_false(ask(&rig, "quick0.here.example", &quick[0]));
    ask_and_wait(&rig, "quick1.there.example", &quick[1]);
    assert_int_equal(quick[0].is_answered, 0);
    release_slow(&rig.dns, 1);
    test_await_number(&quick[0].is_answered, 1);
    assert_false(ask(&rig, "slow1.there.example", &slow[0]));
    test_await_number(&rig.dns.slow_running, 1);
    advance(rig.clock, WEIR_SECOND);
    ask_and_wait(&rig, "quick2.here.example", &quick[0]); /* its domain is no longer slow */
    release_slow(&rig.dns, 1);
    test_await_number(&slow[0].is_answered, 1);
    tear_down(&rig);
}

static void a_withdrawn_question_is_not_answered(void **state)
{
    struct resolver_fixture rig;
    struct asked slow[2], waiting;
    struct wr_resolver_stats stats;

    (void)state;
    set_up(&rig, 2, 0);
    assert_false(ask(&rig, "slow.example", &slow[0]));
    assert_false(ask(&rig, "slow.example", &slow[1]));
    test_await_number(&rig.dns.slow_running, 1);
    assert_false(ask(&rig, "waits.example", &waiting));
    wr_resolver_cancel(rig.resolver, &waiting.query);
    wr_resolver_cancel(rig.resolver, &waiting.query);
    wr_resolver_cancel(rig.resolver, &slow[0].query);
    wr_resolver_stats(rig.resolver, &stats);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.names, 1);
    release_slow(&rig.dns, 1);
    test_await_number(&slow[1].is_answered, 1);
    assert_int_equal(slow[0].is_answered, 0);
    assert_int_equal(rig.answers, 1);
    assert_int_equal(rig.dns.lookups, 1);
    tear_down(&rig);
}

static void resolver_cache_is_bounded_and_evicts_the_least_used(void **state)
{
    struct resolver_fixture rig;
    struct asked asked, slow[4];
    struct wr_resolver_stats stats;
    bool is_ready;
    char name[32];

    (void)state;
    set_up(&rig, 2, 4);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "n%d.example", i);
        ask_and_wait(&rig, name, &asked);
        ask_and_wait(&rig, "n0.example", &asked);
        wr_resolver_stats(rig.resolver, &stats);
        assert_true(stats.names <= 4);
    }
    assert_int_equal(rig.dns.lookups, 10); /* n0 was used often and stayed in the cache */
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "slow%d.example", i);
        assert_false(ask(&rig, name, &slow[i]));
    }
    asked.query.name = NULL;
    assert_int_equal(wr_resolver_resolve(rig.resolver, wr_span_of("n1.example"), &asked.query, &is_ready), WEIR_E_FULL);
    release_slow(&rig.dns, 4);
    advance(rig.clock, WEIR_SECOND);
    for (int i = 0; i < 4; i++)
        test_await_number(&slow[i].is_answered, 1);
    ask_and_wait(&rig, "n1.example", &asked);
    tear_down(&rig);
}

static void impossible_names_are_refused_by_the_resolver(void **state)
{
    struct resolver_fixture rig;
    struct wr_dns_query query = {.on_answer = note_answer};
    char name[256];
    bool is_ready;

    (void)state;
    set_up(&rig, 2, 0);
    memset(name, 'a', sizeof name);
    assert_int_equal(wr_resolver_resolve(rig.resolver, (struct wr_span){name, 255}, &query, &is_ready), WEIR_E_INVAL);
    assert_int_equal(wr_resolver_resolve(rig.resolver, (struct wr_span){"a\0b", 3}, &query, &is_ready), WEIR_E_INVAL);
    assert_int_equal(wr_resolver_resolve(rig.resolver, (struct wr_span){"", 0}, &query, &is_ready), WEIR_E_INVAL);
    tear_down(&rig);
}

static void invalid_resolver_options_are_refused(void **state)
{
    static const struct wr_resolver_options bad[] = {
        {.threads = 1},
        {.threads = 1025},
        {.threads = 8, .names_max = 7},
        {.found_ns = -1},
        {.slow_ns = WEIR_DURATION_MAX + 1},
    };
    struct wr_resolver *resolver;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(wr_resolver_new(&bad[i], &resolver), WEIR_E_INVAL);
}

static void an_answer_keeps_a_few_addresses_of_each_family(void **state)
{
    struct wr_dns_answer answer = {.kind = WR_DNS_FOUND};
    struct wr_address v4 = {.bytes = {[10] = 0xff, [11] = 0xff}}, v6 = {.bytes = {0x20}};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        v4.bytes[15] = v6.bytes[15] = (uint8_t)i;
        if (i % 100 == 99)
            wr_dns_answer_add(&answer, &v6);
        wr_dns_answer_add(&answer, &v4);
    }
    assert_int_equal(answer.count, WR_DNS_ADDRESSES_MAX);
    assert_int_equal(answer.list[3].bytes[15], 3);
    assert_int_equal(answer.list[4].bytes[0], 0x20);
}

/* The resolver reports the failure of its n-th allocation and works afterwards. */
static void resolver_allocation_failure_is_an_error_and_passes(void **state)
{
    struct resolver_fixture rig;
    struct asked asked;
    bool is_ready;
    int refused = 0;

    (void)state;
    for (long n = 1; n < 6; n++) {
        set_up(&rig, 2, 0);
        memset(&asked, 0, sizeof asked);
        asked.query.on_answer = note_answer;
        asked.answers = &rig.answers;
        rig.memory.fail_at = n;
        int error = wr_resolver_resolve(rig.resolver, wr_span_of("a.example"), &asked.query, &is_ready);
        refused += error < 0;
        if (error < 0) {
            rig.memory.fail_at = 0;
            ask_and_wait(&rig, "a.example", &asked);
        } else if (!is_ready) {
            test_await_number(&asked.is_answered, 1);
        }
        tear_down(&rig);
    }
    assert_true(refused >= 2);
}

static void freeing_a_resolver_does_not_wait_for_lookups(void **state)
{
    struct resolver_fixture rig;
    struct asked slow;

    (void)state;
    set_up(&rig, 2, 0);
    assert_false(ask(&rig, "slow.example", &slow));
    test_await_number(&rig.dns.slow_running, 1);
    wr_resolver_cancel(rig.resolver, &slow.query);
    wr_resolver_free(rig.resolver);
    rig.resolver = NULL;
    assert_int_equal(rig.memory.live, 0);
    assert_int_equal(rig.dns.slow_running, 1);
    release_slow(&rig.dns, 1);
    test_await_number(&rig.dns.slow_ended, 1);
    tear_down(&rig);
}

/* ---- threads ---- */

#define ASKERS 4
#define ROUNDS 500

static void *ask_and_withdraw(void *context)
{
    struct resolver_fixture *rig = context;
    struct asked asked;
    char name[32];

    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "n%d.example", i % 50);
        if (ask(rig, name, &asked))
            continue;
        if (i % 3 == 0)
            /* from here on `asked` is not used by the resolver */
            wr_resolver_cancel(rig->resolver, &asked.query);
        else
            test_await_number(&asked.is_answered, 1);
    }
    return NULL;
}

static void withdrawn_query_is_never_answered_under_races(void **state)
{
    struct resolver_fixture rig;
    pthread_t threads[ASKERS];

    (void)state;
    set_up(&rig, 4, 20);
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_and_withdraw, &rig), 0);
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    tear_down(&rig);
}

static void system_lookup_parses_literal_addresses(void **state)
{
    struct wr_dns_answer answer;

    (void)state;
    wr_lookup_system(NULL, "192.0.2.7", &answer);
    assert_int_equal(answer.kind, WR_DNS_FOUND);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.list[0].bytes[15], 7);
    assert_true(wr_address_is_v4(&answer.list[0]));
    wr_lookup_system(NULL, "2001:db8::7", &answer);
    assert_int_equal(answer.count, 1);
    assert_false(wr_address_is_v4(&answer.list[0]));
}

WEIR_TESTS(test(name_is_looked_up_once_for_all_queries), test(answers_are_kept_for_their_time),
           test(slow_names_use_half_of_the_pool_and_delay_no_others), test(a_quick_answer_clears_a_slow_domain),
           test(a_withdrawn_question_is_not_answered), test(resolver_cache_is_bounded_and_evicts_the_least_used),
           test(impossible_names_are_refused_by_the_resolver), test(invalid_resolver_options_are_refused),
           test(an_answer_keeps_a_few_addresses_of_each_family),
           test(resolver_allocation_failure_is_an_error_and_passes), test(freeing_a_resolver_does_not_wait_for_lookups),
           test(withdrawn_query_is_never_answered_under_races), test(system_lookup_parses_literal_addresses))
