/* SPDX-License-Identifier: MIT */
/* why_command.c - weir why: shows what delays a URL, and until when. */
#include <string.h>

#include "cli/inspect/inspect_commands.h"
#include "cli/inspect/inspector.h"
#include "cli/kit/console.h"
#include "cli/kit/format.h"
#include "cli/kit/given_url.h"
#include "cli/kit/sanitise.h"

struct why_settings {
    struct wr_inspector_flags source;
    uint64_t job;
};

static const struct wr_option options[] = {
    {"job", WR_COUNT(struct why_settings, job), .value = "N", .min = 0, .max = INT64_MAX,
     .help = "Job to ask about (0: the one that runs, or the newest)"},
    WR_INSPECTOR_OPTIONS(struct why_settings),
};

static const struct wr_usage usage = {
    .who = "weir why",
    .operands = "URL|HOST",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Shows the state of a URL in a crawl: how it ended, or its place in the queue of its host,\n"
             "every bound on the next request to the host with its source and its end, and when the turn\n"
             "of the URL is expected. For a HOST it shows its front page. It also shows what kind of limit the\n"
             "host seems to have, and the refusals that show it.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* ---- the URL ---- */

static void print_ended_url(const json_t *task)
{
    char text[64];
    wr_print("it has ended: %s", wr_json_text(task, "verdict"));
    if (wr_json_has(task, "status"))
        wr_print(", status %.0f", wr_json_number(task, "status"));
    if (wr_json_has(task, "error")) {
        wr_print(", ");
        wr_print_sanitised(wr_span_of(wr_json_text(task, "error")));
    }
    if (wr_json_has(task, "ended_at_ms"))
        wr_print(", on %s", wr_format_wall_time(task, "ended_at_ms", text, sizeof text));
    wr_print("\n");
}

static void print_unleased_host(size_t processes)
{
    if (processes == 0)
        wr_print("no process works on this job\n");
    else
        wr_print("no process holds its host now; %zu work%s on the job, and one takes it when it has room\n", processes,
                 processes == 1 ? "s" : "");
}

static void print_queued_url(const json_t *answer)
{
    char text[64];
    double before = wr_json_number(answer, "position");
    bool is_settled = wr_json_has(answer, "leased_by") || wr_json_is(answer, "rests");
    if (wr_json_has(answer, "leased_by")) {
        wr_print_sanitised(wr_span_of(wr_json_text(answer, "leased_by")));
        wr_print(" holds its host\n");
    }
    if (wr_json_is(answer, "rests"))
        wr_print("no process holds its host, which has to wait\n");
    if (before > 0)
        wr_print("it is queued, with %.0f before it at ", before);
    else
        wr_print("it is queued, and the next at ");
    wr_print_sanitised(wr_span_of(wr_json_text(answer, "host")));
    wr_print("\n");
    if (wr_json_number(answer, "backoff_ms") > 0)
        wr_print("it failed, and is retried in %s at the earliest\n",
                 wr_format_ms(answer, "backoff_ms", text, sizeof text));
    if (strcmp(wr_json_text(json_object_get(answer, "robots"), "verdict"), "deny") == 0)
        wr_print("it will end without a request\n");
    else if (json_is_array(json_object_get(answer, "processes")) && !is_settled)
        print_unleased_host(json_array_size(json_object_get(answer, "processes")));
    else if (!wr_json_is(answer, "live") && !is_settled)
        wr_print("no crawl runs on this state file\n");
    else if (!wr_json_has(answer, "expected_ms"))
        wr_print("the time of its turn is not known\n");
    else if (wr_json_number(answer, "expected_ms") > 0)
        wr_print("its turn is expected in %s\n", wr_format_ms(answer, "expected_ms", text, sizeof text));
    else
        wr_print("its turn is now\n");
}

static void print_url_state(const json_t *answer)
{
    const char *state = wr_json_text(answer, "state");
    char text[64];
    if (strcmp(state, "in_flight") == 0 && wr_json_has(answer, "sent_ms"))
        wr_print("it is in flight: it was sent %s ago\n", wr_format_ms(answer, "sent_ms", text, sizeof text));
    else if (strcmp(state, "in_flight") == 0)
        wr_print("it is in flight: it is about to be sent\n");
    else if (strcmp(state, "queued") == 0)
        print_queued_url(answer);
    else if (strcmp(state, "unknown") == 0)
        wr_print("it is not known: no page links to it, or it was skipped\n");
    else
        print_ended_url(json_object_get(answer, "task"));
    if (json_is_false(json_object_get(answer, "in_scope")))
        wr_print("links to it are out of the crawl's scope\n");
}

static void print_url_robots(const json_t *robots)
{
    const char *verdict = wr_json_text(robots, "verdict");
    if (robots == NULL)
        return;
    wr_print(strcmp(verdict, "deny") == 0    ? "robots.txt forbids it"
             : strcmp(verdict, "allow") == 0 ? "robots.txt allows it"
                                             : "its robots.txt is not known yet");
    if (wr_json_has(robots, "line")) {
        wr_print(", by line %.0f: ", wr_json_number(robots, "line"));
        wr_print_sanitised(wr_span_of(wr_json_text(robots, "rule")));
    }
    wr_print("\n");
}

/* ---- bounds of the host ---- */

static void add_bound_source(struct wr_text_table *table, const json_t *bound)
{
    const char *source = wr_json_text(bound, "source");
    char text[64];
    wr_format_ms(bound, "since_ms", text, sizeof text);
    const char *group = wr_json_is(bound, "group") ? " (of its group)" : "";
    if (wr_json_has(bound, "line"))
        wr_text_table_addf(table, "robots.txt, line %.0f%s", wr_json_number(bound, "line"), group);
    else if (strcmp(source, "robots") == 0)
        wr_text_table_addf(table, "robots.txt%s", group);
    else if (strcmp(source, "options") == 0)
        wr_text_table_addf(table, "the crawl's options, or their defaults%s", group);
    else if (strcmp(source, "set") == 0)
        wr_text_table_addf(table, "set by hand: weir hosts%s", group);
    else if (wr_json_has(bound, "since_ms"))
        wr_text_table_addf(table, "%s %s ago%s", strcmp(source, "header") == 0 ? "a header, seen" : "learned,", text,
                           group);
    else
        wr_text_table_addf(table, "%s%s", strcmp(source, "header") == 0 ? "a header" : "learned", group);
}

static void print_host_bounds(const json_t *bounds)
{
    static const char *const heads[] = {"BOUND", "HOLDS FOR", "VALUE", "FROM"};
    struct wr_text_table table;
    size_t i;
    const json_t *bound;
    char text[64];
    if (json_array_size(bounds) == 0)
        return;
    wr_print("\n");
    wr_text_table_begin(&table, 4, "lrrl", heads);
    json_array_foreach(bounds, i, bound)
    {
        bool is_endless = wr_json_is(bound, "holds") && !wr_json_has(bound, "wait_ms");
        if (!wr_json_is(bound, "holds") && wr_json_number(bound, "value_ms") <= 0 && !wr_json_has(bound, "most"))
            continue; /* the bound has no effect now */
        wr_text_table_add(&table, wr_json_text(bound, "reason"));
        wr_text_table_add(&table, is_endless ? "until cleared" : wr_format_ms(bound, "wait_ms", text, sizeof text));
        if (wr_json_has(bound, "most"))
            wr_text_table_addf(&table, "%.0f", wr_json_number(bound, "most"));
        else
            wr_text_table_add(&table, wr_format_ms(bound, "value_ms", text, sizeof text));
        add_bound_source(&table, bound);
    }
    wr_text_table_end(&table);
}

/* Prints what was learned about the host's limit, and the reason. */
static void print_learned_limit(const json_t *host)
{
    if (*wr_json_text(host, "limit") == '\0')
        return;
    wr_print("limit of the host (%s): ", wr_json_text(host, "limit"));
    wr_print_sanitised(wr_span_of(wr_json_text(host, "limit_why")));
    wr_print("\n");
}

static void print_why_answer(const json_t *answer)
{
    wr_print_sanitised(wr_span_of(wr_json_text(answer, "url")));
    wr_print("\n");
    print_url_state(answer);
    print_url_robots(json_object_get(answer, "robots"));
    print_learned_limit(json_object_get(answer, "at_host"));
    print_host_bounds(json_object_get(answer, "bounds"));
}

/* ---- request ---- */

struct why_urls {
    char texts[2][WR_URL_ROOM];
    size_t count; /* number of texts; 2 for a URL without a scheme: https and http */
};

static bool parse_why_url(const char *input, char text[WR_URL_ROOM])
{
    static char memory[WR_URL_ROOM];
    struct wr_url given, url;
    if (!wr_given_url("", input, NULL, memory, &given))
        return false;
    if (wr_url_canonical(&given, text, WR_URL_ROOM, &url) == WR_URL_OK)
        return true;
    wr_complain("the URL is longer than %d bytes", WR_URL_MAX);
    return false;
}

static bool parse_why_operand(const char *input, struct why_urls *ret_asked)
{
    static char longer[WR_URL_ROOM];
    static const char *const schemes[] = {"https://", "http://"};
    ret_asked->count = 0;
    if (!wr_given_lacks_scheme(wr_span_of(input)))
        return parse_why_url(input, ret_asked->texts[ret_asked->count++]);
    for (size_t i = 0; i < 2; i++) {
        struct wr_buf buf;
        wr_buf_init_fixed(&buf, longer, sizeof longer);
        wr_buf_append_string(&buf, schemes[i]);
        wr_buf_append_string(&buf, input);
        if (!parse_why_url(buf.error == 0 ? longer : input, ret_asked->texts[ret_asked->count++]))
            return false;
    }
    return true;
}

static bool is_known_url(const json_t *answer)
{
    const char *verdict = wr_json_text(json_object_get(answer, "robots"), "verdict");
    return strcmp(wr_json_text(answer, "state"), "unknown") != 0 || strcmp(verdict, "allow") == 0 ||
           strcmp(verdict, "deny") == 0;
}

/* Asks for the URL. Without a scheme it asks for https, then for http, and for https a second time
 * if neither is known. */
static json_t *request_why(struct wr_inspector *source, const struct why_settings *settings,
                           const struct why_urls *asked)
{
    json_t *answer = NULL;
    for (size_t i = 0; i < 2 * asked->count - 1; i++) {
        json_decref(answer);
        answer = wr_inspector_request(source, json_pack("{s:s, s:s, s:I}", "ask", "why", "url", asked->texts[i % 2],
                                                        "job", (json_int_t)settings->job));
        if (answer == NULL || is_known_url(answer))
            break;
    }
    return answer;
}

int wr_why_run(int argc, char **argv)
{
    static struct why_urls asked;
    struct why_settings settings = {.source = {.state = WR_STATE_FILE}};
    struct wr_inspector source;
    int status;
    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (!parse_why_operand(argv[0], &asked))
        return WR_EXIT_USAGE;
    status = wr_inspector_open(&source, settings.source.state);
    if (status == WR_EXIT_OK)
        status = wr_inspector_print(&source, request_why(&source, &settings, &asked), settings.source.json,
                                    print_why_answer);
    wr_inspector_close(&source);
    return status;
}
