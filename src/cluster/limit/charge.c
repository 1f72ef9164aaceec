/* SPDX-License-Identifier: MIT */
/* charge.c - encodes charges of a key for the store, and reads its answers. */
#include "cluster/limit/charge.h"

#include "base/buf.h"
#include "base/error.h"
#include "core/limit/algorithm.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define NUMBERS 9                       /* numbers in a call */
#define FOREVER_US ((int64_t)1 << 52)   /* same value as in charge.lua */
#define PRODUCT_MAX ((uint64_t)1 << 51) /* numbers in Lua are exact up to 2^53 */

static char algorithm_letter(const weir_limit *limit)
{
    static const struct {
        const weir_algorithm *algorithm;
        char kind;
    } kinds[] = {
        {&wr_token_bucket, 'b'}, {&wr_stepped_bucket, 'p'}, {&wr_fixed_window, 'f'}, {&wr_sliding_window, 's'},
        {&wr_leaky_bucket, 'l'}, {&wr_sliding_log, 'g'},    {&wr_concurrency, 'c'},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (limit->algorithm == kinds[i].algorithm)
            return kinds[i].kind;
    }
    return '\0';
}

static uint64_t divisor_of(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Computes refill and period in us. A bucket's rate is exact, in lowest terms; windows round up. */
static void exact_rate_of(const weir_limit *limit, uint64_t *ret_refill, uint64_t *ret_period_us)
{
    uint64_t period_ns = (uint64_t)limit->period_ns;

    if (limit->algorithm == &wr_concurrency)
        period_ns = WR_IN_FLIGHT_NS;
    *ret_refill = limit->refill;
    *ret_period_us = (period_ns + 999) / 1000;
    if (limit->algorithm != &wr_token_bucket)
        return;
    uint64_t refill = (uint64_t)limit->refill * 1000;
    uint64_t divisor = divisor_of(refill, period_ns);
    *ret_refill = refill / divisor;
    *ret_period_us = period_ns / divisor;
}

/* Ends the word before and begins the next one. */
static void begin_word(struct wr_charge_limits *charge_limits, struct wr_buf *buf)
{
    if (charge_limits->count > 0)
        wr_buf_append(buf, "", 1);
    charge_limits->words[charge_limits->count++] = charge_limits->text + buf->length;
}

static void add_limit_number(struct wr_charge_limits *charge_limits, struct wr_buf *buf, uint64_t number)
{
    begin_word(charge_limits, buf);
    wr_buf_append_u64(buf, number);
}

static int add_limit(struct wr_charge_limits *charge_limits, struct wr_buf *buf, const weir_limit *limit)
{
    uint64_t refill, period_us;
    char kind = algorithm_letter(limit);

    if (kind == '\0')
        return wr_invalid("this kind of limit cannot be shared; use a bucket, a window or a log");
    exact_rate_of(limit, &refill, &period_us);
    if (period_us > PRODUCT_MAX / limit->permits || refill > PRODUCT_MAX)
        return wr_invalid("this limit is too large to be shared; use a smaller limit or a rounder rate");
    begin_word(charge_limits, buf);
    wr_buf_append(buf, &kind, 1);
    add_limit_number(charge_limits, buf, limit->permits);
    add_limit_number(charge_limits, buf, refill);
    add_limit_number(charge_limits, buf, period_us);
    if (limit->permits < charge_limits->permits)
        charge_limits->permits = limit->permits;
    return 0;
}

int wr_charge_limits_make(const weir_stack *stack, struct wr_charge_limits *ret_tariff)
{
    struct wr_buf buf;

    *ret_tariff = (struct wr_charge_limits){.permits = UINT32_MAX};
    wr_buf_init_fixed(&buf, ret_tariff->text, sizeof ret_tariff->text);
    for (uint32_t i = 0; i < stack->count; i++) {
        int error = add_limit(ret_tariff, &buf, &stack->limits[i]);
        if (error < 0)
            return error;
    }
    return 0;
}

static void add_argument(struct wr_redis_call *call, const char *word)
{
    call->args[call->count] = word;
    call->arg_bytes[call->count++] = strlen(word);
}

/* The numbers of a call as text, one after the other. */
struct argument_numbers {
    char text[NUMBERS * 21];
    struct wr_buf buf;
};

static void numbers_init(struct argument_numbers *numbers)
{
    wr_buf_init_fixed(&numbers->buf, numbers->text, sizeof numbers->text);
}

static void add_argument_number(struct wr_redis_call *call, struct argument_numbers *numbers, uint64_t number)
{
    const char *word = numbers->text + numbers->buf.length;

    wr_buf_append_u64(&numbers->buf, number);
    wr_buf_append(&numbers->buf, "", 1);
    add_argument(call, word);
}

int wr_charge_send(struct wr_redis_connection *wire, const struct wr_charge_limits *charge_limits,
                   const struct wr_charge *charge, wr_redis_on_reply *told, void *context)
{
    struct wr_redis_call call = {.key = charge->key, .key_bytes = charge->key_bytes};
    struct argument_numbers numbers;

    numbers_init(&numbers);
    add_argument_number(&call, &numbers, charge->permits);
    add_argument_number(&call, &numbers, charge->extra);
    add_argument_number(&call, &numbers, charge->owed);
    add_argument(&call, charge->seen);
    add_argument_number(&call, &numbers, charge->back);
    add_argument_number(&call, &numbers, (uint64_t)charge->charged_at);
    add_argument(&call, charge->who != NULL ? charge->who : "");
    add_argument_number(&call, &numbers, charge->held);
    add_argument_number(&call, &numbers, charge->message);
    add_argument(&call, charge->reset ? "1" : "0");
    add_argument_number(&call, &numbers, charge->bill);
    for (int i = 0; i < charge_limits->count; i++)
        add_argument(&call, charge_limits->words[i]);
    return wr_redis_connection_send(wire, WR_SCRIPT_CHARGE, &call, told, context);
}

/* Returns the i-th number of an answer, or -1 if it is not a number. */
static int64_t reply_integer_at(const redisReply *reply, size_t i)
{
    const redisReply *item = reply->element[i];
    return item->type == REDIS_REPLY_INTEGER ? item->integer : -1;
}

static int64_t duration_from_us(int64_t us)
{
    return us < WEIR_DURATION_MAX / 1000 ? us * 1000 : WEIR_DURATION_MAX;
}

static int64_t wait_from_us(int64_t us)
{
    return us >= FOREVER_US ? WEIR_UNTIL_RELEASE : duration_from_us(us);
}

int wr_charge_read(const redisReply *reply, struct wr_charge_reply *ret_told)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 9)
        return wr_invalid("the store's reply is not a list of nine");
    for (size_t i = 0; i < 7; i++) {
        if (reply_integer_at(reply, i) < 0)
            return wr_invalid("the store's reply lacks a number");
    }
    const redisReply *seen = reply->element[7];
    if (seen->type != REDIS_REPLY_STRING || seen->len >= WR_KEY_STATE_BYTES ||
        reply_integer_at(reply, 1) > UINT32_MAX || reply_integer_at(reply, 4) > UINT32_MAX)
        return wr_invalid("the store's reply is out of range");
    *ret_told = (struct wr_charge_reply){
        .reply = {.granted = reply_integer_at(reply, 0) == 1,
                  .extra = (uint32_t)reply_integer_at(reply, 1),
                  .wait_ns = wait_from_us(reply_integer_at(reply, 2)),
                  .full_wait_ns = wait_from_us(reply_integer_at(reply, 3))},
        .quota = {.remaining = (uint32_t)reply_integer_at(reply, 4),
                  .reset_ns = duration_from_us(reply_integer_at(reply, 5))},
        .at = reply_integer_at(reply, 6),
        .damaged = reply_integer_at(reply, 8) == 1,
    };
    memcpy(ret_told->seen, seen->str, (size_t)seen->len);
    return 0;
}

/* ---- seats ----------------------------------------------------------------------------------- */

int wr_membership_send(struct wr_redis_connection *wire, const char *prefix, const char *who, uint32_t seats,
                       wr_redis_on_reply *told, void *context)
{
    char key[64];
    struct wr_buf buf;
    struct argument_numbers numbers;

    wr_buf_init_fixed(&buf, key, sizeof key);
    wr_buf_append_string(&buf, prefix);
    wr_buf_append_string(&buf, ":{seats}");
    struct wr_redis_call call = {.key = key, .key_bytes = buf.length};
    numbers_init(&numbers);
    add_argument(&call, who);
    add_argument_number(&call, &numbers, seats);
    add_argument_number(&call, &numbers, (uint64_t)(WR_MEMBERSHIP_NS / WEIR_MILLISECOND));
    return wr_redis_connection_send(wire, WR_SCRIPT_MEMBERSHIP, &call, told, context);
}

bool wr_membership_read(const redisReply *reply, uint64_t *ret_born)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || reply_integer_at(reply, 1) <= 0)
        return false;
    *ret_born = (uint64_t)reply_integer_at(reply, 1);
    return reply_integer_at(reply, 0) == 1;
}
