/* SPDX-License-Identifier: MIT */
/* redis_reply_limits.c - refuses answers without a question and answers of excessive size.
 *
 * hiredis trusts its server: an answer without a question ends the program (an assertion), and an
 * answer may take all memory. But it lets callers create the objects of an answer. They refuse
 * here.
 */
#include "cluster/limit/redis_connection_state.h"

#include <string.h>

#define ELEMENTS_MAX 65536
#define LINE_BYTES_MAX ((size_t)1 << 16)
#define ANSWER_BYTES_MAX ((size_t)16 << 20)

#if HIREDIS_MAJOR < 1
typedef int element_count;
#else
typedef size_t element_count;
#endif

static redisAsyncContext *redis_of(const redisReadTask *task)
{
    return task->privdata;
}

/* Returns NULL to end the connection. An error without a question is allowed: hiredis takes it as
 * one about the connection. */
static struct wr_redis_reply_limits *allow_reply_item(const redisReadTask *task, size_t elements, size_t bytes)
{
    const redisAsyncContext *redis = redis_of(task);
    struct wr_redis_reply_limits *strict = &((struct wr_redis_connection *)redis->data)->strict;

    if (task->parent == NULL) {
        strict->elements = strict->bytes = 0;
        if (redis->replies.head == NULL && task->type != REDIS_REPLY_ERROR) {
            strict->why = "it sent a reply that was not requested";
            return NULL;
        }
    }
    strict->elements += elements;
    strict->bytes += bytes;
    if (strict->elements <= ELEMENTS_MAX && strict->bytes <= ANSWER_BYTES_MAX)
        return strict;
    strict->why = "a reply is too large";
    return NULL;
}

static void *make_string(const redisReadTask *task, char *text, size_t bytes)
{
    const struct wr_redis_reply_limits *strict = allow_reply_item(task, 0, bytes);
    return strict != NULL ? strict->usual->createString(task, text, bytes) : NULL;
}

static void *make_array(const redisReadTask *task, element_count count)
{
    const struct wr_redis_reply_limits *strict = allow_reply_item(task, (size_t)count, 0);
    return strict != NULL ? strict->usual->createArray(task, count) : NULL;
}

static void *make_integer(const redisReadTask *task, long long number)
{
    const struct wr_redis_reply_limits *strict = allow_reply_item(task, 0, 0);
    return strict != NULL ? strict->usual->createInteger(task, number) : NULL;
}

static void *make_nil(const redisReadTask *task)
{
    const struct wr_redis_reply_limits *strict = allow_reply_item(task, 0, 0);
    return strict != NULL ? strict->usual->createNil(task) : NULL;
}

void wr_redis_reply_limits_set(struct wr_redis_connection *wire, redisAsyncContext *redis)
{
    redisReader *reader = redis->c.reader;

    wire->strict = (struct wr_redis_reply_limits){.usual = reader->fn, .own = *reader->fn};
    wire->strict.own.createString = make_string;
    wire->strict.own.createArray = make_array;
    wire->strict.own.createInteger = make_integer;
    wire->strict.own.createNil = make_nil;
    reader->fn = &wire->strict.own;
    reader->privdata = redis;
}

/* Every item begins with a line, and hiredis searches for its end from the beginning each time. */
bool wr_redis_reply_limits_hold(const redisAsyncContext *redis)
{
    const redisReader *reader = redis->c.reader;
    size_t bytes = reader->len - reader->pos;

    if (bytes > LINE_BYTES_MAX && memchr(reader->buf + reader->pos, '\n', LINE_BYTES_MAX) == NULL)
        return false;
    return bytes <= ANSWER_BYTES_MAX;
}
