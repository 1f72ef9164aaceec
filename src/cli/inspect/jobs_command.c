/* SPDX-License-Identifier: MIT */
/* jobs_command.c - weir jobs: lists, shows and controls the crawls of a state file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/crawl/crawl_command.h"
#include "cli/inspect/inspect_commands.h"
#include "cli/inspect/inspector.h"
#include "cli/kit/command.h"
#include "cli/kit/console.h"
#include "cli/kit/format.h"

struct jobs_settings {
    struct wr_inspector_flags source;
    const char *out;
    bool states;
    json_int_t job;
};

static const struct jobs_settings defaults = {.source = {.state = WR_STATE_FILE}, .out = "-"};
static const struct wr_option options[] = {WR_INSPECTOR_OPTIONS(struct jobs_settings)};
#define ONE_JOB .operands = "N", .operands_min = 1, .operands_max = 1, .options = options, .count = 2

/* Parses the number of a job. Returns false after printing an error. */
static bool parse_job_number(const char *text, json_int_t *ret_job)
{
    char *end;
    long long job = strtoll(text, &end, 10);
    if (*end != '\0' || job <= 0) {
        wr_complain("\"%s\" is not a job; give its number, as \"weir jobs list\" shows it", text);
        return false;
    }
    *ret_job = (json_int_t)job;
    return true;
}

static const char *job_status_text(const json_t *job)
{
    if (wr_json_is(job, "running"))
        return "crawling";
    return wr_json_is(job, "over") ? wr_json_text(job, "status") : "unfinished";
}

/* ---- list and show ---- */

static void print_job_list(const json_t *answer)
{
    static const char *const heads[] = {"JOB", "STATUS", "DONE", "FAILED", "QUEUED", "BYTES", "BEGUN", "LAST CHANGE"};
    struct wr_text_table table;
    size_t i;
    const json_t *job;
    char text[64];
    wr_text_table_begin(&table, 8, "rlrrrrll", heads);
    json_array_foreach(json_object_get(answer, "jobs"), i, job)
    {
        wr_text_table_addf(&table, "%.0f", wr_json_number(job, "id"));
        wr_text_table_add(&table, job_status_text(job));
        wr_text_table_addf(&table, "%.0f", wr_json_number(job, "done"));
        wr_text_table_addf(&table, "%.0f", wr_json_number(job, "failed"));
        wr_text_table_addf(&table, "%.0f", wr_json_number(job, "queued"));
        wr_format_bytes((uint64_t)wr_json_number(job, "bytes"), text, sizeof text);
        wr_text_table_add(&table, text);
        wr_text_table_add(&table, wr_format_wall_time(job, "created_at_ms", text, sizeof text));
        wr_text_table_add(&table, wr_format_wall_time(job, "updated_at_ms", text, sizeof text));
    }
    wr_text_table_end(&table);
}

static const struct wr_usage list_usage = {.who = "weir jobs list",
                                           .about = "Lists the crawls of a state file, the oldest first.\n",
                                           .options = options,
                                           .count = 2};

static int run_jobs_list(int argc, char **argv)
{
    struct jobs_settings settings = defaults;
    int status;
    if (!wr_options_parse(&list_usage, &argc, argv, &settings, &status))
        return status;
    return wr_inspector_run(&settings.source, json_pack("{s:s}", "ask", "jobs"), print_job_list);
}

static void print_job_pair(const char *name, const char *value)
{
    wr_print("%-12s%s\n", name, value);
}

static void print_job(const json_t *answer)
{
    const json_t *job = json_array_get(json_object_get(answer, "jobs"), 0);
    char text[64];
    wr_print("%-12s%.0f\n", "job", wr_json_number(job, "id"));
    print_job_pair("status", job_status_text(job));
    if (wr_json_text(job, "why")[0] != '\0')
        print_job_pair("why", wr_json_text(job, "why"));
    wr_print("%-12s%.0f done, %.0f failed, %.0f queued\n", "pages", wr_json_number(job, "done"),
             wr_json_number(job, "failed"), wr_json_number(job, "queued"));
    wr_print("%-12s%.0f, %.0f of them after a 429\n", "retries", wr_json_number(job, "retries"),
             wr_json_number(job, "rejected"));
    wr_format_bytes((uint64_t)wr_json_number(job, "bytes"), text, sizeof text);
    print_job_pair("bytes", text);
    if (json_object_get(answer, "processes") != NULL)
        wr_print_processes(answer, json_integer_value(json_object_get(job, "id")));
    print_job_pair("begun", wr_format_wall_time(job, "created_at_ms", text, sizeof text));
    print_job_pair("last change", wr_format_wall_time(job, "updated_at_ms", text, sizeof text));
    /* weir's own settings are printable ASCII. */
    if (strncmp(wr_json_text(job, "settings"), "weir-", 5) == 0) {
        const char *words = strchr(wr_json_text(job, "settings"), ' ');
        print_job_pair("crawls", words != NULL ? words + 1 : "");
    }
}

static const struct wr_usage show_usage = {.who = "weir jobs show", .about = "Shows one crawl.\n", ONE_JOB};

static int run_jobs_request(const struct wr_usage *usage, const char *what, void (*show)(const json_t *answer),
                            int argc, char **argv)
{
    struct jobs_settings settings = defaults;
    json_int_t job;
    int status;
    if (!wr_options_parse(usage, &argc, argv, &settings, &status))
        return status;
    if (!parse_job_number(argv[0], &job))
        return WR_EXIT_USAGE;
    return wr_inspector_run(&settings.source, json_pack("{s:s, s:I}", "ask", what, "job", job), show);
}

static int run_jobs_show(int argc, char **argv)
{
    return run_jobs_request(&show_usage, "jobs", print_job, argc, argv);
}

/* ---- cancel ---- */

static void print_job_cancelled(const json_t *answer)
{
    wr_print("job %.0f is cancelled\n", wr_json_number(answer, "job"));
}

static const struct wr_usage cancel_usage = {
    .who = "weir jobs cancel",
    .about = "Ends a crawl for good: requests in flight finish, queued URLs are not fetched, and the\n"
             "crawl cannot be resumed.\n",
    ONE_JOB};

static int run_jobs_cancel(int argc, char **argv)
{
    return run_jobs_request(&cancel_usage, "cancel", print_job_cancelled, argc, argv);
}

/* ---- pause ---- */

static void print_job_paused(const json_t *answer)
{
    size_t processes = json_array_size(json_object_get(answer, "processes"));
    if (processes > 0)
        wr_print(
            "%zu process%s told, and will stop within a sixth of --lease; \"weir jobs resume\" continues the job\n",
            processes, processes == 1 ? " is" : "es are");
    else
        wr_print("it stops after the requests in flight; \"weir jobs resume\" continues it\n");
}

static const struct wr_usage pause_usage = {
    .who = "weir jobs pause",
    .about = "Stops a crawl so that it can be resumed: all its processes finish the requests in flight\n"
             "and exit.\n",
    ONE_JOB};

static int run_jobs_pause(int argc, char **argv)
{
    return run_jobs_request(&pause_usage, "drain", print_job_paused, argc, argv);
}

/* ---- export ---- */

static const struct wr_option export_options[] = {
    {"out", WR_STRING(struct jobs_settings, out), .value = "FILE",
     .help = "Write to FILE, which must not exist (-: standard output)"},
    {"states", WR_FLAG(struct jobs_settings, states), .help = "List all URLs with their states, also those that wait"},
    {"state", WR_STRING(struct jobs_settings, source.state), .value = "FILE", .check = wr_check_state,
     .help = "Read the state of the crawl from FILE or postgres://…"},
};

static const struct wr_usage export_usage = {
    .who = "weir jobs export",
    .operands = "N",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Writes one JSON line for each finished URL of a crawl, with the members that weir crawl\n"
             "writes, for all its processes. Without --out state in that crawl, members that the state\n"
             "does not keep are null: title, links, times.\n",
    .options = export_options,
    .count = sizeof export_options / sizeof export_options[0],
};

static bool write_export_line(const char *text, size_t bytes, FILE *out)
{
    return fwrite(text, 1, bytes, out) == bytes && fputc('\n', out) != EOF;
}

static bool write_export_page(const json_t *answer, FILE *out)
{
    size_t i;
    const json_t *each;
    bool well = true;
    json_array_foreach(json_object_get(answer, "lines"), i, each)
    {
        well = well && write_export_line(json_string_value(each), json_string_length(each), out);
    }
    json_array_foreach(json_object_get(answer, "tasks"), i, each)
    {
        char *text = json_dumps(each, JSON_COMPACT | JSON_ENSURE_ASCII);
        well = well && text != NULL && write_export_line(text, strlen(text), out);
        free(text);
    }
    return well;
}

/* Writes one page of lines. Returns false after the last page or an error; *status distinguishes
 * them. */
static bool export_page(struct wr_inspector *source, const struct jobs_settings *settings, json_int_t *after, FILE *out,
                        int *status)
{
    json_t *answer =
        wr_inspector_request(source, json_pack("{s:s, s:I, s:I, s:b}", "ask", "tasks", "job", settings->job, "after",
                                               *after, "lines", (int)!settings->states));
    *status = WR_EXIT_FAILED;
    if (answer == NULL)
        return false;
    if (write_export_page(answer, out))
        *status = WR_EXIT_OK;
    else if (out == stdout)
        wr_print_note_error(errno);
    else
        wr_complain_write_failed("--out", settings->out, errno);
    *after = json_integer_value(json_object_get(answer, "after"));
    bool has_more = !wr_json_is(answer, "end") && *status == WR_EXIT_OK;
    json_decref(answer);
    return has_more;
}

static int export_all(struct wr_inspector *source, const struct jobs_settings *settings, FILE *out)
{
    json_int_t after = 0;
    int status;

    while (export_page(source, settings, &after, out, &status))
        continue;
    return status;
}

static int export_to_file(struct wr_inspector *source, const struct jobs_settings *settings)
{
    FILE *out = fopen(settings->out, "wxe");
    if (out == NULL) {
        wr_complain_write_failed("--out", settings->out, errno);
        return WR_EXIT_FAILED;
    }
    int status = export_all(source, settings, out);
    if (fclose(out) != 0 && status == WR_EXIT_OK) {
        wr_complain_write_failed("--out", settings->out, errno);
        status = WR_EXIT_FAILED;
    }
    return status;
}

static int run_jobs_export(int argc, char **argv)
{
    struct jobs_settings settings = defaults;
    struct wr_inspector source;
    int status;
    if (!wr_options_parse(&export_usage, &argc, argv, &settings, &status))
        return status;
    if (!parse_job_number(argv[0], &settings.job))
        return WR_EXIT_USAGE;
    status = wr_inspector_open(&source, settings.source.state);
    if (status == WR_EXIT_OK)
        status = strcmp(settings.out, "-") == 0 ? export_all(&source, &settings, stdout)
                                                : export_to_file(&source, &settings);
    wr_inspector_close(&source);
    return status;
}

/* ---- resume ---- */

static const struct wr_usage resume_usage = {
    .who = "weir jobs resume",
    .operands = "N [OPTION...]",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Resumes a crawl, as \"weir crawl --resume --job N\" does. Takes the options of weir crawl.\n"};

static int run_jobs_resume(int argc, char **argv)
{
    char number[40];
    json_int_t job;
    int status = WR_EXIT_FAILED;
    if (argc == 0 || argv[0][0] == '-') {
        struct jobs_settings settings = defaults;
        return wr_options_parse(&resume_usage, &argc, argv, &settings, &status) ? WR_EXIT_USAGE : status;
    }
    if (!parse_job_number(argv[0], &job))
        return WR_EXIT_USAGE;
    char **words = calloc((size_t)argc + 2, sizeof *words);
    if (words == NULL)
        return WR_EXIT_FAILED;
    (void)snprintf(number, sizeof number, "--job=%lld", (long long)job);
    words[0] = (char *)"--resume";
    words[1] = number;
    memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof *words);
    status = wr_crawl_run(argc + 1, words);
    free(words);
    return status;
}

/* ---- the command ---- */

static const struct wr_command list[] = {
    {"cancel", "End a crawl for good", run_jobs_cancel, NULL},
    {"export", "Write the JSON lines of a crawl, of all its processes", run_jobs_export, NULL},
    {"list", "List the crawls of a state file", run_jobs_list, NULL},
    {"pause", "Stop a crawl so that it can be resumed", run_jobs_pause, NULL},
    {"resume", "Resume a crawl", run_jobs_resume, NULL},
    {"show", "Show one crawl", run_jobs_show, NULL},
};

int wr_jobs_run(int argc, char **argv)
{
    static const struct wr_commands commands = {
        .who = "weir jobs",
        .about = "Lists, shows, pauses, resumes and cancels the crawls of a state file.",
        .list = list,
        .count = sizeof list / sizeof list[0],
    };
    return wr_commands_run(&commands, argc, argv);
}
