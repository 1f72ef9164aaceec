/* SPDX-License-Identifier: MIT */
/* redis_connect.c - runs a hiredis connection on a libuv loop.
 *
 * The poll handle outlives the connection until the loop has closed it, so it has its own memory
 * block. hiredis calls `cleanup` once, before it closes the descriptor.
 */
#include "cluster/limit/redis_connection_state.h"

#include "base/alloc.h"

#include <string.h>

struct poller {
    uv_poll_t poll;
    redisAsyncContext *redis; /* NULL: the connection is gone */
    const weir_allocator *allocator;
    int events;
};

static void on_redis_poll(uv_poll_t *poll, int status, int events)
{
    struct poller *poller = poll->data;

    if (status < 0)
        events = UV_READABLE | UV_WRITABLE; /* lets hiredis find the error */
    if (poller->redis != NULL && (events & UV_READABLE) != 0)
        wr_redis_connection_read(poller->redis->data);
    if (poller->redis != NULL && (events & UV_WRITABLE) != 0)
        redisAsyncHandleWrite(poller->redis);
}

static void set_events(struct poller *poller, int events)
{
    poller->events = events;
    if (events != 0)
        uv_poll_start(&poller->poll, events, on_redis_poll);
    else
        uv_poll_stop(&poller->poll);
}

static void add_read(void *context)
{
    struct poller *poller = context;
    set_events(poller, poller->events | UV_READABLE);
}

static void drop_read(void *context)
{
    struct poller *poller = context;
    set_events(poller, poller->events & ~UV_READABLE);
}

static void add_write(void *context)
{
    struct poller *poller = context;
    set_events(poller, poller->events | UV_WRITABLE);
}

static void drop_write(void *context)
{
    struct poller *poller = context;
    set_events(poller, poller->events & ~UV_WRITABLE);
}

static void on_poller_closed(uv_handle_t *handle)
{
    struct poller *poller = handle->data;
    wr_free(poller->allocator, poller, sizeof *poller, _Alignof(struct poller));
}

static void detach_poller(void *context)
{
    struct poller *poller = context;
    poller->redis = NULL;
    uv_poll_stop(&poller->poll);
    uv_close((uv_handle_t *)&poller->poll, on_poller_closed);
}

static int attach_poller(struct wr_redis_connection *wire, redisAsyncContext *redis)
{
    struct poller *poller = wr_alloc(wire->allocator, sizeof *poller, _Alignof(struct poller));
    if (poller == NULL)
        return WEIR_E_NOMEM;
    if (uv_poll_init(wire->timer.loop, &poller->poll, redis->c.fd) != 0) {
        wr_free(wire->allocator, poller, sizeof *poller, _Alignof(struct poller));
        return WEIR_E_SYSTEM;
    }
    poller->poll.data = poller;
    poller->allocator = wire->allocator;
    poller->redis = redis;
    redis->ev.data = poller;
    redis->ev.addRead = add_read;
    redis->ev.delRead = drop_read;
    redis->ev.addWrite = add_write;
    redis->ev.delWrite = drop_write;
    redis->ev.cleanup = detach_poller;
    return 0;
}

void wr_redis_connection_ended(const redisAsyncContext *redis, int status)
{
    struct wr_redis_connection *wire = redis->data;
    if (wire == NULL || wire->redis != redis)
        return; /* not a failure: this side closed the connection */
    wire->redis = NULL;
    if (status != REDIS_OK)
        wr_redis_connection_failed(wire, wire->strict.why != NULL ? wire->strict.why
                                         : redis->errstr != NULL  ? redis->errstr
                                                                  : "the connection ended");
}

static void on_connect(const redisAsyncContext *redis, int status)
{
    struct wr_redis_connection *wire = redis->data;
    if (status != REDIS_OK)
        wr_redis_connection_ended(redis, status);
    else if (wire != NULL)
        wr_redis_connection_opened(wire);
}

/* Ends the connection if the password was refused. Otherwise later scripts would fail with a
 * misleading error. */
static void on_authenticated(redisAsyncContext *redis, void *answer, void *context)
{
    const redisReply *reply = answer;
    struct wr_redis_connection *wire = context;

    if (reply == NULL || reply->type != REDIS_REPLY_ERROR || wire->redis != redis)
        return;
    wire->view.refused++;
    wr_redis_connection_failed(wire, reply->str);
    wr_redis_connection_close(wire);
}

static void authenticate(struct wr_redis_connection *wire)
{
    const char *argv[] = {"AUTH", wire->user, wire->password};
    if (wire->password[0] == '\0')
        return;
    if (wire->user[0] == '\0')
        argv[1] = wire->password;
    redisAsyncCommandArgv(wire->redis, on_authenticated, wire, wire->user[0] == '\0' ? 2 : 3, argv, NULL);
}

int wr_redis_connection_open(struct wr_redis_connection *wire)
{
    redisAsyncContext *redis =
        wire->port < 0 ? redisAsyncConnectUnix(wire->address) : redisAsyncConnect(wire->address, wire->port);
    if (redis == NULL || redis->err != 0 || attach_poller(wire, redis) < 0) {
        wr_redis_connection_failed(wire,
                                   redis != NULL && redis->err != 0 ? redis->errstr : "out of memory or descriptors");
        if (redis != NULL)
            redisAsyncFree(redis);
        return WEIR_E_SYSTEM;
    }
    redis->data = wire;
    wr_redis_reply_limits_set(wire, redis);
    redisAsyncSetConnectCallback(redis, on_connect);
    redisAsyncSetDisconnectCallback(redis, wr_redis_connection_ended);
    wire->redis = redis;
    authenticate(wire);
    return 0;
}

void wr_redis_connection_read(struct wr_redis_connection *wire)
{
    redisAsyncHandleRead(wire->redis);
    if (wire->redis == NULL || wr_redis_reply_limits_hold(wire->redis))
        return;
    wr_redis_connection_failed(wire, "a reply is too large");
    wr_redis_connection_close(wire);
}

void wr_redis_connection_close(struct wr_redis_connection *wire)
{
    redisAsyncContext *redis = wire->redis;
    if (redis == NULL)
        return;
    wire->redis = NULL;
    redisAsyncFree(redis); /* within one of its callbacks, hiredis frees it when that returns */
}
