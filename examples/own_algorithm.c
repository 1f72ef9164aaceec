/* SPDX-License-Identifier: MIT */
/* own_algorithm.c - your own algorithm: each attempt to sign in doubles the pause before the next.
 *
 * An algorithm is a few pure functions over a rule and a small state. It works wherever the
 * algorithms of weir do; here in a table, with one state per user. Time is an argument, so that a
 * fake clock can show a whole minute at once.
 *
 *     cc own_algorithm.c $(pkg-config --cflags --libs weir)
 */
#include <stdio.h>
#include <string.h>
#include <weir/table.h>

/* Parameters of the rule. Its period_ns is the first pause. */
struct patience {
    /* Longest pause; also the time without attempts after which a user is forgotten. */
    int64_t longest_ns;
};

/* State of one user. Only `take` and `give` change it, never `ask`. */
struct attempts {
    int64_t next_at; /* instant from which the next attempt is allowed */
    uint32_t count;
};

static int64_t longest_ns(const weir_limit *limit)
{
    return ((const struct patience *)limit->params)->longest_ns;
}

/* Returns the pause after attempt number `count`. */
static int64_t pause_ns(const weir_limit *limit, uint32_t count)
{
    int64_t ns = limit->period_ns;
    for (uint32_t i = 1; i < count && ns < longest_ns(limit); i++)
        ns *= 2;
    return ns < longest_ns(limit) ? ns : longest_ns(limit);
}

static size_t state_bytes(const weir_limit *limit)
{
    (void)limit;
    return sizeof(struct attempts);
}

static void start(const weir_limit *limit, void *state, int64_t now)
{
    (void)limit;
    ((struct attempts *)state)->next_at = now;
}

/* Returns whether the state decides as a new one would. */
static bool fresh(const weir_limit *limit, const void *state, int64_t now)
{
    const struct attempts *attempts = (const struct attempts *)state;
    return attempts->count == 0 ? now >= attempts->next_at : now - attempts->next_at >= longest_ns(limit);
}

static int64_t ask(const weir_limit *limit, const void *state, int64_t now, uint32_t permits)
{
    int64_t next_at = ((const struct attempts *)state)->next_at;
    (void)limit;
    (void)permits;
    return next_at > now ? next_at - now : 0;
}

/* Returns a mark: the number of the attempt. */
static uint32_t take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct attempts *attempts = (struct attempts *)state;
    (void)permits;
    if (fresh(limit, state, now))
        attempts->count = 0;
    if (attempts->count < UINT32_MAX)
        attempts->count++;
    /* If the clock went back, the new pause begins after the one that is still running. */
    attempts->next_at = (now > attempts->next_at ? now : attempts->next_at) + pause_ns(limit, attempts->count);
    return attempts->count;
}

/* Takes back an attempt that did not count: its own pause ends, but not those of other attempts. */
static void give(const weir_limit *limit, void *state, int64_t now, int64_t at, uint32_t mark, uint32_t permits)
{
    struct attempts *attempts = (struct attempts *)state;
    (void)at;
    if (permits == 0 || attempts->count == 0 || fresh(limit, state, now))
        return;
    attempts->next_at -= pause_ns(limit, mark);
    attempts->count--;
}

static void peek(const weir_limit *limit, const void *state, int64_t now, weir_quota *ret_quota)
{
    int64_t wait_ns = ask(limit, state, now, 1);
    ret_quota->limit = limit->permits;
    ret_quota->remaining = wait_ns == 0 ? limit->permits : 0;
    ret_quota->reset_ns = wait_ns;
    ret_quota->period_ns = limit->period_ns;
}

static const weir_algorithm doubling = {
    .size = sizeof(weir_algorithm),
    .name = "doubling",
    .reason = WEIR_REASON_PACE,
    .state_bytes = state_bytes,
    .start = start,
    .ask = ask,
    .take = take,
    .give = give,
    .release = NULL, /* the length of an attempt does not matter */
    .peek = peek,
    .fresh = fresh,
    .carry = NULL,
};

static weir_clock *watch;
static weir_table *table;

static int sign_in(const char *user)
{
    weir_decision decision;
    if (weir_table_try(table, user, strlen(user), 1, &decision) < 0)
        return -1;
    printf("%3lld s  %s: ", (long long)(weir_clock_now(watch) / WEIR_SECOND), user);
    if (decision.verdict == WEIR_GO)
        printf("go\n");
    else
        printf("wait %lld s\n", (long long)(decision.wait_ns / WEIR_SECOND));
    return decision.verdict == WEIR_GO;
}

int main(void)
{
    static const struct patience patience = {WEIR_MINUTE};
    static const int64_t seconds[] = {0, 0, 1, 1, 3, 4, 7, 8, 100, 100};
    weir_limit limit;
    weir_table_options options;
    int granted = 0;

    if (weir_clock_fake_new(0, NULL, &watch) < 0)
        return 1;
    weir_table_options_init(&options);
    options.clock = watch;
    if (weir_limit_custom(&limit, &doubling, 1, WEIR_SECOND, &patience) < 0 ||
        weir_table_new(&limit, 1, &options, &table) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        return 1;
    }

    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        weir_clock_fake_set(watch, seconds[i] * WEIR_SECOND);
        granted += sign_in("alice");
    }
    granted += sign_in("bob");

    weir_table_free(table);
    weir_clock_fake_free(watch);
    return granted == 6 ? 0 : 1;
}
