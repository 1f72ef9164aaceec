/* SPDX-License-Identifier: MIT */
/* settings.c - the options of weir crawl, and what they mean to the engine. */
#include "cli/crawl/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/version.h>

#include "base/ascii.h"
#include "base/parse.h"
#include "cli/crawl/files.h"
#include "cli/crawl/screen.h"
#include "cli/kit/output.h"
#include "core/pace/options.h"
#include "core/rules/http/field.h"
#include "core/rules/http/status.h"
#include "shell/engine/metrics.h"
#include "shell/http/http.h"
#include "shell/net/net.h"

#define SEEDS_MAX 1000000
#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)
#define DEPTH 20 /* deeper than any site that people click through, and an end to calendars that go on for ever */
#define THRESHOLD 20
#define WATCHED_HOSTS 10
#define CONCURRENCY_OF_ORIGIN 20 /* S4-4 */

static const char *const scopes[] = {"host", "domain", "prefix", "any", NULL};
static const char *const groups[] = {"host", "domain", "ip", NULL};
static const char *const digests[] = {"xxh128", "sha256", "none", NULL};

typedef struct wr_crawl_settings crawl_settings;

static const struct wr_option options[] = {
    {"seeds-file", WR_STRING(crawl_settings, seeds_file), .value = "FILE",
     .help = "a URL on each line; - is standard input"},
    {"scope", WR_CHOICE(crawl_settings, scope), .choices = scopes,
     .help = "links that are followed: to a seed's host, domain, folder, or any"},
    {"include", WR_LIST(crawl_settings, includes), .value = "PATTERN", .check = wr_check_pattern,
     .help = "and only to URLs with this text, or like https://a.example/*, or re:EXPR"},
    {"exclude", WR_LIST(crawl_settings, excludes), .value = "PATTERN", .check = wr_check_pattern,
     .help = "but not to such URLs"},
    {"sitemaps", WR_FLAG(crawl_settings, sitemaps), .help = "also what the sitemaps of the seeds' hosts list"},
    {"all-types", WR_FLAG(crawl_settings, all_types), .help = "also links to images, archives and other files"},
    {"depth", WR_COUNT(crawl_settings, depth), .value = "N", .min = 0, .max = 1000000,
     .help = "at most so many links away from a seed (0: any number)"},
    {"max-pages", WR_COUNT(crawl_settings, max_pages), .value = "N", .min = 0, .max = UINT64_MAX / 2,
     .help = "accept no more URLs, by all processes together (0: any number)"},
    {"host-pages", WR_COUNT(crawl_settings, host_pages), .value = "N", .min = 0, .max = UINT32_MAX,
     .help = "nor more of one host (0: any number)"},
    {"max-bytes", WR_SIZE(crawl_settings, max_bytes), .value = "SIZE", .min = 0, .max = WR_BYTES_MAX,
     .help = "stop this process after so much (0: never); --resume goes on"},
    {"max-time", WR_DURATION(crawl_settings, max_time), .value = "D", .min = 0, .max = 3650 * DAY,
     .help = "stop this process after so long (0: never); --resume goes on"},
    WR_PACE_OPTIONS(crawl_settings, pace),
    WR_CONFIG_OPTION(crawl_settings, sources),
    {"concurrency", WR_COUNT(crawl_settings, concurrency), .value = "N", .min = 0, .max = 10000,
     .help = "at most so many in flight in all (0: 256, origin-tuned 20)"},
    {"loops", WR_COUNT(crawl_settings, loops), .value = "N", .min = 0, .max = 64,
     .help = "threads that fetch (0: one for each processor)"},
    {"group-by", WR_CHOICE(crawl_settings, group), .choices = groups,
     .help = "what is paced together, beside each host"},
    {"global-rate", WR_STRING(crawl_settings, global_rate), .value = "N", .check = wr_check_rate,
     .help = "at most so many starts a second in all"},
    {"bandwidth", WR_SIZE(crawl_settings, bandwidth), .value = "SIZE", .min = 0, .max = WR_BYTES_MAX,
     .help = "at most so many bytes a second in all (0: any number)"},
    {"user-agent", WR_STRING(crawl_settings, user_agent), .value = "TEXT",
     .help = "its first word is the name that robots.txt is asked for"},
    {"contact", WR_STRING(crawl_settings, contact), .value = "TEXT", .check = wr_check_contact,
     .help = "a URL or mail address, added to the User-Agent"},
    {"header", WR_LIST(crawl_settings, headers), .value = "LINE", .check = wr_check_header, .is_secret = true,
     .help = "\"Name: value\", for the origins of the seeds only"},
    {"proxy", WR_STRING(crawl_settings, proxy), .value = "URL", .check = wr_check_proxy, .is_secret = true,
     .help = "send everything through this proxy"},
    {"ca-file", WR_STRING(crawl_settings, ca_file), .value = "FILE",
     .help = "certificates to trust, instead of the system's"},
    {"ignore-robots", WR_FLAG(crawl_settings, ignore_robots), .help = "do not ask robots.txt: for servers of your own"},
    {"robots-on-error", WR_CHOICE(crawl_settings, robots_on_error), .choices = wr_robots_names,
     .help = "while robots.txt cannot be had"},
    {"follow-nofollow", WR_FLAG(crawl_settings, follow_nofollow), .help = "also links and pages marked nofollow"},
    {"allow-private", WR_FLAG(crawl_settings, allow_private),
     .help = "also private and loopback addresses, refused otherwise"},
    {"ask-blocked", WR_FLAG(crawl_settings, ask_blocked),
     .help = "also hosts whose firewall did not let us in within 24 hours"},
    {"timeout", WR_DURATION(crawl_settings, timeout), .value = "D", .min = 1, .max = DAY,
     .help = "of one request on the wire"},
    {"max-defer", WR_DURATION(crawl_settings, max_defer), .value = "D", .min = 1, .max = 30 * DAY,
     .help = "fail what a host holds off for longer"},
    {"max-body", WR_SIZE(crawl_settings, max_body), .value = "SIZE", .min = 1, .max = UINT64_C(1) << 40,
     .help = "read no more of a page"},
    {"statuses", WR_STRING(crawl_settings, statuses), .value = "LIST", .check = wr_check_statuses,
     .help = "\"403=permanent,500=done\": which are tried again"},
    {"failure-threshold", WR_COUNT(crawl_settings, failure_threshold), .value = "N", .min = 0, .max = UINT32_MAX - 1,
     .help = "give up after so many failures in a row (0: never)"},
    {"cancel-after-429", WR_COUNT(crawl_settings, cancel_after_429), .value = "N", .min = 0, .max = 65535,
     .help = "give up after so many 429 in a row at 60 s (0: never)"},
    {"digest", WR_CHOICE(crawl_settings, digest), .choices = digests, .help = "of the pages, in the lines"},
    {"state", WR_STRING(crawl_settings, state), .value = "FILE", .check = wr_check_state, .is_secret = true,
     .help = "where the crawl is remembered; or postgres://…, to share it"},
    {"lease", WR_DURATION(crawl_settings, lease), .value = "D", .min = SECOND, .max = DAY,
     .help = "on a database: others have a silent process's hosts then"},
    {"out", WR_STRING(crawl_settings, out), .value = "FILE",
     .help = "where the lines go; - is standard output; state: a database, for weir jobs export"},
    {"append", WR_FLAG(crawl_settings, append), .help = "to a file that is there already"},
    {"warc", WR_STRING(crawl_settings, warc), .value = "FILE",
     .help = "keep what came in an archive: FILE-00000.warc.gz, …"},
    {"warc-size", WR_SIZE(crawl_settings, warc_size), .value = "SIZE", .min = 1, .max = WR_BYTES_MAX,
     .help = "begin another file when one is so large"},
    {"save-bodies", WR_STRING(crawl_settings, save_bodies), .value = "DIR",
     .help = "save each page as a file there; \"body\" in its line is the name"},
    {"resume", WR_FLAG(crawl_settings, resume), .help = "go on with the newest job that was stopped or given up"},
    {"recrawl", WR_FLAG(crawl_settings, recrawl),
     .help = "begin anew with all URLs of the newest completed job, and fetch what has changed"},
    {"due", WR_FLAG(crawl_settings, due), .help = "with --recrawl: only pages that are likely to have changed"},
    {"diff", WR_STRING(crawl_settings, diff), .value = "FILE",
     .help = "with --recrawl: list there what is new, changed or gone; - is standard output"},
    {"job", WR_COUNT(crawl_settings, job), .value = "N", .min = 0, .max = INT64_MAX,
     .help = "with --resume or --recrawl: this one"},
    {"report", WR_STRING(crawl_settings, report), .value = "FILE",
     .help = "write the report of all hosts there, as JSON; - is standard output"},
    {"log", WR_STRING(crawl_settings, log), .value = "FILE",
     .help = "Log requests, their waits and changes of pace to FILE"},
    {"listen", WR_STRING(crawl_settings, listen), .value = "ADDR",
     .help = "be watched there while it runs: a dashboard, /metrics and /healthz: 127.0.0.1:8080, unix:FILE"},
    {"listen-name", WR_LIST(crawl_settings, listen_names), .value = "NAME",
     .help = "Accept this Host, besides addresses and localhost (repeatable)"},
    {"listen-hosts", WR_COUNT(crawl_settings, listen_hosts), .value = "N", .min = 0, .max = WR_WATCH_HOSTS_MAX,
     .help = "so many hosts have metrics of their own, and the rest are \"other\""},
    {"token-file", WR_STRING(crawl_settings, token_file), .value = "FILE",
     .help = "with --listen: the token of the dashboard's controls; is made if it is not there"},
    {"view", WR_CHOICE(crawl_settings, view), .choices = wr_screen_views,
     .help = "progress: the whole terminal with hosts and keys, a few lines, or one now and then"},
    {"dry-run", WR_FLAG(crawl_settings, dry_run),
     .help = "only say what would be fetched, and how fast; asks for robots.txt"},
    {"offline", WR_FLAG(crawl_settings, offline), .help = "with --dry-run: not even for that"},
    {"quiet", WR_FLAG(crawl_settings, quiet), .help = "no progress, no report on the screen"},
    {"json", WR_FLAG(crawl_settings, json), .help = "print the report as JSON"},
};

const struct wr_usage wr_crawl_usage = {
    .who = "weir crawl",
    .section = "crawl",
    .operands = "[URL…]",
    .operands_min = 0,
    .operands_max = SEEDS_MAX,
    .about = "Follows links from these URLs and fetches every page that robots.txt allows, many\n"
             "hosts at once and each at its own safe pace. Writes a line of JSON for each URL to\n"
             "crawl.jsonl and remembers the crawl in weir.db: whatever stops it, --resume goes on.\n"
             "\n"
             "  weir crawl example.org                            a site: https://example.org/\n"
             "  weir crawl --contact me@example.org --seeds-file sites.txt --max-time 8h\n"
             "  weir crawl --resume                               go on after an interrupt or a crash\n"
             "  weir crawl --recrawl --out new.jsonl --diff -     what has changed since\n"
             "  weir crawl --scope prefix https://example.org/docs/ --exclude '*?print=*'\n"
             "  weir crawl --allow-private --pace unlimited http://localhost:8080/   your own server\n"
             "\n"
             "Ctrl-C finishes what is in flight, a second one stops at once; nothing is lost.\n"
             "The status is 0 if all went well, 1 if it finished but some URLs failed or a file\n"
             "could not be used, 2 if the request makes no sense, 3 if it stopped before the end\n"
             "and can be resumed.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* ---- defaults ---- */

/* Of the two names the first that is set. */
static bool read_threshold(uint64_t *ret_threshold)
{
    static const char *const names[] = {"WEIR_JOB_FAILURE_THRESHOLD", "BBB_JOB_FAILURE_THRESHOLD"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text == NULL || text[0] == '\0')
            continue;
        if (wr_parse_u64(text, strlen(text), 0, UINT32_MAX - 1, ret_threshold) == 0)
            return true;
        wr_complain("the environment's %s: %s", names[i], weir_error_detail());
        return false;
    }
    return true;
}

bool wr_crawl_settings_init(struct wr_crawl_settings *ret_settings)
{
    *ret_settings = (struct wr_crawl_settings){
        .depth = DEPTH,
        .pace = {.attempts = 3},
        .timeout = 2 * WEIR_MINUTE,
        .lease = 30 * WEIR_SECOND,
        .max_defer = 30 * WEIR_MINUTE,
        .max_body = (uint64_t)32 << 20,
        .failure_threshold = THRESHOLD,
        .state = WR_STATE_FILE,
        .out = "crawl.jsonl",
        .warc_size = (uint64_t)1 << 30,
        .listen_hosts = WATCHED_HOSTS,
    };
    return read_threshold(&ret_settings->failure_threshold);
}

/* ---- what they mean ---- */

/* "weir/0.1.0 (+https://example.org/bot)": the name that people find in their log, and where to complain. */
static bool make_agent(const crawl_settings *settings, char *ret_agent, size_t room)
{
    const char *name = settings->user_agent != NULL ? settings->user_agent : "weir/" WEIR_VERSION;
    const char *contact = settings->contact != NULL ? settings->contact : "";
    if (name[0] == '\0') {
        wr_complain("--user-agent is empty: give a name, its first word is the one that robots.txt is asked for");
        return false;
    }
    int bytes = snprintf(ret_agent, room, contact[0] != '\0' ? "%s (+%s)" : "%s%s", name, contact);
    if (bytes > 0 && (size_t)bytes < room)
        return true;
    wr_complain("--user-agent and --contact are longer than %d bytes together", WR_CRAWL_AGENT_MAX);
    return false;
}

static bool make_pace(const crawl_settings *settings, weir_pace_options *ret_pace)
{
    weir_pace_options given;
    if (!wr_pace_make(&settings->pace, settings->allow_private, &given))
        return false;
    given.cancel_after = (uint32_t)settings->cancel_after_429;
    if (wr_pace_options_check(&given, ret_pace) == 0)
        return true;
    wr_complain("--pace: %s", weir_error_detail());
    return false;
}

static bool check_ca_file(const char *path)
{
    struct stat status;
    if (path == NULL)
        return true;
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0 || stat(path, &status) != 0)
        wr_complain("--ca-file: cannot read %s: %s", path, strerror(errno));
    else if (S_ISDIR(status.st_mode))
        wr_complain("--ca-file: %s is a folder; name a file of certificates (PEM)", path);
    else
        return true;
    return false;
}

static uint32_t concurrency_of(const crawl_settings *settings)
{
    if (settings->concurrency == 0 && settings->pace.profile == WEIR_PROFILE_ORIGIN_TUNED)
        return CONCURRENCY_OF_ORIGIN;
    return (uint32_t)settings->concurrency;
}

static void copy_numbers(const crawl_settings *settings, struct wr_engine_options *ret_options)
{
    ret_options->loops = (uint32_t)settings->loops;
    ret_options->concurrency = concurrency_of(settings);
    ret_options->group = (enum wr_engine_group)settings->group;
    ret_options->bandwidth = settings->bandwidth;
    ret_options->digest = (enum wr_digest_kind)settings->digest;
    ret_options->max_depth = (uint32_t)settings->depth;
    ret_options->max_pages = settings->max_pages;
    ret_options->host_pages = (uint32_t)settings->host_pages;
    ret_options->max_bytes = settings->max_bytes;
    ret_options->max_time_ns = settings->max_time;
    ret_options->failure_threshold =
        settings->failure_threshold > 0 ? (uint32_t)settings->failure_threshold : UINT32_MAX;
    ret_options->max_defer_ns = settings->max_defer;
    ret_options->body_max = settings->max_body;
    ret_options->request_ns = settings->timeout;
}

bool wr_crawl_options_make(const struct wr_crawl_settings *settings, struct wr_crawl_texts *ret_texts,
                           struct wr_engine_options *ret_options)
{
    struct wr_pace_more more;
    *ret_options = (struct wr_engine_options){
        .out_path = wr_crawl_keeps_lines(settings) ? NULL : settings->out,
        .keeps_lines = wr_crawl_keeps_lines(settings),
        .log_path = settings->log,
        .warc_path = settings->warc,
        .warc_size = settings->warc_size,
        .body_folder = settings->save_bodies,
        .agent = ret_texts->agent,
        .headers = ret_texts->headers,
        .proxy = settings->proxy,
        .ca_file = settings->ca_file,
        .allows_private = settings->allow_private,
        .ignores_robots = settings->ignore_robots,
        .on_error = (enum wr_on_error)settings->robots_on_error,
        .follows_nofollow = settings->follow_nofollow,
        .only_due = settings->due,
        .sitemaps = settings->sitemaps,
        .asks_blocked = settings->ask_blocked,
        .statuses = settings->statuses,
    };
    copy_numbers(settings, ret_options);
    wr_pace_make_more(&settings->pace, &more);
    ret_options->max_hosts = (uint32_t)more.max_hosts;
    ret_options->delay_factor = more.delay_factor;
    memset(ret_texts->headers, 0, sizeof ret_texts->headers);
    memcpy(ret_texts->headers, settings->headers.items, settings->headers.count * sizeof ret_texts->headers[0]);
    if (settings->global_rate != NULL) /* checked when it was given */
        (void)wr_parse_number(settings->global_rate, strlen(settings->global_rate), 0, 1e9, &ret_options->global_rate);
    return check_ca_file(settings->ca_file) && make_agent(settings, ret_texts->agent, sizeof ret_texts->agent) &&
           make_pace(settings, &ret_options->pace);
}

static bool add_patterns(struct wr_scope *scope, const struct wr_option_list *list, const char *option,
                         int (*add)(struct wr_scope *scope, const char *pattern))
{
    for (size_t i = 0; i < list->count; i++) {
        int error = add(scope, list->items[i]);
        if (error != 0) {
            wr_complain("%s: %s", option, error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
            return false;
        }
    }
    return true;
}

bool wr_crawl_scope_make(const struct wr_crawl_settings *settings, struct wr_scope **ret_scope)
{
    struct wr_scope *scope;
    int error = wr_scope_new(
        &(struct wr_scope_options){.kind = (enum wr_scope_kind)settings->scope, .all_types = settings->all_types},
        &scope);
    if (error != 0) {
        wr_complain("%s", weir_error_text(error));
        return false;
    }
    if (add_patterns(scope, &settings->includes, "--include", wr_scope_include) &&
        add_patterns(scope, &settings->excludes, "--exclude", wr_scope_exclude)) {
        *ret_scope = scope;
        return true;
    }
    wr_scope_free(scope);
    return false;
}

bool wr_crawl_settings_fit(const struct wr_crawl_settings *settings)
{
    if (settings->job > 0 && !settings->resume && !settings->recrawl)
        wr_complain("--job says which job to go on with, or to visit again: give --resume or --recrawl, too");
    else if ((settings->due || settings->diff != NULL) && !settings->resume && !settings->recrawl)
        wr_complain("%s compares with an earlier job: give --recrawl, too", settings->due ? "--due" : "--diff");
    else if (settings->offline && !settings->dry_run)
        wr_complain("--offline says what --dry-run may not do: give that, too");
    else if (settings->dry_run && settings->recrawl && !settings->resume)
        wr_complain("--dry-run cannot tell what --recrawl would ask for; leave one of them out");
    else if (wr_crawl_keeps_lines(settings) && !wr_store_is_url(settings->state))
        wr_complain(
            "--out state keeps the lines in a database: give --state postgres://…, or name a file (./state is one)");
    else if (settings->listen != NULL && wr_http_address_check(settings->listen) != 0)
        wr_complain("--listen: %s", weir_error_detail());
    else
        return wr_crawl_files_fit(settings);
    return false;
}
