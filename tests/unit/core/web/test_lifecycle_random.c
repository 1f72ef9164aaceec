/* SPDX-License-Identifier: MIT */
/* test_lifecycle_random.c - runs the lifecycle of one robots.txt with random events in any order
 * (V3, K4). */
#include "lib/test.h"

#include "base/rng.h"
#include "core/web/robots/lifecycle.h"

#define S WEIR_SECOND
#define M WEIR_MINUTE
#define H WEIR_HOUR
#define D WEIR_DAY
#define COUNT(rows) (sizeof rows / sizeof rows[0])
#define T0 (100 * D)
#define UNSAID INT64_C(-1)

/* State of an observer that sees only events and actions. */
struct onlooker {
    bool fetching, was_conditional;
    bool knows;       /* a 2xx or 4xx arrived, or a valid 304 */
    int64_t known_at; /* start of the fetch that got it */
    int64_t started_at;
    int64_t failed_at; /* -1: the last fetch succeeded */
    int hops;
};

static void check_action(const struct onlooker *seen, const struct wr_robots_lifecycle_options *options,
                         enum wr_robots_event_kind kind, struct wr_robots_action action, int64_t now)
{
    bool opens = action.holds == WR_ROBOTS_ACCESS_RULES || action.holds == WR_ROBOTS_ACCESS_ALLOW;
    int64_t age_ns = now - seen->known_at;
    if (options->on_error != WR_ROBOTS_ON_ERROR_ALLOW && opens) /* V3 */
        assert_true(seen->knows && age_ns < (seen->failed_at >= 0 ? 30 * D : 24 * H));
    if (!seen->knows && seen->failed_at < 0)
        assert_int_equal(action.holds, WR_ROBOTS_ACCESS_WAIT);
    if (action.holds == WR_ROBOTS_ACCESS_RULES)
        assert_true(seen->knows);
    if (action.fetch == WR_ROBOTS_FETCH_PLAIN || action.fetch == WR_ROBOTS_FETCH_CONDITIONAL) {
        assert_int_equal(kind, WR_ROBOTS_EVENT_WANTED);
        assert_false(seen->fetching);
        if (seen->failed_at >= 0) /* no fetches in a tight loop */
            assert_true(now - seen->failed_at >= 5 * S / 2);
        else if (seen->knows)
            assert_true(age_ns >= H);
    }
    /* bounded, and in the future */
    if (action.holds == WR_ROBOTS_ACCESS_WAIT && action.until != WEIR_FOREVER)
        assert_true(action.until > now && action.until - now <= 24 * H);
    if (action.until == WEIR_FOREVER)
        assert_true(seen->fetching || action.fetch == WR_ROBOTS_FETCH_PLAIN ||
                    action.fetch == WR_ROBOTS_FETCH_CONDITIONAL || kind != WR_ROBOTS_EVENT_WANTED);
}

static void watch(struct onlooker *seen, const struct wr_robots_event *event, struct wr_robots_action action,
                  int64_t now)
{
    if (event->kind == WR_ROBOTS_EVENT_STARTED && !seen->fetching) {
        seen->fetching = true;
        seen->started_at = now;
        seen->hops = 0;
    } else if (event->kind >= WR_ROBOTS_EVENT_ANSWERED && event->kind <= WR_ROBOTS_EVENT_FAILED && seen->fetching) {
        if (action.fetch == WR_ROBOTS_FETCH_REDIRECT) {
            assert_true(++seen->hops <= 5);
            return;
        }
        seen->fetching = false;
        bool same = event->status == 304 && seen->was_conditional && seen->hops == 0;
        assert_true(action.copy != WR_ROBOTS_COPY_CONFIRM || same);
        bool good = event->kind == WR_ROBOTS_EVENT_ANSWERED && action.copy != WR_ROBOTS_COPY_KEEP;
        seen->failed_at = good ? -1 : now;
        seen->knows |= good;
        seen->known_at = good ? seen->started_at : seen->known_at;
    } else if (event->kind == WR_ROBOTS_EVENT_LOADED && !seen->knows && !seen->fetching && seen->failed_at < 0) {
        seen->knows = true;
        seen->known_at = event->age_ns >= 0 ? now - event->age_ns : now - 30 * D;
    }
}

static struct wr_robots_event any_event(struct wr_rng *rng)
{
    static const int statuses[] = {200, 200, 200, 304, 404, 403, 429, 500, 503, 301, 302, 308, 0, 100, 999};
    static const int64_t spans[] = {-1, 0, 1, 10 * S, H, 20 * H, 2 * D, 40 * D, WEIR_DURATION_MAX, INT64_MAX};
    static const enum wr_robots_event_kind kinds[] = {
        WR_ROBOTS_EVENT_WANTED,   WR_ROBOTS_EVENT_WANTED, WR_ROBOTS_EVENT_STARTED, WR_ROBOTS_EVENT_ANSWERED,
        WR_ROBOTS_EVENT_ANSWERED, WR_ROBOTS_EVENT_FAILED, WR_ROBOTS_EVENT_LOADED};
    return (struct wr_robots_event){.kind = kinds[wr_rng_below(rng, COUNT(kinds))],
                                    .status = statuses[wr_rng_below(rng, COUNT(statuses))],
                                    .leads = wr_rng_below(rng, 4) > 0,
                                    .has_validators = wr_rng_below(rng, 2) > 0,
                                    .has_rules = wr_rng_below(rng, 2) > 0,
                                    .max_age_ns = spans[wr_rng_below(rng, COUNT(spans))],
                                    .retry_after_ns = spans[wr_rng_below(rng, COUNT(spans))],
                                    .age_ns = spans[wr_rng_below(rng, 7)],
                                    .unit = wr_rng_unit(rng)};
}

/* V3, K4: with events in any order, no page is allowed too early, one fetch is in flight, and
 * fetches are not repeated in a loop. */
static void random_robots_events_never_allow_unknown_pages_or_fetch_in_a_loop(void **state)
{
    (void)state;
    static const int64_t steps[] = {0, 0, 1, S, 3 * S, 10 * S, 10 * M, H, 5 * H, 21 * H, 10 * D};
    uint64_t seed = weir_test_seed();
    for (uint64_t run = 0; run < 20000; run++) {
        struct wr_rng rng;
        wr_rng_init(&rng, seed + run);
        struct wr_robots_lifecycle life = {.fetching = false};
        struct wr_robots_lifecycle_options options = {.on_error = (enum wr_robots_on_error)(run % 3)};
        assert_int_equal(wr_robots_lifecycle_options_check(&options, &options), 0);
        struct onlooker seen = {.failed_at = -1};
        int64_t now = 100 * D;
        for (int i = 0; i < 60; i++) {
            now += steps[wr_rng_below(&rng, COUNT(steps))];
            struct wr_robots_event event = any_event(&rng);
            bool conditional = !seen.fetching && life.has_validators;
            struct wr_robots_action action = wr_robots_lifecycle_step(&life, &options, &event, now);
            if (event.kind == WR_ROBOTS_EVENT_STARTED && !seen.fetching)
                seen.was_conditional = conditional;
            watch(&seen, &event, action, now);
            assert_true(wr_robots_lifecycle_ok(&life, &options));
            assert_int_equal(life.fetching, seen.fetching);
            check_action(&seen, &options, event.kind, action, now);
        }
    }
}

/* M13, V3: rules that were dropped for lack of memory allow nothing, in any mode. Neither does a
 * 304 in flight, or lack of memory for new rules. A time that the server named is kept. */
static void dropped_robots_rules_allow_nothing_until_they_are_refetched(void **state)
{
    static const enum wr_robots_on_error modes[] = {WR_ROBOTS_ON_ERROR_RFC9309, WR_ROBOTS_ON_ERROR_ALLOW,
                                                    WR_ROBOTS_ON_ERROR_DENY};
    const struct wr_robots_event wanted = {.kind = WR_ROBOTS_EVENT_WANTED}, started = {.kind = WR_ROBOTS_EVENT_STARTED},
                                 dropped = {.kind = WR_ROBOTS_EVENT_DROPPED};
    (void)state;
    for (size_t i = 0; i < COUNT(modes); i++)
        for (int was_failing = 0; was_failing < 2; was_failing++) {
            struct wr_robots_lifecycle life = {.fetching = false};
            struct wr_robots_lifecycle_options given = {.on_error = modes[i]}, options;
            struct wr_robots_event event = {.kind = WR_ROBOTS_EVENT_ANSWERED,
                                            .status = 200,
                                            .has_validators = true,
                                            .max_age_ns = UNSAID,
                                            .retry_after_ns = UNSAID};
            int64_t now = T0;
            assert_int_equal(wr_robots_lifecycle_options_check(&given, &options), 0);
            (void)wr_robots_lifecycle_step(&life, &options, &started, now);
            assert_int_equal(wr_robots_lifecycle_step(&life, &options, &event, now).holds, WR_ROBOTS_ACCESS_RULES);
            now += 23 * H;
            assert_int_equal(wr_robots_lifecycle_step(&life, &options, &wanted, now).fetch,
                             WR_ROBOTS_FETCH_CONDITIONAL);
            (void)wr_robots_lifecycle_step(&life, &options, &started, now);
            event.status = was_failing ? 503 : 304;
            event.retry_after_ns = was_failing ? 2 * H : UNSAID;
            if (was_failing)
                assert_int_equal(wr_robots_lifecycle_step(&life, &options, &event, now).holds, WR_ROBOTS_ACCESS_RULES);
            assert_int_equal(wr_robots_lifecycle_step(&life, &options, &dropped, now).holds, WR_ROBOTS_ACCESS_WAIT);
            assert_int_equal(wr_robots_lifecycle_may_forget(&life, now), false);
            if (!was_failing)
                assert_int_equal(wr_robots_lifecycle_step(&life, &options, &event, now).copy, WR_ROBOTS_COPY_KEEP);
            now += was_failing ? 2 * H : H;
            assert_int_equal(wr_robots_lifecycle_step(&life, &options, &wanted, now).fetch, WR_ROBOTS_FETCH_PLAIN);
            (void)wr_robots_lifecycle_step(&life, &options, &started, now);
            event =
                (struct wr_robots_event){.kind = WR_ROBOTS_EVENT_FAILED, .lacks_room = true, .retry_after_ns = UNSAID};
            assert_int_equal(wr_robots_lifecycle_step(&life, &options, &event, now).holds, WR_ROBOTS_ACCESS_WAIT);
            assert_true(wr_robots_lifecycle_ok(&life, &options));
        }
}

WEIR_TESTS(test(dropped_robots_rules_allow_nothing_until_they_are_refetched),
           test(random_robots_events_never_allow_unknown_pages_or_fetch_in_a_loop))
