/* SPDX-License-Identifier: MIT */
/* report_command.c - weir report: the command. */
#include "cli/report/report_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/kit/check_option.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/report/html.h"
#include "cli/report/job_report.h"
#include "cli/report/report_text.h"
#include "cli/report/stored_report.h"
#include "watch/control/control.h"

struct report_settings {
    const char *state, *html;
    uint64_t run;
    bool json;
};

static const struct wr_option options[] = {
    {"state", WR_STRING(struct report_settings, state), .value = "FILE", .check = wr_check_state,
     .help = "Read the state of the crawl from FILE or postgres://…"},
    {"run", WR_COUNT(struct report_settings, run), .value = "N", .min = 0, .max = INT64_MAX,
     .help = "Show run N of the job (0: the last; of a database: all together)"},
    {"json", WR_FLAG(struct report_settings, json), .help = "Print the report as JSON"},
    {"html", WR_STRING(struct report_settings, html), .value = "FILE",
     .help = "Write a page with charts to FILE (-: standard output)"},
};

static const struct wr_usage usage = {
    .who = "weir report",
    .operands = "[STATE] [JOB]",
    .operands_min = 0,
    .operands_max = 2,
    .about = "Shows the report of a crawl from its state file: of the run that ended last, or of the job\n"
             "with the number JOB. On a database that processes share, it shows the whole job so far;\n"
             "--run N shows the report of one process.\n"
             "\n"
             "  weir report                       the last run in weir.db\n"
             "  weir report --html report.html    one page with charts\n"
             "  weir report night.db --run 1 3    the first run of job 3 in another file\n"
             "\n"
             "Exits with 0 if there is a report, 1 if there is none or it cannot be read or written, and\n"
             "2 if the command line is wrong or there is no state file.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* Prints why no report was found. Returns the exit status. */
static int complain_absent(const struct report_settings *settings, int64_t job)
{
    struct stat status;
    if (wr_store_is_url(settings->state)) {
        char name[512];
        wr_store_name(settings->state, name, sizeof name);
        wr_complain(settings->run > 0 ? "%s has no report of this run; of each job the last %d are kept"
                                      : "%s has no such job, or no tables of weir; \"weir jobs list\" lists jobs",
                    name, WR_STORE_REPORTS_KEPT);
        return WR_EXIT_FAILED;
    }
    if (stat(settings->state, &status) != 0) {
        wr_complain("there is no state file %s; give --state FILE", settings->state);
        return WR_EXIT_USAGE;
    }
    if (job > 0 && settings->run > 0)
        wr_complain("%s has no report of run %llu of job %lld; of each job the last %d are kept", settings->state,
                    (unsigned long long)settings->run, (long long)job, WR_STORE_REPORTS_KEPT);
    else if (job > 0)
        wr_complain("%s has no report of job %lld: there is no such job, or none of its runs has ended",
                    settings->state, (long long)job);
    else
        wr_complain("%s has no report: no run of a crawl has ended", settings->state);
    return WR_EXIT_FAILED;
}

/* Writes the page directly into its file. An error may leave a part of it; the page can be written
 * again. */
static bool write_report_page(const struct report_settings *settings, const struct wr_report_data *facts,
                              const char *title)
{
    bool is_output = strcmp(settings->html, "-") == 0;
    FILE *out = is_output ? stdout : wr_file_create(settings->html);
    bool well = out != NULL && wr_report_html(facts, title, out);
    int error = errno;
    if (out != NULL && !is_output && fclose(out) != 0 && well) {
        error = errno;
        well = false;
    }
    if (!well)
        wr_complain_write_failed("--html", settings->html, error);
    return well;
}

static void print_report_text(const struct wr_stored_report *found, const struct wr_report_data *facts)
{
    const char *when = facts->ended_at[0] != '\0' ? facts->ended_at : "at an unknown time";
    if (found->run > 0)
        printf("job %lld, run %lld, ended %s\n", (long long)found->job, (long long)found->run, when);
    else
        printf("job %lld, all processes, last change %s\n", (long long)found->job, when);
    wr_report_text(facts, facts->hosts_left_out == 0 ? "weir report --json" : NULL, stdout);
    if (found->run == 0)
        printf("from the database, which has no numbers of robots.txt, spacing and waits: --run N has those of one "
               "process\n");
}

static int show_report(const struct report_settings *settings, const struct wr_stored_report *found)
{
    struct wr_report_data facts;
    char title[96];
    int error = wr_report_data_read((struct wr_span){found->text, found->bytes}, &facts);
    if (error != 0) {
        wr_complain("the report of job %lld cannot be read: %s", (long long)found->job,
                    error == WEIR_E_INVAL ? "it is damaged" : weir_error_text(error));
        return WR_EXIT_FAILED;
    }
    bool well = true;
    if (found->run > 0)
        (void)snprintf(title, sizeof title, "Job %lld, run %lld", (long long)found->job, (long long)found->run);
    else
        (void)snprintf(title, sizeof title, "Job %lld, all processes", (long long)found->job);
    if (settings->html != NULL)
        well = write_report_page(settings, &facts, title);
    else if (settings->json)
        well = fwrite(found->text, 1, found->bytes, stdout) == found->bytes;
    else {
        print_report_text(found, &facts);
    }
    if (settings->html == NULL && (!well || fflush(stdout) != 0))
        wr_print_note_error(errno);
    wr_report_data_release(&facts);
    return well ? WR_EXIT_OK : WR_EXIT_FAILED;
}

/* Reads the operands: a number is a job, any other text a state file. Returns false after printing
 * an error. */
static bool take_report_operands(struct report_settings *settings, int count, char **words, int64_t *ret_job)
{
    const char *state = NULL;
    *ret_job = 0;
    for (int i = 0; i < count; i++) {
        uint64_t number;
        bool is_job = wr_parse_u64(words[i], strlen(words[i]), 1, INT64_MAX, &number) == 0;
        if (is_job ? *ret_job != 0 : state != NULL) {
            wr_complain("unexpected \"%s\": give a state file and the number of a job, as in \"weir report %s 1\"",
                        words[i], WR_STATE_FILE);
            return false;
        }
        if (is_job)
            *ret_job = (int64_t)number;
        else
            settings->state = state = words[i];
        if (!is_job && wr_check_state(words[i]) != 0) {
            wr_complain("%s", weir_error_detail());
            return false;
        }
    }
    return true;
}

/* Prints why the state file cannot be read. If a crawl is running, names the commands that show its
 * progress. */
static void complain_unread(const struct report_settings *settings, int error)
{
    char why[256];
    int fd;
    (void)snprintf(why, sizeof why, "%s", wr_error_message(error));
    bool is_live = !wr_store_is_url(settings->state) && wr_control_connect(settings->state, &fd) == 0;
    if (is_live)
        (void)close(fd);
    wr_complain("--state: %s%s", why,
                is_live ? "; meanwhile \"weir jobs list\" and \"weir hosts list\" show its progress" : "");
}

int wr_report_run(int argc, char **argv)
{
    struct report_settings settings = {.state = WR_STATE_FILE};
    struct wr_stored_report found = {.job = 0};
    int status;
    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (!take_report_operands(&settings, argc, argv, &found.job))
        return WR_EXIT_USAGE;
    if (settings.json && settings.html != NULL) {
        wr_complain("--json and --html: give one of them");
        return WR_EXIT_USAGE;
    }
    if (settings.run > 0 && found.job == 0) {
        wr_complain("--run selects a run of a job: give the job, too, as in \"weir report --run %llu 1\"",
                    (unsigned long long)settings.run);
        return WR_EXIT_USAGE;
    }
    int64_t job = found.job;
    found.run = (int64_t)settings.run;
    bool is_whole = wr_store_is_url(settings.state) && settings.run == 0;
    int error = is_whole ? wr_job_report_make(settings.state, &found) : wr_stored_report_find(settings.state, &found);
    status = WR_EXIT_FAILED;
    if (error == 0)
        status = show_report(&settings, &found);
    else if (error == WEIR_E_ABSENT)
        status = complain_absent(&settings, job);
    else
        complain_unread(&settings, error);
    free(found.text);
    return status;
}
