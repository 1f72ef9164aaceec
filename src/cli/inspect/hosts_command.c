/* SPDX-License-Identifier: MIT */
/* hosts_command.c - weir hosts: lists and shows the hosts of a crawl and changes their pace. */
#include <math.h>
#include <stdlib.h>

#include "cli/inspect/inspect_commands.h"
#include "cli/inspect/inspector.h"
#include "cli/kit/command.h"
#include "cli/kit/console.h"
#include "cli/kit/format.h"
#include "crawl/engine/crawl_inspect.h"

struct hosts_settings {
    struct wr_inspector_flags source;
    int sort;
    const char *filter;
    uint64_t top;
    bool reverse, usual;
    int64_t interval;
    const char *max_rate;
};

static const char *const sorts[] = {"wait", "queue", "rate", "rejected", "name", NULL};
static const struct hosts_settings defaults = {.source = {.state = WR_STATE_FILE}, .top = 20};

/* ---- list ---- */

static const char *format_text_cell(const json_t *host, const char *name, char *text, size_t room)
{
    (void)text, (void)room;
    return wr_json_has(host, name) ? wr_json_text(host, name) : "-";
}

static const char *format_count_cell(const json_t *host, const char *name, char *text, size_t room)
{
    (void)snprintf(text, room, "%.0f", wr_json_number(host, name));
    return text;
}

static const char *format_rate_cell(const json_t *host, const char *name, char *text, size_t room)
{
    wr_format_rate(wr_json_has(host, name) ? wr_json_number(host, name) : (double)INFINITY, text, room);
    return text;
}

static const char *format_reason_cell(const json_t *host, const char *name, char *text, size_t room)
{
    return strcmp(wr_json_text(host, name), "none") != 0 ? format_text_cell(host, name, text, room) : "-";
}

static const char *format_state_cell(const json_t *host, const char *name, char *text, size_t room)
{
    bool is_leased = wr_json_has(host, "leased_by") && !wr_json_is(host, "paused");
    return is_leased ? "leased" : format_text_cell(host, name, text, room);
}

/* A column of the table: a member of a host and how to print it. */
struct host_list_column {
    const char *head; /* heading of the column; NULL after the last column */
    char side;        /* 'r': aligned right, 'l': left */
    const char *(*show)(const json_t *host, const char *name, char *text, size_t room);
    const char *name;
};

static const struct host_list_column live[] = {
    {"HOST", 'l', format_text_cell, "host"},
    {"STATE", 'l', format_text_cell, "state"},
    {"WAITS", 'r', wr_format_ms, "wait_ms"},
    {"FOR", 'l', format_reason_cell, "reason"},
    {"QUEUED", 'r', format_count_cell, "queued"},
    {"FLIES", 'r', format_count_cell, "in_flight"},
    {"PACE", 'r', format_rate_cell, "rate"},
    {"LIMIT", 'r', format_rate_cell, "allowed_rate"},
    {"429", 'r', format_count_cell, "rejected"},
    {"FAILED", 'r', format_count_cell, "failed"},
    {.head = NULL},
};

#define LEARNED                                                                                              \
    {"LIMIT", 'r', format_rate_cell, "allowed_rate"}, {"CRAWL-DELAY", 'r', wr_format_ms, "robots_delay_ms"}, \
        {"RETRY-AFTER", 'r', wr_format_ms, "retry_after_ms"}, {"SET", 'r', wr_format_ms, "set_interval_ms"}, \
        {"LEARNED", 'l', wr_format_wall_time, "learned_at_ms"},                                              \
    {                                                                                                        \
        .head = NULL                                                                                         \
    }

static const struct host_list_column stored[] = {
    {"HOST", 'l', format_text_cell, "host"},
    {"STATE", 'l', format_text_cell, "state"},
    LEARNED,
};

static const struct host_list_column shared[] = {
    {"HOST", 'l', format_text_cell, "host"},
    {"STATE", 'l', format_state_cell, "state"},
    {"PROCESS", 'l', format_text_cell, "leased_by"},
    {"QUEUED", 'r', format_count_cell, "queued"},
    LEARNED,
};

#define COLUMNS_MAX 12

static void print_host_table(const json_t *answer, const struct host_list_column *columns)
{
    const char *heads[COLUMNS_MAX];
    char sides[COLUMNS_MAX + 1] = "", text[64];
    size_t count = 0, i;
    struct wr_text_table table;
    const json_t *host;
    for (; columns[count].head != NULL; count++) {
        heads[count] = columns[count].head;
        sides[count] = columns[count].side;
    }
    wr_text_table_begin(&table, count, sides, heads);
    json_array_foreach(json_object_get(answer, "hosts"), i, host)
    {
        for (const struct host_list_column *column = columns; column->head != NULL; column++)
            wr_text_table_add(&table, column->show(host, column->name, text, sizeof text));
    }
    wr_text_table_end(&table);
}

static void print_host_list(const json_t *answer)
{
    size_t told = json_array_size(json_object_get(answer, "hosts"));
    double matched = wr_json_number(answer, "matched");
    bool is_live = wr_json_is(answer, "live"), is_shared = !is_live && wr_json_has(answer, "processes");
    print_host_table(answer, is_live ? live : is_shared ? shared : stored);
    if (is_shared)
        wr_print_processes(answer, 0);
    if (matched > (double)told)
        wr_print("%.0f more; --top and --filter show others\n", matched - (double)told);
}

static const struct wr_option list_options[] = {
    {"sort", WR_CHOICE(struct hosts_settings, sort), .choices = sorts, .help = "Order of the hosts"},
    {"reverse", WR_FLAG(struct hosts_settings, reverse), .help = "Reverse the order"},
    {"filter", WR_STRING(struct hosts_settings, filter), .value = "TEXT",
     .help = "List only hosts whose name contains TEXT"},
    {"top", WR_COUNT(struct hosts_settings, top), .value = "N", .min = 1, .max = WR_HOST_VIEWS_MAX,
     .help = "List at most N hosts"},
    WR_INSPECTOR_OPTIONS(struct hosts_settings),
};

static const struct wr_usage list_usage = {
    .who = "weir hosts list",
    .about = "Lists hosts. While a crawl runs: its hosts in memory, with what each waits for, for how\n"
             "long, and its pace. Otherwise: the hosts of the state file, with their learned pace. On a\n"
             "database it also lists which process has each host.\n",
    .options = list_options,
    .count = sizeof list_options / sizeof list_options[0],
};

static int run_hosts_list(int argc, char **argv)
{
    struct hosts_settings settings = defaults;
    int status;
    if (!wr_options_parse(&list_usage, &argc, argv, &settings, &status))
        return status;
    json_t *request = json_pack("{s:s, s:s, s:s, s:I, s:b}", "ask", "hosts", "sort", sorts[settings.sort], "filter",
                                settings.filter != NULL ? settings.filter : "", "most", (json_int_t)settings.top,
                                "reverse", (int)settings.reverse);
    return wr_inspector_run(&settings.source, request, print_host_list);
}

/* ---- show ---- */

static void print_host_line(const char *name, const char *value)
{
    wr_print("%-14s%s\n", name, value);
}

static void print_live_host(const json_t *host)
{
    char text[64], limit[64], interval[64];
    wr_print("%-14s%s, %.0f queued, %.0f in flight\n", "state", wr_json_text(host, "state"),
             wr_json_number(host, "queued"), wr_json_number(host, "in_flight"));
    if (strcmp(wr_json_text(host, "reason"), "none") != 0)
        wr_print("%-14s%s%s%s\n", "waits for", wr_json_text(host, "reason"), wr_json_has(host, "wait_ms") ? ", " : "",
                 wr_json_has(host, "wait_ms") ? wr_format_ms(host, "wait_ms", text, sizeof text) : "");
    wr_print("%-14s%s of %s allowed (%s between starts)\n", "pace", format_rate_cell(host, "rate", text, sizeof text),
             format_rate_cell(host, "allowed_rate", limit, sizeof limit),
             wr_format_ms(host, "interval_ms", interval, sizeof interval));
    wr_print("%-14s%.0f: %.0f ok, %.0f answered 429, %.0f failed, %.0f retries\n", "requests",
             wr_json_number(host, "requests"), wr_json_number(host, "fetched"), wr_json_number(host, "rejected"),
             wr_json_number(host, "failed"), wr_json_number(host, "retries"));
}

static void print_host_details(const json_t *answer)
{
    const json_t *host = json_object_get(answer, "host");
    char text[64];
    print_host_line("host", wr_json_text(host, "host"));
    if (wr_json_is(answer, "live"))
        print_live_host(host);
    else {
        if (wr_json_has(answer, "processes"))
            print_host_line("process", format_text_cell(host, "leased_by", text, sizeof text));
        wr_print("%-14s%.0f\n", "queued", wr_json_number(host, "queued"));
        print_host_line("limit", format_rate_cell(host, "allowed_rate", text, sizeof text));
        print_host_line("learned", wr_format_wall_time(host, "learned_at_ms", text, sizeof text));
    }
    print_host_line("breaker", wr_json_text(host, "breaker"));
    print_host_line("Crawl-delay", wr_format_ms(host, "robots_delay_ms", text, sizeof text));
    print_host_line("Retry-After", wr_format_ms(host, "retry_after_ms", text, sizeof text));
    print_host_line("set interval", wr_format_ms(host, "set_interval_ms", text, sizeof text));
    print_host_line("paused", wr_json_is(host, "paused") ? "yes" : "no");
}

static const struct wr_option plain_options[] = {WR_INSPECTOR_OPTIONS(struct hosts_settings)};
#define PLAIN .operands = "HOST", .operands_min = 1, .operands_max = 1, .options = plain_options, .count = 2

static const struct wr_usage show_usage = {
    .who = "weir hosts show", .about = "Shows what is known about one host.\n", PLAIN};

static int run_hosts_show(int argc, char **argv)
{
    struct hosts_settings settings = defaults;
    int status;
    if (!wr_options_parse(&show_usage, &argc, argv, &settings, &status))
        return status;
    return wr_inspector_run(&settings.source, json_pack("{s:s, s:s}", "ask", "host", "host", argv[0]),
                            print_host_details);
}

/* ---- control ---- */

static const struct wr_usage pause_usage = {
    .who = "weir hosts pause",
    .about = "Starts no more requests to a host, now and in later crawls, until \"weir hosts resume\".\n"
             "Requests in flight finish.\n",
    PLAIN};
static const struct wr_usage resume_usage = {
    .who = "weir hosts resume", .about = "Starts requests to a paused host again.\n", PLAIN};
static const struct wr_usage forget_usage = {
    .who = "weir hosts forget",
    .about = "Forgets the learned pace of a host. Crawl-delay and Retry-After of its server still hold.\n",
    PLAIN};

/* Prints what was done and when it takes effect. */
static void print_host_change(const json_t *answer, const char *what)
{
    bool is_later = json_object_get(answer, "live") != NULL && !wr_json_is(answer, "live");
    bool is_shared = json_array_size(json_object_get(answer, "processes")) > 0;
    bool is_unknown = json_is_false(json_object_get(answer, "known"));
    wr_print("%s: %s%s\n", wr_json_text(answer, "host"), what,
             is_unknown  ? ", if it is found"
             : is_shared ? ", when the process that holds it checks: within a sixth of --lease"
             : is_later  ? ", for the next crawl"
                         : "");
}

static void print_host_paused(const json_t *answer)
{
    print_host_change(answer, "paused");
}

static void print_host_resumed(const json_t *answer)
{
    print_host_change(answer, "not paused");
}

static void print_host_forgotten(const json_t *answer)
{
    print_host_change(answer, "forgotten");
}

static void print_host_set(const json_t *answer)
{
    char interval[64], text[96];
    (void)wr_format_ms(answer, "set_interval_ms", interval, sizeof interval);
    (void)snprintf(text, sizeof text, "at least %s between two starts", interval);
    print_host_change(answer, wr_json_number(answer, "set_interval_ms") > 0 ? text : "paced like all hosts");
}

/* Prints a warning that a host is unknown, with a similar known host. The crawl may still find the
 * host, but mostly the name is misspelt or lacks its port. */
static void warn_unknown_host(struct wr_inspector *source, const char *host)
{
    json_t *answer = wr_inspector_request(source, json_pack("{s:s, s:s, s:s, s:I}", "ask", "hosts", "sort", "name",
                                                            "filter", host, "most", (json_int_t)8));
    const json_t *other = NULL;
    size_t i;
    json_array_foreach(json_object_get(answer, "hosts"), i, other)
    {
        if (strcmp(wr_json_text(other, "host"), host) != 0)
            break;
    }
    if (i < json_array_size(json_object_get(answer, "hosts")))
        wr_complain("%s is not known so far; did you mean %s?", host, wr_json_text(other, "host"));
    else if (answer != NULL)
        wr_complain("%s is not known so far; \"weir hosts list\" shows those that are", host);
    json_decref(answer);
}

static int send_host_command(const struct wr_inspector_flags *flags, json_t *request,
                             void (*show)(const json_t *answer))
{
    struct wr_inspector source;
    int status = wr_inspector_open(&source, flags->state);
    if (status != WR_EXIT_OK) {
        json_decref(request);
        return status;
    }
    json_t *answer = wr_inspector_request(&source, request);
    if (answer != NULL && flags->json)
        wr_print("%s\n", source.answer.bytes);
    else if (answer != NULL)
        show(answer);
    if (answer != NULL && json_is_false(json_object_get(answer, "known")))
        warn_unknown_host(&source, wr_json_text(answer, "host"));
    status = answer != NULL ? WR_EXIT_OK : WR_EXIT_FAILED;
    json_decref(answer);
    wr_inspector_close(&source);
    return status;
}

static int run_host_command(const struct wr_usage *usage, const char *what, void (*show)(const json_t *answer),
                            int argc, char **argv)
{
    struct hosts_settings settings = defaults;
    int status;
    if (!wr_options_parse(usage, &argc, argv, &settings, &status))
        return status;
    return send_host_command(&settings.source, json_pack("{s:s, s:s}", "ask", what, "host", argv[0]), show);
}

static int run_hosts_pause(int argc, char **argv)
{
    return run_host_command(&pause_usage, "pause", print_host_paused, argc, argv);
}

static int run_hosts_resume(int argc, char **argv)
{
    return run_host_command(&resume_usage, "resume", print_host_resumed, argc, argv);
}

static int run_hosts_forget(int argc, char **argv)
{
    return run_host_command(&forget_usage, "forget", print_host_forgotten, argc, argv);
}

static const struct wr_option set_options[] = {
    {"interval", WR_DURATION(struct hosts_settings, interval), .value = "D", .min = 0,
     .max = (uint64_t)WR_STORE_INTERVAL_MAX_NS, .help = "Minimum time between two requests to a host"},
    {"max-rate", WR_STRING(struct hosts_settings, max_rate), .value = "N",
     .help = "Maximum of requests per second to a host"},
    {"default", WR_FLAG(struct hosts_settings, usual), .help = "Remove both settings"},
    WR_INSPECTOR_OPTIONS(struct hosts_settings),
};

static const struct wr_usage set_usage = {
    .who = "weir hosts set",
    .operands = "HOST",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Sets the pace of one host instead of --interval and --max-rate of the crawl, from the next\n"
             "request on and in later crawls. The host is never asked faster than its server says\n"
             "(Crawl-delay, Retry-After), nor faster than weir has learned that it tolerates.\n",
    .options = set_options,
    .count = sizeof set_options / sizeof set_options[0],
};

/* Converts --interval and --max-rate to a minimum interval in microseconds. Returns false after
 * printing an error. */
static bool interval_from_flags(const struct hosts_settings *settings, json_int_t *ret_us)
{
    int64_t us = (settings->interval + 999) / 1000;
    if (settings->max_rate != NULL) {
        char *end;
        double rate = strtod(settings->max_rate, &end);
        if (*end != '\0' || !(rate >= 1e-6 && rate <= 1e6)) {
            wr_complain("--max-rate: \"%s\" is not a rate; use requests per second, such as 0.5 or 4",
                        settings->max_rate);
            return false;
        }
        int64_t each_us = (int64_t)ceil(1e6 / rate);
        us = each_us > us ? each_us : us;
    }
    if ((us == 0) != settings->usual) {
        wr_complain(us == 0 ? "no pace is given; use --interval D, --max-rate N, or --default"
                            : "--default is the crawl's own pace; give it alone");
        return false;
    }
    *ret_us = (json_int_t)us;
    return true;
}

static int run_hosts_set(int argc, char **argv)
{
    struct hosts_settings settings = defaults;
    json_int_t us;
    int status;
    if (!wr_options_parse(&set_usage, &argc, argv, &settings, &status))
        return status;
    if (!interval_from_flags(&settings, &us))
        return WR_EXIT_USAGE;
    json_t *request = json_pack("{s:s, s:s, s:I}", "ask", "set", "host", argv[0], "interval_us", us);
    return send_host_command(&settings.source, request, print_host_set);
}

/* ---- the command ---- */

static const struct wr_command list[] = {
    {"forget", "Forget the learned pace of a host", run_hosts_forget, NULL},
    {"list", "List hosts, with what each waits for", run_hosts_list, NULL},
    {"pause", "Start no more requests to a host", run_hosts_pause, NULL},
    {"resume", "Start requests to a paused host again", run_hosts_resume, NULL},
    {"set", "Set the pace of a host", run_hosts_set, NULL},
    {"show", "Show what is known about a host", run_hosts_show, NULL},
};

int wr_hosts_run(int argc, char **argv)
{
    static const struct wr_commands commands = {
        .who = "weir hosts",
        .about = "Lists the hosts of a crawl, while it runs or after it, and changes their pace.",
        .list = list,
        .count = sizeof list / sizeof list[0],
    };
    return wr_commands_run(&commands, argc, argv);
}
