/* SPDX-License-Identifier: MIT */
/* dry.c - weir crawl --dry-run: collects the URLs and fetches robots.txt of their hosts. */
#include "cli/crawl/dry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/client.h>

#include "cli/kit/console.h"
#include "cli/robots/robots_command.h"
#include "core/pace/gate.h"
#include "core/web/robots/lifecycle.h"
#include "http/net/idna.h"

#define ROBOTS_USED_NS (24 * WEIR_HOUR) /* maximum age of a stored robots.txt, as in a crawl */
#define DEADLINE_NS WEIR_MINUTE

/* ---- URLs to fetch ---- */

static struct wr_dry_host *find_dry_host(struct wr_dry *dry, const struct wr_url *url)
{
    char key[WR_URL_ROOM], robots[WR_URL_ROOM];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, robots, sizeof robots);
    wr_url_append_robots(&buf, url);
    for (size_t i = 0; i < dry->count && !dry->is_short; i++)
        if (strcmp(dry->hosts[i].robots_url, robots) == 0)
            return &dry->hosts[i];
    if (dry->count == WR_DRY_HOSTS || dry->is_short)
        return NULL;
    wr_buf_init_fixed(&buf, key, sizeof key);
    wr_url_append_key(&buf, url);
    struct wr_dry_host *host = &dry->hosts[dry->count];
    *host = (struct wr_dry_host){
        .key = strdup(key), .robots_url = strdup(robots), .urls = calloc(WR_DRY_URLS, sizeof *host->urls)};
    dry->count++;
    if (host->key != NULL && host->robots_url != NULL && host->urls != NULL)
        return host;
    dry->is_short = true;
    return NULL;
}

static bool dry_host_has_url(const struct wr_dry_host *host, const char *url)
{
    for (size_t i = 0; i < host->url_count; i++)
        if (strcmp(host->urls[i], url) == 0)
            return true;
    return false;
}

static void take_dry_url(void *context, const struct wr_url *url)
{
    struct wr_dry *dry = context;
    struct wr_dry_host *host = find_dry_host(dry, url);
    if (host == NULL) {
        dry->left_out++;
        return;
    }
    if (dry_host_has_url(host, url->text))
        return;
    host->pages++;
    if (host->url_count == WR_DRY_URLS)
        return;
    char *text = strdup(url->text);
    if (text != NULL)
        host->urls[host->url_count++] = text;
    else
        dry->is_short = true;
}

/* ---- data of the state file ---- */

struct dry_queue {
    struct wr_dry *dry;
    char *keys[WR_DRY_HOSTS];
    uint64_t queued[WR_DRY_HOSTS];
    size_t count;
    struct wr_dry_host *host; /* host of the tasks that are being read */
};

static void on_queued_host(void *context, const struct wr_store_row *row)
{
    struct dry_queue *queue = context;
    if (row->what != WR_STORE_HOSTS)
        return;
    if (queue->count == WR_DRY_HOSTS) {
        queue->dry->left_out += row->host.queued;
        return;
    }
    queue->keys[queue->count] = strndup(row->host.key.data, row->host.key.bytes);
    queue->queued[queue->count] = row->host.queued;
    queue->count += queue->keys[queue->count] != NULL;
}

static void on_queued_task(void *context, const struct wr_store_row *row)
{
    struct dry_queue *queue = context;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (row->task.url.bytes == 0 ||
        wr_url_parse(row->task.url, NULL, wr_idna_libidn2(), memory, sizeof memory, &url) != WR_URL_OK)
        return;
    take_dry_url(queue->dry, &url);
    queue->host = find_dry_host(queue->dry, &url);
}

static int take_queued_urls(struct wr_dry *dry, struct wr_store *store, int64_t job)
{
    struct dry_queue queue = {.dry = dry};
    int error = wr_store_read(
        store, &(struct wr_store_query){.what = WR_STORE_HOSTS, .job = job, .row = on_queued_host, .context = &queue});
    for (size_t i = 0; i < queue.count; i++) {
        queue.host = NULL;
        if (error == 0)
            error = wr_store_read(store, &(struct wr_store_query){.what = WR_STORE_TASKS,
                                                                  .job = job,
                                                                  .key = wr_span_of(queue.keys[i]),
                                                                  .after = WR_STORE_FIRST_POSITION,
                                                                  .limit = WR_DRY_URLS,
                                                                  .row = on_queued_task,
                                                                  .context = &queue});
        if (queue.host != NULL && queue.queued[i] > WR_DRY_URLS)
            queue.host->pages += queue.queued[i] - WR_DRY_URLS;
        free(queue.keys[i]);
    }
    return error;
}

static void parse_dry_robots(struct wr_dry *dry, struct wr_dry_host *host, struct wr_span text,
                             enum wr_dry_robots source)
{
    const struct wr_robots_options options = {.agent = wr_span_of(dry->options->agent),
                                              .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    host->source = source;
    if (wr_robots_parse(text, &options, weir_allocator_system(), &host->robots) != 0)
        dry->is_short = true;
}

struct dry_stored_host {
    struct wr_dry *dry;
    struct wr_dry_host *host;
    weir_pace_memory memory;
    int64_t set_interval_ns;
};

static void on_stored_robots(void *context, const struct wr_store_row *row)
{
    struct dry_stored_host *known = context;
    int64_t age_ns = weir_wall_now() - row->robots.fetched_wall_at;
    if (age_ns < 0 || age_ns > ROBOTS_USED_NS)
        return;
    if (row->robots.kind == WR_STORE_ROBOTS_TEXT)
        parse_dry_robots(known->dry, known->host, row->robots.text, WR_DRY_STORED);
    else
        known->host->source = WR_DRY_NONE;
}

static void on_stored_host(void *context, const struct wr_store_row *row)
{
    struct dry_stored_host *known = context;
    known->memory = row->host.memory;
    known->set_interval_ns = row->host.set_interval_ns;
    known->host->is_paused = row->host.is_paused;
    known->host->is_held = row->host.memory.retry_wall_at > weir_wall_now();
    /* Without a saved pace the row only holds a setting or a block. */
    known->host->is_known = row->host.memory.saved_wall_at > 0;
    known->host->is_blocked = row->host.blocked_until_wall_at > weir_wall_now() && !known->dry->settings->ask_blocked;
}

/* ---- robots.txt from the hosts ---- */

static void fetch_host_robots(struct wr_dry *dry, weir_client *client, struct wr_dry_host *host)
{
    weir_response *response;
    int error = weir_client_fetch(client, host->robots_url, NULL, NULL, &response);
    if (error != 0) {
        (void)snprintf(host->why, sizeof host->why, "%s", weir_error_text(error));
        return;
    }
    if (response->failure == WEIR_FAILURE_NONE && response->status >= 200 && response->status <= 299)
        parse_dry_robots(dry, host, (struct wr_span){response->body, response->body_bytes}, WR_DRY_FETCHED);
    else if (wr_robots_is_absent(response))
        host->source = WR_DRY_NONE;
    else if (response->failure != WEIR_FAILURE_NONE)
        (void)snprintf(host->why, sizeof host->why, "%s", response->detail);
    else
        (void)snprintf(host->why, sizeof host->why, "the response has status %d", response->status);
    weir_response_free(response);
}

/* Returns the reason not to ask a host for its robots.txt; NULL if it may be asked. Hosts that
 * blocked the crawler, are paused or named a time to wait for are not asked. */
static const char *reason_not_to_fetch(const struct wr_dry_host *host)
{
    if (host->is_blocked)
        return "not fetched: its firewall blocks the crawler";
    if (host->is_paused)
        return "not fetched: the host is paused";
    return host->is_held ? "not fetched: its server asked to wait until a later time" : NULL;
}

static int make_dry_client(const struct wr_dry *dry, weir_client **ret_client)
{
    weir_client_options how;
    weir_client_options_init(&how);
    how.agent = dry->options->agent;
    how.pace = &dry->options->pace;
    how.robots = WEIR_ROBOTS_IGNORE; /* robots.txt itself may always be fetched */
    how.allow_private = dry->settings->allow_private;
    how.proxy = dry->settings->proxy;
    how.ca_file = dry->settings->ca_file;
    how.max_redirects = WR_ROBOTS_HOPS;
    how.max_body_bytes = WR_ROBOTS_MAX + 1;
    how.deadline_ns = DEADLINE_NS;
    return weir_client_new(&how, ret_client);
}

static int fetch_all_robots(struct wr_dry *dry)
{
    weir_client *client = NULL;
    int error = 0;
    for (size_t i = 0; i < dry->count && error == 0; i++) {
        struct wr_dry_host *host = &dry->hosts[i];
        const char *why = reason_not_to_fetch(host);
        if (host->source == WR_DRY_UNKNOWN && why != NULL)
            (void)snprintf(host->why, sizeof host->why, "%s", why);
        if (host->source != WR_DRY_UNKNOWN || why != NULL)
            continue;
        if (client == NULL)
            error = make_dry_client(dry, &client);
        wr_progress("robots.txt of %zu of %zu hosts", i + 1, dry->count);
        if (error == 0)
            fetch_host_robots(dry, client, host);
    }
    wr_progress("%s", "");
    weir_client_free(client);
    return error;
}

/* ---- results ---- */

static void count_denied_urls(const struct wr_dry *dry, struct wr_dry_host *host)
{
    bool is_shut = host->source == WR_DRY_UNKNOWN && dry->settings->robots_on_error == WR_ROBOTS_ON_ERROR_DENY;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    for (size_t i = 0; i < host->url_count; i++) {
        bool is_url =
            wr_url_parse(wr_span_of(host->urls[i]), NULL, wr_idna_libidn2(), memory, sizeof memory, &url) == WR_URL_OK;
        if (host->robots != NULL && is_url && !wr_robots_match(host->robots, wr_url_target(&url)).allowed)
            host->denied++;
    }
    host->allowed = is_shut || host->is_blocked ? 0 : host->pages - host->denied;
}

static int64_t robots_delay(const struct wr_dry *dry, const struct wr_robots *robots)
{
    double factor = dry->options->delay_factor != 0 ? dry->options->delay_factor : 1;
    return (int64_t)((double)wr_robots_interval_ns(robots) * factor);
}

/* Computes the initial pace of a host with the gate that the crawl would use. An interval that was
 * set for the host replaces the limits of the crawl. */
static void compute_initial_pace(struct wr_dry *dry, const struct dry_stored_host *known)
{
    weir_pace_options pace = dry->options->pace;
    struct wr_dry_host *host = known->host;
    struct wr_gate *gate = calloc(1, wr_gate_bytes(&pace));
    int64_t now = WEIR_SECOND;
    if (known->set_interval_ns > 0) {
        pace.min_interval_ns = known->set_interval_ns;
        pace.max_rate = 0;
    }
    dry->is_short |= gate == NULL;
    if (gate == NULL)
        return;
    wr_gate_init(gate, &pace, host->is_known ? &known->memory : NULL, now, weir_wall_now());
    if (host->robots != NULL)
        wr_gate_robots_delay(gate, robots_delay(dry, host->robots), now);
    host->interval_ns = wr_gate_delay(gate, &pace, now);
    free(gate);
    double ns = (double)host->allowed * (double)host->interval_ns;
    host->seconds_ns = ns < (double)WEIR_DURATION_MAX ? (int64_t)ns : WEIR_DURATION_MAX;
}

static int look_up_stored_hosts(struct wr_dry *dry, struct wr_store *store, struct dry_stored_host *known)
{
    int error = 0;
    for (size_t i = 0; store != NULL && i < dry->count && error == 0; i++) {
        known[i] = (struct dry_stored_host){.dry = dry, .host = &dry->hosts[i]};
        struct wr_store_query query = {.what = WR_STORE_ONE_HOST,
                                       .key = wr_span_of(dry->hosts[i].key),
                                       .row = on_stored_host,
                                       .context = &known[i]};
        error = wr_store_read(store, &query);
        query.what = WR_STORE_ONE_ROBOTS;
        query.key = wr_span_of(dry->hosts[i].robots_url);
        query.row = on_stored_robots;
        if (error == 0 && dry->hosts[i].source == WR_DRY_UNKNOWN)
            error = wr_store_read(store, &query);
    }
    return error;
}

static int collect_dry_hosts(struct wr_dry *dry, struct wr_seeds *seeds, int64_t job, struct wr_store *store)
{
    static struct dry_stored_host known[WR_DRY_HOSTS];
    bool well = wr_seeds_each(seeds, take_dry_url, dry);
    int error = job > 0 && store != NULL ? take_queued_urls(dry, store, job) : 0;
    for (size_t i = 0; i < dry->count; i++) {
        dry->hosts[i].source = dry->settings->ignore_robots ? WR_DRY_IGNORED : WR_DRY_UNKNOWN;
        (void)snprintf(dry->hosts[i].why, sizeof dry->hosts[i].why,
                       "the state file has no robots.txt of the last 24 hours");
        known[i] = (struct dry_stored_host){.dry = dry, .host = &dry->hosts[i]};
    }
    if (dry->is_short)
        return WEIR_E_NOMEM;
    if (error == 0)
        error = look_up_stored_hosts(dry, store, known);
    if (error == 0 && !dry->settings->offline)
        error = fetch_all_robots(dry);
    for (size_t i = 0; i < dry->count; i++) {
        count_denied_urls(dry, &dry->hosts[i]);
        compute_initial_pace(dry, &known[i]);
    }
    return error != 0 ? error : dry->is_short ? WEIR_E_NOMEM : well ? 0 : WEIR_E_SYSTEM;
}

static void release_dry(struct wr_dry *dry)
{
    for (size_t i = 0; i < dry->count; i++) {
        struct wr_dry_host *host = &dry->hosts[i];
        for (size_t n = 0; n < host->url_count; n++)
            free(host->urls[n]);
        free(host->urls);
        free(host->key);
        free(host->robots_url);
        wr_robots_free(host->robots);
    }
}

int wr_dry_run(const struct wr_crawl_settings *settings, const struct wr_engine_options *options,
               struct wr_seeds *seeds, int64_t job)
{
    static struct wr_dry dry;
    struct wr_store *store = NULL;
    dry = (struct wr_dry){.settings = settings, .options = options};
    int error = wr_store_open(&(struct wr_store_options){.path = settings->state, .check_ns = -1}, &store);
    if (error == WEIR_E_ABSENT)
        error = 0;
    if (error == 0)
        error = collect_dry_hosts(&dry, seeds, job, store);
    wr_store_free(store);
    if (error == 0)
        wr_dry_print(&dry);
    else
        wr_complain("%s", weir_error_detail()[0] != '\0' ? weir_error_detail() : weir_error_text(error));
    uint64_t allowed = 0;
    for (size_t i = 0; i < dry.count; i++)
        allowed += dry.hosts[i].allowed;
    release_dry(&dry);
    return error == 0 && allowed > 0 ? WR_EXIT_OK : WR_EXIT_FAILED;
}
