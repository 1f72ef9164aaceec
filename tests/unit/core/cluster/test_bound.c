/* SPDX-License-Identifier: MIT */
/* test_bound.c - tests in virtual time that several nodes on one store never admit more than the
 * limit and its bound.
 *
 * The store is a weir_stack of its own. Messages take a random time, overtake each other and get
 * lost in both directions; nodes stall and resume; there are more nodes than seats. The judge
 * replays all admitted permits in order against the same rule with the bound added to its permits,
 * and must not refuse any. Permits from the store count when it charged them, leased permits when
 * they were spent. */
#include "base/rng.h"
#include "core/cluster/permit_lease.h"
#include "lib/test.h"

#define MS WEIR_MILLISECOND
#define NODES_MAX 8
#define MAIL_MAX 1024
#define SEAT_NS (400 * MS)
#define START (1000 * WEIR_SECOND)
#define OVERSHOOT 500000 /* in millionths */

struct letter {
    int64_t at;      /* time of arrival */
    int64_t sent_at; /* time of the ask */
    bool is_reply, is_seat;
    uint32_t node, number, permits, extra;
    struct wr_permit_lease_reply reply;
};

struct node {
    struct wr_permit_lease lease;
    struct wr_membership membership;
    int64_t wakes_at; /* the node is stalled until then */
};

struct world {
    struct wr_rng rng;
    struct wr_permit_lease_terms terms;
    weir_stack stack, judge;
    _Alignas(8) unsigned char state[65536], judge_state[65536];
    struct node nodes[NODES_MAX];
    uint32_t node_count;
    struct letter mail[MAIL_MAX]; /* unordered */
    size_t mail_count;
    int64_t seats[NODES_MAX];   /* end of each membership, by the store's clock */
    uint32_t owners[NODES_MAX]; /* owner of each membership */
    int64_t now;
    uint32_t loss; /* lost messages, percent */
    uint64_t admitted, asks, spent, refused, decisions, lost;
};

static void judge(struct world *world, uint32_t permits)
{
    weir_decision decision = weir_stack_try(&world->judge, world->judge_state, world->now, permits, NULL);
    if (decision.verdict != WEIR_GO)
        fail_msg("at %lld ns %u more were admitted than the limit and its bound allow", (long long)(world->now - START),
                 permits);
    world->admitted += permits;
}

static void post(struct world *world, struct letter letter)
{
    if (wr_rng_below(&world->rng, 100) < world->loss) {
        world->lost++;
        return;
    }
    bool slow = wr_rng_below(&world->rng, 20) == 0;
    letter.at = world->now + 1 + (int64_t)wr_rng_below(&world->rng, slow ? 700 * MS : 2 * MS);
    if (world->mail_count < MAIL_MAX)
        world->mail[world->mail_count++] = letter;
}

/* ---- the store ------------------------------------------------------------------------------- */

static int64_t wait_for(const struct world *world, uint64_t permits)
{
    if (permits > world->stack.limits[0].permits)
        permits = world->stack.limits[0].permits;
    return permits == 0 ? 0 : weir_stack_ask(&world->stack, world->state, world->now, (uint32_t)permits).wait_ns;
}

static void charge(struct world *world, struct letter letter)
{
    struct wr_permit_lease_reply *reply = &letter.reply;

    *reply = (struct wr_permit_lease_reply){.granted = true};
    if (letter.permits > 0) {
        weir_decision decision = weir_stack_try(&world->stack, world->state, world->now, letter.permits, NULL);
        reply->granted = decision.verdict == WEIR_GO;
        reply->wait_ns = decision.wait_ns;
        if (reply->granted)
            judge(world, letter.permits);
    }
    while (reply->granted && reply->extra < letter.extra &&
           weir_stack_try(&world->stack, world->state, world->now, 1, NULL).verdict == WEIR_GO)
        reply->extra++;
    if (!reply->granted || reply->extra < letter.extra)
        reply->full_wait_ns = wait_for(world, (reply->granted ? 0 : letter.permits) + letter.extra - reply->extra);
    letter.is_reply = true;
    post(world, letter);
}

static void give_seat(struct world *world, struct letter letter)
{
    uint32_t free_seat = UINT32_MAX;
    for (uint32_t i = 0; i < world->terms.nodes; i++) {
        bool ours = world->seats[i] > world->now && world->owners[i] == letter.node;
        if (ours || (free_seat == UINT32_MAX && world->seats[i] <= world->now))
            free_seat = i;
        if (ours)
            break;
    }
    if (free_seat == UINT32_MAX)
        return;
    world->seats[free_seat] = world->now + SEAT_NS;
    world->owners[free_seat] = letter.node;
    letter.is_reply = true;
    post(world, letter);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void request(struct world *world, uint32_t index)
{
    struct node *node = &world->nodes[index];
    uint32_t permits = wr_rng_below(&world->rng, 8) > 0 ? 1 : 1 + (uint32_t)wr_rng_below(&world->rng, 4);
    struct wr_permit_lease_move move =
        wr_permit_lease_try(&world->terms, &node->lease, &node->membership, world->now, permits);

    world->decisions++;
    if (move.way == WR_PERMIT_LEASE_GO) {
        judge(world, permits);
        world->spent += permits;
    }
    world->refused += move.way == WR_PERMIT_LEASE_WAIT;
    if (move.way != WR_PERMIT_LEASE_ASK && move.extra == 0)
        return;
    world->asks++;
    post(world, (struct letter){.sent_at = world->now,
                                .node = index,
                                .number = move.number,
                                .permits = move.way == WR_PERMIT_LEASE_ASK ? permits : 0,
                                .extra = move.extra});
}

static void open_reply(struct world *world, const struct letter *letter)
{
    struct node *node = &world->nodes[letter->node];
    if (letter->is_seat)
        wr_membership_renew(&node->membership, letter->sent_at, world->now, SEAT_NS);
    else
        wr_permit_lease_answered(&world->terms, &node->lease, &node->membership, world->now, letter->number,
                                 letter->permits, &letter->reply);
}

static void deliver(struct world *world)
{
    for (size_t i = world->mail_count; i-- > 0;) {
        struct letter letter = world->mail[i];
        if (letter.at > world->now)
            continue;
        if (letter.is_reply && world->nodes[letter.node].wakes_at > world->now)
            continue; /* waits until the node resumes */
        world->mail[i] = world->mail[--world->mail_count];
        if (letter.is_reply)
            open_reply(world, &letter);
        else if (letter.is_seat)
            give_seat(world, letter);
        else
            charge(world, letter);
    }
}

static void live(struct world *world, uint32_t index)
{
    struct node *node = &world->nodes[index];
    uint64_t dice = wr_rng_below(&world->rng, 1000);

    if (node->wakes_at > world->now)
        return;
    if (dice == 0)
        node->wakes_at = world->now + (int64_t)wr_rng_below(&world->rng, 2 * WEIR_SECOND);
    else if (dice < 20)
        wr_permit_lease_missed(&node->lease, node->lease.number);
    else if (dice < 60)
        post(world, (struct letter){.sent_at = world->now, .node = index, .is_seat = true});
    else
        request(world, index);
}

static void run(struct world *world, weir_limit limit, uint32_t nodes, uint32_t seats, uint64_t seed)
{
    weir_limit judged = limit;

    memset(world, 0, sizeof *world);
    wr_rng_init(&world->rng, seed);
    assert_int_equal(weir_stack_init(&world->stack, &limit, 1), 0);
    assert_int_equal(wr_permit_lease_terms_make(&world->stack, seats, OVERSHOOT, &world->terms), 0);
    /* computed from the documentation, not from the terms */
    uint32_t permits = limit.permits + (uint32_t)((uint64_t)limit.permits * OVERSHOOT / WR_OVERSHOOT_MAX);
    if (limit.refill > 0)
        assert_int_equal(weir_limit_token_bucket(&judged, permits, limit.refill, limit.period_ns), 0);
    else
        judged.permits = permits;
    assert_int_equal(weir_stack_init(&world->judge, &judged, 1), 0);
    assert_true(world->stack.state_bytes <= sizeof world->state &&
                world->judge.state_bytes <= sizeof world->judge_state);
    world->now = START;
    weir_stack_start(&world->stack, world->state, world->now);
    weir_stack_start(&world->judge, world->judge_state, world->now);
    world->node_count = nodes;
    world->loss = (uint32_t)wr_rng_below(&world->rng, 30);
    for (int step = 0; step < 30000; step++) {
        /* A quiet time, in which limits and leases fill up, is followed by a rush, in which most is
         * admitted at once. */
        world->now += (int64_t)wr_rng_below(&world->rng, step % 3000 < 1500 ? 4 * MS : 20000);
        deliver(world);
        live(world, (uint32_t)wr_rng_below(&world->rng, nodes));
    }
}

static void check(weir_limit limit)
{
    static struct world world;
    uint64_t seed = weir_test_seed(), spent = 0, lost = 0;

    for (uint64_t round = 0; round < 40; round++) {
        uint32_t nodes = 1 + (uint32_t)(round % NODES_MAX);
        run(&world, limit, nodes, nodes > 4 ? nodes - 4 : nodes, seed + round);
        spent += world.spent;
        lost += world.lost;
        assert_true(world.admitted >= limit.permits / 2);
    }
    assert_true(spent > 10000 && lost > 10000); /* leases were used, and many messages were lost */
}

static void nodes_on_a_token_bucket_stay_within_the_bound_in_every_window(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_token_bucket(&limit, 500, 1000, WEIR_SECOND), 0);
    check(limit);
}

static void nodes_on_a_fixed_window_stay_within_the_bound_in_every_window(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_fixed_window(&limit, 500, 300 * MS), 0);
    check(limit);
}

static void nodes_on_a_sliding_window_stay_within_the_bound_in_every_window(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_sliding_window(&limit, 500, 300 * MS), 0);
    check(limit);
}

static void nodes_on_a_sliding_log_stay_within_the_bound_in_every_window(void **state)
{
    (void)state;
    weir_limit limit;
    assert_int_equal(weir_limit_sliding_log(&limit, 500, 300 * MS), 0);
    check(limit);
}

WEIR_TESTS(test(nodes_on_a_token_bucket_stay_within_the_bound_in_every_window),
           test(nodes_on_a_fixed_window_stay_within_the_bound_in_every_window),
           test(nodes_on_a_sliding_window_stay_within_the_bound_in_every_window),
           test(nodes_on_a_sliding_log_stay_within_the_bound_in_every_window))
