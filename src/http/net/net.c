/* SPDX-License-Identifier: MIT */
/* net.c - creates and closes nets, and runs calls posted by other threads. */
#include "http/net/net_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/web/http/field.h"
#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"
#include "limiter/memory/memory.h"
#include "limiter/memory/reserve.h"

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

void wr_net_post(struct wr_net *net, struct wr_net_posted_call *call)
{
    call->next = NULL;
    (void)pthread_mutex_lock(&net->post_lock);
    *net->posted_end = call;
    net->posted_end = &call->next;
    (void)pthread_mutex_unlock(&net->post_lock);
    wr_net_wake(net);
}

/* Appends new posts to those that the last slice of time did not reach. */
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

static void run_next_call(struct wr_net *net)
{
    struct wr_net_posted_call *call = net->calls;

    net->calls = call->next; /* `run` may free the call */
    if (net->calls == NULL)
        net->calls_end = &net->calls;
    call->run(call);
}

static void run_posted(struct wr_net *net)
{
    WR_DOING("letters");
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);

    take_posted(net);
    while (net->calls != NULL && wr_time_slice_lasts(&slice))
        run_next_call(net);
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

static void free_string(struct wr_net *net, const char *string)
{
    if (string != NULL)
        wr_free(net->allocator, (void *)(uintptr_t)string, strlen(string) + 1, 1);
}

static void free_net(struct wr_net *net)
{
    const weir_allocator *allocator = net->allocator;

    free_string(net, net->options.agent);
    free_string(net, net->options.ca_file);
    wr_heap_release(&net->dues);
    wr_http1_release(net);
    wr_socket_free_spares(net);
    wr_free(allocator, net->sockets, net->sockets_room * sizeof(struct wr_socket *), _Alignof(struct wr_socket *));
    (void)pthread_mutex_destroy(&net->post_lock);
    wr_free(allocator, net, sizeof *net, _Alignof(struct wr_net));
    curl_global_cleanup();
}

void wr_net_handle_closed(struct wr_net *net)
{
    if (--net->open_handles == 0)
        free_net(net);
}

static void on_net_handle_closed(uv_handle_t *handle)
{
    wr_net_handle_closed(handle->data);
}

/* Closes the net's own handles. Those of sockets were closed with libcurl's connections before. */
static void close_net_handles(struct wr_net *net)
{
    uv_close((uv_handle_t *)&net->curl_timer, on_net_handle_closed);
    uv_close((uv_handle_t *)&net->due_timer, on_net_handle_closed);
    uv_close((uv_handle_t *)&net->no_wait, on_net_handle_closed);
    uv_close((uv_handle_t *)&net->polled, on_net_handle_closed);
    uv_close((uv_handle_t *)&net->http1.no_wait, on_net_handle_closed);
    uv_close((uv_handle_t *)&net->http1.polled, on_net_handle_closed);
    uv_close((uv_handle_t *)&net->decode_queue.turn, on_net_handle_closed);
    uv_close((uv_handle_t *)&net->decode_queue.no_wait, on_net_handle_closed);
    wr_wakeup_close(&net->wakeup, on_net_handle_closed);
    wr_round_close(&net->round, on_net_handle_closed, net);
}

static void end_multi(struct wr_net *net)
{
    (void)curl_multi_cleanup(net->multi);
    if (net->empty_cache != NULL)
        (void)curl_share_cleanup(net->empty_cache);
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
    while (net->calls != NULL) /* answers of the resolver for transfers that have ended */
        run_next_call(net);
    while (net->pool != NULL) {
        struct wr_transfer *transfer = net->pool;
        net->pool = transfer->next;
        wr_transfer_free(transfer);
    }
    wr_http1_close(net);
    end_multi(net);
    close_net_handles(net);
}

static void on_net_wakeup(struct wr_wakeup *wakeup)
{
    struct wr_net *net = wakeup->uv.data;

    run_posted(net);
    end_cancelled(net);
    wr_net_settle(net);
}

/* ---- creating ---- */

static int64_t or_net_default(int64_t value, int64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* Returns the connection limit, reduced to the available descriptors. */
static uint32_t connection_limit(const struct wr_net_options *options)
{
    uint64_t wanted = options->connections_max != 0 ? options->connections_max : (uint64_t)4 * options->transfers_max;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        uint64_t reach = limit.rlim_cur > DESCRIPTORS_LEFT ? limit.rlim_cur - DESCRIPTORS_LEFT : 1;
        wanted = wanted < reach ? wanted : reach;
    }
    return (uint32_t)(wanted < CONNECTIONS_MAX ? wanted : CONNECTIONS_MAX);
}

static enum wr_guard_class classify_by_guard(void *context, const struct wr_address *address)
{
    (void)context;
    return wr_guard_class(address);
}

static void fill_net_options(const struct wr_net_options *given, struct wr_net_options *ret_options)
{
    struct wr_net_options options = *given;

    options.allocator = wr_allocator_or_system(given->allocator);
    options.clock = wr_clock_or_fast(given->clock);
    options.judge = given->judge != NULL ? given->judge : classify_by_guard;
    options.transfers_max = (uint32_t)or_net_default(given->transfers_max, TRANSFERS_DEFAULT);
    options.connections_max = connection_limit(&options);
    options.idle_ns = or_net_default(given->idle_ns, WR_NET_IDLE_NS);
    options.head_max = (uint32_t)or_net_default(given->head_max, WR_NET_HEAD_MAX);
    options.body_max = given->body_max != 0 ? given->body_max : BODY_DEFAULT;
    options.connect_ns = or_net_default(given->connect_ns, 15 * WEIR_SECOND);
    options.first_byte_ns = or_net_default(given->first_byte_ns, 30 * WEIR_SECOND);
    options.total_ns = or_net_default(given->total_ns, 5 * WEIR_MINUTE);
    options.speed_ns = or_net_default(given->speed_ns, 30 * WEIR_SECOND);
    options.speed_min = (uint32_t)or_net_default(given->speed_min, 64);
    *ret_options = options;
}

static int check_net_options(const struct wr_net_options *options)
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

static int copy_string(const weir_allocator *allocator, const char **string)
{
    if (*string == NULL)
        return 0;
    size_t bytes = strlen(*string) + 1;
    char *to = wr_alloc(allocator, bytes, 1);
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
    if (copy_string(net->allocator, &agent) < 0)
        return WEIR_E_NOMEM;
    net->options.agent = agent;
    if (copy_string(net->allocator, &ca_file) < 0)
        return WEIR_E_NOMEM;
    net->options.ca_file = ca_file;
    return 0;
}

/* Creates the empty connection cache of wr_easy_forget_connection. Only for libcurl 7, whose
 * behaviour is known. Others may reject it, and scan no more connections than libcurl 7 does. */
static int make_empty_cache(struct wr_net *net)
{
    if (curl_version_info(CURLVERSION_NOW)->version_num >= 0x080000)
        return 0;
    net->empty_cache = curl_share_init();
    if (net->empty_cache == NULL ||
        curl_share_setopt(net->empty_cache, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK)
        return WEIR_E_NOMEM;
    return 0;
}

static int make_multi(struct wr_net *net)
{
    net->multi = curl_multi_init();
    if (net->multi == NULL || make_empty_cache(net) < 0)
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
static int init_handles(struct wr_net *net)
{
    uv_loop_t *loop = net->options.loop;

    int error = wr_wakeup_init(&net->wakeup, loop, on_net_wakeup);
    if (error != 0)
        return error;
    (void)uv_timer_init(loop, &net->curl_timer); /* none of these calls can fail */
    (void)uv_timer_init(loop, &net->due_timer);
    (void)uv_idle_init(loop, &net->no_wait);
    (void)uv_check_init(loop, &net->polled);
    (void)uv_idle_init(loop, &net->http1.no_wait);
    (void)uv_check_init(loop, &net->http1.polled);
    (void)uv_prepare_init(loop, &net->decode_queue.turn);
    (void)uv_idle_init(loop, &net->decode_queue.no_wait);
    uv_handle_t *const handles[] = {(uv_handle_t *)&net->wakeup.uv,
                                    (uv_handle_t *)&net->curl_timer,
                                    (uv_handle_t *)&net->due_timer,
                                    (uv_handle_t *)&net->no_wait,
                                    (uv_handle_t *)&net->polled,
                                    (uv_handle_t *)&net->http1.no_wait,
                                    (uv_handle_t *)&net->http1.polled,
                                    (uv_handle_t *)&net->decode_queue.turn,
                                    (uv_handle_t *)&net->decode_queue.no_wait};
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

    fill_net_options(options, &filled);
    int error = check_net_options(&filled);
    if (error == 0 && filled.proxy != NULL)
        error = wr_proxy_parse(filled.proxy, &proxy);
    if (error < 0)
        return error;
    if (init_curl() != CURLE_OK)
        return WEIR_E_NOMEM;
    struct wr_net *net = wr_alloc(filled.allocator, sizeof *net, _Alignof(struct wr_net));
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
        error = wr_http1_open(net);
    if (error == 0)
        error = make_multi(net);
    if (error == 0)
        error = init_handles(net);
    if (error < 0) {
        end_multi(net);
        free_net(net);
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

bool wr_net_validator_is_usable(struct wr_span validator)
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
