/* SPDX-License-Identifier: MIT */
/* web.c - serves a small web of well-behaved and badly behaved hosts on loopback.
 *
 *     demo_web FOLDER [short]
 *
 * Each host has its own address and port. Files in FOLDER: `seeds` has the URL of each host on a
 * line; `truths.json` describes each host; `log.jsonl` has each request with the instant (monotonic
 * ns) at which it came. At the end `seen.json` has what each host saw. The program ends on SIGTERM
 * or SIGINT, or when its parent ends. It prints "ready" when it accepts requests.
 *
 *     read ──▶ limiter, faults (sim/origin) ──▶ page ──▶ timer: the latency ──▶ write ──▶ read
 */
#include "demo/hosts.h"
#include "demo/seen.h"
#include "limiter/memory/memory.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <uv.h>

#define HOSTS_MAX 32
#define HEAD_MAX 8192
#define BODY_MAX 16384
#define PATH_LENGTH 1024
#define PIECE_BYTES 65536
#define BACKLOG 128

struct host {
    uv_tcp_t listener;
    struct sockaddr_in address;
    const struct host_kind *kind;
    struct wr_origin origin; /* the kind's origin; its outage is set when it begins */
    struct wr_sim_origin site;
    int64_t began_at; /* instant of the first request; 0: none yet */
    int64_t judged;   /* arrival of the latest judged request, ns after began_at */
    uint64_t requests;
    struct seen seen;
};

struct visit { /* one connection */
    uv_tcp_t socket;
    uv_timer_t timer;
    uv_write_t write;
    struct host *host;
    char request[HEAD_MAX];
    size_t request_bytes;
    char path[PATH_LENGTH];
    bool is_head, is_busy, is_closing;
    bool ends;   /* the connection closes after this response */
    int handles; /* handles that are not closed yet */
    int status;
    int64_t until_ns; /* time that the response names, from now; negative: none */
    char memory[BODY_MAX];
    struct wr_buf body;
    char head[1024];
    uint64_t huge_left; /* bytes of the huge page still to write */
};

static struct host hosts[HOSTS_MAX];
static size_t host_count;
static FILE *log_file;
static uv_loop_t *loop;

static void fail(const char *what, int error)
{
    fprintf(stderr, "demo_web: %s: %s\n", what, error < 0 ? uv_strerror(error) : strerror(errno));
    exit(1);
}

/* ---- closing a connection -------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct visit *visit = handle->data;
    if (--visit->handles == 0)
        free(visit);
}

static void leave(struct visit *visit)
{
    if (visit->is_closing)
        return;
    visit->is_closing = true;
    if (uv_is_active((uv_handle_t *)&visit->timer)) /* the client left before the response */
        visit->host->seen.in_flight--;
    if (!uv_is_closing((uv_handle_t *)&visit->socket))
        uv_close((uv_handle_t *)&visit->socket, on_closed);
    uv_close((uv_handle_t *)&visit->timer, on_closed);
}

/* ---- answering ------------------------------------------------------------------------------- */

static void next_request(struct visit *visit);

static void on_written(uv_write_t *write, int error)
{
    static char filler[PIECE_BYTES];
    struct visit *visit = write->data;
    if (error < 0) {
        leave(visit);
        return;
    }
    if (visit->huge_left == 0) {
        visit->is_busy = false;
        if (visit->ends)
            leave(visit);
        else
            next_request(visit);
        return;
    }
    memset(filler, 'x', sizeof filler);
    size_t bytes = visit->huge_left < sizeof filler ? (size_t)visit->huge_left : sizeof filler;
    uv_buf_t piece = uv_buf_init(filler, (unsigned)bytes);
    visit->huge_left -= bytes;
    visit->host->seen.huge_bytes += bytes;
    if (uv_write(&visit->write, (uv_stream_t *)&visit->socket, &piece, 1, on_written) < 0)
        leave(visit);
}

static void on_latency_over(uv_timer_t *timer)
{
    struct visit *visit = timer->data;
    size_t body_bytes = visit->is_head ? 0 : visit->body.length;
    seen_answer(&visit->host->seen, visit->path, visit->status, visit->until_ns, (int64_t)uv_hrtime());
    if (visit->status == RESET) {
        (void)uv_tcp_close_reset(&visit->socket, on_closed);
        leave(visit);
        return;
    }
    uv_buf_t parts[] = {uv_buf_init(visit->head, (unsigned)strlen(visit->head)),
                        uv_buf_init(visit->body.bytes, (unsigned)body_bytes)};
    if (uv_write(&visit->write, (uv_stream_t *)&visit->socket, parts, 2, on_written) < 0)
        leave(visit);
}

static void add_field(struct wr_buf *head, const char *name, int64_t number)
{
    if (number < 0)
        return;
    wr_buf_append_string(head, name);
    wr_buf_append_string(head, ": ");
    wr_buf_append_u64(head, (uint64_t)number);
    wr_buf_append_string(head, "\r\n");
}

static void write_head(struct visit *visit, const struct page *page, const struct wr_sim_reply *reply)
{
    struct wr_buf head;
    wr_buf_init_fixed(&head, visit->head, sizeof visit->head);
    wr_buf_append_string(&head, "HTTP/1.1 ");
    wr_buf_append_u64(&head, (uint64_t)page->status);
    wr_buf_append_string(&head, " as said\r\nContent-Type: ");
    wr_buf_append_string(&head, page->is_plain ? "text/plain\r\n" : "text/html; charset=utf-8\r\n");
    if (page->status / 100 == 3) {
        wr_buf_append_string(&head, "Location: ");
        wr_buf_append_span(&head, wr_buf_from(&visit->body, 0));
        wr_buf_append_string(&head, "\r\n");
    }
    if (page->is_huge)
        wr_buf_append_string(&head, "Connection: close\r\n"); /* the length stays unknown */
    else
        add_field(&head, "Content-Length", (int64_t)visit->body.length);
    add_field(&head, "Retry-After", reply->retry_after_ns < 0 ? -1 : reply->retry_after_ns / WEIR_SECOND);
    add_field(&head, "RateLimit-Limit", reply->quota_limit);
    add_field(&head, "RateLimit-Remaining", reply->quota_remaining);
    add_field(&head, "RateLimit-Reset", reply->quota_reset_ns < 0 ? -1 : reply->quota_reset_ns / WEIR_SECOND);
    wr_buf_append_string(&head, "\r\n");
}

/* Decides how the host answers a request: limiter, outage, faults and resets, before the page. */
static struct wr_sim_reply judge(struct host *host, const char *path, int64_t now)
{
    const struct host_kind *kind = host->kind;
    struct wr_sim_reply reply;
    if (host->began_at == 0)
        host->began_at = now;
    host->requests++;
    int64_t since = now - host->began_at;
    /* Requests of several connections may be read out of order; the origin needs them in order. */
    if (since < host->judged)
        since = host->judged;
    host->judged = since;
    if (kind->outage_after > 0 && host->requests == kind->outage_after) {
        host->origin.outage.from_ns = since;
        host->origin.outage.to_ns = since + kind->outage_ns;
    }
    wr_sim_origin_arrive(&host->site, since, &reply);
    reply.done_at += host->began_at;
    if (strcmp(path, "/robots.txt") == 0 && since < kind->robots_down_ns)
        reply.status = 503;
    if (kind->reset_every > 0 && host->requests % kind->reset_every == 0)
        reply.status = RESET;
    return reply;
}

static void log_request(const struct visit *visit, int64_t at)
{
    char line[3 * PATH_LENGTH];
    struct wr_buf quoted;
    wr_buf_init_fixed(&quoted, line, sizeof line);
    wr_buf_append_escaped(&quoted, wr_span_of(visit->path), '"');
    fprintf(log_file, "{\"at\": %lld, \"host\": \"%s\", \"path\": \"%s\", \"status\": %d}\n", (long long)at,
            visit->host->kind->name, line, visit->status);
}

static void answer(struct visit *visit, int64_t now)
{
    struct host *host = visit->host;
    struct page page = {.body = &visit->body};
    seen_arrival(&host->seen, host->kind, visit->path, now);
    struct wr_sim_reply reply = judge(host, visit->path, now);
    wr_buf_init_fixed(&visit->body, visit->memory, sizeof visit->memory);
    page_write(host->kind, visit->path, &page);
    if (reply.status != 200) {
        page.status = reply.status;
        page.is_huge = false;
        wr_buf_clear(&visit->body);
    }
    visit->status = page.status;
    visit->until_ns = reply.quota_remaining == 0 ? reply.quota_reset_ns : -1;
    if (reply.retry_after_ns > visit->until_ns)
        visit->until_ns = reply.retry_after_ns;
    visit->ends = page.is_huge;
    visit->huge_left = page.is_huge && !visit->is_head ? HUGE_BYTES : 0;
    if (page.status != RESET)
        write_head(visit, &page, &reply);
    log_request(visit, now);
    uv_timer_start(&visit->timer, on_latency_over, (uint64_t)((reply.done_at - now) / WEIR_MILLISECOND), 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Parses "GET /path HTTP/1.1" or HEAD. Returns false for anything else. The parser is simple,
 * because only the clients of a demo use it. */
static bool take_request_line(struct visit *visit)
{
    const char *start = strchr(visit->request, ' ');
    const char *end = start == NULL ? NULL : strpbrk(start + 1, " \r");
    if (end == NULL || start[1] != '/' || (size_t)(end - start) > sizeof visit->path)
        return false;
    size_t bytes = (size_t)(end - start - 1);
    memcpy(visit->path, start + 1, bytes);
    visit->path[bytes] = '\0';
    visit->is_head = strncmp(visit->request, "HEAD ", 5) == 0;
    return visit->is_head || strncmp(visit->request, "GET ", 4) == 0;
}

/* Returns when the request came, as the kernel says (in ms): on a busy machine this program reads
 * the request later. */
static int64_t arrived_at(struct visit *visit)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    int fd;
    int64_t now = (int64_t)uv_hrtime();
    if (uv_fileno((uv_handle_t *)&visit->socket, &fd) < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) < 0)
        return now;
    return now - info.tcpi_last_data_recv * WEIR_MILLISECOND;
}

static void next_request(struct visit *visit)
{
    char *end = strstr(visit->request, "\r\n\r\n");
    if (visit->is_busy || end == NULL)
        return;
    if (!take_request_line(visit)) {
        leave(visit);
        return;
    }
    size_t used = (size_t)(end + 4 - visit->request);
    visit->request_bytes -= used;
    memmove(visit->request, visit->request + used, visit->request_bytes + 1);
    visit->is_busy = true;
    answer(visit, arrived_at(visit));
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct visit *visit = handle->data;
    (void)suggested;
    *buf = uv_buf_init(visit->request + visit->request_bytes, (unsigned)(HEAD_MAX - 1 - visit->request_bytes));
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buf)
{
    struct visit *visit = stream->data;
    (void)buf;
    if (bytes < 0) {
        leave(visit);
        return;
    }
    visit->request_bytes += (size_t)bytes;
    visit->request[visit->request_bytes] = '\0';
    next_request(visit);
}

static void on_connection(uv_stream_t *listener, int error)
{
    struct visit *visit = error < 0 ? NULL : calloc(1, sizeof *visit);
    if (visit == NULL)
        return;
    visit->host = listener->data;
    visit->handles = 2;
    visit->socket.data = visit->timer.data = visit->write.data = visit;
    uv_tcp_init(loop, &visit->socket);
    uv_timer_init(loop, &visit->timer);
    if (uv_accept(listener, (uv_stream_t *)&visit->socket) < 0 ||
        uv_read_start((uv_stream_t *)&visit->socket, on_room, on_read) < 0) {
        leave(visit);
        return;
    }
    uv_tcp_nodelay(&visit->socket, 1);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        fail(path, 0);
    return file;
}

static void open_host(struct host *host, const struct host_kind *kind, size_t index)
{
    int bytes = sizeof host->address;
    host->kind = kind;
    host->origin = kind->origin;
    if (wr_sim_origin_init(&host->site, &host->origin, WEIR_HOUR, index, wr_allocator_or_system(NULL)) < 0)
        fail(kind->name, UV_ENOMEM);
    host->address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)index)};
    host->listener.data = host;
    uv_tcp_init(loop, &host->listener);
    int error = uv_tcp_bind(&host->listener, (struct sockaddr *)&host->address, 0);
    if (error == 0)
        error = uv_listen((uv_stream_t *)&host->listener, BACKLOG, on_connection);
    if (error == 0)
        error = uv_tcp_getsockname(&host->listener, (struct sockaddr *)&host->address, &bytes);
    if (error < 0)
        fail(kind->name, error);
}

/* Returns the host as clients name it: "127.0.0.1:4711". */
static const char *key_of(const struct host *host)
{
    static char key[64];
    char address[32];
    uv_ip4_name(&host->address, address, sizeof address);
    (void)snprintf(key, sizeof key, "%s:%d", address, ntohs(host->address.sin_port));
    return key;
}

static void write_lists(const char *folder)
{
    FILE *seeds = create(folder, "seeds"), *truths = create(folder, "truths.json");
    for (size_t i = 0; i < host_count; i++) {
        const struct host_kind *kind = hosts[i].kind;
        fprintf(seeds, "http://%s/\n", key_of(&hosts[i]));
        fprintf(truths, "%s\n  {\"host\": \"%s\", \"name\": \"%s\", \"truth\": \"%s\", \"rate\": %g, \"pages\": %u}",
                i == 0 ? "[" : ",", key_of(&hosts[i]), kind->name, kind->truth, kind->rate, kind->pages);
    }
    fprintf(truths, "\n]\n");
    if (fclose(seeds) != 0 || fclose(truths) != 0)
        fail(folder, 0);
}

static void write_seen(const char *folder)
{
    FILE *file = create(folder, "seen.json");
    for (size_t i = 0; i < host_count; i++) {
        fprintf(file, "%s\n  {\"host\": \"%s\", \"name\": \"%s\", ", i == 0 ? "[" : ",", key_of(&hosts[i]),
                hosts[i].kind->name);
        seen_print(&hosts[i].seen, file);
        fprintf(file, "}");
        wr_sim_origin_release(&hosts[i].site);
        free(hosts[i].seen.arrivals);
    }
    fprintf(file, "\n]\n");
    if (fclose(file) != 0 || fclose(log_file) != 0)
        fail(folder, 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)handle, (void)number;
    uv_stop(loop);
}

int main(int argc, char **argv)
{
    static uv_signal_t terminate, interrupt;
    bool is_short = argc == 3 && strcmp(argv[2], "short") == 0;
    if (argc < 2 || (argc > 2 && !is_short)) {
        fprintf(stderr, "usage: demo_web FOLDER [short]\n");
        return 2;
    }
    loop = uv_default_loop();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)signal(SIGPIPE, SIG_IGN); /* clients may close connections early */
    uv_signal_init(loop, &terminate);
    uv_signal_init(loop, &interrupt);
    uv_signal_start(&terminate, on_signal, SIGTERM);
    uv_signal_start(&interrupt, on_signal, SIGINT);
    log_file = create(argv[1], "log.jsonl");
    (void)setvbuf(log_file, NULL, _IOLBF, 0); /* other programs read the log as it grows */
    for (const struct host_kind *kind; (kind = host_kind_at(host_count, is_short)) != NULL; host_count++)
        open_host(&hosts[host_count], kind, host_count);
    write_lists(argv[1]);
    puts("ready");
    fflush(stdout);
    uv_run(loop, UV_RUN_DEFAULT);
    write_seen(argv[1]);
    return 0;
}
