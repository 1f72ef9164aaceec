/* SPDX-License-Identifier: MIT */
/* warm.c - weir warm: the command. */
#include "cli/warm/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "cli/crawl/seeds.h"
#include "cli/fetch/pace_file.h"
#include "cli/kit/ca_file.h"
#include "cli/kit/console.h"
#include "cli/kit/signals.h"
#include "cli/kit/url_list.h"
#include "cli/warm/warm_operand.h"
#include "cli/warm/warm_report.h"
#include "limiter/memory/memory.h"

#define DEADLY 2        /* the second signal kills, even if the output blocks */
#define INTERRUPTED 130 /* exit status of shells: 128 + SIGINT */
#define REFUSALS_SHOWN 20

/* State of one run of weir warm. */
struct warm_job {
    struct wr_warm_settings settings;
    struct wr_warm warm;
    struct wr_pace_file state;
    weir_pacer *pacer; /* pacer of the hosts; NULL: the client creates its own */
    FILE *report;
    uint64_t refused; /* number of rejected lines of the list */
    char *omitted[WR_OPTION_LIST_MAX + 1];
};

/* ---- operands ---- */

static bool add_warm_sitemap(struct wr_warm *warm, const struct wr_url *url)
{
    struct wr_warm_site *site = wr_warm_site_of(warm, url);
    return site != NULL && wr_warm_sitemap_add(site, url, 0, false);
}

static bool add_warm_page(struct wr_warm *warm, const struct wr_url *url)
{
    struct wr_warm_site *site = wr_warm_site_of(warm, url);
    if (site == NULL)
        return false;
    site->is_given = true;
    return wr_warm_page_add(warm, site, url) || warm->is_full;
}

/* Adds a site, with its front page as the first page. */
static bool add_warm_site(struct wr_warm *warm, const struct wr_url *url)
{
    struct wr_warm_site *site = wr_warm_site_of(warm, url);
    if (site == NULL)
        return false;
    site->wants_robots = site->wants_guesses = site->wants_front = true;
    return wr_warm_page_add(warm, site, &site->home) || warm->is_full;
}

static const char *parse_warm_url(const struct warm_job *job, struct wr_span text, char *memory, struct wr_url *ret_url)
{
    bool allows_private = job->settings.allow_private || job->settings.proxy != NULL;
    return wr_seed_parse(text, allows_private, memory, ret_url);
}

/* Adds an operand. Returns false after printing an error. */
static bool add_operand(struct warm_job *job, const char *text, bool is_sitemap)
{
    char memory[WR_URL_ROOM], shown[200];
    struct wr_url url;
    struct wr_buf buf;
    const char *why = parse_warm_url(job, wr_span_of(text), memory, &url);
    if (why != NULL) {
        char hidden[WR_URL_ROOM];
        wr_url_redact_invalid(wr_span_of(text), hidden, sizeof hidden);
        wr_buf_init_fixed(&buf, shown, sizeof shown);
        wr_buf_append_quoted(&buf, wr_span_of(hidden));
        wr_complain("%s cannot be warmed: %s", shown, why);
        return false;
    }
    enum wr_warm_operand place = is_sitemap ? WR_WARM_SITEMAP : wr_warm_operand_kind(&url);
    bool well = place == WR_WARM_SITE      ? add_warm_site(&job->warm, &url)
                : place == WR_WARM_SITEMAP ? add_warm_sitemap(&job->warm, &url)
                                           : add_warm_page(&job->warm, &url);
    if (!well)
        wr_complain("out of memory");
    return well;
}

static void refuse_warm_line(struct warm_job *job, const struct wr_url_list *list, const char *why)
{
    job->refused++;
    if (job->refused <= REFUSALS_SHOWN)
        wr_complain("%s, line %" PRIu64 " is skipped: %s", list->name, list->line, why);
}

/* Adds the URLs of the list. Returns false after printing an error. */
static bool add_listed_urls(struct warm_job *job)
{
    static struct wr_url_list list;
    char memory[WR_URL_ROOM];
    struct wr_span text;
    struct wr_url url;
    bool well = true;
    if (job->settings.urls_file == NULL)
        return true;
    if (!wr_url_list_open(&list, job->settings.urls_file))
        return false;
    while (well && !job->warm.is_full && wr_url_list_next(&list, &text)) {
        const char *why = parse_warm_url(job, text, memory, &url);
        if (why != NULL)
            refuse_warm_line(job, &list, why);
        else
            well = add_warm_page(&job->warm, &url);
    }
    if (!well)
        wr_complain("out of memory");
    return wr_url_list_close(&list) && well;
}

/* Adds all operands and options that name pages. Returns WR_EXIT_OK, or another exit status after
 * printing an error. */
static int add_all_urls(struct warm_job *job, int argc, char **argv)
{
    const struct wr_warm_settings *settings = &job->settings;
    if (argc == 0 && settings->urls_file == NULL && settings->sitemaps.count == 0) {
        wr_complain("nothing to warm; give a domain, as in \"weir warm example.org\", a sitemap, or pages");
        return WR_EXIT_USAGE;
    }
    for (int i = 0; i < argc; i++)
        if (!add_operand(job, argv[i], false))
            return WR_EXIT_USAGE;
    for (size_t i = 0; i < settings->sitemaps.count; i++)
        if (!add_operand(job, settings->sitemaps.items[i], true))
            return WR_EXIT_USAGE;
    return add_listed_urls(job) ? WR_EXIT_OK : WR_EXIT_FAILED;
}

/* ---- files ---- */

/* Opens the output file. Refuses to write to a file with content unless --append is given. */
static bool open_lines(struct warm_job *job)
{
    const char *name = job->settings.out;
    struct stat seen;
    if (name == NULL)
        return true;
    if (strcmp(name, "-") == 0) {
        job->warm.lines = stdout;
        return true;
    }
    FILE *lines = fopen(name, "a");
    if (lines == NULL || fstat(fileno(lines), &seen) != 0) {
        wr_complain_write_failed(NULL, name, errno);
    } else if (S_ISREG(seen.st_mode) && seen.st_size > 0 && !job->settings.append) {
        wr_complain("%s is not empty; --append adds to it, or name another file", name);
    } else {
        job->warm.lines = lines;
        return true;
    }
    if (lines != NULL)
        (void)fclose(lines);
    return false;
}

/* Opens the report without truncating it: the old report stays until a new one is written. */
static bool open_report(struct warm_job *job)
{
    const char *path = job->settings.report;
    if (path == NULL)
        return true;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    job->report = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (job->report == NULL)
        wr_complain_write_failed("--report", path, errno);
    if (job->report == NULL && fd >= 0)
        (void)close(fd);
    return job->report != NULL;
}

/* Closes the files. Returns false after printing an error if the output was not written. */
static bool close_warm_files(struct warm_job *job)
{
    FILE *lines = job->warm.lines;
    bool lost = job->warm.lines_failed;
    if (lines == stdout && lost)
        wr_print_note_error(errno);
    if (lines != NULL && lines != stdout)
        lost = fclose(lines) != 0 || lost;
    if (lost && lines != stdout)
        wr_complain_write_failed(NULL, job->settings.out, errno);
    if (job->report != NULL)
        (void)fclose(job->report);
    return !lost;
}

static bool write_warm_report(struct warm_job *job, const struct wr_warm_summary *sum)
{
    if (job->report == NULL)
        return true;
    /* EINVAL: the report is not a regular file. */
    bool well = ftruncate(fileno(job->report), 0) == 0 || errno == EINVAL;
    well = wr_warm_report_json(&job->warm, sum, job->report) && well;
    if (!well)
        wr_complain_write_failed("--report", job->settings.report, errno);
    return well;
}

/* ---- the client ---- */

/* Lists the names of --header as "Name:", which removes a header of the client from a request. */
static bool name_headers(struct warm_job *job)
{
    const struct wr_option_list *headers = &job->settings.headers;
    for (size_t i = 0; i < headers->count; i++) {
        size_t bytes = strcspn(headers->items[i], ":");
        job->omitted[i] = strndup(headers->items[i], bytes + 1);
        if (job->omitted[i] == NULL) {
            wr_complain("out of memory");
            return false;
        }
    }
    job->warm.omitted = (const char *const *)job->omitted;
    return true;
}

/* Creates the pacer if the client's own does not suffice: with --state, or with settings of its
 * own. */
static int make_warm_pacer(struct warm_job *job, const weir_pace_options *pace, const struct wr_pacer_settings *more)
{
    weir_pacer_options how;
    bool is_kept = job->settings.state != NULL;
    if (!is_kept && more->max_hosts == 0 && more->shards == 0 && more->ttl_ns == 0)
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

static bool make_warm_client(struct warm_job *job)
{
    const struct wr_warm_settings *settings = &job->settings;
    const char *headers[WR_OPTION_LIST_MAX + 1] = {NULL};
    weir_client_options how;
    weir_pace_options pace;
    struct wr_pacer_settings more;
    if (!wr_ca_file_ok(settings->ca_file) || !wr_pace_make(&settings->pace, settings->allow_private, &pace) ||
        !name_headers(job))
        return false;
    memcpy(headers, settings->headers.items, settings->headers.count * sizeof headers[0]);
    wr_pacer_settings_make(&settings->pace, &more);
    weir_client_options_init(&how);
    how.pace = &pace;
    how.robots_delay_factor = more.delay_factor;
    how.agent = settings->agent;
    how.proxy = settings->proxy;
    how.ca_file = settings->ca_file;
    how.headers = headers;
    how.robots = settings->ignore_robots ? WEIR_ROBOTS_IGNORE : (weir_robots_mode)settings->robots_on_error;
    how.allow_private = settings->allow_private;
    how.concurrency = (uint32_t)settings->concurrency;
    how.total_timeout_ns = settings->timeout;
    how.deadline_ns = WEIR_FOREVER;
    how.max_defer_ns = settings->max_defer;
    int error = make_warm_pacer(job, &pace, &more);
    how.pacer = job->pacer;
    if (error == 0)
        error = weir_client_new(&how, &job->warm.client);
    if (error != 0)
        wr_complain("%s", error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
    return error == 0;
}

/* ---- end ---- */

static bool has_blocked_address(const struct wr_warm *warm)
{
    for (size_t i = 0; i < warm->pages_count; i++)
        if (warm->pages[i]->failure == WEIR_FAILURE_GUARD)
            return true;
    return false;
}

/* Returns true if a sitemap was found for each site; prints the sites without one. */
static bool all_sites_have_sitemap(const struct warm_job *job)
{
    bool well = true;
    for (const struct wr_warm_site *site = job->warm.sites; site != NULL; site = site->next) {
        if (!site->wants_guesses || site->has_listed || job->warm.is_full)
            continue;
        well = false;
        /* If unreachable, the report lists its front page as broken. */
        if (!job->settings.quiet && !site->is_unreachable)
            wr_complain("no sitemap of %s was found; --sitemap URL names one", site->home.text);
    }
    return well;
}

/* Returns true if all went well. Prints problems that the report does not show. */
static bool warm_succeeded(const struct warm_job *job, const struct wr_warm_summary *sum)
{
    const struct wr_warm *warm = &job->warm;
    uint64_t wanted = job->settings.min_hit_ratio * 10, reached = wr_warm_hit_ratio(sum, sum->hits_after);
    bool well = all_sites_have_sitemap(job) && sum->broken == 0 && sum->answered > 0 && warm->sitemaps_failed == 0 &&
                job->refused == 0 && !warm->no_memory;
    if (warm->no_memory)
        wr_complain("out of memory");
    if (has_blocked_address(warm) && !job->settings.allow_private && !job->settings.quiet)
        wr_complain("private and loopback addresses are refused; --allow-private allows them");
    if (reached >= wanted)
        return well;
    wr_complain("the hit ratio is %.1f %%, below the %" PRIu64 " %% of --min-hit-ratio", (double)reached / 10,
                job->settings.min_hit_ratio);
    return false;
}

static int finish_warm(struct warm_job *job)
{
    struct wr_warm_summary sum;
    bool shows_lines = job->warm.lines == stdout;
    wr_warm_summarize(&job->warm, &sum);
    if (job->settings.json && !wr_warm_report_json(&job->warm, &sum, stdout))
        wr_print_note_error(errno);
    else if (!job->settings.json && !job->settings.quiet)
        wr_warm_report_text(&job->warm, &sum, shows_lines ? stderr : stdout);
    bool well = write_warm_report(job, &sum);
    if (wr_signals_count() > 0)
        return INTERRUPTED;
    return warm_succeeded(job, &sum) && well ? WR_EXIT_OK : WR_EXIT_FAILED;
}

/* ---- start and end ---- */

/* Makes timed waits use the monotonic clock, which cannot be set. */
static void init_changed(pthread_cond_t *ret_changed)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(ret_changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

/* Initializes the state. Returns false after printing an error. */
static bool init_warm(struct warm_job *job)
{
    struct wr_warm *warm = &job->warm;
    uint8_t secret[WR_HASH_SECRET_BYTES];
    uint64_t seed;
    if (wr_random(secret, sizeof secret) != 0 || wr_random(&seed, sizeof seed) != 0) {
        wr_complain("the system's random source failed");
        return false;
    }
    warm->settings = &job->settings;
    warm->sites_end = &warm->sites;
    warm->window = wr_warm_window(&job->settings);
    warm->began_at = weir_clock_now(weir_clock_monotonic());
    wr_rng_init(&warm->rng, seed);
    wr_hash_key_init(&warm->hash_key, secret);
    wr_map_init(&warm->pages_known, wr_allocator_or_system(NULL), &warm->hash_key,
                wr_size_of(job->settings.max_pages + 1));
    wr_map_init(&warm->sitemaps_known, wr_allocator_or_system(NULL), &warm->hash_key, WR_WARM_SITEMAPS_MAX + 1);
    wr_heap_init(&warm->probes, wr_allocator_or_system(NULL), wr_size_of(job->settings.max_pages + 1));
    (void)pthread_mutex_init(&warm->lock, NULL);
    init_changed(&warm->changed);
    return true;
}

static void release_warm(struct wr_warm *warm)
{
    wr_heap_release(&warm->probes);
    wr_warm_pages_free(warm);
    wr_warm_sites_free(warm);
    (void)pthread_mutex_destroy(&warm->lock);
    (void)pthread_cond_destroy(&warm->changed);
}

/* Fetches all pages; the threads are running. Returns the exit status. */
static int run_warm(struct warm_job *job)
{
    if (job->settings.state != NULL && !wr_pace_file_start(&job->state, job->pacer))
        return WR_EXIT_FAILED;
    wr_signals_listen(DEADLY);
    wr_warm_fetch_pages(&job->warm);
    return finish_warm(job);
}

static int run_warm_job(struct warm_job *job)
{
    int status = WR_EXIT_USAGE;
    if (job->settings.state != NULL && !wr_pace_file_open(&job->state, job->settings.state))
        return WR_EXIT_FAILED;
    wr_signals_block();
    if (make_warm_client(job))
        status = run_warm(job);
    weir_client_free(job->warm.client);
    if (job->settings.state != NULL && !wr_pace_file_close(&job->state) && status == WR_EXIT_OK)
        status = WR_EXIT_FAILED;
    weir_pacer_free(job->pacer);
    return status;
}

int wr_warm_run(int argc, char **argv)
{
    static struct warm_job job;
    int status;
    wr_warm_settings_init(&job.settings);
    if (!wr_options_parse(&wr_warm_usage, &argc, argv, &job.settings, &status))
        return status;
    if (!wr_warm_settings_check(&job.settings))
        return WR_EXIT_USAGE;
    if (!init_warm(&job))
        return WR_EXIT_FAILED;
    status = add_all_urls(&job, argc, argv);
    if (status == WR_EXIT_OK)
        status = open_lines(&job) && open_report(&job) ? run_warm_job(&job) : WR_EXIT_FAILED;
    if (!close_warm_files(&job) && status == WR_EXIT_OK)
        status = WR_EXIT_FAILED;
    release_warm(&job.warm);
    for (size_t i = 0; job.omitted[i] != NULL; i++)
        free(job.omitted[i]);
    return status;
}
