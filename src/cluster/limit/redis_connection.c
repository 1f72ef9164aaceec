/* SPDX-License-Identifier: MIT */
/* redis_connection.c - sends scripts to a store from an event loop.
 *
 * hiredis keeps a queue of callbacks and calls each of them once; with NULL if the connection ends.
 * It has no timeouts. So commands are also in a list, oldest first, and a timer checks the first
 * one. A command that times out is reported and leaves the list; its callback frees it later.
 *
 * When the breaker opens, the connection is closed with all its commands, because a store that
 * hangs would not answer any of them.
 */
#include "cluster/limit/redis_connection_state.h"

#include "base/alloc.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/error.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"

#include <openssl/evp.h>
#include <string.h>

#define PROBE_NS WEIR_SECOND /* timeout of connecting and of probes, which no caller waits for */

static size_t command_bytes(size_t text_bytes)
{
    return sizeof(struct wr_redis_command) + text_bytes;
}

static void free_command(struct wr_redis_command *ask)
{
    struct wr_redis_connection *wire = ask->wire;
    wr_list_remove(&ask->link);
    wr_free(wire->allocator, ask, command_bytes(ask->text_bytes), _Alignof(struct wr_redis_command));
}

/* Reports the result of a command, at most once. */
static void report_command(struct wr_redis_command *ask, const redisReply *reply)
{
    if (!wr_list_is_linked(&ask->link))
        return;
    wr_list_remove(&ask->link);
    ask->wire->view.asks--;
    ask->told(ask->context, reply);
}

static bool is_connected(const struct wr_redis_connection *wire)
{
    return wire->redis != NULL && (wire->redis->c.flags & REDIS_CONNECTED) != 0;
}

/* Sets the reason of the last failure: the address and `why`, which is untrusted input, as
 * printable ASCII. */
static void note_connection_failure(struct wr_redis_connection *wire, const char *why)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, wire->view.why, sizeof wire->view.why);
    wr_buf_append_string(&buf, wire->address);
    if (wire->port >= 0) {
        wr_buf_append_string(&buf, " port ");
        wr_buf_append_u64(&buf, (uint64_t)wire->port);
    }
    wr_buf_append_string(&buf, ": ");
    for (const char *c = why; *c != '\0'; c++)
        wr_buf_append_char(&buf, wr_ascii_is_printable(*c) ? *c : '?');
    if (strstr(why, "NOAUTH") != NULL || strstr(why, "WRONGPASS") != NULL || strstr(why, "unauthenticated") != NULL)
        wr_buf_append_string(&buf, " - give the right password in the URL: redis://USER:PASSWORD@HOST:PORT");
}

/* Counts a missing answer. Returns true if the connection has to be closed. */
static bool count_missing_reply(struct wr_redis_connection *wire, bool broken, const char *why)
{
    bool opened = wr_outage_missed(&wire->outage, wr_boottime_now(), broken, wr_rng_next(&wire->rng));
    note_connection_failure(wire, why);
    wire->view.outages += opened;
    return wire->outage.down;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Reports a command as failed: it got no answer, or an error. */
static void fail_command(struct wr_redis_command *ask, bool broken, const char *why)
{
    struct wr_redis_connection *wire = ask->wire;
    bool let_go = count_missing_reply(wire, broken, why);

    report_command(ask, NULL);
    free_command(ask);
    if (let_go)
        wr_redis_connection_close(wire);
}

static void on_reply(redisAsyncContext *redis, void *answer, void *context)
{
    struct wr_redis_command *ask = context;
    struct wr_redis_connection *wire = ask->wire;
    const redisReply *reply = answer;
    bool is_waited_for = wr_list_is_linked(&ask->link);

    if (reply == NULL) { /* first, so that reported callers see that the connection ended */
        wr_redis_connection_ended(redis, REDIS_ERR);
        wire->view.broken += is_waited_for;
        report_command(ask, NULL);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        if (strncmp(reply->str, "NOSCRIPT", 8) == 0 && !ask->in_full && is_waited_for) {
            wire->view.reloads++;
            ask->in_full = true;
            if (wr_redis_command_write(ask, redis) == 0)
                return;
        }
        wire->view.refused++;
        fail_command(ask, true, reply->str);
        return;
    } else if (ask->is_late && is_waited_for) {
        fail_command(ask, false, "replies arrive too late");
        return;
    } else {
        if (is_waited_for) { /* a late answer does not show that the store is healthy */
            wire->view.answered++;
            wr_outage_answered(&wire->outage);
        }
        report_command(ask, reply);
    }
    free_command(ask);
}

/* Sends the script by its digest, or in full. */
int wr_redis_command_write(struct wr_redis_command *ask, redisAsyncContext *redis)
{
    struct wr_redis_connection *wire = ask->wire;
    const char *argv[4 + WR_REDIS_ARGS_MAX] = {"EVALSHA", wire->digests[ask->script], "1", ask->text};
    size_t bytes[4 + WR_REDIS_ARGS_MAX] = {7, WR_SCRIPT_DIGEST_DIGITS, 1, ask->key_bytes};
    const char *text = ask->text + ask->key_bytes;

    if (ask->in_full) {
        argv[0] = "EVAL";
        bytes[0] = 4;
        argv[1] = wr_redis_script_texts[ask->script];
        bytes[1] = strlen(argv[1]);
    }
    for (int i = 0; i < ask->count; i++) {
        argv[4 + i] = text;
        bytes[4 + i] = ask->arg_bytes[i];
        text += ask->arg_bytes[i];
    }
    return redisAsyncCommandArgv(redis, on_reply, ask, 4 + ask->count, argv, bytes) == REDIS_OK ? 0 : WEIR_E_SYSTEM;
}

/* ---- timeouts -------------------------------------------------------------------------------- */

static void set_command_timer(struct wr_redis_connection *wire);

/* Handles a timeout. Returns true if the connection has to be closed. */
static bool time_out_command(struct wr_redis_connection *wire, struct wr_redis_command *ask, int64_t now)
{
    bool is_silent = ask->is_late || !is_connected(wire);

    if (ask->is_probe && !is_silent) {
        ask->is_late = true;
        ask->until = now + PROBE_NS;
        return false;
    }
    wire->view.timed_out++;
    bool let_go = count_missing_reply(wire, is_silent, "no reply in time");
    report_command(ask, NULL);
    return let_go;
}

/* First reads answers that came in time: a thread that did not run for a while gets its timers
 * before them. */
static void on_command_timer(uv_timer_t *timer)
{
    struct wr_redis_connection *wire = timer->data;
    int64_t now = wr_boottime_now();
    bool let_go = false;

    if (is_connected(wire))
        wr_redis_connection_read(wire);
    while (wire->waiting.first != NULL) {
        struct wr_redis_command *ask = WR_LINKED(wire->waiting.first, struct wr_redis_command, link);
        if (ask->until > now)
            break;
        let_go = time_out_command(wire, ask, now) || let_go;
    }
    if (let_go)
        wr_redis_connection_close(wire);
    set_command_timer(wire);
}

/* Sets the timer to the timeout of the first command. libuv counts ms from the loop's time. */
static void set_command_timer(struct wr_redis_connection *wire)
{
    if (wire->waiting.first == NULL || uv_is_closing((uv_handle_t *)&wire->timer))
        return;
    int64_t left_ns = WR_LINKED(wire->waiting.first, struct wr_redis_command, link)->until - wr_boottime_now();
    uv_update_time(wire->timer.loop);
    uv_timer_start(&wire->timer, on_command_timer, left_ns > 0 ? (uint64_t)(left_ns / WEIR_MILLISECOND) + 1 : 0, 0);
}

void wr_redis_connection_opened(struct wr_redis_connection *wire)
{
    wire->view.connects++;
    for (struct wr_list_link *link = wire->waiting.first; link != NULL; link = link->next)
        WR_LINKED(link, struct wr_redis_command, link)->until = wr_boottime_now() + wire->timeout_ns;
    set_command_timer(wire);
}

void wr_redis_connection_failed(struct wr_redis_connection *wire, const char *why)
{
    count_missing_reply(wire, true, why);
}

/* ---- sending --------------------------------------------------------------------------------- */

static struct wr_redis_command *make_command(struct wr_redis_connection *wire, enum wr_redis_script script,
                                             const struct wr_redis_call *call)
{
    size_t text_bytes = call->key_bytes;
    for (int i = 0; i < call->count; i++)
        text_bytes += call->arg_bytes[i];
    struct wr_redis_command *ask =
        wr_alloc(wire->allocator, command_bytes(text_bytes), _Alignof(struct wr_redis_command));
    if (ask == NULL)
        return NULL;
    ask->wire = wire;
    ask->script = script;
    ask->text_bytes = text_bytes;
    ask->key_bytes = call->key_bytes;
    ask->count = call->count;
    memcpy(ask->text, call->key, call->key_bytes);
    char *text = ask->text + call->key_bytes;
    for (int i = 0; i < call->count; i++) {
        memcpy(text, call->args[i], call->arg_bytes[i]);
        ask->arg_bytes[i] = call->arg_bytes[i];
        text += call->arg_bytes[i];
    }
    return ask;
}

int wr_redis_connection_send(struct wr_redis_connection *wire, enum wr_redis_script script,
                             const struct wr_redis_call *call, wr_redis_on_reply *told, void *context)
{
    if (wire->view.asks >= WR_REDIS_COMMANDS_MAX)
        return WEIR_E_FULL;
    if (!wr_outage_may_ask(&wire->outage, wr_boottime_now()))
        return WEIR_E_CLOSED;
    if (wire->redis == NULL && wr_redis_connection_open(wire) < 0)
        return WEIR_E_CLOSED;
    struct wr_redis_command *ask = make_command(wire, script, call);
    if (ask == NULL)
        return WEIR_E_NOMEM;
    if (wr_redis_command_write(ask, wire->redis) < 0) {
        free_command(ask);
        return WEIR_E_CLOSED;
    }
    ask->told = told;
    ask->context = context;
    ask->is_probe = wire->outage.down;
    ask->until = wr_boottime_now() + (is_connected(wire) ? wire->timeout_ns : PROBE_NS);
    bool first = wire->waiting.first == NULL;
    wr_list_push(&wire->waiting, &ask->link);
    wire->view.asks++;
    wire->view.sent++;
    if (first)
        set_command_timer(wire);
    return 0;
}

/* ---- the wire -------------------------------------------------------------------------------- */

static int digest_scripts(struct wr_redis_connection *wire)
{
    for (int i = 0; i < WR_SCRIPT_COUNT; i++) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        const char *text = wr_redis_script_texts[i];
        if (EVP_Digest(text, strlen(text), digest, NULL, EVP_sha1(), NULL) != 1)
            return WEIR_E_SYSTEM;
        for (size_t j = 0; j < WR_SCRIPT_DIGEST_DIGITS; j++)
            wire->digests[i][j] = "0123456789abcdef"[digest[j / 2] >> (j % 2 == 0 ? 4 : 0) & 15];
    }
    return 0;
}

static int copy_option_text(char *ret_text, size_t room, const char *text)
{
    if (text != NULL && strlen(text) >= room)
        return wr_invalid("an address, user or password of the store is too long; use at most 107 and 255 bytes");
    if (text != NULL)
        memcpy(ret_text, text, strlen(text) + 1);
    return 0;
}

static int fill_connection(struct wr_redis_connection *wire, const struct wr_redis_connection_options *options)
{
    uint64_t seed = 0;

    if ((options->path == NULL) == (options->host == NULL))
        return wr_invalid("the store needs either the path of a socket or a host");
    int error =
        copy_option_text(wire->address, sizeof wire->address, options->path != NULL ? options->path : options->host);
    if (error == 0)
        error = copy_option_text(wire->user, sizeof wire->user, options->user);
    if (error == 0)
        error = copy_option_text(wire->password, sizeof wire->password, options->password);
    if (error == 0)
        error = digest_scripts(wire);
    if (error == 0)
        error = wr_random(&seed, sizeof seed);
    wire->port = options->path != NULL ? -1 : options->port;
    wire->timeout_ns = options->timeout_ns > 0 ? options->timeout_ns : WR_REDIS_TIMEOUT;
    wr_rng_init(&wire->rng, seed);
    return error;
}

int wr_redis_connection_new(const struct wr_redis_connection_options *options, uv_loop_t *loop,
                            struct wr_redis_connection **ret_wire)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_redis_connection *wire = wr_alloc(allocator, sizeof *wire, _Alignof(struct wr_redis_connection));
    if (wire == NULL)
        return WEIR_E_NOMEM;
    wire->allocator = allocator;
    int error = fill_connection(wire, options);
    if (error == 0 && uv_timer_init(loop, &wire->timer) != 0)
        error = WEIR_E_SYSTEM;
    if (error < 0) {
        wr_free(allocator, wire, sizeof *wire, _Alignof(struct wr_redis_connection));
        return error;
    }
    wire->timer.data = wire;
    *ret_wire = wire;
    return 0;
}

bool wr_redis_connection_is_down(const struct wr_redis_connection *wire)
{
    return wire->outage.down;
}

bool wr_redis_connection_is_lost(const struct wr_redis_connection *wire)
{
    return wire->outage.lost;
}

void wr_redis_connection_view_get(const struct wr_redis_connection *wire, struct wr_redis_connection_view *ret_view)
{
    *ret_view = wire->view;
    ret_view->down = wire->outage.down;
    ret_view->lost = wire->outage.lost;
    ret_view->connected = is_connected(wire);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct wr_redis_connection *wire = handle->data;
    wr_free(wire->allocator, wire, sizeof *wire, _Alignof(struct wr_redis_connection));
}

void wr_redis_connection_free(struct wr_redis_connection *wire)
{
    if (wire == NULL)
        return;
    wr_redis_connection_close(wire);
    uv_close((uv_handle_t *)&wire->timer, on_timer_closed);
}
