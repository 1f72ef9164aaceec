/* SPDX-License-Identifier: MIT */
/* net.c - creates and closes nets, and runs calls posted by other threads. */
#include "shell/net/state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/rules/http/field.h"
#include "shell/clock/clock.h"
#include "shell/loop/away.h"
#include "shell/memory/memory.h"
#include "shell/memory/reserve.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#define TRANSFERS_DEFAULT 256
#define TRANSFERS_MAX 65536
#define CONNECTIONS_MAX (1 << 20)
#define DESCRIPTORS_LEFT 64 /* descriptors left for the rest of the program */
#define VALIDATOR_MAX 1024  /* bytes; longer ones are not sent back */
#define BODY_DEFAULT ((uint64_t)32 << 20)

/* ---- posted calls and ends ---- */

void wr_net_wake(struct wr_net *net)
{
    wr_wakeup_send(&net->wakeup);
}

void wr_net_post(struct wr_net *net, struct wr_net_call *call)
{
    call->next = NULL;
    (void)pthread_mutex_lock(&net->post_lock);
    *net->posted_end = call;
    net->posted_end = &call->next;
    (void)pthread_mutex_unlock(&net->post_lock);
    wr_net_wake(net);
}

/* Appends new posts to those that the last share of time did not reach. */
static void take_posted(struct wr_net *net)
{
    (void)pthread_mutex_lock(&net->post_lock);
    if (net->posted != NULL) {
        *net->calls_end = net->posted;
        net->calls_end = net->posted_end;
        net->posted = NULL;
        net->posted_end = &net->posted;
    }
    (void)pthread_mutex_unlock(&net->post_lock);
}

static void run_next(struct wr_net *net)
{
    struct wr_net_call *call = net->calls;

    net->calls = call->next; /* `run` may free the call */
    if (net->calls == NULL)
        net->calls_end = &net->calls;
    call->run(call);
}

static void run_posted(struct wr_net *net)
{
    WR_DOING("letters");
    struct wr_share share = wr_share_begin(WR_SHARE_NS);

    take_posted(net);
    while (net->calls != NULL && wr_share_lasts(&share))
        run_next(net);
    if (net->calls != NULL)
        wr_net_wake(net);
}

static void end_cancelled(struct wr_net *net)
{
    if (!net->has_cancelled)
        return;
    net->has_cancelled = false;
    for (struct wr_transfer *transfer = net->under_way, *next; transfer != NULL; transfer = next) {
        next = transfer->next;
        if (transfer->is_cancelled) {
            wr_transfer_set_end(transfer, WR_NET_CANCELLED, NULL);
            wr_transfer_end(transfer);
        }
    }
}

void wr_net_finish(struct wr_net *net)
{
    WR_DOING("ends of transfers");
    bool was_in = net->in_settle;

    net->in_settle = true;
    while (net->ended != NULL)
        wr_transfer_finish(net->ended);
    net->in_settle = was_in;
}

void wr_net_settle(struct wr_net *net)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(net->multi, &left)) != NULL) {
        struct wr_transfer *transfer = NULL;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        wr_easy_done(transfer, message->data.result);
    }
    wr_net_finish(net);
}

/* ---- closing ---- */

static void give_string(struct wr_net *net, const char *string)
{
    if (string != NULL)
        wr_give(net->allocator, (void *)(uintptr_t)string, strlen(string) + 1, 1);
}

static void release(struct wr_net *net)
{
    const weir_allocator *allocator = net->allocator;

    give_string(net, net->options.agent);
    give_string(net, net->options.ca_file);
    wr_heap_release(&net->dues);
    wr_lean_release(net);
    wr_socket_give_spares(net);
    wr_give(allocator, net->sockets, net->sockets_room * sizeof(struct wr_socket *), _Alignof(struct wr_socket *));
    (void)pthread_mutex_destroy(&net->post_lock);
    wr_give(allocator, net, sizeof *net, _Alignof(struct wr_net));
    curl_global_cleanup();
}

void wr_net_let_go(struct wr_net *net)
{
    if (--net->open_handles == 0)
        release(net);
}

static void on_closed(uv_handle_t *handle)
{
    wr_net_let_go(handle->data);
}

/* Closes the net's own handles. Those of sockets were closed with libcurl's connections before. */
static void close_handles(struct wr_net *net)
{
    uv_close((uv_handle_t *)&net->curl_timer, on_closed);
    uv_close((uv_handle_t *)&net->due_timer, on_closed);
    uv_close((uv_handle_t *)&net->no_wait, on_closed);
    uv_close((uv_handle_t *)&net->polled, on_closed);
    uv_close((uv_handle_t *)&net->lean.no_wait, on_closed);
    uv_close((uv_handle_t *)&net->lean.polled, on_closed);
    uv_close((uv_handle_t *)&net->unpacking.turn, on_closed);
    uv_close((uv_handle_t *)&net->unpacking.no_wait, on_closed);
    wr_wakeup_close(&net->wakeup, on_closed);
    wr_round_close(&net->round, on_closed, net);
}

static void end_multi(struct wr_net *net)
{
    (void)curl_multi_cleanup(net->multi);
    if (net->nowhere != NULL)
        (void)curl_share_cleanup(net->nowhere);
}

void wr_net_close(struct wr_net *net)
{
    if (net == NULL)
        return;
    assert(!net->in_curl);
    while (net->under_way != NULL) {
        wr_transfer_set_end(net->under_way, WR_NET_CANCELLED, NULL);
        wr_transfer_end(net->under_way);
        wr_net_settle(net);
    }
    wr_net_settle(net);
    take_posted(net);
    while (net->calls != NULL) /* late answers of the resolver; all transfers are in the pool */
        run_next(net);
    while (net->pool != NULL) {
        struct wr_transfer *transfer = net->pool;
        net->pool = transfer->next;
        wr_transfer_free(transfer);
    }
    wr_lean_close(net);
    end_multi(net);
    close_handles(net);
}

static void on_wakeup(struct wr_wakeup *wakeup)
{
    struct wr_net *net = wakeup->uv.data;

    run_posted(net);
    end_cancelled(net);
    wr_net_settle(net);
}

/* ---- creating ---- */

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* Returns the connection limit, reduced to the available descriptors. */
static uint32_t connections_of(const struct wr_net_options *options)
{
    uint64_t wanted = options->connections_max != 0 ? options->connections_max : (uint64_t)4 * options->transfers_max;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        uint64_t reach = limit.rlim_cur > DESCRIPTORS_LEFT ? limit.rlim_cur - DESCRIPTORS_LEFT : 1;
        wanted = wanted < reach ? wanted : reach;
    }
    return (uint32_t)(wanted < CONNECTIONS_MAX ? wanted : CONNECTIONS_MAX);
}

static enum wr_guard_class judge_by_guard(void *context, const struct wr_address *address)
{
    (void)context;
    return wr_guard_class(address);
}

static void fill(const struct wr_net_options *given, struct wr_net_options *ret_options)
{
    struct wr_net_options options = *given;

    options.allocator = wr_allocator_or_system(given->allocator);
    options.clock = wr_clock_or_fast(given->clock);
    options.judge = given->judge != NULL ? given->judge : judge_by_guard;
    options.transfers_max = (uint32_t)or_default(given->transfers_max, TRANSFERS_DEFAULT);
    options.connections_max = connections_of(&options);
    options.idle_ns = or_default(given->idle_ns, WR_NET_IDLE_NS);
    options.head_max = (uint32_t)or_default(given->head_max, WR_NET_HEAD_MAX);
    options.body_max = given->body_max != 0 ? given->body_max : BODY_DEFAULT;
    options.connect_ns = or_default(given->connect_ns, 15 * WEIR_SECOND);
    options.first_byte_ns = or_default(given->first_byte_ns, 30 * WEIR_SECOND);
    options.total_ns = or_default(given->total_ns, 5 * WEIR_MINUTE);
    options.speed_ns = or_default(given->speed_ns, 30 * WEIR_SECOND);
    options.speed_min = (uint32_t)or_default(given->speed_min, 64);
    *ret_options = options;
}

static int check(const struct wr_net_options *options)
{
    const int64_t durations[] = {options->idle_ns, options->connect_ns, options->first_byte_ns, options->total_ns,
                                 options->speed_ns};

    if (options->loop == NULL || options->resolver == NULL)
        return wr_invalid("a net needs a loop and a resolver");
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++)
        if (durations[i] < 0 || durations[i] > WEIR_DURATION_MAX)
            return wr_invalid("a net's duration is 1 ns ... 2^60 ns");
    if (options->head_max > WR_NET_HEAD_MAX)
        return wr_invalid("a head has 262144 bytes at most: libcurl takes little more");
    if (options->body_max > WR_NET_BODY_MAX)
        return wr_invalid("a body has 2^40 bytes at most");
    if (options->transfers_max > TRANSFERS_MAX)
        return wr_invalid("a net has 1 ... 65536 transfers at once");
    if (options->agent != NULL && !wr_field_is_sound(wr_span_of("User-Agent"), wr_span_of(options->agent)))
        return wr_invalid("a User-Agent has no control characters");
    return 0;
}

static int copy(const weir_allocator *allocator, const char **string)
{
    if (*string == NULL)
        return 0;
    size_t bytes = strlen(*string) + 1;
    char *to = wr_take(allocator, bytes, 1);
    if (to == NULL)
        return WEIR_E_NOMEM;
    memcpy(to, *string, bytes);
    *string = to;
    return 0;
}

/* Replaces the strings by copies; NULL stays NULL. */
static int copy_strings(struct wr_net *net)
{
    const char *agent = net->options.agent, *ca_file = net->options.ca_file;

    net->options.agent = net->options.ca_file = NULL;
    if (copy(net->allocator, &agent) < 0)
        return WEIR_E_NOMEM;
    net->options.agent = agent;
    if (copy(net->allocator, &ca_file) < 0)
        return WEIR_E_NOMEM;
    net->options.ca_file = ca_file;
    return 0;
}

/* Creates the empty connection cache of wr_easy_forget. Only for libcurl 7, whose behaviour is
 * known. Others may reject it, and scan no more connections than libcurl 7 does. */
static int make_nowhere(struct wr_net *net)
{
    if (curl_version_info(CURLVERSION_NOW)->version_num >= 0x080000)
        return 0;
    net->nowhere = curl_share_init();
    if (net->nowhere == NULL || curl_share_setopt(net->nowhere, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK)
        return WEIR_E_NOMEM;
    return 0;
}

static int make_multi(struct wr_net *net)
{
    net->multi = curl_multi_init();
    if (net->multi == NULL || make_nowhere(net) < 0)
        return WEIR_E_NOMEM;
    (void)curl_multi_setopt(net->multi, CURLMOPT_SOCKETFUNCTION, wr_socket_watch);
    (void)curl_multi_setopt(net->multi, CURLMOPT_SOCKETDATA, net);
    (void)curl_multi_setopt(net->multi, CURLMOPT_TIMERFUNCTION, wr_socket_set_timer);
    (void)curl_multi_setopt(net->multi, CURLMOPT_TIMERDATA, net);
    (void)curl_multi_setopt(net->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)net->options.connections_max);
    /* A connection cache of this size is never full; see wr_net_is_crowded. */
    (void)curl_multi_setopt(net->multi, CURLMOPT_MAXCONNECTS, 2L * CONNECTIONS_MAX);
    return 0;
}

/* Initialises all handles. Afterwards only the loop can close the net. */
static int make_handles(struct wr_net *net)
{
    uv_loop_t *loop = net->options.loop;

    int error = wr_wakeup_init(&net->wakeup, loop, on_wakeup);
    if (error != 0)
        return error;
    (void)uv_timer_init(loop, &net->curl_timer); /* none of these calls can fail */
    (void)uv_timer_init(loop, &net->due_timer);
    (void)uv_idle_init(loop, &net->no_wait);
    (void)uv_check_init(loop, &net->polled);
    (void)uv_idle_init(loop, &net->lean.no_wait);
    (void)uv_check_init(loop, &net->lean.polled);
    (void)uv_prepare_init(loop, &net->unpacking.turn);
    (void)uv_idle_init(loop, &net->unpacking.no_wait);
    uv_handle_t *const handles[] = {
        (uv_handle_t *)&net->wakeup.uv,   (uv_handle_t *)&net->curl_timer,     (uv_handle_t *)&net->due_timer,
        (uv_handle_t *)&net->no_wait,     (uv_handle_t *)&net->polled,         (uv_handle_t *)&net->lean.no_wait,
        (uv_handle_t *)&net->lean.polled, (uv_handle_t *)&net->unpacking.turn, (uv_handle_t *)&net->unpacking.no_wait};
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        handles[i]->data = net;
        uv_unref(handles[i]); /* only transfers keep the loop running */
        net->open_handles++;
    }
    wr_round_open(&net->round, loop);
    net->open_handles += WR_ROUND_HANDLES;
    return 0;
}

static void block_sigpipe(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Initialises libcurl with functions that may use the memory reserve, so that begun work can
 * finish. If the program has initialised libcurl before, its functions stay. */
static CURLcode init_curl(void)
{
    return curl_global_init_mem(CURL_GLOBAL_DEFAULT, wr_reserve_malloc, free, wr_reserve_realloc, wr_reserve_strdup,
                                wr_reserve_calloc);
}

int wr_net_new(const struct wr_net_options *options, struct wr_net **ret_net)
{
    struct wr_net_options filled;
    struct wr_proxy proxy = {.is_set = false};

    fill(options, &filled);
    int error = check(&filled);
    if (error == 0 && filled.proxy != NULL)
        error = wr_proxy_parse(filled.proxy, &proxy);
    if (error < 0)
        return error;
    if (init_curl() != CURLE_OK)
        return WEIR_E_NOMEM;
    struct wr_net *net = wr_take(filled.allocator, sizeof *net, _Alignof(struct wr_net));
    if (net == NULL) {
        curl_global_cleanup();
        return WEIR_E_NOMEM;
    }
    *net = (struct wr_net){.options = filled, .proxy = proxy, .allocator = filled.allocator, .clock = filled.clock};
    net->options.proxy = NULL;
    net->posted_end = &net->posted;
    net->calls_end = &net->calls;
    net->due_armed_at = WEIR_FOREVER;
    wr_heap_init(&net->dues, net->allocator, filled.transfers_max);
    (void)pthread_mutex_init(&net->post_lock, NULL);
    error = copy_strings(net);
    if (error == 0)
        error = wr_lean_open(net);
    if (error == 0)
        error = make_multi(net);
    if (error == 0)
        error = make_handles(net);
    if (error < 0) {
        end_multi(net);
        release(net);
        return error;
    }
    block_sigpipe();
    *ret_net = net;
    return 0;
}

bool wr_net_is_crowded(const struct wr_net *net)
{
    uint32_t max = net->options.connections_max;

    return net->connections > max - max / 8;
}

bool wr_net_may_echo(struct wr_span validator)
{
    return validator.bytes > 0 && validator.bytes <= VALIDATOR_MAX && wr_field_is_sound(wr_span_of("ETag"), validator);
}

uint32_t wr_net_connections(const struct wr_net *net)
{
    return net->options.connections_max;
}

void wr_net_stats(const struct wr_net *net, struct wr_net_stats *ret_stats)
{
    *ret_stats = (struct wr_net_stats){
        .transfers = net->transfers, .connections = net->connections, .started = net->started, .opened = net->opened};
}
