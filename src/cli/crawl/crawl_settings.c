/* SPDX-License-Identifier: MIT */
/* crawl_settings.c - the options of weir crawl and their translation into engine options. */
#include "cli/crawl/crawl_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/version.h>

#include "base/ascii.h"
#include "base/parse.h"
#include "cli/crawl/crawl_files.h"
#include "cli/crawl/screen.h"
#include "cli/kit/ca_file.h"
#include "cli/kit/console.h"
#include "core/pace/pace_options.h"
#include "core/web/http/field.h"
#include "core/web/http/status.h"
#include "crawl/engine/engine_metrics.h"
#include "http/net/net.h"
#include "serve/server/http_server.h"

#define SEEDS_MAX 1000000
#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)
/* Default of --depth: more than any site that people browse, and an end for endless calendars. */
#define DEPTH 20
#define THRESHOLD 20
#define WATCHED_HOSTS 10
#define CONCURRENCY_OF_ORIGIN 20 /* default requests in flight of the profile origin-tuned */

static const char *const scopes[] = {"host", "domain", "prefix", "any", NULL};
static const char *const groups[] = {"host", "domain", "ip", NULL};
static const char *const digests[] = {"xxh128", "sha256", "none", NULL};

typedef struct wr_crawl_settings crawl_settings;

static const struct wr_option options[] = {
    {"seeds-file", WR_STRING(crawl_settings, seeds_file), .value = "FILE",
     .help = "Read URLs from FILE, one per line (-: standard input)", .heading = "Scope", .is_basic = true},
    {"scope", WR_CHOICE(crawl_settings, scope), .choices = scopes,
     .help = "Follow links to the host, domain or folder of a seed, or any link", .is_basic = true},
    {"include", WR_LIST(crawl_settings, includes), .value = "PATTERN", .check = wr_check_pattern,
     .help = "Fetch only URLs that match PATTERN: text, https://a.example/*, re:EXPR"},
    {"exclude", WR_LIST(crawl_settings, excludes), .value = "PATTERN", .check = wr_check_pattern,
     .help = "Skip URLs that match PATTERN", .is_basic = true},
    {"sitemaps", WR_FLAG(crawl_settings, sitemaps),
     .help = "Fetch also the pages that sitemaps of the seeds' hosts list"},
    {"all-types", WR_FLAG(crawl_settings, all_types), .help = "Follow also links to images, archives and other files"},
    {"depth", WR_COUNT(crawl_settings, depth), .value = "N", .min = 0, .max = 1000000,
     .help = "Follow at most N links in a row from a seed (0: no limit)"},
    {"follow-nofollow", WR_FLAG(crawl_settings, follow_nofollow),
     .help = "Follow links also where the page says nofollow"},
    {"ignore-robots", WR_FLAG(crawl_settings, ignore_robots),
     .help = "Do not fetch or obey robots.txt; for your own servers"},
    {"robots-on-error", WR_CHOICE(crawl_settings, robots_on_error), .choices = wr_robots_on_error_names,
     .help = "Wait, allow all or deny all while robots.txt cannot be fetched"},
    WR_PACE_OPTIONS(crawl_settings, pace),
    {"concurrency", WR_COUNT(crawl_settings, concurrency), .value = "N", .min = 0, .max = 10000,
     .help = "Limit requests in flight to all hosts (0: 256; origin-tuned: 20)"},
    {"group-by", WR_CHOICE(crawl_settings, group), .choices = groups,
     .help = "Pace the hosts of a registrable domain or IP address together, too"},
    {"global-rate", WR_STRING(crawl_settings, global_rate), .value = "N", .check = wr_check_rate,
     .help = "Limit requests per second to all hosts"},
    {"bandwidth", WR_SIZE(crawl_settings, bandwidth), .value = "SIZE", .min = 0, .max = WR_BYTES_MAX,
     .help = "Limit downloaded bytes per second (0: no limit)"},
    {"loops", WR_COUNT(crawl_settings, loops), .value = "N", .min = 0, .max = 64,
     .help = "Number of fetching threads (0: one per processor)"},
    {"max-pages", WR_COUNT(crawl_settings, max_pages), .value = "N", .min = 0, .max = UINT64_MAX / 2,
     .help = "Fetch at most N URLs, all processes together (0: no limit)", .heading = "Limits", .is_basic = true},
    {"host-pages", WR_COUNT(crawl_settings, host_pages), .value = "N", .min = 0, .max = UINT32_MAX,
     .help = "Fetch at most N pages per host (0: no limit)"},
    {"max-bytes", WR_SIZE(crawl_settings, max_bytes), .value = "SIZE", .min = 0, .max = WR_BYTES_MAX,
     .help = "Stop after downloading SIZE; --resume continues (0: no limit)"},
    {"max-time", WR_DURATION(crawl_settings, max_time), .value = "D", .min = 0, .max = 3650 * DAY,
     .help = "Stop after D; --resume continues (0: no limit)", .is_basic = true},
    {"timeout", WR_DURATION(crawl_settings, timeout), .value = "D", .min = 1, .max = DAY,
     .help = "Time limit for one HTTP request"},
    {"max-body", WR_SIZE(crawl_settings, max_body), .value = "SIZE", .min = 1, .max = UINT64_C(1) << 40,
     .help = "Read at most SIZE of a response body"},
    {"max-defer", WR_DURATION(crawl_settings, max_defer), .value = "D", .min = 1, .max = 30 * DAY,
     .help = "Fail a URL that its host has held back for longer than D"},
    {"statuses", WR_STRING(crawl_settings, statuses), .value = "LIST", .check = wr_check_statuses,
     .help = "Treat statuses as permanent, transient, blocking or done: 500=done,…"},
    {"failure-threshold", WR_COUNT(crawl_settings, failure_threshold), .value = "N", .min = 0, .max = UINT32_MAX - 1,
     .help = "End the job after N failures in a row (0: never)"},
    {"cancel-after-429", WR_COUNT(crawl_settings, cancel_after_429), .value = "N", .min = 0, .max = 65535,
     .help = "End the job after N 429s in a row at a delay of 60 s (0: never)"},
    {"ask-blocked", WR_FLAG(crawl_settings, ask_blocked),
     .help = "Fetch also from hosts whose firewall blocked weir in the last 24 h"},
    {"out", WR_STRING(crawl_settings, out), .value = "FILE",
     .help = "Write one JSON line per URL to FILE (-: stdout; state: the database)", .heading = "Output",
     .is_basic = true},
    {"append", WR_FLAG(crawl_settings, append), .help = "Append to an existing output file"},
    {"digest", WR_CHOICE(crawl_settings, digest), .choices = digests, .help = "Hash to record for each page body"},
    {"save-bodies", WR_STRING(crawl_settings, save_bodies), .value = "DIR",
     .help = "Save each body as a file in DIR; \"body\" in its line is the name"},
    {"report", WR_STRING(crawl_settings, report), .value = "FILE",
     .help = "Write the report as JSON to FILE (-: standard output)"},
    {"json", WR_FLAG(crawl_settings, json), .help = "Print the report as JSON"},
    {"quiet", WR_FLAG(crawl_settings, quiet), .help = "Print neither progress nor report"},
    {"dry-run", WR_FLAG(crawl_settings, dry_run),
     .help = "Print what would be fetched, and how fast; fetch only robots.txt"},
    {"offline", WR_FLAG(crawl_settings, offline), .help = "With --dry-run: do not fetch robots.txt either"},
    {"state", WR_STRING(crawl_settings, state), .value = "FILE", .check = wr_check_state, .is_secret = true,
     .help = "Keep the state of the crawl in FILE, or in postgres://… to share it", .heading = "State"},
    {"resume", WR_FLAG(crawl_settings, resume), .help = "Continue the newest job that has not ended", .is_basic = true},
    {"recrawl", WR_FLAG(crawl_settings, recrawl),
     .help = "Fetch the URLs of the newest completed job again, where they changed"},
    {"due", WR_FLAG(crawl_settings, due), .help = "With --recrawl: fetch only pages that have probably changed"},
    {"diff", WR_STRING(crawl_settings, diff), .value = "FILE",
     .help = "With --recrawl: list new, changed and gone pages in FILE (-: stdout)"},
    {"job", WR_COUNT(crawl_settings, job), .value = "N", .min = 0, .max = INT64_MAX,
     .help = "With --resume or --recrawl: choose job N (0: the newest)"},
    {"lease", WR_DURATION(crawl_settings, lease), .value = "D", .min = SECOND, .max = DAY,
     .help = "Release the hosts of a silent process after D (PostgreSQL)"},
    WR_CONFIG_OPTION(crawl_settings, sources, NULL),
    {"warc", WR_STRING(crawl_settings, warc), .value = "FILE",
     .help = "Write responses to WARC archives FILE-00000.warc.gz, …", .heading = "Archive"},
    {"warc-size", WR_SIZE(crawl_settings, warc_size), .value = "SIZE", .min = 1, .max = WR_BYTES_MAX,
     .help = "Start another archive file after SIZE"},
    {"user-agent", WR_STRING(crawl_settings, user_agent), .value = "TEXT",
     .help = "User-Agent; its first word is matched against robots.txt", .heading = "Identity"},
    {"contact", WR_STRING(crawl_settings, contact), .value = "TEXT", .check = wr_check_contact,
     .help = "Add a URL or mail address to the User-Agent", .is_basic = true},
    {"header", WR_LIST(crawl_settings, headers), .value = "LINE", .check = wr_check_header, .is_secret = true,
     .help = "Send \"Name: value\" to the origins of the seeds only (repeatable)"},
    {"proxy", WR_STRING(crawl_settings, proxy), .value = "URL", .check = wr_check_proxy, .is_secret = true,
     .help = "Send all requests through the proxy at URL", .heading = "Network"},
    {"ca-file", WR_STRING(crawl_settings, ca_file), .value = "FILE",
     .help = "Trust the certificates in FILE instead of the system's"},
    {"allow-private", WR_FLAG(crawl_settings, allow_private), .help = "Connect also to private and loopback addresses"},
    {"view", WR_CHOICE(crawl_settings, view), .choices = wr_screen_views,
     .help = "Show progress on the whole terminal, in a few lines, or as log lines", .heading = "Watching"},
    {"log", WR_STRING(crawl_settings, log), .value = "FILE",
     .help = "Log requests, their waits and changes of pace to FILE"},
    {"listen", WR_STRING(crawl_settings, listen), .value = "ADDR",
     .help = "Serve the dashboard, /metrics and /healthz on ADDR or unix:FILE"},
    {"listen-name", WR_LIST(crawl_settings, listen_names), .value = "NAME",
     .help = "Accept this Host, besides addresses and localhost (repeatable)"},
    {"listen-hosts", WR_COUNT(crawl_settings, listen_hosts), .value = "N", .min = 0, .max = WR_ENGINE_METRICS_HOSTS_MAX,
     .help = "Number of hosts with metrics of their own; the rest are \"other\""},
    {"token-file", WR_STRING(crawl_settings, token_file), .value = "FILE",
     .help = "With --listen: read the token of its controls; create it if missing"},
};

const struct wr_usage wr_crawl_usage = {
    .who = "weir crawl",
    .section = "crawl",
    .operands = "[URL…]",
    .operands_min = 0,
    .operands_max = SEEDS_MAX,
    .about = "Follows links from the given URLs and fetches every page that robots.txt allows, many\n"
             "hosts at once, each at its own safe pace. Writes one JSON line per URL to crawl.jsonl and\n"
             "keeps the state of the crawl in weir.db, so that --resume continues after any stop.\n"
             "\n"
             "  weir crawl example.org                            a site: https://example.org/\n"
             "  weir crawl --contact me@example.org --seeds-file sites.txt --max-time 8h\n"
             "  weir crawl --resume                               continue after an interrupt or a crash\n"
             "  weir crawl --recrawl --out new.jsonl --diff -     fetch what has changed since\n"
             "  weir crawl --scope prefix https://example.org/docs/ --exclude '*?print=*'\n"
             "  weir crawl --allow-private --pace unlimited http://localhost:8080/   your own server\n"
             "\n"
             "Ctrl-C finishes the requests in flight; a second one stops at once. Nothing is lost.\n"
             "Exits with 0 if all went well, 1 if some URLs failed or a file could not be used, 2 if the\n"
             "command line is wrong, and 3 if the crawl stopped before its end and can be resumed.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* ---- defaults ---- */

/* Reads the threshold from the environment: the first of the two names that is set. Returns false
 * after printing an error. */
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

/* ---- engine options ---- */

/* Formats the User-Agent, such as "weir/0.1.0 (+https://example.org/bot)": the name that server
 * operators see in their log and the address for complaints. */
static bool make_agent(const crawl_settings *settings, char *ret_agent, size_t room)
{
    const char *name = settings->user_agent != NULL ? settings->user_agent : "weir/" WEIR_VERSION;
    const char *contact = settings->contact != NULL ? settings->contact : "";
    if (name[0] == '\0') {
        wr_complain("--user-agent is empty: give a name; its first word is matched against robots.txt");
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
    struct wr_pacer_settings more;
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
        .on_error = (enum wr_robots_on_error)settings->robots_on_error,
        .follows_nofollow = settings->follow_nofollow,
        .only_due = settings->due,
        .sitemaps = settings->sitemaps,
        .asks_blocked = settings->ask_blocked,
        .statuses = settings->statuses,
    };
    copy_numbers(settings, ret_options);
    wr_pacer_settings_make(&settings->pace, &more);
    ret_options->max_hosts = (uint32_t)more.max_hosts;
    ret_options->delay_factor = more.delay_factor;
    memset(ret_texts->headers, 0, sizeof ret_texts->headers);
    memcpy(ret_texts->headers, settings->headers.items, settings->headers.count * sizeof ret_texts->headers[0]);
    if (settings->global_rate != NULL) /* the option parser has checked the text */
        (void)wr_parse_number(settings->global_rate, strlen(settings->global_rate), 0, 1e9, &ret_options->global_rate);
    return wr_ca_file_ok(settings->ca_file) && make_agent(settings, ret_texts->agent, sizeof ret_texts->agent) &&
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
        wr_complain("--job chooses the job of --resume or --recrawl: give one of these, too");
    else if ((settings->due || settings->diff != NULL) && !settings->resume && !settings->recrawl)
        wr_complain("%s compares with an earlier job: give --recrawl, too", settings->due ? "--due" : "--diff");
    else if (settings->offline && !settings->dry_run)
        wr_complain("--offline limits --dry-run: give --dry-run, too");
    else if (settings->dry_run && settings->recrawl && !settings->resume)
        wr_complain("--dry-run cannot predict what --recrawl would fetch; give one of them");
    else if (wr_crawl_keeps_lines(settings) && !wr_store_is_url(settings->state))
        wr_complain(
            "--out state keeps the lines in a database: give --state postgres://…, or name a file (./state is one)");
    else if (settings->listen != NULL && wr_http_address_check(settings->listen) != 0)
        wr_complain("--listen: %s", weir_error_detail());
    else
        return wr_crawl_files_fit(settings);
    return false;
}
