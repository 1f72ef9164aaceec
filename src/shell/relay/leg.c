/* SPDX-License-Identifier: MIT */
/* leg.c - one host: requests, takes, keeps and passes on its gate, by core/share/baton.h. */
#include "shell/clock/clock.h"
#include "shell/relay/inside.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define NUMBERS 8 /* numbers at the start of an answer */
#define NUMBER_BYTES 24
#define WANTED_NS WEIR_SECOND /* time for which a request for the gate counts */
#define TEXT_MAX ((size_t)1 << 20)

/* ---- calls ----------------------------------------------------------------------------------- */

/* The buffers of a call of baton.lua. */
struct saying {
    char numbers[9][NUMBER_BYTES];
    struct wr_buf key, text;
    struct wr_call call;
};

static void add_text(struct wr_call *call, const char *text, size_t bytes)
{
    call->args[call->count] = text;
    call->arg_bytes[call->count++] = bytes;
}

static void add_number(struct saying *saying, int i, uint64_t number)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, saying->numbers[i], NUMBER_BYTES);
    wr_buf_append_u64(&buf, number);
    add_text(&saying->call, saying->numbers[i], buf.length);
}

/* Writes waiting letters (reports of requests) as text. Later ones are for the next call. */
static void write_letters(struct wr_leg *leg, struct wr_buf *text, int64_t now)
{
    struct wr_letter letter;
    (void)pthread_mutex_lock(&leg->relay->lock);
    for (size_t at = 0; at + sizeof letter <= leg->letters.length; at += sizeof letter) {
        memcpy(&letter, leg->letters.bytes + at, sizeof letter);
        wr_letter_write(text, &letter, now);
    }
    leg->letters_sent = leg->letters.length;
    leg->news_sent = leg->has_news;
    leg->has_news = false;
    (void)pthread_mutex_unlock(&leg->relay->lock);
}

/* Removes the letters of a call that arrived; otherwise keeps them for the next one. */
static void settle_letters(struct wr_leg *leg, bool arrived)
{
    (void)pthread_mutex_lock(&leg->relay->lock);
    if (arrived && leg->letters_sent > 0) {
        size_t left = leg->letters.length - leg->letters_sent;
        memmove(leg->letters.bytes, leg->letters.bytes + leg->letters_sent, left);
        wr_buf_cut(&leg->letters, left);
    }
    leg->letters_sent = 0;
    leg->has_news = leg->has_news || (!arrived && leg->news_sent);
    (void)pthread_mutex_unlock(&leg->relay->lock);
}

static const char *const verbs[] = {"", "want", "hold", "pass", "write"};

static uint64_t ms_of(int64_t ns)
{
    return (uint64_t)(ns / WEIR_MILLISECOND);
}

static void compose(struct wr_leg *leg, const struct wr_baton_move *move, uint64_t token, bool is_packed,
                    uint32_t flights, struct saying *saying)
{
    const struct wr_relay *relay = leg->relay;
    struct wr_call *call = &saying->call;
    wr_buf_append_string(&saying->key, relay->prefix);
    wr_buf_append_string(&saying->key, ":{pace ");
    wr_buf_append(&saying->key, leg->key, leg->key_bytes);
    wr_buf_append_char(&saying->key, '}');
    *call = (struct wr_call){.key = saying->key.bytes, .key_bytes = saying->key.length};
    add_text(call, relay->who, WR_WHO_DIGITS);
    add_text(call, verbs[move->verb], strlen(verbs[move->verb]));
    add_number(saying, 0, token);
    add_number(saying, 1, leg->baton.seen);
    add_text(call, move->waits ? "1" : "0", 1);
    add_number(saying, 2, flights);
    add_number(saying, 3, ms_of(WR_BATON_LEASE));
    add_number(saying, 4, ms_of(WR_BATON_LINE));
    add_number(saying, 5, ms_of(WR_BATON_CREW));
    add_number(saying, 6, (uint64_t)(move->pass_ns / WEIR_MICROSECOND));
    add_number(saying, 7, leg->read);
    add_text(call, relay->packed, is_packed ? relay->packed_bytes : 0);
    add_text(call, saying->text.length > 0 ? saying->text.bytes : "", saying->text.length);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
    struct wr_baton_reply reply;
    int64_t elapsed_ns;
    bool lost;
    const redisReply *gate;
};

static int64_t number_at(const redisReply *reply, size_t i)
{
    const redisReply *item = reply->element[i];
    return item->type == REDIS_REPLY_INTEGER && item->integer >= 0 ? item->integer : -1;
}

static int64_t ns_of(int64_t us)
{
    return us < WEIR_DURATION_MAX / WEIR_MICROSECOND ? us * WEIR_MICROSECOND : WEIR_DURATION_MAX;
}

static uint32_t count_of(int64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static bool read_answer(const redisReply *reply, struct answer *ret_answer)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < NUMBERS + 1)
        return false;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (number_at(reply, i) < 0)
            return false;
    }
    const redisReply *gate = reply->element[NUMBERS];
    if (gate->type != REDIS_REPLY_STRING)
        return false;
    *ret_answer = (struct answer){
        .reply = {.is_ours = number_at(reply, 0) == 1,
                  .token = (uint64_t)number_at(reply, 1),
                  .others = count_of(number_at(reply, 4)),
                  .waiting = count_of(number_at(reply, 5)),
                  .place = count_of(number_at(reply, 6)),
                  .busy_ns = ns_of(number_at(reply, 7))},
        .elapsed_ns = ns_of(number_at(reply, 2)),
        .lost = number_at(reply, 3) == 1,
        .gate = gate,
    };
    return true;
}

static void tell_letter(struct wr_leg *leg, const redisReply *text, int64_t age_ns, int64_t now)
{
    struct wr_span left = {text->str, (size_t)text->len};
    struct wr_letter letter;
    while (wr_letter_read(&left, age_ns, now, &letter)) {
        struct wr_away away = {leg->key, leg->key_bytes, &letter.start, &letter.outcome, letter.word, now};
        wr_pacer_tell_away(leg->relay->pacer, &away);
    }
}

/* Applies letters of other processes. This happens before any start: a letter may forbid it. */
static void tell_letters(struct wr_leg *leg, const redisReply *reply, int64_t now)
{
    for (size_t i = NUMBERS + 1; i + 2 < reply->elements; i += 3) {
        int64_t number = number_at(reply, i), age_us = number_at(reply, i + 1);
        if (number <= 0 || (uint64_t)number <= leg->read || age_us < 0 ||
            reply->element[i + 2]->type != REDIS_REPLY_STRING)
            continue;
        tell_letter(leg, reply->element[i + 2], ns_of(age_us), now);
        leg->read = (uint64_t)number;
    }
}

static void take_gate(struct wr_leg *leg, const struct answer *answer)
{
    struct wr_relay *relay = leg->relay;
    struct wr_lent lent = {0};
    (void)wr_pacer_bring(relay->pacer, leg->key, leg->key_bytes, answer->gate->str, (size_t)answer->gate->len,
                         answer->elapsed_ns, answer->lost);
    (void)wr_pacer_lent(relay->pacer, leg->key, leg->key_bytes, &lent);
    wr_baton_took(&leg->baton, lent.starts);
    leg->read = 0;
    (void)pthread_mutex_lock(&relay->lock);
    relay->view.turns++;
    (void)pthread_mutex_unlock(&relay->lock);
}

/* Handles a turn that ended without being passed on. The store has the gate as last reported. */
static void note_loss(struct wr_leg *leg)
{
    struct wr_relay *relay = leg->relay;
    wr_pacer_extend(relay->pacer, leg->key, leg->key_bytes, INT64_MIN, 0);
    (void)pthread_mutex_lock(&relay->lock);
    relay->view.lost++;
    (void)pthread_mutex_unlock(&relay->lock);
}

static void hear(struct wr_leg *leg, const redisReply *reply, const struct answer *answer, int64_t now)
{
    weir_pacer *pacer = leg->relay->pacer;
    bool was_ours = leg->baton.token != 0;
    if (wr_baton_told(&leg->baton, &answer->reply, now))
        take_gate(leg, answer);
    if (was_ours && leg->baton.token == 0)
        note_loss(leg);
    if (leg->baton.token == 0)
        return;
    tell_letters(leg, reply, now);
    wr_pacer_count(pacer, leg->key, leg->key_bytes, answer->reply.others);
    wr_pacer_extend(pacer, leg->key, leg->key_bytes, leg->baton.until, leg->asked_mark);
}

static void on_answer(void *context, const redisReply *reply)
{
    struct wr_leg *leg = context;
    struct wr_relay *relay = leg->relay;
    struct answer answer;
    int64_t now = wr_pacer_now(relay->pacer);
    bool is_good = reply != NULL && read_answer(reply, &answer);

    if (relay->is_closing)
        return;
    settle_letters(leg, is_good);
    if (is_good)
        hear(leg, reply, &answer, now);
    else
        wr_baton_missed(&leg->baton, now);
    wr_relay_watch(relay);
    wr_leg_step(leg);
    wr_relay_rest(relay);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void send_call(struct wr_leg *leg, const struct wr_baton_move *move, uint64_t token, uint32_t flights,
                      int64_t now)
{
    struct wr_relay *relay = leg->relay;
    char key[WR_RELAY_PREFIX_MAX + WEIR_PACE_KEY_MAX + 16];
    struct saying saying;
    bool gives = move->verb == WR_BATON_HOLD || move->verb == WR_BATON_PASS;
    bool is_packed =
        gives && wr_pacer_pack(relay->pacer, leg->key, leg->key_bytes, move->verb == WR_BATON_PASS, relay->packed);
    wr_buf_init_fixed(&saying.key, key, sizeof key);
    wr_buf_init(&saying.text, relay->allocator, TEXT_MAX);
    write_letters(leg, &saying.text, now);
    leg->asked_mark = wr_clock_sleep_mark();
    compose(leg, move, token, is_packed, flights, &saying);
    int error = saying.text.error != 0 ? saying.text.error
                                       : wr_wire_send(relay->wire, WR_SCRIPT_BATON, &saying.call, on_answer, leg);
    wr_buf_release(&saying.text);
    if (error == 0)
        return;
    settle_letters(leg, false);
    wr_baton_missed(&leg->baton, now);
    wr_relay_watch(relay);
    wr_leg_due(leg, leg->baton.rest_until);
}

static struct wr_baton_here look_here(struct wr_leg *leg)
{
    struct wr_relay *relay = leg->relay;
    struct wr_lent lent = {.wait_ns = 0, .starts = leg->baton.starts};
    (void)wr_pacer_lent(relay->pacer, leg->key, leg->key_bytes, &lent);
    (void)pthread_mutex_lock(&relay->lock);
    if (leg->baton.token != 0)
        leg->wanted_at = 0;
    bool is_wanted = leg->wanted_at != 0 && wr_pacer_now(relay->pacer) - leg->wanted_at < WANTED_NS;
    struct wr_baton_here here = {
        .wants = lent.waiters > 0 || lent.is_reserved || is_wanted,
        .is_reserved = lent.is_reserved,
        .has_letters = leg->letters.length > 0,
        .has_news = leg->has_news,
        .leaves = relay->is_ending,
        .flights = lent.flights,
        .starts = lent.starts,
        .wait_ns = lent.wait_ns,
    };
    (void)pthread_mutex_unlock(&relay->lock);
    return here;
}

void wr_leg_step(struct wr_leg *leg)
{
    struct wr_relay *relay = leg->relay;
    struct wr_baton_here here = look_here(leg);
    int64_t now = wr_pacer_now(relay->pacer);
    uint64_t token = leg->baton.token;
    struct wr_baton_move move = wr_baton_next(&leg->baton, &here, now);
    if (token != 0 && leg->baton.token == 0 && move.verb != WR_BATON_PASS)
        note_loss(leg);
    if (move.verb == WR_BATON_PASS) {
        (void)pthread_mutex_lock(&relay->lock);
        relay->view.passed++;
        (void)pthread_mutex_unlock(&relay->lock);
    }
    if (move.verb != WR_BATON_NOTHING)
        send_call(leg, &move, move.verb == WR_BATON_WANT ? 0 : token, here.flights, now);
    else if (!move.is_over || !wr_leg_end(leg))
        wr_leg_due(leg, move.at);
}
