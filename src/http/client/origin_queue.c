/* SPDX-License-Identifier: MIT */
/* origin_queue.c - the queue of fetches to one origin: starts the first one when robots.txt and
 * gate allow.
 *
 * The name of a queue says whether it asks robots.txt, the key of its gate, and the origin. http
 * and https of one host share a gate but have a robots.txt each. So an unavailable robots.txt
 * delays only one of the two queues.
 */
#include "base/alloc.h"
#include "http/client/client_internal.h"

#define NAME_MAX_BYTES 1024 /* fits two names of 253 bytes, scheme, port and marks */

/* ---- creating and finding ---- */

static void append_queue_name(struct wr_buf *buf, const struct weir_fetch *fetch, bool asks_robots, size_t *ret_key_end)
{
    wr_buf_append_char(buf, asks_robots ? 'r' : '-');
    if (fetch->key != NULL && !fetch->left_first_origin)
        wr_buf_append_string(buf, fetch->key);
    else
        wr_url_append_key(buf, &fetch->url);
    *ret_key_end = buf->length;
    wr_buf_append_char(buf, '\0');
    wr_buf_append_span(buf, wr_url_part(&fetch->url, 0, fetch->url.path_at));
}

static struct wr_origin_queue *make_origin_queue(weir_client *client, const struct wr_buf *name, size_t key_end)
{
    struct wr_origin_queue *origin_queue =
        wr_alloc(client->allocator, sizeof *origin_queue + name->length, _Alignof(struct wr_origin_queue));
    if (origin_queue == NULL)
        return NULL;
    memcpy(origin_queue->name, name->bytes, name->length);
    origin_queue->name_bytes = name->length;
    origin_queue->key = origin_queue->name + 1;
    origin_queue->key_bytes = key_end - 1;
    origin_queue->asks_robots = origin_queue->name[0] == 'r';
    origin_queue->client = client;
    origin_queue->due.on_due = wr_origin_queue_on_timer;
    if (wr_map_put(&client->origin_queues, origin_queue->name, origin_queue->name_bytes, origin_queue, NULL) == 0)
        return origin_queue;
    wr_free(client->allocator, origin_queue, sizeof *origin_queue + name->length, _Alignof(struct wr_origin_queue));
    return NULL;
}

static struct wr_origin_queue *find_origin_queue(const struct weir_fetch *fetch)
{
    weir_client *client = fetch->client;
    char memory[NAME_MAX_BYTES];
    struct wr_buf name;
    size_t key_end;
    wr_buf_init_fixed(&name, memory, sizeof memory);
    append_queue_name(&name, fetch, fetch->asks_robots, &key_end);
    struct wr_origin_queue *origin_queue = wr_map_get(&client->origin_queues, name.bytes, name.length);
    return origin_queue != NULL ? origin_queue : make_origin_queue(client, &name, key_end);
}

struct wr_origin_queue *wr_origin_queue_of_pages(const struct weir_fetch *robots)
{
    char memory[NAME_MAX_BYTES];
    struct wr_buf name;
    size_t key_end;
    wr_buf_init_fixed(&name, memory, sizeof memory);
    append_queue_name(&name, robots, true, &key_end);
    return wr_map_get(&robots->client->origin_queues, name.bytes, name.length);
}

static void stop_waiting_for_robots(struct wr_origin_queue *origin_queue)
{
    wr_policy_ticket_free(origin_queue->robots_ticket);
    origin_queue->robots_ticket = NULL;
}

static void stop_waiting_for_gate(struct wr_origin_queue *origin_queue)
{
    weir_pace_ticket_free(origin_queue->gate_ticket);
    origin_queue->gate_ticket = NULL;
}

/* Stops waiting for robots.txt, gate and timer. */
static void stop_waiting(struct wr_origin_queue *origin_queue)
{
    stop_waiting_for_robots(origin_queue);
    stop_waiting_for_gate(origin_queue);
    (void)wr_client_timer_set(origin_queue->client, &origin_queue->due, WEIR_FOREVER);
}

static void free_origin_queue(struct wr_origin_queue *origin_queue)
{
    weir_client *client = origin_queue->client;
    stop_waiting(origin_queue);
    wr_client_loop_unschedule(origin_queue);
    (void)wr_map_remove(&client->origin_queues, origin_queue->name, origin_queue->name_bytes);
    wr_free(client->allocator, origin_queue, sizeof *origin_queue + origin_queue->name_bytes,
            _Alignof(struct wr_origin_queue));
}

/* ---- joining and leaving ---- */

static void put_first(struct wr_origin_queue *origin_queue, struct weir_fetch *fetch)
{
    fetch->prev = NULL;
    fetch->next = origin_queue->first;
    *(origin_queue->first != NULL ? &origin_queue->first->prev : &origin_queue->last) = fetch;
    origin_queue->first = fetch;
}

static void put_last(struct wr_origin_queue *origin_queue, struct weir_fetch *fetch)
{
    fetch->next = NULL;
    fetch->prev = origin_queue->last;
    *(origin_queue->last != NULL ? &origin_queue->last->next : &origin_queue->first) = fetch;
    origin_queue->last = fetch;
}

int wr_origin_queue_add(struct weir_fetch *fetch, bool at_front)
{
    struct wr_origin_queue *origin_queue = find_origin_queue(fetch);
    if (origin_queue == NULL)
        return WEIR_E_NOMEM;
    bool was_empty = origin_queue->first == NULL;
    fetch->origin_queue = origin_queue;
    origin_queue->members++;
    if (at_front)
        put_first(origin_queue, fetch);
    else
        put_last(origin_queue, fetch);
    if (was_empty) {
        origin_queue->since = fetch->joined_at;
        wr_client_loop_schedule(origin_queue);
    }
    return 0;
}

/* Returns the reason why the first fetch waits, or waited last. */
static weir_reason wait_reason_of(const struct weir_fetch *fetch, const struct wr_origin_queue *origin_queue)
{
    if (origin_queue->robots_ticket != NULL || origin_queue->gate_ticket != NULL ||
        origin_queue->held_at >= fetch->joined_at)
        return origin_queue->held_by;
    bool is_long = wr_client_now(origin_queue->client) - fetch->joined_at >= WEIR_MILLISECOND;
    return is_long ? WEIR_REASON_GLOBAL : WEIR_REASON_NONE; /* it waited for a slot */
}

void wr_origin_queue_remove(struct weir_fetch *fetch)
{
    struct wr_origin_queue *origin_queue = fetch->origin_queue;
    *(fetch->prev != NULL ? &fetch->prev->next : &origin_queue->first) = fetch->next;
    *(fetch->next != NULL ? &fetch->next->prev : &origin_queue->last) = fetch->prev;
    fetch->next = fetch->prev = NULL;
    wr_fetch_add_wait(fetch, wait_reason_of(fetch, origin_queue));
}

void wr_origin_queue_release(struct weir_fetch *fetch)
{
    struct wr_origin_queue *origin_queue = fetch->origin_queue;
    if (origin_queue == NULL)
        return;
    fetch->origin_queue = NULL;
    if (--origin_queue->members == 0)
        free_origin_queue(origin_queue);
    else if (origin_queue->first == NULL)
        stop_waiting(origin_queue);
}

void wr_origin_queue_on_timer(struct wr_client_timer *due)
{
    wr_client_loop_schedule((struct wr_origin_queue *)due);
}

/* ---- robots.txt and gate ---- */

bool wr_is_deferral(weir_reason reason)
{
    return reason == WEIR_REASON_RETRY_AFTER || reason == WEIR_REASON_RATE_LIMIT_RESET ||
           reason == WEIR_REASON_BREAKER || reason == WEIR_REASON_ROBOTS ||
           reason == WEIR_REASON_SHARE; /* the remote gate waits for one of these or is lost */
}

/* Fails the first fetch of an origin queue, which continues with the next one. */
static void fail_first(struct wr_origin_queue *origin_queue, weir_failure failure, const char *detail)
{
    wr_client_loop_schedule(origin_queue);
    wr_fetch_fail(origin_queue->first, failure, detail);
}

/* Holds an origin queue until it is woken or the decision's time has passed. Fails the first fetch
 * if the host holds it for longer than max_defer_ns. */
static void hold_queue(struct wr_origin_queue *origin_queue, const weir_decision *decision)
{
    weir_client *client = origin_queue->client;
    int64_t now = wr_client_now(client);
    int64_t until = decision->wait_ns >= WEIR_DURATION_MAX ? WEIR_FOREVER : now + decision->wait_ns;
    int64_t give_up_at =
        wr_is_deferral(decision->reason) ? origin_queue->since + client->options.max_defer_ns : WEIR_FOREVER;
    if (decision->reason != origin_queue->held_by && origin_queue->held_at >= origin_queue->first->joined_at) {
        /* The reason to wait has changed: a new wait begins. */
        wr_fetch_add_wait(origin_queue->first, origin_queue->held_by);
        origin_queue->first->joined_at = now;
    }
    origin_queue->held_by = decision->reason;
    origin_queue->held_at = now;
    if (now >= give_up_at)
        fail_first(origin_queue, WEIR_FAILURE_DEFERRED, weir_reason_name(decision->reason));
    else if (wr_client_timer_set(client, &origin_queue->due, until < give_up_at ? until : give_up_at) != 0)
        fail_first(origin_queue, WEIR_FAILURE_INTERNAL, weir_error_text(WEIR_E_NOMEM));
}

/* Notes in the queue of pages whether their robots.txt waits for a shared gate. If so, pages report
 * the shared gate as their reason to wait, not the robots.txt. */
static void note_shared_gate_wait(const struct wr_origin_queue *origin_queue, weir_reason reason)
{
    const struct weir_fetch *fetch = origin_queue->first;
    struct wr_origin_queue *pages =
        fetch->robots != NULL && fetch->robots->hop == 0 ? wr_origin_queue_of_pages(fetch) : NULL;
    bool waits_for_share = reason == WEIR_REASON_SHARE;
    if (pages == NULL || pages->robots_waits_for_share == waits_for_share)
        return;
    pages->robots_waits_for_share = waits_for_share;
    wr_client_loop_schedule(pages);
}

/* Asks the policies about the first fetch. Returns 0 and a ruling, or an error. */
static int ask_policies(struct wr_origin_queue *origin_queue, struct wr_robots_decision *ret_ruling)
{
    struct wr_policies *policies = origin_queue->client->policies;
    const struct wr_url *url = &origin_queue->first->url;
    if (origin_queue->robots_ticket == NULL) {
        int error = wr_policies_ask(policies, url, ret_ruling);
        if (error != 0 || ret_ruling->decision.verdict != WEIR_WAIT)
            return error;
        error = wr_policies_enqueue(policies, url, WEIR_FOREVER, wr_client_loop_wake, origin_queue,
                                    &origin_queue->robots_ticket);
        if (error != 0)
            return error;
    }
    return wr_policy_ticket_poll(origin_queue->robots_ticket, wr_url_target(url), ret_ruling);
}

/* Returns true if the host answers neither robots.txt nor pages, so that waiting is useless: the
 * last failure of robots.txt is permanent, or all attempts have failed. */
static bool has_robots_failed(const struct wr_origin_queue *origin_queue)
{
    return origin_queue->robots_failure != WEIR_FAILURE_NONE &&
           (origin_queue->robots_is_final || origin_queue->robots_failures >= origin_queue->client->retry.attempts);
}

static void deny_first(struct wr_origin_queue *origin_queue, const struct wr_robots_decision *ruling)
{
    struct weir_fetch *fetch = origin_queue->first;
    fetch->robots_line = ruling->line;
    wr_client_loop_schedule(origin_queue);
    wr_fetch_fail(fetch, WEIR_FAILURE_ROBOTS,
                  ruling->line != 0 ? "robots.txt forbids it" : "robots.txt cannot be read, so nothing may be fetched");
}

/* Returns true if robots.txt allows the first fetch. If not, holds the queue or fails the fetch. */
static bool passes_robots(struct wr_origin_queue *origin_queue)
{
    struct wr_robots_decision ruling;
    char detail[WR_DETAIL_MAX]; /* a copy, because the origin_queue may be freed with its last fetch */
    if (!origin_queue->asks_robots)
        return true;
    int error = ask_policies(origin_queue, &ruling);
    bool waits = error == 0 && ruling.decision.verdict == WEIR_WAIT;
    if (waits && origin_queue->robots_waits_for_share)
        ruling.decision.reason = WEIR_REASON_SHARE;
    if (waits && !has_robots_failed(origin_queue)) {
        hold_queue(origin_queue, &ruling.decision);
        return false;
    }
    stop_waiting_for_robots(origin_queue);
    if (error != 0)
        fail_first(origin_queue, WEIR_FAILURE_INTERNAL, weir_error_text(error));
    else if (waits)
        fail_first(origin_queue, origin_queue->robots_failure,
                   memcpy(detail, origin_queue->robots_detail, sizeof detail));
    else if (ruling.decision.verdict == WEIR_DENY)
        deny_first(origin_queue, &ruling);
    return error == 0 && ruling.decision.verdict == WEIR_GO;
}

/* Asks the gate for a permit. Returns 0 and a decision, or an error. */
static int ask_gate(struct wr_origin_queue *origin_queue, weir_permit *ret_permit, weir_decision *ret_decision)
{
    weir_client *client = origin_queue->client;
    uint32_t flags = WEIR_REPORTS_SENT | (client->options.circuit_fails ? 0 : WEIR_WAITS_BREAKER);
    int error = 0;
    if (origin_queue->gate_ticket == NULL) {
        error = weir_pacer_try(client->pacer, origin_queue->key, origin_queue->key_bytes, NULL, flags, ret_permit,
                               ret_decision);
        if (error != 0 || ret_decision->verdict == WEIR_GO)
            return error;
        error = weir_pacer_enqueue(client->pacer, origin_queue->key, origin_queue->key_bytes, NULL, flags, WEIR_FOREVER,
                                   wr_client_loop_wake, origin_queue, &origin_queue->gate_ticket);
        if (error != 0)
            return error;
    }
    error = weir_pace_ticket_poll(origin_queue->gate_ticket, ret_permit, ret_decision);
    if (error != 0 || ret_decision->verdict == WEIR_GO)
        stop_waiting_for_gate(origin_queue);
    return error;
}

static void fail_at_gate(struct wr_origin_queue *origin_queue, int error)
{
    /* The host set a waiting time at this very moment: ask anew. */
    if (error == WEIR_E_WITHDRAWN)
        wr_client_loop_schedule(origin_queue);
    else
        fail_first(origin_queue, error == WEIR_E_CIRCUIT ? WEIR_FAILURE_CIRCUIT : WEIR_FAILURE_INTERNAL,
                   weir_error_text(error));
}

/* Asks robots.txt every time, because its rules may have changed during the wait at the gate. */
void wr_origin_queue_step(struct wr_origin_queue *origin_queue)
{
    weir_permit permit;
    weir_decision decision;
    if (origin_queue->first == NULL || !passes_robots(origin_queue))
        return;
    int error = ask_gate(origin_queue, &permit, &decision);
    if (error != 0) {
        fail_at_gate(origin_queue, error);
        return;
    }
    note_shared_gate_wait(origin_queue, decision.reason);
    if (decision.verdict != WEIR_GO) {
        hold_queue(origin_queue, &decision);
        return;
    }
    struct weir_fetch *fetch = origin_queue->first;
    (void)wr_client_timer_set(origin_queue->client, &origin_queue->due, WEIR_FOREVER);
    wr_origin_queue_remove(fetch);
    if (origin_queue->first != NULL)
        wr_client_loop_schedule(origin_queue);
    wr_wire_request_start(fetch, &permit);
}
