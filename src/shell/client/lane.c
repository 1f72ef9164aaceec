/* SPDX-License-Identifier: MIT */
/* lane.c - the queue of fetches to one origin: starts the first one when robots.txt and gate allow.
 *
 * The name of a queue says whether it asks robots.txt, the key of its gate, and the origin. http
 * and https of one host share a gate but have a robots.txt each. So an unavailable robots.txt
 * delays only one of the two queues.
 */
#include "base/alloc.h"
#include "shell/client/client.h"

#define NAME_MAX_BYTES 1024 /* fits two names of 253 bytes, scheme, port and marks */

/* ---- creating and finding ---- */

static void append_name(struct wr_buf *buf, const struct weir_fetch *fetch, bool asks_robots, size_t *ret_key_end)
{
    wr_buf_append_char(buf, asks_robots ? 'r' : '-');
    if (fetch->key != NULL && !fetch->has_left)
        wr_buf_append_string(buf, fetch->key);
    else
        wr_url_append_key(buf, &fetch->url);
    *ret_key_end = buf->length;
    wr_buf_append_char(buf, '\0');
    wr_buf_append_span(buf, wr_url_part(&fetch->url, 0, fetch->url.path_at));
}

static struct wr_lane *make_lane(weir_client *client, const struct wr_buf *name, size_t key_end)
{
    struct wr_lane *lane = wr_take(client->allocator, sizeof *lane + name->length, _Alignof(struct wr_lane));
    if (lane == NULL)
        return NULL;
    memcpy(lane->name, name->bytes, name->length);
    lane->name_bytes = name->length;
    lane->key = lane->name + 1;
    lane->key_bytes = key_end - 1;
    lane->asks_robots = lane->name[0] == 'r';
    lane->client = client;
    lane->due.ring = wr_lane_ring;
    if (wr_map_put(&client->lanes, lane->name, lane->name_bytes, lane, NULL) == 0)
        return lane;
    wr_give(client->allocator, lane, sizeof *lane + name->length, _Alignof(struct wr_lane));
    return NULL;
}

static struct wr_lane *find_lane(const struct weir_fetch *fetch)
{
    weir_client *client = fetch->client;
    char memory[NAME_MAX_BYTES];
    struct wr_buf name;
    size_t key_end;
    wr_buf_init_fixed(&name, memory, sizeof memory);
    append_name(&name, fetch, fetch->asks_robots, &key_end);
    struct wr_lane *lane = wr_map_get(&client->lanes, name.bytes, name.length);
    return lane != NULL ? lane : make_lane(client, &name, key_end);
}

struct wr_lane *wr_lane_of_pages(const struct weir_fetch *robots)
{
    char memory[NAME_MAX_BYTES];
    struct wr_buf name;
    size_t key_end;
    wr_buf_init_fixed(&name, memory, sizeof memory);
    append_name(&name, robots, true, &key_end);
    return wr_map_get(&robots->client->lanes, name.bytes, name.length);
}

static void leave_robots(struct wr_lane *lane)
{
    wr_policy_ticket_free(lane->robots_ticket);
    lane->robots_ticket = NULL;
}

static void leave_gate(struct wr_lane *lane)
{
    weir_pace_ticket_free(lane->gate_ticket);
    lane->gate_ticket = NULL;
}

/* Stops waiting for robots.txt, gate and timer. */
static void rest(struct wr_lane *lane)
{
    leave_robots(lane);
    leave_gate(lane);
    (void)wr_due_set(lane->client, &lane->due, WEIR_FOREVER);
}

static void free_lane(struct wr_lane *lane)
{
    weir_client *client = lane->client;
    rest(lane);
    wr_loop_forget(lane);
    (void)wr_map_remove(&client->lanes, lane->name, lane->name_bytes);
    wr_give(client->allocator, lane, sizeof *lane + lane->name_bytes, _Alignof(struct wr_lane));
}

/* ---- joining and leaving ---- */

static void put_first(struct wr_lane *lane, struct weir_fetch *fetch)
{
    fetch->prev = NULL;
    fetch->next = lane->first;
    *(lane->first != NULL ? &lane->first->prev : &lane->last) = fetch;
    lane->first = fetch;
}

static void put_last(struct wr_lane *lane, struct weir_fetch *fetch)
{
    fetch->next = NULL;
    fetch->prev = lane->last;
    *(lane->last != NULL ? &lane->last->next : &lane->first) = fetch;
    lane->last = fetch;
}

int wr_lane_join(struct weir_fetch *fetch, bool at_front)
{
    struct wr_lane *lane = find_lane(fetch);
    if (lane == NULL)
        return WEIR_E_NOMEM;
    bool was_empty = lane->first == NULL;
    fetch->lane = lane;
    lane->members++;
    if (at_front)
        put_first(lane, fetch);
    else
        put_last(lane, fetch);
    if (was_empty) {
        lane->since = fetch->joined_at;
        wr_loop_run(lane);
    }
    return 0;
}

/* Returns the reason why the first fetch waits, or waited last. */
static weir_reason reason_of(const struct weir_fetch *fetch, const struct wr_lane *lane)
{
    if (lane->robots_ticket != NULL || lane->gate_ticket != NULL || lane->held_at >= fetch->joined_at)
        return lane->held_by;
    bool is_long = wr_client_now(lane->client) - fetch->joined_at >= WEIR_MILLISECOND;
    return is_long ? WEIR_REASON_GLOBAL : WEIR_REASON_NONE; /* it waited for a slot */
}

void wr_lane_leave(struct weir_fetch *fetch)
{
    struct wr_lane *lane = fetch->lane;
    *(fetch->prev != NULL ? &fetch->prev->next : &lane->first) = fetch->next;
    *(fetch->next != NULL ? &fetch->next->prev : &lane->last) = fetch->prev;
    fetch->next = fetch->prev = NULL;
    wr_fetch_waited(fetch, reason_of(fetch, lane));
}

void wr_lane_drop(struct weir_fetch *fetch)
{
    struct wr_lane *lane = fetch->lane;
    if (lane == NULL)
        return;
    fetch->lane = NULL;
    if (--lane->members == 0)
        free_lane(lane);
    else if (lane->first == NULL)
        rest(lane);
}

void wr_lane_ring(struct wr_due *due)
{
    wr_loop_run((struct wr_lane *)due);
}

/* ---- robots.txt and gate ---- */

bool wr_is_deferral(weir_reason reason)
{
    return reason == WEIR_REASON_RETRY_AFTER || reason == WEIR_REASON_RATE_LIMIT_RESET ||
           reason == WEIR_REASON_BREAKER || reason == WEIR_REASON_ROBOTS ||
           reason == WEIR_REASON_SHARE; /* the remote gate waits for one of these or is lost */
}

/* Fails the first fetch of an origin queue, which continues with the next one. */
static void fail(struct wr_lane *lane, weir_failure failure, const char *detail)
{
    wr_loop_run(lane);
    wr_fetch_fail(lane->first, failure, detail);
}

/* Holds an origin queue until it is woken or the decision's time has passed. Fails the first fetch
 * if the host holds it for longer than max_defer_ns. */
static void hold(struct wr_lane *lane, const weir_decision *decision)
{
    weir_client *client = lane->client;
    int64_t now = wr_client_now(client);
    int64_t until = decision->wait_ns >= WEIR_DURATION_MAX ? WEIR_FOREVER : now + decision->wait_ns;
    int64_t give_up_at = wr_is_deferral(decision->reason) ? lane->since + client->options.max_defer_ns : WEIR_FOREVER;
    if (decision->reason != lane->held_by && lane->held_at >= lane->first->joined_at) {
        /* The reason to wait has changed: a new wait begins. */
        wr_fetch_waited(lane->first, lane->held_by);
        lane->first->joined_at = now;
    }
    lane->held_by = decision->reason;
    lane->held_at = now;
    if (now >= give_up_at)
        fail(lane, WEIR_FAILURE_DEFERRED, weir_reason_name(decision->reason));
    else if (wr_due_set(client, &lane->due, until < give_up_at ? until : give_up_at) != 0)
        fail(lane, WEIR_FAILURE_INTERNAL, weir_error_text(WEIR_E_NOMEM));
}

/* Notes in the queue of pages whether their robots.txt waits for a shared gate. If so, pages report
 * the shared gate as their reason to wait, not the robots.txt. */
static void tell_pages(const struct wr_lane *lane, weir_reason reason)
{
    const struct weir_fetch *fetch = lane->first;
    struct wr_lane *pages = fetch->robots != NULL && fetch->robots->hop == 0 ? wr_lane_of_pages(fetch) : NULL;
    bool waits_for_share = reason == WEIR_REASON_SHARE;
    if (pages == NULL || pages->robots_waits_for_share == waits_for_share)
        return;
    pages->robots_waits_for_share = waits_for_share;
    wr_loop_run(pages);
}

/* Asks the policies about the first fetch. Returns 0 and a ruling, or an error. */
static int ask_robots(struct wr_lane *lane, struct wr_ruling *ret_ruling)
{
    struct wr_policies *policies = lane->client->policies;
    const struct wr_url *url = &lane->first->url;
    if (lane->robots_ticket == NULL) {
        int error = wr_policies_ask(policies, url, ret_ruling);
        if (error != 0 || ret_ruling->decision.verdict != WEIR_WAIT)
            return error;
        error = wr_policies_enqueue(policies, url, WEIR_FOREVER, wr_loop_wake, lane, &lane->robots_ticket);
        if (error != 0)
            return error;
    }
    return wr_policy_ticket_poll(lane->robots_ticket, wr_url_target(url), ret_ruling);
}

/* Returns true if the host answers neither robots.txt nor pages, so that waiting is useless: the
 * last failure of robots.txt is permanent, or all attempts have failed. */
static bool is_hopeless(const struct wr_lane *lane)
{
    return lane->robots_failure != WEIR_FAILURE_NONE &&
           (lane->robots_is_final || lane->robots_failures >= lane->client->retry.attempts);
}

static void deny(struct wr_lane *lane, const struct wr_ruling *ruling)
{
    struct weir_fetch *fetch = lane->first;
    fetch->robots_line = ruling->line;
    wr_loop_run(lane);
    wr_fetch_fail(fetch, WEIR_FAILURE_ROBOTS,
                  ruling->line != 0 ? "robots.txt forbids it" : "robots.txt cannot be had, and so forbids it");
}

/* Returns true if robots.txt allows the first fetch. If not, holds the queue or fails the fetch. */
static bool passes_robots(struct wr_lane *lane)
{
    struct wr_ruling ruling;
    char detail[WR_DETAIL_MAX]; /* a copy, because the lane may be freed with its last fetch */
    if (!lane->asks_robots)
        return true;
    int error = ask_robots(lane, &ruling);
    bool waits = error == 0 && ruling.decision.verdict == WEIR_WAIT;
    if (waits && lane->robots_waits_for_share)
        ruling.decision.reason = WEIR_REASON_SHARE;
    if (waits && !is_hopeless(lane)) {
        hold(lane, &ruling.decision);
        return false;
    }
    leave_robots(lane);
    if (error != 0)
        fail(lane, WEIR_FAILURE_INTERNAL, weir_error_text(error));
    else if (waits)
        fail(lane, lane->robots_failure, memcpy(detail, lane->robots_detail, sizeof detail));
    else if (ruling.decision.verdict == WEIR_DENY)
        deny(lane, &ruling);
    return error == 0 && ruling.decision.verdict == WEIR_GO;
}

/* Asks the gate for a permit. Returns 0 and a decision, or an error. */
static int ask_gate(struct wr_lane *lane, weir_permit *ret_permit, weir_decision *ret_decision)
{
    weir_client *client = lane->client;
    uint32_t flags = WEIR_REPORTS_SENT | (client->options.circuit_fails ? 0 : WEIR_WAITS_BREAKER);
    int error = 0;
    if (lane->gate_ticket == NULL) {
        error = weir_pacer_try(client->pacer, lane->key, lane->key_bytes, NULL, flags, ret_permit, ret_decision);
        if (error != 0 || ret_decision->verdict == WEIR_GO)
            return error;
        error = weir_pacer_enqueue(client->pacer, lane->key, lane->key_bytes, NULL, flags, WEIR_FOREVER, wr_loop_wake,
                                   lane, &lane->gate_ticket);
        if (error != 0)
            return error;
    }
    error = weir_pace_ticket_poll(lane->gate_ticket, ret_permit, ret_decision);
    if (error != 0 || ret_decision->verdict == WEIR_GO)
        leave_gate(lane);
    return error;
}

static void fail_at_gate(struct wr_lane *lane, int error)
{
    /* The host set a waiting time at this very moment: ask anew. */
    if (error == WEIR_E_WITHDRAWN)
        wr_loop_run(lane);
    else
        fail(lane, error == WEIR_E_CIRCUIT ? WEIR_FAILURE_CIRCUIT : WEIR_FAILURE_INTERNAL, weir_error_text(error));
}

/* Asks robots.txt every time, because its rules may have changed during the wait at the gate. */
void wr_lane_step(struct wr_lane *lane)
{
    weir_permit permit;
    weir_decision decision;
    if (lane->first == NULL || !passes_robots(lane))
        return;
    int error = ask_gate(lane, &permit, &decision);
    if (error != 0) {
        fail_at_gate(lane, error);
        return;
    }
    tell_pages(lane, decision.reason);
    if (decision.verdict != WEIR_GO) {
        hold(lane, &decision);
        return;
    }
    struct weir_fetch *fetch = lane->first;
    (void)wr_due_set(lane->client, &lane->due, WEIR_FOREVER);
    wr_lane_leave(fetch);
    if (lane->first != NULL)
        wr_loop_run(lane);
    wr_ride_start(fetch, &permit);
}
