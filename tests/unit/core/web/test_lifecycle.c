/* SPDX-License-Identifier: MIT */
/* test_lifecycle.c - tests the lifecycle of one robots.txt over time (R11, B6 to B9, V3). */
#include "lib/alloc.h"
#include "lib/test.h"

#include "core/web/robots/lifecycle.h"

#define S WEIR_SECOND
#define M WEIR_MINUTE
#define H WEIR_HOUR
#define D WEIR_DAY
#define T0 (100 * D)
#define COUNT(rows) (sizeof rows / sizeof rows[0])
#define UNSAID INT64_C(-1)

/* ---- timelines ---- */

enum what {
    ASK,    /* a caller wants a page */
    START,  /* the requested fetch starts */
    GOT,    /* a response arrives */
    GOT_ON, /* a response arrives with a Location that can be followed */
    LOST,   /* the fetch fails without a response */
};

/* Expected actions are written as three letters. Fetch: f (plain), c (conditional), o (follow the
 * redirect). Copy: s (same as before), r (read the new one), d (drop). Pages: w (wait), r (rules),
 * a (allow), d (deny). '.' means none, or keep. */
struct moment {
    int64_t at; /* time since T0 */
    enum what what;
    int status;
    const char *expected;
    int64_t wait_ns; /* for w: the wait; -1: until the fetch ends */
};

struct world {
    struct wr_robots_lifecycle life;
    struct wr_robots_lifecycle_options options;
    int64_t max_age_ns, retry_after_ns; /* values in every response */
    bool has_validators;
    double unit; /* jitter; 1: no jitter */
};

static struct world world_of(enum wr_robots_on_error mode)
{
    struct world world = {.max_age_ns = UNSAID, .retry_after_ns = UNSAID, .has_validators = true, .unit = 1};
    struct wr_robots_lifecycle_options options = {.on_error = mode};
    assert_int_equal(wr_robots_lifecycle_options_check(&options, &world.options), 0);
    return world;
}

static struct wr_robots_action tell(struct world *world, enum what what, int status, int64_t at)
{
    static const enum wr_robots_event_kind kinds[] = {WR_ROBOTS_EVENT_WANTED, WR_ROBOTS_EVENT_STARTED,
                                                      WR_ROBOTS_EVENT_ANSWERED, WR_ROBOTS_EVENT_ANSWERED,
                                                      WR_ROBOTS_EVENT_FAILED};
    struct wr_robots_event event = {.kind = kinds[what],
                                    .status = status,
                                    .leads = what == GOT_ON,
                                    .has_validators = world->has_validators,
                                    .max_age_ns = world->max_age_ns,
                                    .retry_after_ns = world->retry_after_ns,
                                    .unit = world->unit};
    struct wr_robots_action seen = wr_robots_lifecycle_preview(&world->life, &event);
    struct wr_robots_action action = wr_robots_lifecycle_step(&world->life, &world->options, &event, T0 + at);
    assert_true(wr_robots_lifecycle_ok(&world->life, &world->options));
    if (event.kind == WR_ROBOTS_EVENT_ANSWERED) {
        assert_int_equal(seen.fetch, action.fetch);
        assert_int_equal(seen.copy, action.copy);
    }
    return action;
}

static void live(struct world *world, const struct moment *moments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct moment *moment = &moments[i];
        struct wr_robots_action action = tell(world, moment->what, moment->status, moment->at);
        char got[4] = {".fco"[action.fetch], ".srd"[action.copy], "wrad"[action.holds], '\0'};
        int64_t wait_ns = action.until == WEIR_FOREVER ? -1 : action.until - (T0 + moment->at);
        if (strcmp(got, moment->expected) != 0 || wait_ns != moment->wait_ns)
            fail_msg("moment %zu: %s and %lld s, and not %s and %lld s", i, got, (long long)(wait_ns / S),
                     moment->expected, (long long)(moment->wait_ns / S));
    }
}

#define live_all(world, moments) live(world, moments, COUNT(moments))

static void page_waits_for_robots_txt_which_is_fetched_once(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, ASK, 0, "f.w", -1},       {0, ASK, 0, "f.w", -1}, /* the fetch has not started */
        {1 * S, START, 0, "..w", -1}, {2 * S, ASK, 0, "..w", -1},   {2 * S, START, 0, "..w", -1},
        {60 * S, ASK, 0, "..w", -1},  {61 * S, GOT, 200, ".rr", 0}, {61 * S, ASK, 0, "..r", 0},
        {61 * S, GOT, 500, "..r", 0}, /* a fetch ends only once */
        {61 * S, LOST, 0, "..r", 0},  {62 * S, ASK, 0, "..r", 0},
    };
    for (enum wr_robots_on_error mode = WR_ROBOTS_ON_ERROR_RFC9309; mode <= WR_ROBOTS_ON_ERROR_DENY; mode++) {
        struct world world = world_of(mode);
        assert_int_equal(wr_robots_lifecycle_state(&world.life, T0), WR_ROBOTS_STATE_UNKNOWN);
        live_all(&world, moments);
        assert_int_equal(wr_robots_lifecycle_state(&world.life, T0 + 62 * S), WR_ROBOTS_STATE_FRESH);
    }
}

/* B9; RFC 9309 2.4: a copy is not used for more than 24 hours. */
static void robots_copy_is_refreshed_in_use_and_not_used_over_a_day(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},       {5 * S, GOT, 200, ".rr", 0},
        {21 * H - 1, ASK, 0, "..r", 0}, {21 * H, ASK, 0, "c.r", 0}, /* age since START */
        {21 * H, START, 0, "..r", 0},   {24 * H - 1, ASK, 0, "..r", 0},
        {24 * H, ASK, 0, "..w", -1},    {25 * H, GOT, 200, ".rr", 0}, /* the copy is as of 21 h */
        {42 * H - 1, ASK, 0, "..r", 0}, {42 * H, ASK, 0, "c.r", 0},
        {100 * H, ASK, 0, "c.w", -1}, /* long without requests */
        {100 * H, START, 0, "..w", -1}, {100 * H, GOT, 304, ".sr", 0},
        {120 * H, ASK, 0, "..r", 0},    {121 * H, ASK, 0, "c.r", 0},
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    live_all(&world, moments);
    assert_int_equal(wr_robots_lifecycle_state(&world.life, T0 + 120 * H), WR_ROBOTS_STATE_FRESH);
    assert_int_equal(wr_robots_lifecycle_state(&world.life, T0 + 121 * H), WR_ROBOTS_STATE_STALE);
}

static void max_age_moves_the_refresh_within_bounds(void **state)
{
    static const struct {
        int64_t max_age_ns, refresh_ns;
    } rows[] = {
        {UNSAID, 21 * H},
        {0, H},
        {60 * S, H},
        {2 * H, 2 * H},
        {21 * H, 21 * H},
        {30 * D, 21 * H},
        {WEIR_DURATION_MAX, 21 * H},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
        world.max_age_ns = rows[i].max_age_ns;
        const struct moment moments[] = {
            {0, START, 0, "..w", -1},
            {0, GOT, 200, ".rr", 0},
            {rows[i].refresh_ns - 1, ASK, 0, "..r", 0},
            {rows[i].refresh_ns, ASK, 0, "c.r", 0},
            {24 * H - 1, ASK, 0, "c.r", 0},
            {24 * H, ASK, 0, "c.w", -1},
        };
        live_all(&world, moments);
    }
}

static void robots_txt_without_validators_is_fetched_unconditionally(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},     {0, GOT, 200, ".rr", 0},
        {21 * H, ASK, 0, "f.r", 0},   {21 * H, START, 0, "..r", 0},
        {21 * H, GOT, 304, "..r", 0}, /* a 304 to an unconditional fetch is a failure */
        {21 * H, ASK, 0, "..r", 0},   {21 * H + 5 * S, ASK, 0, "f.r", 0},
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    world.has_validators = false;
    live_all(&world, moments);
    assert_int_equal(world.life.failures, 1);
}

/* ---- failures ---- */

/* R11, B6, V3: the three modes differ only in the decision for pages. */
static void failed_robots_txt_is_retried_while_pages_wait(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},        {0, GOT, 503, "..w", 5 * S},      {4 * S, ASK, 0, "..w", 1 * S},
        {5 * S, ASK, 0, "f.w", -1},      {5 * S, START, 0, "..w", -1},     {5 * S, ASK, 0, "..w", -1},
        {6 * S, LOST, 0, "..w", 10 * S}, {16 * S - 1, ASK, 0, "..w", 1},   {16 * S, ASK, 0, "f.w", -1},
        {1 * H, START, 0, "..w", -1},    {1 * H, GOT, 500, "..w", 20 * S}, {2 * H, START, 0, "..w", -1},
        {2 * H, GOT, 200, ".rr", 0},     {2 * H, ASK, 0, "..r", 0},
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    live_all(&world, moments);
}

static void pages_do_not_wait_for_failed_robots_txt_in_allow_and_deny_mode(void **state)
{
    (void)state;
    for (enum wr_robots_on_error mode = WR_ROBOTS_ON_ERROR_ALLOW; mode <= WR_ROBOTS_ON_ERROR_DENY; mode++) {
        bool allow = mode == WR_ROBOTS_ON_ERROR_ALLOW;
        const char *kept = allow ? "..a" : "..d", *asked = allow ? "f.a" : "f.d";
        const struct moment moments[] = {
            {0, ASK, 0, "f.w", -1}, /* pages wait for the first response */
            {0, START, 0, "..w", -1},   {0, LOST, 0, kept, 0},       {0, ASK, 0, kept, 0},
            {5 * S, ASK, 0, asked, 0},  {5 * S, START, 0, kept, 0},  {5 * S, GOT, 500, kept, 0},
            {15 * S, ASK, 0, asked, 0}, {15 * S, START, 0, kept, 0}, {15 * S, GOT, 200, ".rr", 0},
        };
        struct world world = world_of(mode);
        live_all(&world, moments);
    }
}

/* B6: an old copy may be used. The last rules of the host take precedence over the mode. */
static void old_robots_copy_is_used_for_thirty_days_while_fetches_fail(void **state)
{
    static const char *const at_last[] = {"f.w", "f.a", "f.d"};
    (void)state;
    for (enum wr_robots_on_error mode = WR_ROBOTS_ON_ERROR_RFC9309; mode <= WR_ROBOTS_ON_ERROR_DENY; mode++) {
        const struct moment moments[] = {
            {0, START, 0, "..w", -1},
            {0, GOT, 200, ".rr", 0},
            {21 * H, START, 0, "..r", 0},
            {24 * H, ASK, 0, "..w", -1},
            {25 * H, LOST, 0, "..r", 0},
            {25 * H, ASK, 0, "..r", 0},
            {25 * H + 5 * S, ASK, 0, "f.r", 0},
            {30 * D - 1, ASK, 0, "f.r", 0},
            {30 * D, ASK, 0, at_last[mode], mode == WR_ROBOTS_ON_ERROR_RFC9309 ? -1 : 0},
        };
        struct world world = world_of(mode);
        world.has_validators = false;
        live_all(&world, moments);
        assert_int_equal(wr_robots_lifecycle_state(&world.life, T0 + 25 * H), WR_ROBOTS_STATE_FAILING);
    }
}

/* B7: after a 429 pages wait in every mode, for as long as the server states. */
static void robots_txt_answered_by_429_is_not_absent(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},   {0, GOT, 429, "..w", 2 * M},  {2 * M - 1, ASK, 0, "..w", 1},
        {2 * M, ASK, 0, "f.w", -1}, {2 * M, START, 0, "..w", -1}, {2 * M, GOT, 404, ".da", 0},
    };
    for (enum wr_robots_on_error mode = WR_ROBOTS_ON_ERROR_RFC9309; mode <= WR_ROBOTS_ON_ERROR_DENY; mode++) {
        struct world world = world_of(mode);
        world.retry_after_ns = 2 * M;
        live_all(&world, moments);
    }
}

static void retry_after_is_obeyed_up_to_a_day_and_never_shortens_the_backoff(void **state)
{
    static const struct {
        int status;
        int64_t retry_after_ns, wait_ns;
    } rows[] = {
        {503, UNSAID, 5 * S},
        {503, 0, 5 * S},
        {503, 1 * S, 5 * S},
        {503, 10 * M, 10 * M},
        {429, 3 * H, 3 * H},
        {429, 400 * D, 24 * H},
        {429, WEIR_DURATION_MAX, 24 * H},
        {500, INT64_MAX, 24 * H},
        {429, INT64_MIN, 5 * S},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
        world.retry_after_ns = rows[i].retry_after_ns;
        const struct moment moments[] = {{0, START, 0, "..w", -1}, {0, GOT, rows[i].status, "..w", rows[i].wait_ns}};
        live_all(&world, moments);
    }
}

static void backoff_doubles_up_to_a_quarter_of_an_hour_and_is_never_short(void **state)
{
    static const int64_t longest[] = {5 * S, 10 * S, 20 * S, 40 * S, 80 * S, 160 * S, 320 * S, 640 * S, 15 * M, 15 * M};
    static const double units[] = {0, 0.25, 0.5, 0.999999};
    (void)state;
    for (size_t u = 0; u < COUNT(units); u++) {
        struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
        world.unit = units[u];
        int64_t at = 0;
        for (size_t i = 0; i < 10000; i++) {
            int64_t most = longest[i < COUNT(longest) ? i : COUNT(longest) - 1];
            (void)tell(&world, START, 0, at);
            int64_t wait_ns = tell(&world, LOST, 0, at).until - (T0 + at);
            assert_in_range(wait_ns, most / 2, most);
            double jitter_ns = (double)(wait_ns - most / 2) - units[u] * (double)most / 2;
            assert_true(jitter_ns >= -1 && jitter_ns <= 1);
            at += wait_ns;
        }
    }
}

/* ---- meaning of statuses ---- */

/* B7, RFC 9309 2.3.1 */
static void status_of_robots_txt_decides_whether_there_are_rules(void **state)
{
    static const struct {
        int status;
        const char *expected;
    } rows[] = {
        {200, ".rr"}, {204, ".rr"}, {206, "..w"}, {299, ".rr"}, {400, ".da"}, {401, ".da"}, {403, ".da"}, {404, ".da"},
        {408, ".da"}, {410, ".da"}, {451, ".da"}, {499, ".da"}, {429, "..w"}, {500, "..w"}, {502, "..w"}, {503, "..w"},
        {504, "..w"}, {599, "..w"}, {304, "..w"}, {300, "..w"}, {100, "..w"}, {0, "..w"},   {199, "..w"}, {600, "..w"},
        {999, "..w"}, {-1, "..w"},  {301, ".da"}, {302, ".da"}, {308, ".da"}, /* no target */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
        bool waits = rows[i].expected[2] == 'w';
        const struct moment moments[] = {{0, START, 0, "..w", -1},
                                         {0, GOT, rows[i].status, rows[i].expected, waits ? 5 * S : 0}};
        live_all(&world, moments);
    }
}

/* A robots.txt that was removed forbids nothing. One that returns applies. */
static void removed_robots_txt_allows_and_a_returned_one_applies(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},     {0, GOT, 200, ".rr", 0},      {21 * H, ASK, 0, "c.r", 0},
        {21 * H, START, 0, "..r", 0}, {21 * H, GOT, 404, ".da", 0}, {42 * H, ASK, 0, "f.a", 0},
        {42 * H, START, 0, "..a", 0}, {42 * H, GOT, 200, ".rr", 0}, {63 * H, START, 0, "..r", 0},
        {63 * H, GOT, 503, "..r", 0},
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    live_all(&world, moments);
}

/* B8 */
static void five_redirects_are_followed_and_the_sixth_is_an_absent_file(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},        {1, GOT_ON, 301, "o.w", -1},  {2, GOT_ON, 302, "o.w", -1},
        {3, GOT_ON, 303, "o.w", -1},     {4, GOT_ON, 307, "o.w", -1},  {5, GOT_ON, 308, "o.w", -1},
        {5, ASK, 0, "..w", -1},          {6, GOT_ON, 301, ".da", 0},   {7, ASK, 0, "..a", 0},
        {21 * H, ASK, 0, "f.a", 0},      {21 * H, START, 0, "..a", 0}, {21 * H, GOT_ON, 301, "o.a", 0},
        {21 * H, GOT_ON, 300, "..a", 0}, /* not a redirect status: the fetch failed */
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    live_all(&world, moments);
}

/* B8: the rules apply to the original host. The validators belong to the target. */
static void rules_behind_a_redirect_count_without_their_validators(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},    {0, GOT_ON, 301, "o.w", -1},  {0, GOT, 200, ".rr", 0},
        {21 * H, ASK, 0, "f.r", 0},  {21 * H, START, 0, "..r", 0}, {21 * H, GOT_ON, 301, "o.r", 0},
        {22 * H, LOST, 0, "..r", 0},
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    live_all(&world, moments);
    assert_int_equal(world.life.failures, 1);
}

static void robots_304_counts_only_for_the_requested_url(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},     {0, GOT, 200, ".rr", 0},         {21 * H, ASK, 0, "c.r", 0},
        {21 * H, START, 0, "..r", 0}, {21 * H, GOT_ON, 301, "o.r", 0}, {21 * H, GOT, 304, "..r", 0},
        {24 * H, ASK, 0, "c.r", 0}, /* failed: the old copy is used, and fetched once more */
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    live_all(&world, moments);
    assert_int_equal(wr_robots_lifecycle_state(&world.life, T0 + 24 * H), WR_ROBOTS_STATE_FAILING);
}

/* ---- from a store ---- */

static void stored_copy_is_used_by_its_age(void **state)
{
    static const struct {
        int64_t age_ns;
        bool has_rules, has_validators;
        const char *expected;
        int64_t wait_ns;
    } rows[] = {
        {0, true, true, "..r", 0},
        {20 * H, true, true, "..r", 0},
        {21 * H, true, true, "c.r", 0},
        {21 * H, true, false, "f.r", 0},
        {24 * H, true, true, "c.w", -1},
        {20 * H, false, true, "..a", 0},
        {21 * H, false, true, "f.a", 0},
        {24 * H, false, false, "f.w", -1},
        {WEIR_DURATION_MAX, true, true, "c.w", -1},
        {INT64_MAX, true, true, "c.w", -1},
        {-1, true, true, "c.w", -1}, /* an age in the future is of any age */
        {INT64_MIN, true, true, "c.w", -1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
        struct wr_robots_event loaded = {.kind = WR_ROBOTS_EVENT_LOADED,
                                         .age_ns = rows[i].age_ns,
                                         .has_rules = rows[i].has_rules,
                                         .has_validators = rows[i].has_validators,
                                         .max_age_ns = UNSAID};
        (void)wr_robots_lifecycle_step(&world.life, &world.options, &loaded, T0);
        const struct moment moments[] = {{0, ASK, 0, rows[i].expected, rows[i].wait_ns}};
        live_all(&world, moments);
    }
}

/* A copy that is too old to use can still be validated. */
static void stored_copy_of_any_age_is_good_again_once_confirmed(void **state)
{
    (void)state;
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    struct wr_robots_event loaded = {.kind = WR_ROBOTS_EVENT_LOADED,
                                     .age_ns = 300 * D,
                                     .has_rules = true,
                                     .has_validators = true,
                                     .max_age_ns = UNSAID};
    (void)wr_robots_lifecycle_step(&world.life, &world.options, &loaded, T0);
    static const struct moment moments[] = {
        {0, ASK, 0, "c.w", -1},     {0, START, 0, "..w", -1},     {0, GOT, 503, "..w", 5 * S},
        {5 * S, ASK, 0, "c.w", -1}, {5 * S, START, 0, "..w", -1}, {5 * S, GOT, 304, ".sr", 0},
    };
    live_all(&world, moments);
}

static void stored_robots_copy_does_not_replace_a_newer_state(void **state)
{
    (void)state;
    struct wr_robots_event loaded = {
        .kind = WR_ROBOTS_EVENT_LOADED, .age_ns = 0, .has_rules = true, .max_age_ns = UNSAID};
    for (int i = 0; i < 3; i++) {
        struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
        (void)tell(&world, START, 0, 0);
        if (i > 0)
            (void)tell(&world, i == 1 ? GOT : LOST, 404, 0);
        struct wr_robots_lifecycle before = world.life;
        (void)wr_robots_lifecycle_step(&world.life, &world.options, &loaded, T0);
        assert_memory_equal(&before, &world.life, sizeof before);
    }
}

/* ---- forgetting ---- */

/* L5 */
static void robots_fetch_or_server_named_wait_is_not_forgotten(void **state)
{
    (void)state;
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    assert_true(wr_robots_lifecycle_may_forget(&world.life, T0));
    (void)tell(&world, START, 0, 0);
    assert_false(wr_robots_lifecycle_may_forget(&world.life, T0));
    (void)tell(&world, GOT, 500, 0);
    assert_true(wr_robots_lifecycle_may_forget(&world.life, T0));
    world.retry_after_ns = H;
    (void)tell(&world, START, 0, 10 * S);
    (void)tell(&world, GOT, 503, 10 * S);
    assert_false(wr_robots_lifecycle_may_forget(&world.life, T0 + H));
    assert_true(wr_robots_lifecycle_may_forget(&world.life, T0 + H + 10 * S));
    (void)tell(&world, START, 0, 20 * S);
    (void)tell(&world, GOT, 200, 20 * S);
    assert_true(wr_robots_lifecycle_may_forget(&world.life, T0 + 20 * S));
}

/* ---- rulings ---- */

static struct wr_robots_decision rule(const struct world *world, const struct wr_robots *robots, const char *target,
                                      int64_t at)
{
    struct wr_robots_lifecycle life = world->life;
    struct wr_robots_event wanted = {.kind = WR_ROBOTS_EVENT_WANTED};
    struct wr_robots_action action = wr_robots_lifecycle_step(&life, &world->options, &wanted, T0 + at);
    assert_memory_equal(&life, &world->life, sizeof life); /* WANTED changes no state */
    return wr_robots_lifecycle_decide(&action, robots, wr_span_of(target), T0 + at);
}

static void assert_ruling(struct wr_robots_decision ruling, weir_verdict verdict, int64_t wait_ns, uint32_t line)
{
    assert_int_equal(ruling.decision.verdict, verdict);
    assert_int_equal(ruling.decision.reason, verdict == WEIR_GO ? WEIR_REASON_NONE : WEIR_REASON_ROBOTS);
    assert_int_equal(ruling.decision.wait_ns, wait_ns);
    assert_int_equal(ruling.line, line);
}

/* S4-15 */
static void ruling_names_the_line_that_decided_or_how_long_to_wait(void **state)
{
    (void)state;
    test_allocator memory;
    struct wr_robots *robots;
    struct wr_robots_options parse = {.agent = wr_span_of("weir"), .delay_max_ns = D};
    struct wr_span text = wr_span_of("User-agent: *\nDisallow: /private\nAllow: /private/open\n");
    test_allocator_init(&memory);
    assert_int_equal(wr_robots_parse(text, &parse, &memory.allocator, &robots), 0);
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    assert_ruling(rule(&world, NULL, "/", 0), WEIR_WAIT, WEIR_UNTIL_RELEASE, 0);
    (void)tell(&world, START, 0, 0);
    (void)tell(&world, LOST, 0, 0);
    assert_ruling(rule(&world, NULL, "/", 2 * S), WEIR_WAIT, 3 * S, 0);
    (void)tell(&world, START, 0, 5 * S);
    (void)tell(&world, GOT, 200, 5 * S);
    assert_ruling(rule(&world, robots, "/", 5 * S), WEIR_GO, 0, 0);
    assert_ruling(rule(&world, robots, "/private/x", 5 * S), WEIR_DENY, WEIR_UNTIL_RELEASE, 2);
    assert_ruling(rule(&world, robots, "/private/open/x", 5 * S), WEIR_GO, 0, 3);
    (void)tell(&world, START, 0, 5 * S);
    (void)tell(&world, GOT, 404, 5 * S);
    assert_ruling(rule(&world, NULL, "/private/x", 5 * S), WEIR_GO, 0, 0);
    struct world denying = world_of(WR_ROBOTS_ON_ERROR_DENY);
    (void)tell(&denying, START, 0, 0);
    (void)tell(&denying, LOST, 0, 0);
    assert_ruling(rule(&denying, NULL, "/", 0), WEIR_DENY, WEIR_UNTIL_RELEASE, 0);
    wr_robots_free(robots);
}

static void clock_going_back_only_delays(void **state)
{
    (void)state;
    static const struct moment moments[] = {
        {0, START, 0, "..w", -1},   {0, GOT, 503, "..w", 5 * S},         {-H, ASK, 0, "..w", H + 5 * S},
        {5 * S, ASK, 0, "f.w", -1}, {5 * S, START, 0, "..w", -1},        {-D, GOT, 200, ".rr", 0},
        {-D, ASK, 0, "..r", 0},     {24 * H + 5 * S, ASK, 0, "c.w", -1},
    };
    struct world world = world_of(WR_ROBOTS_ON_ERROR_RFC9309);
    live_all(&world, moments);
}

/* ---- options ---- */

static void options_out_of_bounds_are_refused_with_the_reason(void **state)
{
    static const struct {
        struct wr_robots_lifecycle_options options;
        const char *why;
    } rows[] = {
        {{.on_error = (enum wr_robots_on_error)3}, "on_error"},
        {{.use_ns = -1}, "1 minute"},
        {{.use_ns = S}, "1 minute"},
        {{.use_ns = WEIR_DURATION_MAX + 1}, "1 minute"},
        {{.refresh_min_ns = 25 * H}, "refresh_min_ns"},
        {{.refresh_min_ns = 1}, "refresh_min_ns"},
        {{.serve_ns = H}, "serve_ns"},
        {{.retry = {.base_ns = 1}}, "retries"},
        {{.retry = {.base_ns = -1}}, "retries"},
        {{.retry = {.base_ns = 10 * S, .max_ns = 5 * S}}, "retries"},
        {{.retry = {.max_ns = 2 * D}}, "retries"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_robots_lifecycle_options checked = {.use_ns = 7};
        assert_int_equal(wr_robots_lifecycle_options_check(&rows[i].options, &checked), WEIR_E_INVAL);
        assert_non_null(strstr(weir_error_detail(), rows[i].why));
        assert_int_equal(checked.use_ns, 7);
    }
    struct wr_robots_lifecycle_options small = {.use_ns = M, .retry = {.base_ns = D}}, checked;
    assert_int_equal(wr_robots_lifecycle_options_check(&small, &checked), 0);
    assert_int_equal(checked.refresh_min_ns, 30 * S);
    assert_int_equal(checked.retry.max_ns, D);
}

WEIR_TESTS(
    test(page_waits_for_robots_txt_which_is_fetched_once),
    test(robots_copy_is_refreshed_in_use_and_not_used_over_a_day), test(max_age_moves_the_refresh_within_bounds),
    test(robots_txt_without_validators_is_fetched_unconditionally), test(failed_robots_txt_is_retried_while_pages_wait),
    test(pages_do_not_wait_for_failed_robots_txt_in_allow_and_deny_mode),
    test(old_robots_copy_is_used_for_thirty_days_while_fetches_fail), test(robots_txt_answered_by_429_is_not_absent),
    test(retry_after_is_obeyed_up_to_a_day_and_never_shortens_the_backoff),
    test(backoff_doubles_up_to_a_quarter_of_an_hour_and_is_never_short),
    test(status_of_robots_txt_decides_whether_there_are_rules),
    test(removed_robots_txt_allows_and_a_returned_one_applies),
    test(five_redirects_are_followed_and_the_sixth_is_an_absent_file),
    test(rules_behind_a_redirect_count_without_their_validators), test(robots_304_counts_only_for_the_requested_url),
    test(stored_copy_is_used_by_its_age), test(stored_copy_of_any_age_is_good_again_once_confirmed),
    test(stored_robots_copy_does_not_replace_a_newer_state), test(robots_fetch_or_server_named_wait_is_not_forgotten),
    test(ruling_names_the_line_that_decided_or_how_long_to_wait), test(clock_going_back_only_delays),
    test(options_out_of_bounds_are_refused_with_the_reason))
