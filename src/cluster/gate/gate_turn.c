/* SPDX-License-Identifier: MIT */
/* gate_turn.c - one host: requests, takes, keeps and passes on its gate, by
 * core/cluster/gate_lease.h. */
#include "cluster/gate/shared_gate_state.h"
#include "limiter/clock/clock.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define NUMBERS 8 /* numbers at the start of an answer */
#define NUMBER_BYTES 24
#define WANTED_NS WEIR_SECOND /* time for which a request for the gate counts */
#define TEXT_MAX ((size_t)1 << 20)

/* ---- calls ----------------------------------------------------------------------------------- */

/* The buffers of a call of gate_lease.lua. */
struct gate_turn_call {
    char numbers[9][NUMBER_BYTES];
    struct wr_buf key, text;
    struct wr_redis_call call;
};

static void add_call_text(struct wr_redis_call *call, const char *text, size_t bytes)
{
    call->args[call->count] = text;
    call->arg_bytes[call->count++] = bytes;
}

static void add_call_number(struct gate_turn_call *saying, int i, uint64_t number)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, saying->numbers[i], NUMBER_BYTES);
    wr_buf_append_u64(&buf, number);
    add_call_text(&saying->call, saying->numbers[i], buf.length);
}

/* Writes waiting letters (reports of requests) as text. Later ones are for the next call. */
static void write_gate_reports(struct wr_gate_turn *gate_turn, struct wr_buf *text, int64_t now)
{
    struct wr_gate_report letter;
    (void)pthread_mutex_lock(&gate_turn->relay->lock);
    for (size_t at = 0; at + sizeof letter <= gate_turn->letters.length; at += sizeof letter) {
        memcpy(&letter, gate_turn->letters.bytes + at, sizeof letter);
        wr_gate_report_write(text, &letter, now);
    }
    gate_turn->letters_sent = gate_turn->letters.length;
    gate_turn->news_sent = gate_turn->has_news;
    gate_turn->has_news = false;
    (void)pthread_mutex_unlock(&gate_turn->relay->lock);
}

/* Removes the letters of a call that arrived; otherwise keeps them for the next one. */
static void settle_gate_reports(struct wr_gate_turn *gate_turn, bool arrived)
{
    (void)pthread_mutex_lock(&gate_turn->relay->lock);
    if (arrived && gate_turn->letters_sent > 0) {
        size_t left = gate_turn->letters.length - gate_turn->letters_sent;
        memmove(gate_turn->letters.bytes, gate_turn->letters.bytes + gate_turn->letters_sent, left);
        wr_buf_cut(&gate_turn->letters, left);
    }
    gate_turn->letters_sent = 0;
    gate_turn->has_news = gate_turn->has_news || (!arrived && gate_turn->news_sent);
    (void)pthread_mutex_unlock(&gate_turn->relay->lock);
}

static const char *const verbs[] = {"", "want", "hold", "pass", "write"};

static uint64_t ns_to_ms(int64_t ns)
{
    return (uint64_t)(ns / WEIR_MILLISECOND);
}

static void compose_call(struct wr_gate_turn *gate_turn, const struct wr_gate_lease_move *move, uint64_t token,
                         bool is_packed, uint32_t flights, struct gate_turn_call *saying)
{
    const struct wr_shared_gate *relay = gate_turn->relay;
    struct wr_redis_call *call = &saying->call;
    wr_buf_append_string(&saying->key, relay->prefix);
    wr_buf_append_string(&saying->key, ":{pace ");
    wr_buf_append(&saying->key, gate_turn->key, gate_turn->key_bytes);
    wr_buf_append_char(&saying->key, '}');
    *call = (struct wr_redis_call){.key = saying->key.bytes, .key_bytes = saying->key.length};
    add_call_text(call, relay->who, WR_PEER_NAME_DIGITS);
    add_call_text(call, verbs[move->verb], strlen(verbs[move->verb]));
    add_call_number(saying, 0, token);
    add_call_number(saying, 1, gate_turn->gate_lease.seen);
    add_call_text(call, move->waits ? "1" : "0", 1);
    add_call_number(saying, 2, flights);
    add_call_number(saying, 3, ns_to_ms(WR_GATE_LEASE_NS));
    add_call_number(saying, 4, ns_to_ms(WR_GATE_LEASE_WAITER_TTL_NS));
    add_call_number(saying, 5, ns_to_ms(WR_GATE_LEASE_IN_FLIGHT_TTL_NS));
    add_call_number(saying, 6, (uint64_t)(move->pass_ns / WEIR_MICROSECOND));
    add_call_number(saying, 7, gate_turn->read);
    add_call_text(call, relay->packed, is_packed ? relay->packed_bytes : 0);
    add_call_text(call, saying->text.length > 0 ? saying->text.bytes : "", saying->text.length);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct gate_turn_answer {
    struct wr_gate_lease_reply reply;
    int64_t elapsed_ns;
    bool lost;
    const redisReply *gate;
};

static int64_t reply_number_at(const redisReply *reply, size_t i)
{
    const redisReply *item = reply->element[i];
    return item->type == REDIS_REPLY_INTEGER && item->integer >= 0 ? item->integer : -1;
}

static int64_t us_to_ns(int64_t us)
{
    return us < WEIR_DURATION_MAX / WEIR_MICROSECOND ? us * WEIR_MICROSECOND : WEIR_DURATION_MAX;
}

static uint32_t clamp_count(int64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static bool read_gate_reply(const redisReply *reply, struct gate_turn_answer *ret_answer)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < NUMBERS + 1)
        return false;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (reply_number_at(reply, i) < 0)
            return false;
    }
    const redisReply *gate = reply->element[NUMBERS];
    if (gate->type != REDIS_REPLY_STRING)
        return false;
    *ret_answer = (struct gate_turn_answer){
        .reply = {.is_ours = reply_number_at(reply, 0) == 1,
                  .token = (uint64_t)reply_number_at(reply, 1),
                  .others = clamp_count(reply_number_at(reply, 4)),
                  .waiting = clamp_count(reply_number_at(reply, 5)),
                  .place = clamp_count(reply_number_at(reply, 6)),
                  .busy_ns = us_to_ns(reply_number_at(reply, 7))},
        .elapsed_ns = us_to_ns(reply_number_at(reply, 2)),
        .lost = reply_number_at(reply, 3) == 1,
        .gate = gate,
    };
    return true;
}

static void apply_gate_reports_of(struct wr_gate_turn *gate_turn, const redisReply *text, int64_t age_ns, int64_t now)
{
    struct wr_span left = {text->str, (size_t)text->len};
    struct wr_gate_report letter;
    while (wr_gate_report_read(&left, age_ns, now, &letter)) {
        struct wr_remote_report away = {gate_turn->key,  gate_turn->key_bytes, &letter.start,
                                        &letter.outcome, letter.word,          now};
        wr_pacer_gate_tell_remote(gate_turn->relay->pacer, &away);
    }
}

/* Applies letters of other processes. This happens before any start: a letter may forbid it. */
static void apply_gate_reports(struct wr_gate_turn *gate_turn, const redisReply *reply, int64_t now)
{
    for (size_t i = NUMBERS + 1; i + 2 < reply->elements; i += 3) {
        int64_t number = reply_number_at(reply, i), age_us = reply_number_at(reply, i + 1);
        if (number <= 0 || (uint64_t)number <= gate_turn->read || age_us < 0 ||
            reply->element[i + 2]->type != REDIS_REPLY_STRING)
            continue;
        apply_gate_reports_of(gate_turn, reply->element[i + 2], us_to_ns(age_us), now);
        gate_turn->read = (uint64_t)number;
    }
}

static void take_shared_gate(struct wr_gate_turn *gate_turn, const struct gate_turn_answer *answer)
{
    struct wr_shared_gate *relay = gate_turn->relay;
    struct wr_pacer_gate_state lent = {0};
    (void)wr_pacer_gate_import(relay->pacer, gate_turn->key, gate_turn->key_bytes, answer->gate->str,
                               (size_t)answer->gate->len, answer->elapsed_ns, answer->lost);
    (void)wr_pacer_gate_state_get(relay->pacer, gate_turn->key, gate_turn->key_bytes, &lent);
    wr_gate_lease_taken(&gate_turn->gate_lease, lent.starts);
    gate_turn->read = 0;
    (void)pthread_mutex_lock(&relay->lock);
    relay->view.turns++;
    (void)pthread_mutex_unlock(&relay->lock);
}

/* Handles a turn that ended without being passed on. The store has the gate as last reported. */
static void note_lost_turn(struct wr_gate_turn *gate_turn)
{
    struct wr_shared_gate *relay = gate_turn->relay;
    wr_pacer_gate_extend(relay->pacer, gate_turn->key, gate_turn->key_bytes, INT64_MIN, 0);
    (void)pthread_mutex_lock(&relay->lock);
    relay->view.lost++;
    (void)pthread_mutex_unlock(&relay->lock);
}

static void apply_gate_reply(struct wr_gate_turn *gate_turn, const redisReply *reply,
                             const struct gate_turn_answer *answer, int64_t now)
{
    weir_pacer *pacer = gate_turn->relay->pacer;
    bool was_ours = gate_turn->gate_lease.token != 0;
    if (wr_gate_lease_answered(&gate_turn->gate_lease, &answer->reply, now))
        take_shared_gate(gate_turn, answer);
    if (was_ours && gate_turn->gate_lease.token == 0)
        note_lost_turn(gate_turn);
    if (gate_turn->gate_lease.token == 0)
        return;
    apply_gate_reports(gate_turn, reply, now);
    wr_pacer_gate_set_remote_count(pacer, gate_turn->key, gate_turn->key_bytes, answer->reply.others);
    wr_pacer_gate_extend(pacer, gate_turn->key, gate_turn->key_bytes, gate_turn->gate_lease.until,
                         gate_turn->asked_mark);
}

static void on_gate_reply(void *context, const redisReply *reply)
{
    struct wr_gate_turn *gate_turn = context;
    struct wr_shared_gate *relay = gate_turn->relay;
    struct gate_turn_answer answer;
    int64_t now = wr_pacer_now(relay->pacer);
    bool is_good = reply != NULL && read_gate_reply(reply, &answer);

    if (relay->is_closing)
        return;
    settle_gate_reports(gate_turn, is_good);
    if (is_good)
        apply_gate_reply(gate_turn, reply, &answer, now);
    else
        wr_gate_lease_missed(&gate_turn->gate_lease, now);
    wr_shared_gate_update_connection(relay);
    wr_gate_turn_step(gate_turn);
    wr_shared_gate_close_if_done(relay);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void send_call(struct wr_gate_turn *gate_turn, const struct wr_gate_lease_move *move, uint64_t token,
                      uint32_t flights, int64_t now)
{
    struct wr_shared_gate *relay = gate_turn->relay;
    char key[WR_SHARED_GATE_PREFIX_MAX + WEIR_PACE_KEY_MAX + 16];
    struct gate_turn_call saying;
    bool gives = move->verb == WR_GATE_LEASE_HOLD || move->verb == WR_GATE_LEASE_PASS;
    bool is_packed = gives && wr_pacer_gate_export(relay->pacer, gate_turn->key, gate_turn->key_bytes,
                                                   move->verb == WR_GATE_LEASE_PASS, relay->packed);
    wr_buf_init_fixed(&saying.key, key, sizeof key);
    wr_buf_init(&saying.text, relay->allocator, TEXT_MAX);
    write_gate_reports(gate_turn, &saying.text, now);
    gate_turn->asked_mark = wr_clock_sleep_mark();
    compose_call(gate_turn, move, token, is_packed, flights, &saying);
    int error = saying.text.error != 0 ? saying.text.error
                                       : wr_redis_connection_send(relay->wire, WR_SCRIPT_GATE_LEASE, &saying.call,
                                                                  on_gate_reply, gate_turn);
    wr_buf_release(&saying.text);
    if (error == 0)
        return;
    settle_gate_reports(gate_turn, false);
    wr_gate_lease_missed(&gate_turn->gate_lease, now);
    wr_shared_gate_update_connection(relay);
    wr_gate_turn_set_due(gate_turn, gate_turn->gate_lease.rest_until);
}

static struct wr_gate_lease_local local_state_of(struct wr_gate_turn *gate_turn)
{
    struct wr_shared_gate *relay = gate_turn->relay;
    struct wr_pacer_gate_state lent = {.wait_ns = 0, .starts = gate_turn->gate_lease.starts};
    (void)wr_pacer_gate_state_get(relay->pacer, gate_turn->key, gate_turn->key_bytes, &lent);
    (void)pthread_mutex_lock(&relay->lock);
    if (gate_turn->gate_lease.token != 0)
        gate_turn->wanted_at = 0;
    bool is_wanted = gate_turn->wanted_at != 0 && wr_pacer_now(relay->pacer) - gate_turn->wanted_at < WANTED_NS;
    struct wr_gate_lease_local here = {
        .wants = lent.waiters > 0 || lent.is_reserved || is_wanted,
        .is_reserved = lent.is_reserved,
        .has_letters = gate_turn->letters.length > 0,
        .has_news = gate_turn->has_news,
        .leaves = relay->is_ending,
        .flights = lent.flights,
        .starts = lent.starts,
        .wait_ns = lent.wait_ns,
    };
    (void)pthread_mutex_unlock(&relay->lock);
    return here;
}

void wr_gate_turn_step(struct wr_gate_turn *gate_turn)
{
    struct wr_shared_gate *relay = gate_turn->relay;
    struct wr_gate_lease_local here = local_state_of(gate_turn);
    int64_t now = wr_pacer_now(relay->pacer);
    uint64_t token = gate_turn->gate_lease.token;
    struct wr_gate_lease_move move = wr_gate_lease_next(&gate_turn->gate_lease, &here, now);
    if (token != 0 && gate_turn->gate_lease.token == 0 && move.verb != WR_GATE_LEASE_PASS)
        note_lost_turn(gate_turn);
    if (move.verb == WR_GATE_LEASE_PASS) {
        (void)pthread_mutex_lock(&relay->lock);
        relay->view.passed++;
        (void)pthread_mutex_unlock(&relay->lock);
    }
    if (move.verb != WR_GATE_LEASE_NOTHING)
        send_call(gate_turn, &move, move.verb == WR_GATE_LEASE_WANT ? 0 : token, here.flights, now);
    else if (!move.is_over || !wr_gate_turn_end(gate_turn))
        wr_gate_turn_set_due(gate_turn, move.at);
}
