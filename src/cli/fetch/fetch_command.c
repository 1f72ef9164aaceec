/* SPDX-License-Identifier: MIT */
/* fetch_command.c - weir fetch: the command, its options and its URLs. */
#include "cli/fetch/fetch_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/fetch/fetch_report.h"
#include "cli/fetch/fetch_share.h"
#include "cli/fetch/pace_file.h"
#include "cli/kit/ca_file.h"
#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/kit/pace_flags.h"
#include "cli/kit/signals.h"
#include "cli/kit/url_list.h"
#include "cluster/gate/shared_gate.h"
#include "core/web/url/url.h"
#include "limiter/memory/reserve.h"

#define URLS_MAX 1000000
/* Maximum number of unfinished URLs, at about 600 bytes each; more are read when some finish. */
#define UNFINISHED_MAX 200000
#define LOOK_EVERY 64 /* number of URLs between two checks of the free memory */
#define ON_THE_WIRE ((size_t)16 << 20)
#define DEADLY 2        /* the second signal kills, even if the output blocks */
#define INTERRUPTED 130 /* exit status of shells: 128 + SIGINT */

struct fetch_settings {
    struct wr_sources sources;
    const char *urls_file, *out, *state, *share, *share_prefix, *agent, *proxy, *ca_file, *statuses;
    struct wr_option_list headers;
    struct wr_pace_flags pace;
    int robots_on_error;
    int64_t timeout, deadline, max_defer;
    uint64_t concurrency, redirects;
    uint64_t max_body;
    bool append, ignore_robots, allow_private, quiet;
};

static const struct wr_option options[] = {
    {"urls-file", WR_STRING(struct fetch_settings, urls_file), .value = "FILE",
     .help = "Read URLs from FILE, one per line (-: standard input)", .heading = "Scope", .is_basic = true},
    {"redirects", WR_COUNT(struct fetch_settings, redirects), .value = "N", .min = 0, .max = 1000,
     .help = "Follow at most N redirects"},
    {"ignore-robots", WR_FLAG(struct fetch_settings, ignore_robots),
     .help = "Do not fetch or obey robots.txt; for your own servers"},
    {"robots-on-error", WR_CHOICE(struct fetch_settings, robots_on_error), .choices = wr_robots_on_error_names,
     .help = "Wait, allow all or deny all while robots.txt cannot be fetched"},
    WR_PACE_OPTIONS(struct fetch_settings, pace),
    {"concurrency", WR_COUNT(struct fetch_settings, concurrency), .value = "N", .min = 1, .max = 10000,
     .help = "Limit requests in flight to all hosts"},
    {"share", WR_STRING(struct fetch_settings, share), .value = "URL", .check = wr_check_store, .is_secret = true,
     .help = "Share one pace with all processes that name the same redis://HOST"},
    {"share-prefix", WR_STRING(struct fetch_settings, share_prefix), .value = "TEXT",
     .help = "Prefix of the keys in Redis (default \"weir\")"},
    {"deadline", WR_DURATION(struct fetch_settings, deadline), .value = "D", .min = 0,
     .max = 30 * 86400 * UINT64_C(1000000000), .help = "Time limit for a URL with all its waits (0: none)",
     .heading = "Limits", .is_basic = true},
    {"timeout", WR_DURATION(struct fetch_settings, timeout), .value = "D", .min = 1,
     .max = 86400 * UINT64_C(1000000000), .help = "Time limit for one HTTP request", .is_basic = true},
    {"max-body", WR_SIZE(struct fetch_settings, max_body), .value = "SIZE", .min = 1, .max = UINT64_C(1) << 40,
     .help = "Read at most SIZE of a response body"},
    {"max-defer", WR_DURATION(struct fetch_settings, max_defer), .value = "D", .min = 1,
     .max = 30 * 86400 * UINT64_C(1000000000), .help = "Fail a URL that its host has held back for longer than D"},
    {"statuses", WR_STRING(struct fetch_settings, statuses), .value = "LIST", .check = wr_check_statuses,
     .help = "Treat statuses as permanent, transient, blocking or done: 500=done,…"},
    {"out", WR_STRING(struct fetch_settings, out), .value = "FILE",
     .help = "Write one JSON line per URL to FILE instead of standard output", .heading = "Output", .is_basic = true},
    {"append", WR_FLAG(struct fetch_settings, append), .help = "Append to an existing output file"},
    {"quiet", WR_FLAG(struct fetch_settings, quiet), .help = "Print neither progress nor summary", .is_basic = true},
    {"state", WR_STRING(struct fetch_settings, state), .value = "FILE", .check = wr_check_file,
     .help = "Keep the learned pace of hosts in FILE", .heading = "State", .is_basic = true},
    WR_CONFIG_OPTION(struct fetch_settings, sources, NULL),
    {"agent", WR_STRING(struct fetch_settings, agent), .value = "TEXT",
     .help = "User-Agent; its first word is matched against robots.txt", .heading = "Identity"},
    {"header", WR_LIST(struct fetch_settings, headers), .value = "LINE", .check = wr_check_header, .is_secret = true,
     .help = "Send \"Name: value\" to the hosts of the given URLs (repeatable)", .is_basic = true},
    {"proxy", WR_STRING(struct fetch_settings, proxy), .value = "URL", .check = wr_check_proxy, .is_secret = true,
     .help = "Send all requests through the proxy at URL", .heading = "Network", .is_basic = true},
    {"ca-file", WR_STRING(struct fetch_settings, ca_file), .value = "FILE",
     .help = "Trust the certificates in FILE instead of the system's"},
    {"allow-private", WR_FLAG(struct fetch_settings, allow_private),
     .help = "Connect also to private and loopback addresses"},
};

const struct wr_usage wr_fetch_usage = {
    .who = "weir fetch",
    .section = "fetch",
    .operands = "[URL…]",
    .operands_min = 0,
    .operands_max = URLS_MAX,
    .about = "Fetches the given URLs, many hosts at once, each at its own safe pace. Obeys robots.txt,\n"
             "Crawl-delay, Retry-After and rate limits, follows redirects and retries failures. Prints\n"
             "one JSON line per URL as it finishes. Bodies are read and counted, but not kept.\n"
             "\n"
             "  weir fetch https://example.org/ https://example.com/\n"
             "  weir fetch --urls-file pages.txt --interval 2s --out report.jsonl\n"
             "  weir fetch --allow-private --pace unlimited http://localhost:8080/   your own server\n"
             "\n"
             "Exits with 0 if every URL got a status below 400, 1 if not, 2 if the command line is wrong,\n"
             "and 130 after an interrupt; URLs that had finished by then are printed.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static bool is_interrupted(void)
{
    return wr_signals_count() > 0;
}

/* State of one run of weir fetch. */
struct fetch_job {
    const struct fetch_settings *settings;
    struct wr_url_list *list; /* list of URLs; NULL: no --urls-file */
    FILE *out;
    struct wr_fetch_report report;
    struct wr_pace_file state;
    weir_pacer *pacer;            /* pacer of the hosts; NULL: the client creates its own */
    struct wr_shared_gate *relay; /* shared gates of --share; NULL: hosts are not shared */
    weir_client *client;
    uint64_t asked;
};

/* ---- options ---- */

/* Creates the pacer if the client's own does not suffice: with --state, with --share, or with
 * settings of its own. */
static int make_fetch_pacer(struct fetch_job *job, const weir_pace_options *pace, const struct wr_pacer_settings *more)
{
    weir_pacer_options how;
    bool is_kept = job->settings->state != NULL;
    if (!is_kept && job->settings->share == NULL && more->max_hosts == 0 && more->shards == 0 && more->ttl_ns == 0)
        return 0;
    weir_pacer_options_init(&how);
    how.max_hosts = more->max_hosts;
    how.shards = more->shards;
    how.ttl_ns = more->ttl_ns;
    how.keeps_unsaved = is_kept;
    how.listener = is_kept ? wr_pace_file_on_event : NULL;
    how.listener_context = &job->state;
    return weir_pacer_new(pace, &how, &job->pacer);
}

/* Creates the client. Returns false after printing an error. */
static bool make_fetch_client(struct fetch_job *job, int *ret_status)
{
    const struct fetch_settings *settings = job->settings;
    const char *headers[WR_OPTION_LIST_MAX + 1] = {NULL};
    weir_client_options how;
    weir_pace_options pace;
    struct wr_pacer_settings more;
    *ret_status = WR_EXIT_USAGE;
    if (!wr_ca_file_ok(settings->ca_file) || !wr_pace_make(&settings->pace, settings->allow_private, &pace))
        return false;
    memcpy(headers, settings->headers.items, settings->headers.count * sizeof headers[0]);
    wr_pacer_settings_make(&settings->pace, &more);
    weir_client_options_init(&how);
    how.pace = &pace;
    how.robots_delay_factor = more.delay_factor;
    how.agent = settings->agent;
    how.proxy = settings->proxy;
    how.ca_file = settings->ca_file;
    how.statuses = settings->statuses;
    how.headers = headers;
    how.robots = settings->ignore_robots ? WEIR_ROBOTS_IGNORE : (weir_robots_mode)settings->robots_on_error;
    how.allow_private = settings->allow_private;
    how.concurrency = (uint32_t)settings->concurrency;
    how.max_redirects = settings->redirects > 0 ? (uint32_t)settings->redirects : UINT32_MAX;
    how.total_timeout_ns = settings->timeout;
    how.deadline_ns = settings->deadline > 0 ? settings->deadline : WEIR_FOREVER;
    how.max_defer_ns = settings->max_defer;
    how.max_body_bytes = settings->max_body;
    int error = make_fetch_pacer(job, &pace, &more);
    how.pacer = job->pacer;
    if (error == 0 && settings->share != NULL &&
        !wr_fetch_share_start(settings->share, settings->share_prefix, job->pacer, &job->relay))
        return false;
    if (error == 0)
        error = weir_client_new(&how, &job->client);
    if (error == WEIR_E_INVAL)
        wr_complain("%s", weir_error_detail());
    else if (error != 0)
        wr_complain("cannot start: %s", weir_error_text(error));
    *ret_status = error == WEIR_E_INVAL ? WR_EXIT_USAGE : WR_EXIT_FAILED;
    return error == 0;
}

/* ---- URLs ---- */

/* A URL as the user gave it. */
struct fetch_url {
    struct wr_fetch_report *report;
    char url[];
};

static bool ignore_fetch_body(void *context, const char *bytes, size_t count)
{
    (void)context, (void)bytes, (void)count;
    return true;
}

static void on_url_fetched(void *context, weir_response *response)
{
    struct fetch_url *asked = context;
    wr_url_hide_user(asked->url);
    wr_fetch_report_finished(asked->report, asked->url, response);
    weir_response_free(response);
    free(asked);
}

/* Waits until another URL may be started: not too many are unfinished, and there is memory. With
 * little memory, requests in flight finish first. */
static void await_fetch_room(struct fetch_job *job)
{
    wr_fetch_report_await_room(&job->report, UNFINISHED_MAX, is_interrupted);
    if (job->asked++ % LOOK_EVERY == 0 && wr_memory_left() < ON_THE_WIRE)
        (void)wr_fetch_report_await_fewer(&job->report, job->settings->concurrency, is_interrupted);
}

static void report_refused_url(struct fetch_job *job, const char *url, uint64_t line, int error)
{
    char *shown = malloc(strlen(url) + sizeof "...");
    if (shown != NULL)
        wr_url_redact_invalid(wr_span_of(url), shown, strlen(url) + sizeof "...");
    wr_fetch_report_refused(&job->report, shown != NULL ? shown : "", line,
                            error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
    free(shown);
}

/* Starts to fetch a URL. `line` is its line in the list; 0 if it is from the command line. Returns
 * false if fetching cannot continue. */
static bool start_fetch(struct fetch_job *job, const char *url, size_t url_bytes, uint64_t line)
{
    weir_fetch_options how;
    struct fetch_url *asked = malloc(sizeof *asked + url_bytes + 1);
    while (asked == NULL && wr_fetch_report_await_fewer(&job->report, 0, is_interrupted))
        asked = malloc(sizeof *asked + url_bytes + 1);
    if (asked == NULL) {
        wr_complain("out of memory");
        return false;
    }
    asked->report = &job->report;
    memcpy(asked->url, url, url_bytes);
    asked->url[url_bytes] = '\0';
    weir_fetch_options_init(&how);
    how.on_body = ignore_fetch_body;
    how.attempts = job->settings->pace.attempts == 1 ? 1 : 0;
    await_fetch_room(job);
    wr_fetch_report_add(&job->report);
    int error = weir_client_fetch_async(job->client, asked->url, &how, on_url_fetched, asked, NULL);
    while (error == WEIR_E_NOMEM && wr_fetch_report_await_fewer(&job->report, 0, is_interrupted))
        error = weir_client_fetch_async(job->client, asked->url, &how, on_url_fetched, asked, NULL);
    if (error == 0)
        return true;
    report_refused_url(job, asked->url, line, error);
    free(asked);
    return error == WEIR_E_INVAL;
}

static bool start_listed_fetches(struct fetch_job *job)
{
    struct wr_span url;
    bool goes_on = true;
    while (goes_on && wr_url_list_next(job->list, &url))
        goes_on = start_fetch(job, url.data, url.bytes, job->list->line);
    return goes_on && !job->list->has_failed;
}

static bool start_all_fetches(struct fetch_job *job, int argc, char **argv)
{
    for (int i = 0; i < argc && !is_interrupted(); i++)
        if (!start_fetch(job, argv[i], strlen(argv[i]), 0))
            return false;
    return job->list == NULL || start_listed_fetches(job);
}

/* ---- the command ---- */

static bool open_fetch_list(struct fetch_job *job)
{
    static struct wr_url_list list;
    const char *name = job->settings->urls_file;
    if (name == NULL)
        return true;
    if (!wr_url_list_open(&list, name))
        return false;
    list.is_over = is_interrupted;
    job->list = &list;
    return true;
}

/* Opens the output file. Refuses to write to a file with content unless --append is given. */
static bool open_fetch_out(struct fetch_job *job)
{
    const char *name = job->settings->out;
    struct stat seen;
    if (name == NULL)
        return true;
    FILE *out = fopen(name, "a");
    if (out == NULL || fstat(fileno(out), &seen) != 0) {
        wr_complain_write_failed(NULL, name, errno);
    } else if (S_ISREG(seen.st_mode) && seen.st_size > 0 && !job->settings->append) {
        wr_complain("%s is not empty; --append adds to it, or name another file", name);
    } else {
        job->out = out;
        return true;
    }
    if (out != NULL)
        (void)fclose(out);
    return false;
}

/* Closes list and output. Returns false after printing an error if the output was not written. */
static bool close_fetch_files(struct fetch_job *job)
{
    if (job->list != NULL)
        (void)wr_url_list_close(job->list); /* a read error was already printed */
    if (job->out == stdout || fclose(job->out) == 0)
        return true;
    wr_complain_write_failed(NULL, job->settings->out, errno);
    return false;
}

/* Starts the threads that save the state and write the lines. Returns false after printing an
 * error; then no thread is running. */
static bool start_fetch_job(struct fetch_job *job)
{
    if (job->settings->state != NULL && !wr_pace_file_start(&job->state, job->pacer))
        return false;
    return wr_fetch_report_start(&job->report, job->out, job->settings->quiet);
}

/* Fetches all URLs; the threads are running. Returns true if all succeeded. */
static bool fetch_urls(struct fetch_job *job, int argc, char **argv)
{
    wr_signals_listen(DEADLY);
    wr_fetch_report_watch(&job->report, job->client);
    bool well = start_all_fetches(job, argc, argv);
    if (well)
        wr_fetch_report_await(&job->report, is_interrupted);
    wr_fetch_report_mute_cancelled(&job->report);
    wr_fetch_report_watch(&job->report, NULL);
    weir_client_close(job->client); /* cancels the URLs that are not finished */
    bool wrote = wr_fetch_report_end(&job->report);
    if (job->report.by_failure[WEIR_FAILURE_GUARD] > 0 && !job->settings->allow_private && !job->settings->quiet)
        wr_complain("private and loopback addresses are refused; --allow-private allows them");
    return well && wrote && job->report.bad == 0 && job->report.refused == 0;
}

static int run_fetch_job(struct fetch_job *job, int argc, char **argv)
{
    int status;
    wr_signals_block();
    if (make_fetch_client(job, &status))
        status = start_fetch_job(job) && fetch_urls(job, argc, argv) ? WR_EXIT_OK : WR_EXIT_FAILED;
    weir_client_free(job->client);
    wr_shared_gate_free(job->relay);
    if (job->settings->state != NULL && !wr_pace_file_close(&job->state) && status == WR_EXIT_OK)
        status = WR_EXIT_FAILED;
    weir_pacer_free(job->pacer);
    return is_interrupted() ? INTERRUPTED : status;
}

int wr_fetch_run(int argc, char **argv)
{
    struct fetch_settings settings = {
        .concurrency = 64,
        .redirects = 10,
        .timeout = 2 * WEIR_MINUTE,
        .max_defer = 30 * WEIR_MINUTE,
        .max_body = (uint64_t)16 << 20,
        .pace = {.attempts = 3},
    };
    struct fetch_job job = {.settings = &settings, .out = stdout};
    int status;
    if (!wr_options_parse(&wr_fetch_usage, &argc, argv, &settings, &status))
        return status;
    if (argc == 0 && settings.urls_file == NULL) {
        wr_complain("no URL; give some, or --urls-file FILE");
        return WR_EXIT_USAGE;
    }
    status = WR_EXIT_FAILED;
    if (open_fetch_list(&job) && open_fetch_out(&job) &&
        (settings.state == NULL || wr_pace_file_open(&job.state, settings.state)))
        status = run_fetch_job(&job, argc, argv);
    if (!close_fetch_files(&job) && status == WR_EXIT_OK)
        status = WR_EXIT_FAILED;
    return status;
}
