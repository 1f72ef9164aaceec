/* SPDX-License-Identifier: MIT */
/* test_baton.c - simulates processes that share the gate of a host, in virtual time: messages are
 * late or lost, processes crash and stall, clocks differ, and the store loses its data. Seen from
 * the host, all of them together must act like one process (V1, V2, G). */
#include "base/rng.h"
#include "core/cluster/gate_lease.h"
#include "core/pace/gate_transfer.h"
#include "core/pace/pace_options.h"
#include "lib/test.h"

#define MS WEIR_MILLISECOND
#define S WEIR_SECOND
#define RUNNERS 5
#define TIMEOUT (500 * MS)
#define GATE_BYTES 4096
#define NOBODY 0 /* names of processes begin with 1 */
#define QUARANTINE 99999
#define LETTERS 64
/* most time for a message to reach the holder of the turn; calls take 2 ms */
#define LETTER_MOST (60 * MS)

/* ---- the store, as in gate_lease.lua -------- */

struct store {
    bool has_token, has_gate, is_born;
    int64_t born_at;
    uint64_t token;
    uint32_t holder;
    int64_t until, pass_at, saved_at, skew;
    char gate[GATE_BYTES];
    struct {
        uint32_t who;
        int64_t since, until;
    } line[RUNNERS * 8];
    size_t lined;
    uint64_t first, last; /* numbers of unread messages */
    /* by number of message: time of a send that was reported before it happened */
    int64_t late_at[LETTERS];
};

struct call {
    uint32_t who;
    enum wr_gate_lease_verb verb;
    uint64_t token, seen;
    bool waits, is_packed, has_letter;
    int64_t pass_ns, late_ago; /* for a message: ns since the late send */
    uint64_t read;
    char gate[GATE_BYTES];
};

struct reply {
    struct wr_gate_lease_reply told;
    int64_t elapsed_ns;
    bool lost, has_gate;
    uint64_t first, last; /* numbers of messages */
    int64_t late_ago[LETTERS];
    char gate[GATE_BYTES];
};

static void leave_line(struct store *store, uint32_t who, int64_t now)
{
    for (size_t i = 0; i < store->lined;)
        if (store->line[i].who == who || store->line[i].until <= now)
            store->line[i] = store->line[--store->lined];
        else
            i++;
}

static void hold(struct store *store, uint32_t who, uint64_t token, int64_t now)
{
    store->has_token = true;
    store->holder = who;
    store->token = token;
    store->until = now + WR_GATE_LEASE_NS;
}

static void wait_in_line(struct store *store, const struct call *call, int64_t now, struct reply *reply)
{
    int64_t since = now;
    for (size_t i = 0; i < store->lined; i++)
        since = store->line[i].who == call->who ? store->line[i].since : since;
    leave_line(store, call->who, now);
    reply->told.waiting = (uint32_t)store->lined;
    for (size_t i = 0; i < store->lined; i++)
        reply->told.place +=
            store->line[i].since < since || (store->line[i].since == since && store->line[i].who < call->who);
    if (!call->waits)
        return;
    assert_true(store->lined < sizeof store->line / sizeof store->line[0]);
    store->line[store->lined].who = call->who;
    store->line[store->lined].since = since;
    store->line[store->lined++].until = now + WR_GATE_LEASE_WAITER_TTL_NS;
}

static void grant(struct store *store, const struct call *call, int64_t now, struct reply *reply)
{
    reply->lost = store->holder != NOBODY;
    reply->elapsed_ns = store->has_gate && now > store->saved_at ? now - store->saved_at : 0;
    reply->has_gate = store->has_gate;
    memcpy(reply->gate, store->gate, sizeof reply->gate);
    hold(store, call->who, store->token + 1, now);
    store->pass_at = now;
    leave_line(store, call->who, now);
    reply->told.is_ours = true;
}

/* Stores the message of a call. Messages are kept until a gate that includes them is stored. */
static void take_letters(struct store *store, const struct call *call, bool ours, int64_t now)
{
    if (call->has_letter) {
        store->late_at[++store->last % LETTERS] = now - call->late_ago;
        assert_true(store->last - store->first < LETTERS);
    }
    if (ours && call->is_packed && call->read > store->first)
        store->first = call->read;
}

static void give_letters(const struct store *store, int64_t now, struct reply *reply)
{
    reply->first = store->first;
    reply->last = reply->told.is_ours ? store->last : store->first;
    for (uint64_t i = reply->first + 1; i <= reply->last; i++)
        reply->late_ago[i % LETTERS] = now - store->late_at[i % LETTERS];
}

static void answer(struct store *store, const struct call *call, int64_t true_now, struct reply *ret_reply)
{
    int64_t now = true_now + store->skew;
    *ret_reply = (struct reply){.lost = false};
    if (call->seen > (store->has_token ? store->token : 0)) {
        bool reclaims = call->verb == WR_GATE_LEASE_HOLD && !store->has_token;
        hold(store, reclaims ? call->who : QUARANTINE, reclaims ? call->token : call->seen, now);
    } else if (!store->has_token) {
        store->born_at = store->is_born ? store->born_at : now;
        store->is_born = true;
        if (now - store->born_at < WR_GATE_LEASE_NS)
            hold(store, QUARANTINE, 0, now);
    }
    bool ours = store->holder == call->who && store->token == call->token && store->until > now;
    take_letters(store, call, ours, now);
    if (ours && call->is_packed) {
        memcpy(store->gate, call->gate, sizeof store->gate);
        store->has_gate = true;
        store->saved_at = now;
    }
    if (ours && call->verb == WR_GATE_LEASE_HOLD) {
        hold(store, call->who, store->token, now);
        store->pass_at = now + call->pass_ns;
        ret_reply->told.is_ours = true;
    } else if (ours && call->verb == WR_GATE_LEASE_PASS) {
        store->holder = NOBODY;
    }
    wait_in_line(store, call, now, ret_reply);
    bool is_free = store->holder == NOBODY || store->holder == call->who || store->until <= now;
    if (call->verb == WR_GATE_LEASE_WANT && call->waits && is_free && ret_reply->told.place == 0)
        grant(store, call, now, ret_reply);
    else if (store->holder != NOBODY && store->pass_at > now)
        ret_reply->told.busy_ns = store->pass_at - now;
    ret_reply->told.token = store->token;
    give_letters(store, now, ret_reply);
}

/* ---- a process ---- */

struct runner {
    uint32_t who;
    int64_t offset;
    double speed; /* speed of its clock */
    struct wr_gate_lease gate_lease;
    struct wr_gate *gate;
    int64_t lent_until;
    int64_t stands_until; /* true time until which it is stopped */
    uint64_t starts;
    bool wants;
    int64_t out_at;  /* true time of a late send; 0: none is due */
    int64_t late_at; /* own time of a late send that is not reported so far; 0: none */
    uint64_t read;   /* number of the last message read */
    bool has_call;   /* a call to the store is pending */
    bool reply_is_lost;
    /* true times: of the call, of its reply, and of the timeout */
    int64_t arrives_at, returns_at, missed_at;
    struct call call;
    struct reply reply;
};

struct world {
    weir_pace_options options;
    struct store store;
    struct runner runners[RUNNERS];
    struct wr_rng rng;
    int64_t now; /* true time */
    uint32_t names;
    int64_t last_start, least_gap;
    uint64_t starts;
    bool faults, lates;
    int64_t late_max;
    int64_t last_late, least_after_late;
    uint64_t late_starts, letters;
};

static int64_t clock_of(const struct world *world, const struct runner *runner)
{
    return runner->offset + (int64_t)((double)world->now * runner->speed);
}

static void begin(struct world *world, struct runner *runner)
{
    struct wr_gate *gate = runner->gate != NULL ? runner->gate : calloc(1, wr_gate_bytes(&world->options));
    assert_non_null(gate);
    *runner = (struct runner){.who = ++world->names, .gate = gate, .lent_until = INT64_MIN, .wants = true};
    runner->offset = (int64_t)wr_rng_below(&world->rng, 1000) * S + S;
    runner->speed = 1 + (world->faults ? 0.004 * (wr_rng_unit(&world->rng) - 0.5) : 0);
    memset(gate, 0, wr_gate_bytes(&world->options));
    wr_gate_init(gate, &world->options, NULL, clock_of(world, runner), 0);
}

static int64_t delay(struct world *world)
{
    return 100000 + (int64_t)wr_rng_below(&world->rng, (uint64_t)world->late_max);
}

static void call_store(struct world *world, struct runner *runner, const struct wr_gate_lease_move *move,
                       uint64_t token)
{
    struct call *call = &runner->call;
    int64_t now = clock_of(world, runner);
    *call = (struct call){.who = runner->who,
                          .verb = move->verb,
                          .token = move->verb == WR_GATE_LEASE_WANT ? 0 : token,
                          .seen = runner->gate_lease.seen,
                          .waits = move->waits,
                          .pass_ns = move->pass_ns};
    bool gives = move->verb == WR_GATE_LEASE_HOLD || move->verb == WR_GATE_LEASE_PASS;
    if (gives && now < runner->lent_until) {
        wr_gate_pack(runner->gate, &world->options, now, call->gate);
        call->is_packed = true;
    }
    if (move->verb == WR_GATE_LEASE_PASS)
        runner->lent_until = now;
    call->read = runner->read;
    call->has_letter = runner->late_at != 0;
    call->late_ago = now - runner->late_at;
    world->letters += call->has_letter;
    runner->late_at = 0;
    runner->has_call = true;
    bool is_lost = world->faults && wr_rng_below(&world->rng, 20) == 0;
    runner->reply_is_lost = world->faults && wr_rng_below(&world->rng, 20) == 0;
    runner->arrives_at = is_lost ? INT64_MAX : world->now + delay(world);
    runner->returns_at = INT64_MAX;
    runner->missed_at = world->now + TIMEOUT;
}

static void hear(struct world *world, struct runner *runner)
{
    const struct reply *reply = &runner->reply;
    int64_t now = clock_of(world, runner);
    runner->has_call = false;
    if (wr_gate_lease_answered(&runner->gate_lease, &reply->told, now)) {
        (void)wr_gate_unpack(runner->gate, &world->options, reply->gate,
                             reply->has_gate ? wr_gate_packed_bytes(&world->options) : 0, reply->elapsed_ns,
                             reply->lost, now);
        wr_gate_lease_taken(&runner->gate_lease, runner->starts);
        runner->read = 0;
    }
    for (uint64_t i = reply->first + 1; i <= reply->last && runner->gate_lease.token != 0; i++) {
        if (i <= runner->read)
            continue;
        wr_gate_sent_late(runner->gate, &world->options, reply->late_ago[i % LETTERS], now);
        runner->read = i;
    }
    runner->lent_until = runner->gate_lease.token != 0 ? runner->gate_lease.until : INT64_MIN;
}

/* A request is sent late, after its start was reported: other processes could not know. */
static void get_out(struct world *world, struct runner *runner)
{
    int64_t now = clock_of(world, runner);
    runner->out_at = 0;
    world->last_late = world->now;
    world->late_starts++;
    if (now < runner->lent_until)
        wr_gate_sent_late(runner->gate, &world->options, 0, now);
    else
        runner->late_at = now;
}

static void note_start(struct world *world)
{
    int64_t after_ns = world->now - world->last_late;
    if (world->starts++ > 0 && world->now - world->last_start < world->least_gap)
        world->least_gap = world->now - world->last_start;
    if (world->last_late != 0 && after_ns > LETTER_MOST && after_ns < world->least_after_late)
        world->least_after_late = after_ns;
    world->last_start = world->now;
}

static void start(struct world *world, struct runner *runner)
{
    int64_t now = clock_of(world, runner);
    if (!runner->wants || runner->out_at != 0 || now >= runner->lent_until ||
        wr_gate_ask(runner->gate, &world->options, now).verdict != WEIR_GO)
        return;
    uint32_t seq = wr_gate_reserve(runner->gate, &world->options, now);
    struct wr_gate_start start = wr_gate_sent(runner->gate, &world->options, seq, now);
    weir_outcome outcome = {.size = sizeof outcome, .status = 200, .latency_ns = MS};
    (void)wr_gate_tell(runner->gate, &world->options, &start, &outcome, now, 0.5);
    runner->starts++;
    note_start(world);
    if (world->lates && world->now - world->last_late > 10 * S && wr_rng_below(&world->rng, 4) == 0)
        runner->out_at = world->now + (int64_t)wr_rng_below(&world->rng, 2000) * MS;
}

static void live(struct world *world, struct runner *runner)
{
    if (world->now < runner->stands_until)
        return;
    if (runner->has_call && world->now >= runner->missed_at) {
        runner->has_call = false;
        wr_gate_lease_missed(&runner->gate_lease, clock_of(world, runner));
    } else if (runner->has_call && world->now >= runner->returns_at) {
        hear(world, runner);
    }
    if (runner->out_at != 0 && world->now >= runner->out_at)
        get_out(world, runner);
    start(world, runner);
    int64_t now = clock_of(world, runner);
    struct wr_gate_lease_local here = {
        .wants = runner->wants,
        .has_letters = runner->late_at != 0,
        .starts = runner->starts,
        .wait_ns = wr_gate_ask(runner->gate, &world->options, now).wait_ns,
    };
    uint64_t token = runner->gate_lease.token;
    struct wr_gate_lease_move move = wr_gate_lease_next(&runner->gate_lease, &here, now);
    if (move.verb != WR_GATE_LEASE_NOTHING)
        call_store(world, runner, &move, token);
}

/* The store processes a call when it arrives, even if the caller has stopped or crashed
 * meanwhile. */
static void deliver(struct world *world, struct runner *runner)
{
    if (!runner->has_call || world->now < runner->arrives_at)
        return;
    runner->arrives_at = INT64_MAX;
    answer(&world->store, &runner->call, world->now, &runner->reply);
    if (!runner->reply_is_lost)
        runner->returns_at = world->now + delay(world);
}

static void trouble(struct world *world)
{
    struct runner *runner = &world->runners[wr_rng_below(&world->rng, RUNNERS)];
    switch (wr_rng_below(&world->rng, 40000)) {
    case 0: /* kill -9 */
    case 1:
        begin(world, runner);
        break;
    case 2: /* SIGSTOP */
    case 3:
    case 4:
        runner->stands_until = world->now + (int64_t)wr_rng_below(&world->rng, 6000) * MS;
        break;
    case 5: /* the store loses its data */
        world->store = (struct store){.skew = world->store.skew};
        break;
    case 6: /* the clock of the store goes back */
        world->store.skew -= (int64_t)wr_rng_below(&world->rng, 3000) * MS;
        break;
    case 7:
    case 8:
        runner->wants = !runner->wants;
        break;
    default:
        break;
    }
}

enum going {
    WELL,
    WITH_LATE_SENDS,
    WRONG,
};

static void run_world(struct world *world, weir_pace_options options, uint64_t seed, enum going going, int64_t late_max,
                      int64_t for_ns)
{
    bool faults = going == WRONG;
    *world = (struct world){.faults = faults,
                            .lates = going == WITH_LATE_SENDS,
                            .late_max = late_max,
                            .least_gap = INT64_MAX,
                            .least_after_late = INT64_MAX,
                            .now = S};
    assert_int_equal(wr_pace_options_check(&options, &world->options), 0);
    assert_true(wr_gate_packed_bytes(&world->options) <= GATE_BYTES);
    wr_rng_init(&world->rng, seed);
    for (size_t i = 0; i < RUNNERS; i++)
        begin(world, &world->runners[i]);
    for (int64_t end = world->now + for_ns; world->now < end; world->now += MS) {
        for (size_t i = 0; i < RUNNERS; i++)
            deliver(world, &world->runners[i]);
        for (size_t i = 0; i < RUNNERS; i++)
            live(world, &world->runners[i]);
        if (faults)
            trouble(world);
    }
    for (size_t i = 0; i < RUNNERS; i++)
        free(world->runners[i].gate);
}

static weir_pace_options strict(int64_t interval_ns)
{
    weir_pace_options options;
    assert_int_equal(weir_pace_options_profile(&options, WEIR_PROFILE_STRICT), 0);
    options.min_interval_ns = interval_ns;
    return options;
}

static void starts_of_all_processes_are_an_interval_apart_despite_faults(void **state)
{
    (void)state;
    uint64_t seed = weir_test_seed(), starts = 0;
    static struct world world;
    for (uint64_t i = 0; i < 40; i++) {
        int64_t interval_ns = i % 2 == 0 ? S : 300 * MS;
        run_world(&world, strict(interval_ns), wr_rng_pick(seed, i), WRONG, i % 4 < 2 ? 5 * MS : 100 * MS, 120 * S);
        /* clocks may be slow or fast by 2 in 1000 */
        if (world.least_gap < interval_ns - interval_ns / 400)
            fail_msg("world %llu: two starts within %lld us", (unsigned long long)i,
                     (long long)(world.least_gap / 1000));
        starts += world.starts;
    }
    assert_true(starts > 2000); /* 10 000 are possible: processes often lose the turn */
}

/* A late send is reported while another process has the turn. The holder learns of it within a few
 * messages, and then waits a whole interval. */
static void late_send_is_known_to_the_holder_of_the_turn(void **state)
{
    (void)state;
    static struct world world;
    uint64_t late_starts = 0, letters = 0;
    for (uint64_t i = 0; i < 10; i++) {
        run_world(&world, strict(300 * MS), wr_rng_pick(weir_test_seed(), i), WITH_LATE_SENDS, 2 * MS, 120 * S);
        late_starts += world.late_starts;
        letters += world.letters;
        if (world.least_after_late < 300 * MS)
            fail_msg("world %llu: a start %lld us after a late one", (unsigned long long)i,
                     (long long)(world.least_after_late / 1000));
    }
    assert_true(late_starts > 50 && letters > 20);
}

static void five_processes_are_as_fast_as_one(void **state)
{
    (void)state;
    static struct world world;
    run_world(&world, strict(100 * MS), weir_test_seed(), WELL, 2 * MS, 60 * S);
    assert_true(world.starts >= 560 && world.starts <= 600);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < RUNNERS; i++)
        least = world.runners[i].starts < least ? world.runners[i].starts : least;
    assert_true(least >= 100); /* each process gets its share */
    run_world(&world, strict(10 * MS), weir_test_seed(), WELL, 2 * MS, 60 * S);
    assert_true(world.starts >= 5500);
}

static void crashed_holder_is_replaced_at_the_end_of_its_turn(void **state)
{
    (void)state;
    struct store store = {.is_born = true, .born_at = S - WR_GATE_LEASE_NS};
    struct call call = {.who = 1, .verb = WR_GATE_LEASE_WANT, .waits = true};
    struct reply reply;
    answer(&store, &call, S, &reply);
    assert_true(reply.told.is_ours);
    call.who = 2;
    answer(&store, &call, S + WR_GATE_LEASE_NS - 1, &reply);
    assert_false(reply.told.is_ours);
    answer(&store, &call, S + WR_GATE_LEASE_NS, &reply);
    assert_true(reply.told.is_ours && reply.lost && reply.told.token == 2);
    /* The call of the first process arrives late. */
    call = (struct call){.who = 1, .verb = WR_GATE_LEASE_HOLD, .token = 1, .seen = 1, .is_packed = true};
    answer(&store, &call, S + WR_GATE_LEASE_NS, &reply);
    assert_false(reply.told.is_ours || store.has_gate);
}

WEIR_TESTS(test(starts_of_all_processes_are_an_interval_apart_despite_faults), test(five_processes_are_as_fast_as_one),
           test(late_send_is_known_to_the_holder_of_the_turn), test(crashed_holder_is_replaced_at_the_end_of_its_turn))
