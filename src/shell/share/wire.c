/* SPDX-License-Identifier: MIT */
/* wire.c - sends scripts to a store from an event loop.
 *
 * hiredis keeps a queue of callbacks and calls each of them once; with NULL if the connection ends.
 * It has no timeouts. So commands are also in a list, oldest first, and a timer checks the first
 * one. A command that times out is reported and leaves the list; its callback frees it later.
 *
 * When the breaker opens, the connection is closed with all its commands, because a store that
 * hangs would not answer any of them.
 */
#include "shell/share/inside.h"

#include "base/alloc.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/error.h"
#include "shell/clock/clock.h"
#include "shell/memory/memory.h"

#include <openssl/evp.h>
#include <string.h>

#define PROBE_NS WEIR_SECOND /* timeout of connecting and of probes, which no caller waits for */

static size_t ask_bytes(size_t text_bytes)
{
    return sizeof(struct wr_ask) + text_bytes;
}

static void free_ask(struct wr_ask *ask)
{
    struct wr_wire *wire = ask->wire;
    wr_list_take(&ask->link);
    wr_give(wire->allocator, ask, ask_bytes(ask->text_bytes), _Alignof(struct wr_ask));
}

/* Reports the result of a command, at most once. */
static void tell(struct wr_ask *ask, const redisReply *reply)
{
    if (!wr_list_holds(&ask->link))
        return;
    wr_list_take(&ask->link);
    ask->wire->view.asks--;
    ask->told(ask->context, reply);
}

static bool is_connected(const struct wr_wire *wire)
{
    return wire->redis != NULL && (wire->redis->c.flags & REDIS_CONNECTED) != 0;
}

/* Sets the reason of the last failure: the address and `why`, which is untrusted input, as
 * printable ASCII. */
static void note_why(struct wr_wire *wire, const char *why)
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
static bool miss(struct wr_wire *wire, bool broken, const char *why)
{
    bool opened = wr_outage_missed(&wire->outage, wr_boottime_now(), broken, wr_rng_next(&wire->rng));
    note_why(wire, why);
    wire->view.outages += opened;
    return wire->outage.down;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Reports a command as failed: it got no answer, or an error. */
static void fail(struct wr_ask *ask, bool broken, const char *why)
{
    struct wr_wire *wire = ask->wire;
    bool let_go = miss(wire, broken, why);

    tell(ask, NULL);
    free_ask(ask);
    if (let_go)
        wr_wire_let_go(wire);
}

static void on_reply(redisAsyncContext *redis, void *answer, void *context)
{
    struct wr_ask *ask = context;
    struct wr_wire *wire = ask->wire;
    const redisReply *reply = answer;
    bool is_waited_for = wr_list_holds(&ask->link);

    if (reply == NULL) { /* first, so that reported callers see that the connection ended */
        wr_wire_ended(redis, REDIS_ERR);
        wire->view.broken += is_waited_for;
        tell(ask, NULL);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        if (strncmp(reply->str, "NOSCRIPT", 8) == 0 && !ask->in_full && is_waited_for) {
            wire->view.reloads++;
            ask->in_full = true;
            if (wr_ask_write(ask, redis) == 0)
                return;
        }
        wire->view.refused++;
        fail(ask, true, reply->str);
        return;
    } else if (ask->is_late && is_waited_for) {
        fail(ask, false, "answers come too late");
        return;
    } else {
        if (is_waited_for) { /* a late answer does not show that the store is healthy */
            wire->view.answered++;
            wr_outage_answered(&wire->outage);
        }
        tell(ask, reply);
    }
    free_ask(ask);
}

/* Sends the script by its digest, or in full. */
int wr_ask_write(struct wr_ask *ask, redisAsyncContext *redis)
{
    struct wr_wire *wire = ask->wire;
    const char *argv[4 + WR_WIRE_ARGS_MAX] = {"EVALSHA", wire->digests[ask->script], "1", ask->text};
    size_t bytes[4 + WR_WIRE_ARGS_MAX] = {7, WR_DIGEST_DIGITS, 1, ask->key_bytes};
    const char *text = ask->text + ask->key_bytes;

    if (ask->in_full) {
        argv[0] = "EVAL";
        bytes[0] = 4;
        argv[1] = wr_scripts[ask->script];
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

static void watch(struct wr_wire *wire);

/* Handles a timeout. Returns true if the connection has to be closed. */
static bool give_up(struct wr_wire *wire, struct wr_ask *ask, int64_t now)
{
    bool is_silent = ask->is_late || !is_connected(wire);

    if (ask->is_probe && !is_silent) {
        ask->is_late = true;
        ask->until = now + PROBE_NS;
        return false;
    }
    wire->view.timed_out++;
    bool let_go = miss(wire, is_silent, "no answer in time");
    tell(ask, NULL);
    return let_go;
}

/* First reads answers that came in time: a thread that did not run for a while gets its timers
 * before them. */
static void on_timer(uv_timer_t *timer)
{
    struct wr_wire *wire = timer->data;
    int64_t now = wr_boottime_now();
    bool let_go = false;

    if (is_connected(wire))
        wr_wire_read(wire);
    while (wire->waiting.first != NULL) {
        struct wr_ask *ask = WR_LINKED(wire->waiting.first, struct wr_ask, link);
        if (ask->until > now)
            break;
        let_go = give_up(wire, ask, now) || let_go;
    }
    if (let_go)
        wr_wire_let_go(wire);
    watch(wire);
}

/* Sets the timer to the timeout of the first command. libuv counts ms from the loop's time. */
static void watch(struct wr_wire *wire)
{
    if (wire->waiting.first == NULL || uv_is_closing((uv_handle_t *)&wire->timer))
        return;
    int64_t left_ns = WR_LINKED(wire->waiting.first, struct wr_ask, link)->until - wr_boottime_now();
    uv_update_time(wire->timer.loop);
    uv_timer_start(&wire->timer, on_timer, left_ns > 0 ? (uint64_t)(left_ns / WEIR_MILLISECOND) + 1 : 0, 0);
}

void wr_wire_connected(struct wr_wire *wire)
{
    wire->view.connects++;
    for (struct wr_list_link *link = wire->waiting.first; link != NULL; link = link->next)
        WR_LINKED(link, struct wr_ask, link)->until = wr_boottime_now() + wire->timeout_ns;
    watch(wire);
}

void wr_wire_broke(struct wr_wire *wire, const char *why)
{
    miss(wire, true, why);
}

/* ---- sending --------------------------------------------------------------------------------- */

static struct wr_ask *make_ask(struct wr_wire *wire, enum wr_script script, const struct wr_call *call)
{
    size_t text_bytes = call->key_bytes;
    for (int i = 0; i < call->count; i++)
        text_bytes += call->arg_bytes[i];
    struct wr_ask *ask = wr_take(wire->allocator, ask_bytes(text_bytes), _Alignof(struct wr_ask));
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

int wr_wire_send(struct wr_wire *wire, enum wr_script script, const struct wr_call *call, wr_wire_told *told,
                 void *context)
{
    if (wire->view.asks >= WR_WIRE_ASKS_MAX)
        return WEIR_E_FULL;
    if (!wr_outage_may_ask(&wire->outage, wr_boottime_now()))
        return WEIR_E_CLOSED;
    if (wire->redis == NULL && wr_wire_connect(wire) < 0)
        return WEIR_E_CLOSED;
    struct wr_ask *ask = make_ask(wire, script, call);
    if (ask == NULL)
        return WEIR_E_NOMEM;
    if (wr_ask_write(ask, wire->redis) < 0) {
        free_ask(ask);
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
        watch(wire);
    return 0;
}

/* ---- the wire -------------------------------------------------------------------------------- */

static int digest_scripts(struct wr_wire *wire)
{
    for (int i = 0; i < WR_SCRIPT_COUNT; i++) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        const char *text = wr_scripts[i];
        if (EVP_Digest(text, strlen(text), digest, NULL, EVP_sha1(), NULL) != 1)
            return WEIR_E_SYSTEM;
        for (size_t j = 0; j < WR_DIGEST_DIGITS; j++)
            wire->digests[i][j] = "0123456789abcdef"[digest[j / 2] >> (j % 2 == 0 ? 4 : 0) & 15];
    }
    return 0;
}

static int copy_text(char *ret_text, size_t room, const char *text)
{
    if (text != NULL && strlen(text) >= room)
        return wr_invalid("an address, user or password of the store is too long; at most 107 and 255 bytes go");
    if (text != NULL)
        memcpy(ret_text, text, strlen(text) + 1);
    return 0;
}

static int fill(struct wr_wire *wire, const struct wr_wire_options *options)
{
    uint64_t seed = 0;

    if ((options->path == NULL) == (options->host == NULL))
        return wr_invalid("the store needs either the path of a socket or a host");
    int error = copy_text(wire->address, sizeof wire->address, options->path != NULL ? options->path : options->host);
    if (error == 0)
        error = copy_text(wire->user, sizeof wire->user, options->user);
    if (error == 0)
        error = copy_text(wire->password, sizeof wire->password, options->password);
    if (error == 0)
        error = digest_scripts(wire);
    if (error == 0)
        error = wr_random(&seed, sizeof seed);
    wire->port = options->path != NULL ? -1 : options->port;
    wire->timeout_ns = options->timeout_ns > 0 ? options->timeout_ns : WR_WIRE_TIMEOUT;
    wr_rng_init(&wire->rng, seed);
    return error;
}

int wr_wire_new(const struct wr_wire_options *options, uv_loop_t *loop, struct wr_wire **ret_wire)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_wire *wire = wr_take(allocator, sizeof *wire, _Alignof(struct wr_wire));
    if (wire == NULL)
        return WEIR_E_NOMEM;
    wire->allocator = allocator;
    int error = fill(wire, options);
    if (error == 0 && uv_timer_init(loop, &wire->timer) != 0)
        error = WEIR_E_SYSTEM;
    if (error < 0) {
        wr_give(allocator, wire, sizeof *wire, _Alignof(struct wr_wire));
        return error;
    }
    wire->timer.data = wire;
    *ret_wire = wire;
    return 0;
}

bool wr_wire_is_down(const struct wr_wire *wire)
{
    return wire->outage.down;
}

bool wr_wire_is_lost(const struct wr_wire *wire)
{
    return wire->outage.lost;
}

void wr_wire_view_get(const struct wr_wire *wire, struct wr_wire_view *ret_view)
{
    *ret_view = wire->view;
    ret_view->down = wire->outage.down;
    ret_view->lost = wire->outage.lost;
    ret_view->connected = is_connected(wire);
}

static void on_closed(uv_handle_t *handle)
{
    struct wr_wire *wire = handle->data;
    wr_give(wire->allocator, wire, sizeof *wire, _Alignof(struct wr_wire));
}

void wr_wire_free(struct wr_wire *wire)
{
    if (wire == NULL)
        return;
    wr_wire_let_go(wire);
    uv_close((uv_handle_t *)&wire->timer, on_closed);
}
