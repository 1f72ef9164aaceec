/* SPDX-License-Identifier: MIT */
/* crawl_command.c - weir crawl: runs the command from its options to its exit status. */
#include "cli/crawl/crawl_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/crawl/crawl_files.h"
#include "cli/crawl/crawl_listen.h"
#include "cli/crawl/crawl_report.h"
#include "cli/crawl/crawl_state.h"
#include "cli/crawl/diff.h"
#include "cli/crawl/dry.h"
#include "cli/crawl/seeds.h"
#include "cli/crawl/stored_args.h"
#include "cli/kit/console.h"
#include "cli/kit/signals.h"
#include "cli/kit/sources.h"
#include "cli/report/report_text.h"
#include "cli/report/stored_report.h"
#include "crawl/store/store.h"
#include "limiter/memory/memory.h"
#include "watch/control/control.h"
#include "watch/dashboard/token.h"

#define DEADLY 3  /* the third signal kills; the first lets requests finish, the second stops */
#define STOPPED 3 /* exit status of a crawl that can be resumed */
#define LOOK_EVERY_NS (100 * WEIR_MILLISECOND)
#define SILENCE_NS (10 * WEIR_SECOND) /* time without any answer after which the user is warned */

/* State of one run of weir crawl. */
struct crawl_run {
    struct wr_crawl_settings settings;
    char **words; /* a copy of the arguments; parsing reorders argv */
    int count;
    struct wr_stored_args old; /* arguments with which the job was started */
    char **seeds_given;        /* operands, those of earlier runs first */
    size_t seeds_count;
    bool has_new_seeds;
    struct wr_engine *engine;
    struct wr_control *control;     /* control socket; NULL: none */
    struct wr_crawl_listen *listen; /* dashboard and metrics; NULL: not requested */
    struct wr_engine_job job;       /* job to resume; id 0: a new job */
    int64_t earlier;                /* job whose URLs a recrawl visits; 0: no recrawl */
    bool adds_to_archive;
    struct wr_scope *scope;
    struct wr_crawl_texts texts;
    struct wr_engine_options options;
    bool has_made_state; /* this run created the state file */
    struct wr_screen screen;
    struct wr_seeds seeds;
    struct wr_rate_history course;
};

/* ---- arguments ---- */

static bool copy_args(struct crawl_run *crawl, int argc, char **argv)
{
    crawl->words = malloc(((size_t)argc + 1) * sizeof *argv);
    if (crawl->words == NULL) {
        wr_complain("out of memory");
        return false;
    }
    memcpy(crawl->words, argv, (size_t)argc * sizeof *argv);
    crawl->count = argc;
    return true;
}

/* Appends operands to the seeds. */
static bool add_seeds(struct crawl_run *crawl, int count, char **words, int *ret_status)
{
    char **longer = realloc(crawl->seeds_given, (crawl->seeds_count + (size_t)count + 1) * sizeof *longer);
    *ret_status = WR_EXIT_FAILED;
    if (longer == NULL) {
        wr_complain("out of memory");
        return false;
    }
    memcpy(longer + crawl->seeds_count, words, (size_t)count * sizeof *words);
    crawl->seeds_given = longer;
    crawl->seeds_count += (size_t)count;
    return true;
}

/* Parses the arguments and reads the settings file and the environment. */
static bool parse_args(struct crawl_run *crawl, int count, char **words, int *ret_status)
{
    return wr_options_parse(&wr_crawl_usage, &count, words, &crawl->settings, ret_status) &&
           add_seeds(crawl, count, words, ret_status);
}

/* Parses further arguments, which override earlier ones. */
static bool parse_more_args(struct crawl_run *crawl, int count, char **words, int *ret_status)
{
    *ret_status = WR_EXIT_USAGE;
    return wr_options_read(&wr_crawl_usage, &count, words, &crawl->settings) &&
           add_seeds(crawl, count, words, ret_status);
}

/* ---- resuming a job ---- */

static bool lacks_secrets(const struct crawl_run *crawl, int64_t job)
{
    const char *name = NULL;
    if (crawl->old.lacks_header && crawl->settings.headers.count == 0)
        name = "--header";
    else if (crawl->old.lacks_proxy && crawl->settings.proxy == NULL)
        name = "--proxy";
    if (name != NULL)
        wr_complain("job %lld was started with %s, which is not stored because it may be a secret; give it again",
                    (long long)job, name);
    return name != NULL;
}

static bool read_stored_args(struct crawl_run *crawl, const struct wr_engine_job *job)
{
    int error = wr_stored_args_read(&crawl->old, job->settings);
    if (error != 0)
        wr_complain("job %lld is of another version of weir: %s", (long long)job->id, weir_error_text(error));
    return error == 0;
}

/* Merges the arguments of the job's first run with those of this run, which win. The settings file
 * fills only gaps: the stored arguments contain what it said at the first run. */
static bool merge_stored_args(struct crawl_run *crawl, int *ret_status)
{
    if (!read_stored_args(crawl, &crawl->job))
        return false;
    crawl->seeds_count = 0;
    if (!wr_crawl_settings_init(&crawl->settings) ||
        !parse_more_args(crawl, crawl->old.count, crawl->old.list, ret_status))
        return false;
    if (crawl->job.is_seeded) { /* the job has read its seeds: only new ones count */
        crawl->seeds_count = 0;
        crawl->settings.seeds_file = NULL;
    }
    size_t before = crawl->seeds_count;
    const char *file = crawl->settings.seeds_file;
    if (!parse_more_args(crawl, crawl->count, crawl->words, ret_status))
        return false;
    crawl->has_new_seeds = crawl->seeds_count > before || crawl->settings.seeds_file != file;
    file = crawl->settings.seeds_file;
    *ret_status = WR_EXIT_USAGE;
    if (!wr_sources_load(&wr_crawl_usage, &crawl->settings))
        return false;
    if (crawl->job.is_seeded)
        crawl->settings.seeds_file = file;
    return !lacks_secrets(crawl, crawl->job.id);
}

/* ---- seeds ---- */

/* Chooses the seeds; those of earlier runs are not read twice. Returns false after an error
 * message. */
static bool choose_seeds(struct crawl_run *crawl)
{
    struct wr_seeds *seeds = &crawl->seeds;
    const struct wr_engine_job *job = &crawl->job;
    seeds->screen = &crawl->screen;
    seeds->allows_private = crawl->settings.allow_private || crawl->settings.proxy != NULL;
    seeds->given = crawl->seeds_given;
    seeds->given_count = crawl->seeds_count;
    seeds->file = crawl->settings.seeds_file;
    seeds->unread_job = job->id > 0 && !job->is_seeded && !crawl->has_new_seeds ? job->id : 0;
    seeds->may_be_empty = crawl->has_new_seeds && job->queued + job->done + job->failed > 0;
    seeds->has_earlier = crawl->settings.recrawl && (job->id == 0 || !job->is_seeded);
    bool is_told = job->id > 0 && job->is_seeded && !crawl->has_new_seeds;
    if (is_told || seeds->has_earlier || seeds->given_count > 0 || seeds->file != NULL)
        return true;
    seeds->file = "-";
    if (!isatty(STDIN_FILENO))
        return true;
    if (seeds->unread_job > 0)
        wr_seeds_complain_unread(seeds);
    else
        wr_complain("no URL to start from; give one, as in \"weir crawl example.org\", or --seeds-file FILE");
    return false;
}

/* ---- callbacks of the engine, on its threads ---- */

static bool url_is_in_scope(void *context, const struct wr_url *url)
{
    return wr_scope_has(((const struct crawl_run *)context)->scope, url);
}

static void add_seed_to_scope(void *context, const struct wr_url *url)
{
    struct crawl_run *crawl = context;
    int error = wr_scope_add_seed(crawl->scope, url);
    if (error != 0)
        wr_screen_say(&crawl->screen, "links to %s are not followed: %s", url->text, weir_error_text(error));
}

static void print_engine_warning(void *context, const char *line)
{
    wr_screen_say(&((struct crawl_run *)context)->screen, "%s", line);
}

/* ---- start ---- */

/* Encodes the settings to store with the job. Returns false after printing an error. */
static bool encode_job_args(struct crawl_run *crawl, struct wr_buf *buf)
{
    int count = 0;
    char **sourced = wr_sources_args(&wr_crawl_usage, &crawl->settings, &count);
    wr_buf_init(buf, wr_allocator_or_system(NULL), WR_STORE_SETTINGS_MAX);
    wr_stored_args_begin(buf);
    bool is_shared = wr_store_is_url(crawl->settings.state);
    wr_stored_args_append(buf, &wr_crawl_usage, is_shared, count, sourced);
    wr_stored_args_append(buf, &wr_crawl_usage, is_shared, crawl->count, crawl->words);
    free(sourced);
    if (sourced == NULL)
        wr_complain("out of memory");
    else if (buf->error != 0)
        wr_complain("the command line is too long to be stored; put the seeds into a file: --seeds-file FILE");
    return sourced != NULL && buf->error == 0;
}

static int start_crawl(struct crawl_run *crawl)
{
    struct wr_engine_options *options = &crawl->options;
    struct wr_buf words;
    if (!encode_job_args(crawl, &words)) {
        wr_buf_release(&words);
        return WR_EXIT_USAGE;
    }
    options->resume_job = crawl->job.id;
    options->earlier_job = crawl->earlier;
    options->has_seeds = crawl->seeds.has_earlier || crawl->seeds.given_count > 0 || crawl->seeds.file != NULL;
    options->settings = wr_buf_from(&words, 0);                          /* only for a new job */
    options->appends = crawl->settings.append || crawl->adds_to_archive; /* set by use_state */
    options->in_scope = url_is_in_scope;
    options->on_seed = add_seed_to_scope;
    options->scope_context = crawl;
    options->warn = print_engine_warning;
    options->warn_context = crawl;
    int error = wr_engine_start(crawl->engine, options);
    if (error != 0)
        wr_complain("%s", wr_error_message(error));
    wr_buf_release(&words);
    return error == 0 ? WR_EXIT_OK : error == WEIR_E_INVAL ? WR_EXIT_USAGE : WR_EXIT_FAILED;
}

/* ---- end ---- */

static int crawl_exit_status(const struct crawl_run *crawl, const struct wr_engine_result *result)
{
    const struct wr_engine_stats *stats = &result->stats;
    bool has_nothing = stats->fetched == 0 && stats->pages > 0 && crawl->job.done == 0;
    switch (result->end) {
    case WR_END_COMPLETED:
        return result->failed > 0 || crawl->seeds.refused > 0 || has_nothing ? WR_EXIT_FAILED : WR_EXIT_OK;
    case WR_END_FAILED:
    case WR_END_CANCELLED:
    case WR_END_BLOCKED:
        return WR_EXIT_FAILED;
    case WR_END_BUDGET:
    case WR_END_STOPPED:
    case WR_END_BROKEN:
        break;
    }
    return STOPPED;
}

static bool write_crawl_report(const struct crawl_run *crawl, const struct wr_crawl_report *report)
{
    const char *path = crawl->settings.report;
    if (path == NULL)
        return true;
    FILE *out = strcmp(path, "-") == 0 ? stdout : wr_file_create(path);
    bool well = out != NULL && wr_crawl_report_json(report, out);
    int error = errno;
    if (out != NULL && out != stdout && fclose(out) != 0 && well) {
        error = errno;
        well = false;
    }
    if (!well)
        wr_complain_write_failed("--report", path, error);
    return well;
}

/* Prints what the user can do next. */
static void print_advice(struct crawl_run *crawl, const struct wr_engine_result *result)
{
    const struct wr_engine_stats *stats = &result->stats;
    const struct wr_seeds *seeds = &crawl->seeds;
    bool is_usual = strcmp(crawl->settings.state, WR_STATE_FILE) == 0;
    bool lacks_seeds = !seeds->is_complete && seeds->file != NULL && strcmp(seeds->file, "-") == 0;
    bool can_go_on = crawl_exit_status(crawl, result) == STOPPED || (result->end == WR_END_FAILED && stats->queued > 0);
    char which[64] = ""; /* further options for a database */
    if (stats->is_shared)
        (void)snprintf(which, sizeof which, " --job %lld%s", (long long)result->job,
                       wr_crawl_keeps_lines(&crawl->settings) ? " --out state" : "");
    if (can_go_on)
        wr_screen_say(&crawl->screen, "continue with: weir crawl --resume%s%s%s%s", is_usual ? "" : " --state ",
                      is_usual ? "" : wr_crawl_state_name(&crawl->settings), which,
                      lacks_seeds ? ", with the seeds on standard input again: not all were read" : "");
    else if (result->end != WR_END_BLOCKED && stats->fetched == 0 && stats->pages > 0 && crawl->job.done == 0)
        wr_screen_say(&crawl->screen, "nothing could be fetched; \"error\" in the lines says why (are you online?)");
}

/* Stores the report and prints it from the stored form, so that weir report prints the same. */
static void print_crawl_report(struct crawl_run *crawl, const struct wr_crawl_report *report)
{
    const struct wr_crawl_settings *settings = &crawl->settings;
    bool is_taken = strcmp(settings->out, "-") == 0 ||
                    (settings->report != NULL && strcmp(settings->report, "-") == 0) ||
                    (settings->diff != NULL && strcmp(settings->diff, "-") == 0);
    struct wr_report_data facts;
    size_t bytes = 0;
    char *text = wr_crawl_report_json_short(report, &bytes);
    struct wr_span kept = {text, bytes};
    if (text == NULL || wr_report_data_read(kept, &facts) != 0) {
        wr_complain("out of memory: there is no report");
        free(text);
        return;
    }
    if (report->result->end != WR_END_BROKEN)
        (void)wr_stored_report_write(settings->state, report->result->job, kept);
    if (!settings->json && !settings->quiet)
        wr_report_text(&facts, settings->report == NULL ? "--report FILE.json" : NULL, is_taken ? stderr : stdout);
    wr_report_data_release(&facts);
    free(text);
}

/* With --quiet: prints one line if the crawl did not succeed. */
static void print_failure_line(struct crawl_run *crawl, const struct wr_engine_result *result, int status)
{
    const char *url = result->failed_url;
    if (result->end != WR_END_COMPLETED)
        wr_screen_say(&crawl->screen, "%s%s%s", wr_crawl_end_name(result->end), result->why[0] != '\0' ? ": " : "",
                      result->why);
    else if (status == WR_EXIT_FAILED && url[0] != '\0')
        wr_screen_say(&crawl->screen, "%llu of %llu pages failed, first %s: %s",
                      (unsigned long long)result->stats.failed, (unsigned long long)result->stats.pages, url,
                      result->failed_why);
    else if (status == WR_EXIT_FAILED && result->failed > 0)
        wr_screen_say(&crawl->screen, "%llu pages of the job failed", (unsigned long long)result->failed);
    else if (status == WR_EXIT_FAILED && result->stats.fetched == 0)
        wr_screen_say(&crawl->screen, "nothing could be fetched");
}

static int finish_crawl(struct crawl_run *crawl)
{
    struct wr_engine_result result;
    wr_seeds_close(&crawl->seeds);
    wr_crawl_listen_close(crawl->listen);
    wr_control_close(crawl->control);
    wr_screen_clear(&crawl->screen);
    bool is_compared = crawl->settings.diff == NULL || wr_crawl_diff_write(crawl->engine, crawl->settings.diff);
    wr_engine_finish(crawl->engine, &result);
    struct wr_crawl_report report = {&crawl->settings,     crawl->engine,  &result,
                                     crawl->seeds.refused, &crawl->course, ""};
    const struct wr_crawl_settings *settings = &crawl->settings;
    int status = crawl_exit_status(crawl, &result);
    wr_crawl_report_stamp(&report);
    if (settings->json && !wr_crawl_report_json(&report, stdout))
        wr_print_note_error(errno);
    print_crawl_report(crawl, &report);
    if ((!write_crawl_report(crawl, &report) || !is_compared) && status == WR_EXIT_OK)
        status = WR_EXIT_FAILED;
    if (!settings->quiet)
        print_advice(crawl, &result);
    else
        print_failure_line(crawl, &result, status);
    return status;
}

/* ---- main loop ---- */

static void stop_on_signals(struct crawl_run *crawl, unsigned *seen)
{
    unsigned count = wr_signals_count() + wr_screen_quit_count(&crawl->screen);
    if (*seen == 0 && count > 0) {
        wr_screen_say(&crawl->screen, "finishing the requests in flight; interrupt again to stop at once");
        wr_engine_drain(crawl->engine);
    }
    if (*seen < 2 && count >= 2)
        wr_engine_stop(crawl->engine);
    *seen = count;
}

/* Warns once if no host has answered after SILENCE_NS: the user may be offline. */
static void warn_if_silent(struct crawl_run *crawl, const struct wr_engine_stats *stats, bool *is_noted)
{
    if (*is_noted || stats->elapsed_ns < SILENCE_NS || stats->queued == 0 || stats->has_no_hosts)
        return;
    *is_noted = true;
    if (!stats->is_answered)
        wr_screen_say(&crawl->screen, "no host could be reached so far; are you online? (it keeps trying)");
}

static void watch_crawl(struct crawl_run *crawl)
{
    struct wr_engine_stats stats;
    bool is_noted = crawl->settings.quiet;
    unsigned seen = 0;
    wr_rate_history_init(&crawl->course);
    while (!wr_engine_wait(crawl->engine, LOOK_EVERY_NS)) {
        stop_on_signals(crawl, &seen);
        wr_engine_stats_get(crawl->engine, &stats);
        warn_if_silent(crawl, &stats, &is_noted);
        wr_rate_history_sample(&crawl->course, crawl->engine, stats.elapsed_ns);
        wr_screen_show(&crawl->screen, &stats, crawl->course.last_at);
    }
}

/* Opens the dashboard, if possible. Prints the token on a terminal only: logs must not have it. */
static void open_crawl_dashboard(struct crawl_run *crawl)
{
    char name[WR_DASHBOARD_TOKEN_ROOM + 128];
    int error = wr_crawl_listen_open(&crawl->settings, crawl->engine, &crawl->listen);
    if (error != 0)
        wr_screen_say(&crawl->screen, "continues without --listen: %s", wr_error_message(error));
    if (crawl->listen == NULL || crawl->settings.quiet)
        return;
    wr_crawl_listen_name(crawl->listen, isatty(STDERR_FILENO) != 0, name, sizeof name);
    wr_screen_say(&crawl->screen, "watch it at %s", name);
}

/* Prints the processes on this database: other arguments than theirs start another job. */
static void print_other_workers(struct crawl_run *crawl)
{
    struct wr_engine_peers company;
    char same_job[48] = "no other process", other[128] = "";
    if (!wr_store_is_url(crawl->settings.state) || crawl->settings.quiet ||
        wr_engine_peers_get(crawl->engine, &company) != 0)
        return;
    if (company.others > 0)
        (void)snprintf(other, sizeof other, "; job %lld, started with other options, has %llu: weir jobs show %lld",
                       (long long)company.other_job, (unsigned long long)company.others, (long long)company.other_job);
    if (company.same_job > 0)
        (void)snprintf(same_job, sizeof same_job, "with %llu other process%s", (unsigned long long)company.same_job,
                       company.same_job == 1 ? "" : "es");
    wr_screen_say(&crawl->screen, "job %lld, %s%s", (long long)wr_engine_job_id(crawl->engine), same_job, other);
}

static int run_crawl_job(struct crawl_run *crawl)
{
    wr_signals_block(); /* before the engine creates threads */
    int status = start_crawl(crawl);
    if (status != WR_EXIT_OK && crawl->has_made_state) { /* the new state file is empty */
        wr_engine_free(crawl->engine);
        crawl->engine = NULL;
        (void)unlink(crawl->settings.state);
    }
    if (status != WR_EXIT_OK)
        return status;
    if (!wr_store_is_url(crawl->settings.state) &&
        wr_control_open(crawl->settings.state, crawl->engine, &crawl->control) != 0)
        wr_screen_say(&crawl->screen, "this crawl cannot be inspected while it runs: %s", weir_error_detail());
    print_other_workers(crawl);
    open_crawl_dashboard(crawl);
    bool is_seeding = wr_seeds_start(&crawl->seeds, crawl->engine);
    if (!is_seeding)
        wr_engine_stop(crawl->engine);
    wr_signals_listen(DEADLY);
    wr_screen_begin(&crawl->screen, crawl->engine);
    watch_crawl(crawl);
    status = finish_crawl(crawl);
    return is_seeding ? status : WR_EXIT_FAILED;
}

/* ---- the command ---- */

/* Finds the job to resume and merges its arguments with those of this run. */
static int find_job_to_resume(struct crawl_run *crawl)
{
    const struct wr_crawl_settings *settings = &crawl->settings;
    int status = wr_crawl_state_open(settings, &crawl->engine);
    if (status == WR_EXIT_OK)
        status = wr_crawl_state_find(settings, crawl->engine, &crawl->job);
    if (status != WR_EXIT_OK)
        return status;
    status = WR_EXIT_USAGE;
    if (!merge_stored_args(crawl, &status))
        return status;
    return wr_crawl_settings_fit(settings) ? WR_EXIT_OK : WR_EXIT_USAGE;
}

/* Joins the earlier job's arguments with this run's. Returns false after printing an error. */
static bool join_earlier_args(struct crawl_run *crawl, const struct wr_engine_job *earlier, int *ret_status)
{
    if (!read_stored_args(crawl, earlier))
        return false;
    int count = 0;
    char **joined = wr_stored_args_join(&crawl->old, crawl->count, crawl->words, &count);
    char **parsed = wr_stored_args_join(&crawl->old, crawl->count, crawl->words, &count);
    crawl->seeds_count = 0;
    bool well = joined != NULL && parsed != NULL && wr_crawl_settings_init(&crawl->settings) &&
                parse_more_args(crawl, count, parsed, ret_status) && wr_sources_load(&wr_crawl_usage, &crawl->settings);
    free(parsed);
    if (!well) {
        free(joined);
        return false;
    }
    free(crawl->words);
    crawl->words = joined;
    crawl->count = count;
    return !lacks_secrets(crawl, earlier->id);
}

/* Finds the job whose URLs are visited by --recrawl. */
static int find_job_to_recrawl(struct crawl_run *crawl)
{
    struct wr_engine_job earlier;
    const struct wr_crawl_settings *settings = &crawl->settings;
    int status = wr_crawl_state_open(settings, &crawl->engine);
    if (status == WR_EXIT_OK)
        status = wr_crawl_state_find_earlier(settings, crawl->engine, &earlier);
    if (status != WR_EXIT_OK)
        return status;
    status = WR_EXIT_USAGE;
    crawl->earlier = earlier.id;
    crawl->adds_to_archive = settings->warc == NULL; /* append to the earlier job's archive */
    if (!join_earlier_args(crawl, &earlier, &status))
        return status;
    return wr_crawl_settings_fit(&crawl->settings) ? WR_EXIT_OK : WR_EXIT_USAGE;
}

/* Opens the state; an existing file first, because it may be in use or not be a state file. */
static int open_crawl_state(struct crawl_run *crawl)
{
    struct stat status;
    bool is_there = !wr_store_is_url(crawl->settings.state) && lstat(crawl->settings.state, &status) == 0;
    int error = crawl->engine == NULL && is_there ? wr_crawl_state_open(&crawl->settings, &crawl->engine) : WR_EXIT_OK;
    if (error != WR_EXIT_OK)
        return error;
    if (crawl->job.id == 0 && !wr_crawl_out_is_unused(&crawl->settings))
        return WR_EXIT_USAGE;
    if (crawl->engine != NULL)
        return WR_EXIT_OK;
    error = wr_crawl_state_open(&crawl->settings, &crawl->engine);
    crawl->has_made_state = error == WR_EXIT_OK && !wr_store_is_url(crawl->settings.state);
    return error;
}

/* Checks all options and files before any file is created. */
static int prepare_crawl(struct crawl_run *crawl)
{
    if (crawl->settings.resume && crawl->settings.recrawl) {
        wr_complain("--resume continues a job, --recrawl starts a new one with its pages: give one of them");
        return WR_EXIT_USAGE;
    }
    if (!wr_crawl_settings_fit(&crawl->settings))
        return WR_EXIT_USAGE;
    int status = crawl->settings.resume    ? find_job_to_resume(crawl)
                 : crawl->settings.recrawl ? find_job_to_recrawl(crawl)
                                           : WR_EXIT_OK;
    if (status != WR_EXIT_OK)
        return status;
    wr_screen_init(&crawl->screen, crawl->settings.view, crawl->settings.quiet, strcmp(crawl->settings.out, "-") == 0);
    if (!wr_crawl_options_make(&crawl->settings, &crawl->texts, &crawl->options) ||
        !wr_crawl_scope_make(&crawl->settings, &crawl->scope) || !choose_seeds(crawl))
        return WR_EXIT_USAGE;
    if (crawl->settings.dry_run)
        return wr_seeds_open(&crawl->seeds) ? WR_EXIT_OK : WR_EXIT_USAGE;
    if (!wr_crawl_files_writable(&crawl->settings))
        return WR_EXIT_FAILED;
    return wr_seeds_open(&crawl->seeds) ? open_crawl_state(crawl) : WR_EXIT_USAGE;
}

/* Runs --dry-run. It opens the state file itself and creates no files. */
static int run_dry(struct crawl_run *crawl)
{
    wr_engine_free(crawl->engine);
    crawl->engine = NULL;
    return wr_dry_run(&crawl->settings, &crawl->options, &crawl->seeds, crawl->job.id);
}

static void release_crawl(struct crawl_run *crawl)
{
    wr_seeds_close(&crawl->seeds);
    wr_engine_free(crawl->engine);
    wr_scope_free(crawl->scope);
    wr_stored_args_release(&crawl->old);
    wr_screen_release(&crawl->screen);
    free(crawl->seeds_given);
    free(crawl->words);
}

int wr_crawl_run(int argc, char **argv)
{
    static struct crawl_run crawl;
    int status = WR_EXIT_FAILED;
    wr_complain_as(wr_crawl_usage.who);
    if (!wr_crawl_settings_init(&crawl.settings))
        return WR_EXIT_USAGE;
    if (copy_args(&crawl, argc, argv) && parse_args(&crawl, argc, argv, &status)) {
        status = prepare_crawl(&crawl);
        if (status == WR_EXIT_OK)
            status = crawl.settings.dry_run ? run_dry(&crawl) : run_crawl_job(&crawl);
    }
    release_crawl(&crawl);
    return status;
}
