/* SPDX-License-Identifier: MIT */
/* own_algorithm.c - a rule that weir does not have: each attempt to sign in doubles the pause before the next.
 *
 * An algorithm is a few pure functions over a rule and a small state. It runs wherever those of weir do; here in a
 * table, one state per user. Time is given to it, so that a clock of our own can show a whole minute at once.
 *
 *     cc own_algorithm.c $(pkg-config --cflags --libs weir)
 */
#include <stdio.h>
#include <string.h>
#include <weir/table.h>

/* The rule's period_ns is the first pause; its params are these. */
struct patience {
    int64_t longest_ns; /* pauses grow no further, and after so long without an attempt all is forgotten */
};

/* What is kept for each user. It never depends on a time that was only asked about. */
struct attempts {
    int64_t next_at; /* when the next may be made */
    uint32_t count;
};

static int64_t longest_ns(const weir_limit *limit)
{
    return ((const struct patience *)limit->params)->longest_ns;
}

/* The pause after the `count`-th attempt. */
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

/* Whether the user is as good as new. */
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

/* The mark says which attempt it was. */
static uint32_t take(const weir_limit *limit, void *state, int64_t now, uint32_t permits)
{
    struct attempts *attempts = (struct attempts *)state;
    (void)permits;
    if (fresh(limit, state, now))
        attempts->count = 0;
    if (attempts->count < UINT32_MAX)
        attempts->count++;
    /* Never back: with a clock that went back, the pause comes after the one that is still running. */
    attempts->next_at = (now > attempts->next_at ? now : attempts->next_at) + pause_ns(limit, attempts->count);
    return attempts->count;
}

/* The attempt did not count after all: its own pause ends, not those of others. */
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
    .release = NULL, /* it does not matter how long an attempt takes */
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
