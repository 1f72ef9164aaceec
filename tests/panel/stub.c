/* SPDX-License-Identifier: MIT */
/* stub.c - serves the dashboard with data from a folder, so that tests can make it show anything.
 *
 * usage: panel_stub FOLDER ADDRESS TOKEN [KIND VIEW…]
 *
 * FOLDER/sample and FOLDER/VIEW are JSON files, read at each query. Each queried view is appended
 * as a line to FOLDER/asked, each command to FOLDER/commands. Prints the port, and ends when its
 * standard input ends.
 */
#include "base/buf.h"
#include "limiter/memory/memory.h"
#include "watch/dashboard/dashboard.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *folder;
static struct wr_dashboard *panel;

static FILE *open_at(const char *name, const char *how)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, how);
}

static void note(const char *name, struct wr_span text)
{
    FILE *file = open_at(name, "ae");
    if (file == NULL)
        return;
    (void)fprintf(file, "%.*s\n", (int)text.bytes, text.data);
    (void)fclose(file);
}

static void append_file(const char *name, struct wr_buf *answer)
{
    char piece[4096];
    size_t got;
    FILE *file = open_at(name, "re");
    if (file == NULL) {
        wr_buf_append_string(answer, "{\"ok\":false,\"error\":\"no such file\"}");
        return;
    }
    while ((got = fread(piece, 1, sizeof piece, file)) > 0)
        wr_buf_append(answer, piece, got);
    (void)fclose(file);
}

static void on_sample(void *context, struct wr_buf *answer)
{
    (void)context;
    append_file("sample", answer);
}

static void on_view(void *context, const struct wr_dashboard_query *query, struct wr_buf *answer)
{
    (void)context;
    note("asked", wr_span_of(query->view));
    append_file(query->view, answer);
}

static void on_command(void *context, struct wr_span request, struct wr_buf *answer)
{
    (void)context;
    note("commands", request);
    wr_buf_append_string(answer, "{\"ok\":true}");
}

static void answer(void *context, struct wr_http_exchange *exchange)
{
    (void)context;
    if (!wr_dashboard_answer(panel, exchange))
        wr_http_refuse(exchange, 404, "there is nothing here");
}

static void tick(void *context, struct wr_http_loop *loop)
{
    (void)context;
    (void)loop;
    wr_dashboard_tick(panel);
}

int main(int argc, char **argv)
{
    static const char *const both[] = {"overview", "hosts", "rules", "jobs", NULL};
    const char *const *views = argc > 5 ? (const char *const *)(void *)&argv[5] : both;
    struct wr_dashboard_source source = {NULL, argc > 4 ? argv[4] : "crawl", views, on_sample, on_view, on_command};
    struct wr_dashboard_options options = {.source = &source, .token = argc > 3 ? argv[3] : ""};
    struct wr_http_listen_options place = {.address = argc > 2 ? argv[2] : "", .fd = -1};
    struct wr_http_server_options serving;
    struct wr_http_server *server;
    char byte;
    if (argc < 4)
        return 2;
    folder = argv[1];
    wr_http_server_options_init(&serving);
    serving.listens = &place;
    serving.listen_count = 1;
    serving.answer = answer;
    serving.tick = tick;
    if (wr_dashboard_new(&options, &panel) != 0 || wr_http_server_new(&serving, &server) != 0 ||
        wr_http_server_start(server) != 0) {
        (void)fprintf(stderr, "panel_stub: %s\n", weir_error_detail());
        return 1;
    }
    (void)printf("%u\n", (unsigned)wr_http_server_port(server, 0));
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    wr_http_server_stop(server, 0);
    wr_http_server_free(server);
    wr_dashboard_free(panel);
    return 0;
}
