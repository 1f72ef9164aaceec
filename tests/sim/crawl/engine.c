/* SPDX-License-Identifier: MIT */
/* engine.c - a simulated engine that carries out the actions of the plans, with faults. */
#include "sim/crawl/world.h"

#include <stdio.h>
#include <stdlib.h>

#define MS WEIR_MILLISECOND

static uint64_t below(struct world *world, uint64_t n)
{
    return wr_rng_below(&world->rng, n);
}

static int64_t commit_time(struct world *world)
{
    int64_t at = world->now + (int64_t)below(world, world_once_in(world, 20) ? 2000 : 50) * MS;
    at = at > world->store.last_at ? at : world->store.last_at;
    world_event(world, EVENT_COMMIT, at);
    return at;
}

int64_t world_commit_at(struct world *world)
{
    return commit_time(world);
}

/* Adds a copy of an event with another time and kind. */
static struct event *repeat(struct world *world, const struct event *event, enum event_kind kind, int64_t at)
{
    struct event *again = world_event(world, kind, at);
    struct event place = *again;
    *again = *event;
    again->item = place.item;
    again->kind = kind;
    again->at = place.at;
    return again;
}

static struct wr_span span_of(const struct event *event)
{
    return wr_span_of(event->url);
}

static void note_host(struct world *world, uint32_t loop, uint32_t index)
{
    char key[24];
    struct store_host *known = &world->store.posted[index];
    snprintf(key, sizeof key, "h%u.example", index);
    struct wr_plan_host *host = wr_plan_host_find(world->plans[loop], wr_span_of(key));
    if (host == NULL)
        return;
    wr_gate_remember(wr_plan_host_gate(host), &world->options.pace, world->now, world->now, &known->memory);
    known->has_memory = true;
    store_host(&world->store, index, commit_time(world));
}

/* ---- links ---- */

enum wr_add_url_verdict world_offer(struct world *world, uint32_t loop, const struct event *link)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    world_parse(link->url, memory, &url);
    struct wr_url_to_add offer = {.job = link->job,
                                  .fingerprint = world_fingerprint(world, link->url),
                                  .url = &url,
                                  .depth = link->depth,
                                  .hops = link->hops,
                                  .is_new = link->is_new,
                                  .is_stored = link->kind == EVENT_POSTED};
    if (world_loop_of(world, web_host_of(wr_span_of(link->url))) != loop)
        return wr_plan_check_url(world->plans[loop], &offer);
    return wr_plan_add_url(world->plans[loop], &offer, world->now);
}

static bool insert(struct world *world, const struct event *link, int64_t commit_at, uint32_t *ret_row)
{
    struct store_row row = {.fingerprint = world_fingerprint(world, link->url),
                            .job = link->job,
                            .host = web_host_of(wr_span_of(link->url)),
                            .depth = link->depth,
                            .hops = link->hops};
    snprintf(row.url, sizeof row.url, "%s", link->url);
    return store_insert(&world->store, &row, commit_at, ret_row);
}

static void post(struct world *world, const struct event *link, uint32_t row, bool was_new, bool is_new, int64_t at)
{
    struct event *posted = world_event(world, EVENT_POSTED, at);
    posted->loop = world_loop_of(world, world->store.rows[row].host);
    posted->job = link->job;
    posted->depth = link->depth;
    posted->hops = link->hops;
    posted->row = row;
    posted->is_new = is_new;
    posted->was_new = was_new;
    snprintf(posted->url, sizeof posted->url, "%s", link->url);
}

/* Offers a link. Returns false if it must be offered later. */
static bool offer_link(struct world *world, uint32_t loop, const struct event *link, int64_t commit_at)
{
    uint32_t row;
    bool is_own = world_loop_of(world, web_host_of(wr_span_of(link->url))) == loop;
    enum wr_add_url_verdict verdict = world_offer(world, loop, link);
    if (verdict == WR_ADD_URL_LATER)
        return false;
    if (verdict == WR_ADD_URL_ASK_STORE || (verdict == WR_ADD_URL_NEW && !is_own)) {
        bool is_new = insert(world, link, commit_at, &row);
        if (!is_new && is_own)
            return true; /* the store has the URL */
        post(world, link, row, is_new, is_own, is_own ? commit_at : world->now + MS);
    } else if (verdict == WR_ADD_URL_NEW) {
        /* the URL may have been found by another loop */
        if (!insert(world, link, commit_at, &row) && world->store.rows[row].has_ended)
            laws_break(&world->laws, "V4: a URL that has ended is new to its plan", wr_span_of(link->url), world->now);
        world->accepted++;
    }
    return true;
}

static void end_row(struct world *world, uint32_t row, bool failed, int64_t commit_at)
{
    store_end(&world->store, row, failed, commit_at);
}

/* Handles a link that another loop has posted. The plan of this loop decides. */
static void posted(struct world *world, struct event *event)
{
    const struct store_row *row = &world->store.rows[event->row];
    enum wr_add_url_verdict verdict = world_offer(world, event->loop, event);
    /* the plan's set of URLs is incomplete, and the store has answered */
    if (verdict == WR_ADD_URL_ASK_STORE) {
        if (!event->was_new)
            return;
        event->is_new = true;
        verdict = world_offer(world, event->loop, event);
    }
    if (verdict == WR_ADD_URL_LATER) {
        repeat(world, event, EVENT_POSTED, world->now + 10 * MS);
        return;
    }
    if (verdict == WR_ADD_URL_NEW) {
        world->accepted++;
        return;
    }
    if (verdict != WR_ADD_URL_KNOWN && verdict != WR_ADD_URL_OVER && !row->has_ended)
        end_row(world, event->row, true, commit_time(world));
}

/* Offers the links of a page in the transaction of its end, as far as the budget permits. */
static void offer_links(struct world *world, struct event *page)
{
    char links[WEB_LINKS_MAX][WEB_URL];
    size_t count = 0;
    int64_t commit_at = commit_time(world);
    struct event link = {.job = page->job, .depth = page->depth + 1};
    if (page->answer.location[0] != '\0') {
        link.depth = page->depth;
        link.hops = page->hops + 1;
        snprintf(links[0], WEB_URL, "%s", page->answer.location);
        count = 1;
    } else if (page->answer.status == 200) {
        count = web_links(&world->web, span_of(page), links);
    }
    for (; page->next < count; page->next++) {
        snprintf(link.url, sizeof link.url, "%s", links[page->next]);
        if (offer_link(world, page->loop, &link, commit_at))
            continue;
        repeat(world, page, EVENT_LINKS, world->now + 10 * MS);
        return;
    }
    world->store.rows[page->row].was_page = page->answer.status == 200;
    end_row(world, page->row, page->answer.status != 200, commit_at);
}

/* ---- requests ---- */

static void gone(struct world *world, uint32_t row, const struct wr_plan_action *action)
{
    laws_waited(&world->laws, world->store.rows[row].host, action, world->store.rows[row].came_at, world->now);
}

/* Handles a page that was not sent, or will be retried. */
static void came_back(struct world *world, const struct event *event)
{
    if (event->row != UINT32_MAX)
        world->store.rows[event->row].came_at = world->now;
}

static void connect_later(struct world *world, uint32_t loop, const struct wr_plan_action *action)
{
    if (world->now < world->held_until)
        laws_break(&world->laws, "R18: a start while all are held", action->url, world->now);
    int64_t ns = (int64_t)below(world, world_once_in(world, 30) ? 5000 : 60) * MS;
    struct event *event = world_event(world, EVENT_CONNECT, world->now + ns);
    event->loop = loop;
    event->action = *action;
    event->job = action->job;
    event->depth = action->depth;
    event->hops = action->hops;
    snprintf(event->url, sizeof event->url, "%.*s", (int)action->url.bytes, action->url.data);
    event->row = UINT32_MAX;
    if (action->kind == WR_PLAN_START)
        event->row = store_find(&world->store, action->job, action->fingerprint);
    if (event->row != UINT32_MAX)
        gone(world, event->row, action);
    if (action->kind == WR_PLAN_ROBOTS && action->is_hop &&
        world->web.hosts[web_host_of(span_of(event))].robots == WEB_ROBOTS_TURNS)
        snprintf(event->url, sizeof event->url, "https://h%u.example/robots.txt", web_host_of(wr_span_of(event->url)));
}

static struct store_row *row_of(struct world *world, const struct event *event)
{
    return event->row == UINT32_MAX ? NULL : &world->store.rows[event->row];
}

/* Assigns the host to the group of its address; sometimes to another one. */
static void join(struct world *world, const struct event *event)
{
    char name[8];
    uint32_t address = web_host_of(span_of(event)) / 2 % GROUPS;
    if (world_once_in(world, 10))
        address = (uint32_t)below(world, GROUPS + 1);
    snprintf(name, sizeof name, "g%u", address);
    struct wr_span key = address < GROUPS ? wr_span_of(name) : (struct wr_span){NULL, 0};
    int error = wr_plan_host_group(world->plans[event->loop], event->action.host, key, world->now);
    if (error != 0 && error != WEIR_E_FULL)
        abort();
}

static uint32_t group_of(const struct world *world, const struct event *event)
{
    struct wr_span key = wr_plan_host_group_key(world->plans[event->loop], event->action.host);
    return key.bytes > 0 ? 1 + event->loop * GROUPS + (uint32_t)(key.data[1] - '0') : 0;
}

static void connected(struct world *world, struct event *event)
{
    struct wr_plan *plan = world->plans[event->loop];
    uint32_t task = event->action.task;
    if (world->grouping == GROUPS_ADDRESS)
        join(world, event);
    if (world_once_in(world, 25) || wr_plan_may_send(plan, task, world->now).verdict != WEIR_GO) {
        wr_plan_task_given_back(plan, task, world->now);
        came_back(world, event);
        return;
    }
    if (world->over[event->job] && event->job != 0) {
        wr_plan_task_given_back(plan, task, world->now); /* ended while connecting */
        return;
    }
    laws_send(&world->laws, row_of(world, event), span_of(event), world->now);
    event->group = group_of(world, event);
    laws_group_send(&world->laws, event->group, span_of(event), world->now);
    wr_plan_sent(plan, task, world->now);
    struct web_answer answer;
    web_ask(&world->web, span_of(event), world->now, &answer);
    struct event *then = repeat(world, event, EVENT_ANSWER, answer.at);
    then->answer = answer;
    then->is_lost = world_once_in(world, 50);
    if (answer.at <= world->now || world_once_in(world, 2))
        return;
    int64_t head_at = world->now + (int64_t)below(world, (uint64_t)(answer.at - world->now));
    repeat(world, then, EVENT_HEAD, head_at)->is_lost = false;
}

static weir_outcome outcome_of(const struct event *event)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = event->is_lost ? 0 : event->answer.status};
    outcome.has_retry_after = !event->is_lost && event->answer.retry_after_ns >= 0;
    outcome.retry_after_ns = outcome.has_retry_after ? event->answer.retry_after_ns : 0;
    return outcome;
}

static void heard(struct world *world, const struct event *event)
{
    weir_outcome outcome = outcome_of(event);
    uint32_t news = wr_plan_response_head(world->plans[event->loop], event->action.task, &outcome, world->now);
    laws_hear(&world->laws, span_of(event), event->answer.retry_after_ns, world->now);
    laws_group_hear(&world->laws, event->group, event->answer.retry_after_ns, world->now);
    if ((news & WR_GATE_CHANGE_RETRY_AFTER) != 0)
        note_host(world, event->loop, web_host_of(span_of(event)));
}

/* Reports the outcome of a request. Without an answer, either the host or something between has
 * failed. */
static struct wr_task_outcome tell(struct world *world, const struct event *event, const weir_outcome *outcome)
{
    struct wr_plan *plan = world->plans[event->loop];
    if (!event->is_lost || world_once_in(world, 2))
        return wr_plan_page_finished(plan, event->action.task, outcome, 1000, world->now);
    bool is_hosts = world_once_in(world, 2), is_final = world_once_in(world, 4);
    return wr_plan_page_failed(plan, event->action.task, is_hosts ? outcome : NULL, is_final, world->now);
}

static void told_page(struct world *world, struct event *event)
{
    weir_outcome outcome = outcome_of(event);
    struct wr_task_outcome fate = tell(world, event, &outcome);
    uint32_t job = event->job;
    if ((fate.news & WR_GATE_CHANGE_RETRY_AFTER) != 0 || !world->store.posted[web_host_of(span_of(event))].has_memory)
        note_host(world, event->loop, web_host_of(span_of(event)));
    came_back(world, event);
    if (fate.kind == WR_TASK_OUTCOME_RETRY)
        return;
    bool fails = wr_ledger_count_end(&world->ledgers[job], wr_ledger_end_of(&fate, outcome.status));
    event->next = 0;
    if (event->is_lost)
        event->answer.status = 0;
    if (fate.kind == WR_TASK_OUTCOME_FAILED)
        event->answer.location[0] = '\0';
    offer_links(world, event);
    if (fails)
        world_end_job(world, job);
}

/* ---- robots.txt ---- */

static struct wr_robots_event life_event(const struct event *event)
{
    struct wr_robots_event life = {.kind = event->is_lost ? WR_ROBOTS_EVENT_FAILED : WR_ROBOTS_EVENT_ANSWERED,
                                   .status = event->answer.status,
                                   .leads = event->answer.location[0] != '\0',
                                   .max_age_ns = -1,
                                   .retry_after_ns = event->answer.retry_after_ns};
    return life;
}

static struct wr_robots *rules_of(const struct event *event)
{
    struct wr_robots *rules = NULL;
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    if (event->answer.robots[0] != '\0' && !event->is_lost &&
        wr_robots_parse(wr_span_of(event->answer.robots), &options, weir_allocator_system(), &rules) != 0)
        abort();
    return rules;
}

static void note_robots(struct world *world, uint32_t loop, uint32_t host, bool is_https, const struct event *event,
                        enum wr_robots_copy_action copy)
{
    struct store_host *known = &world->store.posted[host];
    if (copy != WR_ROBOTS_COPY_READ && copy != WR_ROBOTS_COPY_DROP)
        return;
    known->robots[is_https].is_known = true;
    known->robots[is_https].has_rules = copy == WR_ROBOTS_COPY_READ && event->answer.robots[0] != '\0';
    known->robots[is_https].wall_at = world->now;
    snprintf(known->robots[is_https].text, WEB_URL, "%s", copy == WR_ROBOTS_COPY_READ ? event->answer.robots : "");
    const char *delay = strstr(known->robots[is_https].text, "Crawl-delay: ");
    laws_robots(&world->laws, host, is_https, known->robots[is_https].has_rules,
                delay != NULL ? strtol(delay + 13, NULL, 10) * WEIR_SECOND : 0);
    note_host(world, loop, host);
}

/* Follows a redirect to another host: creates an errand for the loop of that host. */
static void send_errand(struct world *world, const struct event *from, struct wr_plan_host *host, bool is_https,
                        uint32_t asker)
{
    struct event *errand = world_event(world, EVENT_ERRAND, world->now + MS);
    errand->loop = world_loop_of(world, web_host_of(wr_span_of(from->answer.location)));
    errand->asker = asker;
    errand->host = host;
    errand->is_https = is_https;
    snprintf(errand->url, sizeof errand->url, "%s", from->answer.location);
}

static void robots_fail(struct world *world, struct event *errand)
{
    struct wr_robots_event life = {.kind = WR_ROBOTS_EVENT_FAILED, .retry_after_ns = -1};
    wr_plan_robots_arrived(world->plans[errand->asker], errand->host, errand->is_https, &life, NULL, false, world->now);
}

static bool stays(const struct event *event, uint32_t host)
{
    return event->answer.location[0] != '\0' && web_host_of(wr_span_of(event->answer.location)) == host;
}

static void told_robots(struct world *world, struct event *event)
{
    weir_outcome outcome = outcome_of(event);
    struct wr_robots_event life = life_event(event);
    uint32_t host = web_host_of(span_of(event));
    bool is_https = event->action.is_https;
    struct wr_plan_host *asker = event->action.host;
    struct wr_robots_action action = wr_plan_robots_finished(world->plans[event->loop], event->action.task, &outcome,
                                                             &life, rules_of(event), stays(event, host), world->now);
    note_robots(world, event->loop, host, is_https, event, action.copy);
    if (outcome.has_retry_after)
        note_host(world, event->loop, host);
    if (action.fetch == WR_ROBOTS_FETCH_REDIRECT && !stays(event, host))
        send_errand(world, event, asker, is_https, event->loop);
}

static void came(struct world *world, struct event *event)
{
    struct wr_robots_event life = life_event(event);
    uint32_t host = world_index_of(event->host);
    struct wr_robots_action action = wr_plan_robots_arrived(world->plans[event->asker], event->host, event->is_https,
                                                            &life, rules_of(event), false, world->now);
    note_robots(world, event->asker, host, event->is_https, event, action.copy);
    if (action.fetch == WR_ROBOTS_FETCH_REDIRECT)
        send_errand(world, event, event->host, event->is_https, event->asker);
}

static void start_errand(struct world *world, struct event *event)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    uint64_t tag = 0;
    world_parse(event->url, memory, &url);
    while (tag < 64 && world->errands[tag] != NULL)
        tag++;
    if (tag == 64 || wr_plan_robots_hop_add(world->plans[event->loop], &url, tag, world->now) != 0) {
        robots_fail(world, event);
        return;
    }
    struct event *kept = malloc(sizeof *kept);
    if (kept == NULL)
        abort();
    *kept = *event;
    world->errands[tag] = kept;
}

static void told_errand(struct world *world, struct event *event)
{
    weir_outcome outcome = outcome_of(event);
    struct event *errand = world->errands[event->action.tag];
    uint32_t host = web_host_of(span_of(event));
    world->errands[event->action.tag] = NULL;
    bool is_hosts = !event->is_lost || world_once_in(world, 2);
    uint32_t news = wr_plan_robots_hop_finished(world->plans[event->loop], event->action.task,
                                                is_hosts ? &outcome : NULL, world->now);
    if ((news & WR_GATE_CHANGE_RETRY_AFTER) != 0 || !world->store.posted[host].has_memory)
        note_host(world, event->loop, host);
    struct event *back = world_event(world, EVENT_CAME, world->now + MS);
    back->asker = errand->asker;
    back->host = errand->host;
    back->is_https = errand->is_https;
    back->answer = event->answer;
    back->is_lost = event->is_lost;
    back->loop = errand->asker;
    free(errand);
}

static void answered(struct world *world, struct event *event)
{
    int64_t retry_after_ns = event->is_lost ? -1 : event->answer.retry_after_ns;
    bool is_dropped = world_once_in(world, 60); /* simulates a local fault: the answer is dropped */
    laws_answer(&world->laws, row_of(world, event), span_of(event), retry_after_ns, world->now);
    laws_group_answer(&world->laws, event->group, is_dropped ? -1 : retry_after_ns, world->now);
    if (is_dropped) {
        wr_plan_task_given_back(world->plans[event->loop], event->action.task, world->now);
        came_back(world, event);
        world->laws.hosts[web_host_of(span_of(event))].window_end =
            retry_after_ns > 0 ? world->laws.durable_window_end[web_host_of(span_of(event))]
                               : world->laws.hosts[web_host_of(span_of(event))].window_end;
        return;
    }
    if (event->action.kind == WR_PLAN_START)
        told_page(world, event);
    else if (event->action.kind == WR_PLAN_ROBOTS)
        told_robots(world, event);
    else
        told_errand(world, event);
}

/* ---- actions of a plan ---- */

static void later(struct world *world, uint32_t loop, const struct wr_plan_action *action, enum event_kind kind)
{
    int64_t at = world->now + (int64_t)below(world, 30) * MS;
    struct event *event = world_event(world, kind, at > world->store.last_at ? at : world->store.last_at);
    event->loop = loop;
    event->action = *action;
}

static void end_unsent(struct world *world, const struct wr_plan_action *action)
{
    uint32_t row = store_find(&world->store, action->job, action->fingerprint);
    if (row == UINT32_MAX || world->store.rows[row].has_ended) {
        laws_break(&world->laws, "V4: the end of a URL that is not there", action->url, world->now);
        return;
    }
    if (action->is_denied && web_kind_of(action->url) != 'x')
        laws_break(&world->laws, "V3: denied by a robots.txt that does not", action->url, world->now);
    gone(world, row, action);
    bool fails = !action->is_denied && wr_ledger_count_end(&world->ledgers[action->job], WR_LEDGER_EXPIRED);
    end_row(world, row, true, commit_time(world));
    if (fails)
        world_end_job(world, action->job);
}

static void wake_later(struct world *world, uint32_t loop, int64_t at)
{
    int64_t *wake_at = &world->wake_at[loop];
    if (at == WEIR_FOREVER || (*wake_at != 0 && *wake_at <= at))
        return;
    *wake_at = at;
    world_event(world, EVENT_WAKE, at)->loop = loop;
}

void world_pump(struct world *world, uint32_t loop)
{
    struct wr_plan_action action;
    for (int i = 0; i < 100000; i++) {
        wr_plan_next(world->plans[loop], world->now, &action);
        switch (action.kind) {
        case WR_PLAN_IDLE:
            wake_later(world, loop, action.at);
            return;
        case WR_PLAN_START:
            if (world->over[action.job] || world->paused[action.job])
                laws_break(&world->laws, "a start of a job that is over or paused", action.url, world->now);
            connect_later(world, loop, &action);
            break;
        case WR_PLAN_ROBOTS_HOP:
        case WR_PLAN_ROBOTS:
            connect_later(world, loop, &action);
            break;
        case WR_PLAN_LOAD:
            later(world, loop, &action, EVENT_LOADED);
            break;
        case WR_PLAN_HOSTS:
            later(world, loop, &action, EVENT_LISTED);
            break;
        case WR_PLAN_END:
            end_unsent(world, &action);
            break;
        case WR_PLAN_TAKE_BUDGET:
            world_draw(world, loop, &action);
            break;
        case WR_PLAN_OVER:
            world_end_job(world, action.job);
            break;
        case WR_PLAN_DRAINED:
            break;
        }
    }
    laws_break(&world->laws, "V7: the plan never comes to rest", wr_span_of("-"), world->now);
}

void world_happen(struct world *world, struct event *event)
{
    switch (event->kind) {
    case EVENT_WAKE:
        world->wake_at[event->loop] = 0;
        break;
    case EVENT_CONNECT:
        connected(world, event);
        break;
    case EVENT_HEAD:
        heard(world, event);
        break;
    case EVENT_ANSWER:
        answered(world, event);
        break;
    case EVENT_LINKS:
        offer_links(world, event);
        break;
    case EVENT_POSTED:
        posted(world, event);
        break;
    case EVENT_LOADED:
        world_loaded(world, event);
        break;
    case EVENT_LISTED:
        world_listed(world, event);
        break;
    case EVENT_ERRAND:
        start_errand(world, event);
        break;
    case EVENT_CAME:
        came(world, event);
        break;
    case EVENT_COMMIT:
        store_commit(&world->store, world->now);
        for (uint32_t i = 0; i < world->web.count; i++)
            if (world->store.waiting == 0)
                laws_window_committed(&world->laws, i);
        break;
    }
}
