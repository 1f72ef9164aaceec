/* SPDX-License-Identifier: MIT */
/* rig.c - test fixture: a net, its loop, a resolver with invented names and a hostile server. */
#include "net/rig.h"

#include "http/net/idna.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- names ----------------------------------------------------------------------------------- */

static void look_up(void *context, const char *name, struct wr_dns_answer *ret_answer)
{
    struct net_fixture *rig = context;
    int lookup = atomic_fetch_add(&rig->lookups, 1);

    *ret_answer = (struct wr_dns_answer){.kind = WR_DNS_ABSENT};
    for (size_t i = 0; i < RIG_NAMES && rig->names[i].name != NULL; i++) {
        const struct rig_name *known = &rig->names[i];
        struct wr_address address;
        if (strcmp(known->name, name) != 0)
            continue;
        while (lookup > 0 && (lookup >= 4 || known->addresses[lookup] == NULL))
            lookup--;
        ret_answer->kind = WR_DNS_FOUND;
        /* addresses separated by blanks */
        for (struct wr_span rest = wr_span_of(known->addresses[lookup]); rest.bytes > 0;) {
            size_t blank = wr_span_find(rest, ' ');
            if (!wr_address_parse((struct wr_span){rest.data, blank}, &address))
                abort();
            wr_dns_answer_add(ret_answer, &address);
            rest = wr_span_after(rest, blank < rest.bytes ? blank + 1 : blank);
        }
    }
    if (strncmp(name, "failing", 7) == 0)
        ret_answer->kind = WR_DNS_FAILED;
}

/* ---- setting up ------------------------------------------------------------------------------ */

struct wr_net_options rig_options(void)
{
    return (struct wr_net_options){
        .agent = "weir-test/1",
        .allow_private = true,
        .uses_libcurl_only = getenv("WEIR_TEST_LIBCURL") != NULL,
        .transfers_max = 32,
        .body_max = 1 << 20,
        .connect_ns = WEIR_MINUTE,
        .first_byte_ns = WEIR_MINUTE,
        .total_ns = 2 * WEIR_MINUTE,
        .speed_ns = WEIR_MINUTE,
        .speed_min = 1,
    };
}

void rig_set_up(struct net_fixture *ret_rig, struct wr_net_options options)
{
    memset(ret_rig, 0, sizeof *ret_rig);
    test_allocator_init(&ret_rig->memory);
    assert_int_equal(uv_loop_init(&ret_rig->loop), 0);
    struct wr_resolver_options resolving = {
        .allocator = &ret_rig->memory.allocator, .threads = 4, .lookup = look_up, .lookup_context = ret_rig};
    assert_int_equal(wr_resolver_new(&resolving, &ret_rig->resolver), 0);
    options.allocator = &ret_rig->memory.allocator;
    options.loop = &ret_rig->loop;
    options.resolver = ret_rig->resolver;
    assert_int_equal(wr_net_new(&options, &ret_rig->net), 0);
    ret_rig->server = hostile_new();
}

void rig_tear_down(struct net_fixture *rig)
{
    wr_net_close(rig->net);
    assert_int_equal(uv_run(&rig->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    wr_resolver_free(rig->resolver);
    hostile_free(rig->server);
    assert_int_equal(rig->memory.live, 0);
}

/* ---- transfers ------------------------------------------------------------------------------- */

static bool before_send(void *context, const struct wr_net_send *send)
{
    struct got *got = context;

    assert_false(got->is_done);
    assert_int_equal(send->number, got->sends + 1);
    if (got->refuse_from != 0 && got->sends + 1 >= got->refuse_from)
        return false;
    got->sent_at[got->sends++ % 8] = weir_clock_now(weir_clock_monotonic());
    if (got->pauses_ns > 0) /* simulates a process that is suspended before it writes */
        nanosleep(&(struct timespec){.tv_nsec = (long)got->pauses_ns}, NULL);
    return true;
}

static void on_late(void *context, int64_t now)
{
    struct got *got = context;

    assert_false(got->is_done);
    got->lates++;
    got->late_at = now;
}

static bool on_head(void *context, const struct wr_head *head)
{
    struct got *got = context;
    struct wr_span name, value;
    int at = 0;

    assert_false(got->is_done);
    assert_int_equal(++got->heads, 1);
    for (size_t cursor = 0; wr_head_next(head, &cursor, &name, &value) && at < (int)sizeof got->fields;)
        at += snprintf(got->fields + at, sizeof got->fields - (size_t)at, "%.*s: %.*s\n", (int)name.bytes, name.data,
                       (int)value.bytes, value.data);
    if (got->then != NULL)
        rig_start(got->rig, got->then_url, got->then);
    return !got->wants_no_body;
}

static bool on_body(void *context, const char *data, size_t bytes)
{
    struct got *got = context;
    size_t kept = got->body_bytes < GOT_BODY_MAX ? GOT_BODY_MAX - got->body_bytes : 0;

    assert_int_equal(got->heads, 1);
    assert_false(got->is_done);
    memcpy(got->body + (GOT_BODY_MAX - kept), data, bytes < kept ? bytes : kept);
    got->body_bytes += bytes;
    got->bodies++;
    if (got->holds)
        wr_net_pause_body(got->transfer);
    if (got->cancels_in_body)
        wr_net_cancel(got->transfer);
    return got->stop_after == 0 || got->body_bytes < got->stop_after;
}

static void on_done(void *context, const struct wr_net_result *result)
{
    struct got *got = context;

    assert_false(got->is_done);
    got->is_done = true;
    got->result = *result;
    snprintf(got->words, sizeof got->words, "%s", result->words);
    got->result.words = got->words;
}

static void on_line(void *context, struct wr_span line)
{
    struct got *got = context;
    size_t at = strlen(got->lines);

    assert_false(got->is_done);
    (void)snprintf(got->lines + at, sizeof got->lines - at, "%.*s", (int)line.bytes, line.data);
}

int rig_try(struct net_fixture *rig, const char *url, const struct wr_net_request *request, struct got *got)
{
    static const struct wr_net_callbacks calls = {before_send, on_late, on_head, on_body, on_done, on_line};
    struct wr_net_request whole = *request;
    char memory[WR_URL_ROOM];
    struct wr_url parsed;

    assert_int_equal(wr_url_parse(wr_span_of(url), NULL, wr_idna_libidn2(), memory, sizeof memory, &parsed), WR_URL_OK);
    whole.url = &parsed;
    got->rig = rig;
    return wr_net_start(rig->net, &whole, &calls, got, &got->transfer);
}

void rig_start(struct net_fixture *rig, const char *url, struct got *ret_got)
{
    assert_int_equal(rig_try(rig, url, &(struct wr_net_request){.url = NULL}, ret_got), 0);
    assert_false(ret_got->is_done);
}

void rig_run(struct net_fixture *rig)
{
    assert_int_equal(uv_run(&rig->loop, UV_RUN_DEFAULT), 0);
}

void rig_turn(struct net_fixture *rig)
{
    /* the server threads need the processor, too */
    const struct timespec nap = {.tv_nsec = 100000};

    if (uv_run(&rig->loop, UV_RUN_NOWAIT) != 0)
        (void)nanosleep(&nap, NULL);
}

void rig_get(struct net_fixture *rig, const char *url, struct got *ret_got)
{
    memset(ret_got, 0, sizeof *ret_got);
    rig_start(rig, url, ret_got);
    rig_run(rig);
    assert_true(ret_got->is_done);
}

const char *rig_url_of(const char *scheme, const char *host, int port, const char *path)
{
    static char url[512];

    snprintf(url, sizeof url, "%s://%s:%d%s", scheme, host, port, path);
    return url;
}

const char *rig_url(int port)
{
    return rig_url_of("http", "127.0.0.1", port, "/");
}

int rig_get_steps(struct net_fixture *rig, const struct hostile_step *steps, struct got *ret_got)
{
    int port = hostile_listen(rig->server, &(struct hostile_case){.steps = {steps}});

    rig_get(rig, rig_url(port), ret_got);
    return port;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static long peak_at_mark;

/* Returns the peak resident memory of this process (VmHWM), bytes. */
static long peak(void)
{
    char text[4096] = "";
    FILE *file = fopen("/proc/self/status", "r");

    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    const char *line = strstr(text, "VmHWM:");
    return line == NULL ? 0 : strtol(line + 6, NULL, 10) * 1024;
}

void rig_memory_mark(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) { /* without this file the mark is the peak so far, which may hide some growth */
        (void)!write(fd, "5", 1);
        (void)close(fd);
    }
    peak_at_mark = peak();
}

long rig_memory_grown(void)
{
    return SANITIZED ? 0 : peak() - peak_at_mark;
}
