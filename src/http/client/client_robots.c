/* SPDX-License-Identifier: MIT */
/* client_robots.c - fetches robots.txt files, which pass the gate of their host like any other
 * fetch. */
#include "core/pace/refusal.h"
#include "http/client/client_extras.h"
#include "http/client/client_internal.h"

#define RETRY_BASE_NS WEIR_SECOND /* first wait before a retry of robots.txt; doubles each time */

static void end_without_response(struct wr_robots_fetch *robots)
{
    const struct wr_robots_fetched nothing = {.status = 0, .retry_after_ns = -1};
    wr_robots_fetch_end(robots, &nothing);
}

/* Fetches a robots.txt in one attempt. The policies call it for each redirect and retry. */
static void fetch_robots(void *context, struct wr_robots_fetch *robots)
{
    weir_client *client = context;
    char etag[WR_VALIDATOR_MAX + 1] = "", modified[WR_VALIDATOR_MAX + 1] = "";
    struct weir_fetch *fetch;
    memcpy(etag, robots->etag.data != NULL ? robots->etag.data : "", robots->etag.bytes);
    memcpy(modified, robots->modified.data != NULL ? robots->modified.data : "", robots->modified.bytes);
    const weir_fetch_options options = {
        .size = sizeof options,
        .ignore_robots = true,
        .attempts = 1,
        .max_body_bytes = WR_ROBOTS_MAX + 1,
        .etag = etag[0] != '\0' ? etag : NULL,
        .last_modified = modified[0] != '\0' ? modified : NULL,
    };
    if (client->is_ending || wr_fetch_new(client, robots->url.text, &options, &fetch) != 0) {
        end_without_response(robots);
        return;
    }
    fetch->robots = robots;
    wr_fetch_link_live(fetch);
    wr_fetch_enqueue(fetch, true);
}

/* Returns true if this client ended the fetch, not the host. Such a failure does not predict how
 * pages would fare. */
static bool is_local_failure(weir_failure failure)
{
    return failure == WEIR_FAILURE_CANCELLED || failure == WEIR_FAILURE_DEADLINE || failure == WEIR_FAILURE_DEFERRED ||
           failure == WEIR_FAILURE_INTERNAL || failure == WEIR_FAILURE_CIRCUIT;
}

/* Records the failure of a robots.txt in the queue of pages that wait for it. If it persists, they
 * fail for the same reason. */
static void note_robots_failure(const struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    struct wr_origin_queue *origin_queue = fetch->robots->hop == 0 ? wr_origin_queue_of_pages(fetch) : NULL;
    struct wr_buf detail;
    if (origin_queue == NULL || is_local_failure(ended->failure))
        return;
    origin_queue->robots_failure = ended->failure;
    origin_queue->robots_failures = ended->failure != WEIR_FAILURE_NONE ? origin_queue->robots_failures + 1 : 0;
    origin_queue->robots_is_final = ended->retry == WR_NET_NEVER;
    wr_buf_init_fixed(&detail, origin_queue->robots_detail, sizeof origin_queue->robots_detail);
    wr_buf_append_string(&detail, "robots.txt: ");
    wr_buf_append_string(&detail, ended->detail != NULL ? ended->detail : "");
}

void wr_fetch_deliver_robots(struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    note_robots_failure(fetch, ended);
    if (ended->failure != WEIR_FAILURE_NONE || ended->head == NULL) {
        end_without_response(fetch->robots);
        return;
    }
    const struct wr_robots_fetched fetched = {
        .status = ended->status,
        .body = ended->body != NULL ? wr_buf_from(ended->body, 0) : (struct wr_span){NULL, 0},
        .location = wr_fields_value(ended->head, "Location"),
        .etag = wr_fields_value(ended->head, "ETag"),
        .modified = wr_fields_value(ended->head, "Last-Modified"),
        .cache_control = wr_fields_value(ended->head, "Cache-Control"),
        .retry_after_ns = ended->said.retry_after_ns,
    };
    wr_robots_fetch_end(fetch->robots, &fetched);
}

/* Follows RFC 9309 2.3.1: a success has the rules, a 4xx means no rules. Ignores any other
 * response; the client then fetches robots.txt itself. */
void wr_client_set_robots(weir_client *client, const char *url, const weir_response *response)
{
    char memory[WR_URL_ROOM], text[WR_URL_ROOM];
    struct wr_url parsed;
    struct wr_buf robots_url;
    bool is_there = response->status >= 200 && response->status <= 299;
    bool is_none = response->status >= 400 && response->status <= 499 && !wr_status_refuses(response->status);
    if (client->policies == NULL || response->failure != WEIR_FAILURE_NONE || response->hops > WR_ROBOTS_HOPS ||
        !(is_there || is_none) ||
        wr_url_parse(wr_span_of(url), NULL, NULL, memory, sizeof memory, &parsed) != WR_URL_OK)
        return;
    wr_buf_init_fixed(&robots_url, text, sizeof text);
    wr_url_append_robots(&robots_url, &parsed);
    const struct wr_robots_record record = {
        .robots_url = wr_buf_from(&robots_url, 0),
        .kind = is_there ? WR_ROBOTS_RECORD_TEXT : WR_ROBOTS_RECORD_NONE,
        .text = {response->body, is_there ? response->body_bytes : 0},
        .max_age_ns = -1,
        .fetched_wall_at = weir_wall_now(),
    };
    /* If it cannot be stored, the client fetches robots.txt itself. */
    (void)wr_policies_load(client->policies, &record);
}

int wr_client_make_policies(weir_client *client)
{
    static const enum wr_robots_on_error modes[] = {
        [WEIR_ROBOTS_RFC9309] = WR_ROBOTS_ON_ERROR_RFC9309,
        [WEIR_ROBOTS_ALLOW] = WR_ROBOTS_ON_ERROR_ALLOW,
        [WEIR_ROBOTS_DENY] = WR_ROBOTS_ON_ERROR_DENY,
    };
    const weir_client_options *options = &client->options;
    struct wr_policies_options policies = {
        .pacer = client->pacer,
        .fetch = fetch_robots,
        .fetch_context = client,
        .agent = options->agent,
        .life = wr_client_test_hooks->life,
        .delay_factor = options->robots_delay_factor,
        .max_hosts = options->max_robots,
        .clock = client->clock,
        .allocator = client->allocator,
    };
    policies.life.on_error = modes[options->robots];
    /* Pages wait for robots.txt, so its retries must not be slower than those of a page. */
    if (policies.life.retry.base_ns == 0)
        policies.life.retry.base_ns = RETRY_BASE_NS;
    return wr_policies_new(&policies, &client->policies);
}
