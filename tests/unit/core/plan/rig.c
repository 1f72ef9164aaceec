/* SPDX-License-Identifier: MIT */
/* rig.c - runs a plan in virtual time, with a store that answers at once. */
#include "rig.h"

void rig_init(struct plan_store_fixture *rig)
{
    static const unsigned char secret[WR_HASH_SECRET_BYTES] = {7};
    static const struct wr_robots_lifecycle_options robots = {.on_error = WR_ROBOTS_ON_ERROR_RFC9309};
    weir_pace_options pace;
    memset(rig, 0, sizeof *rig);
    test_allocator_init(&rig->allocator);
    wr_hash_key_init(&rig->key, secret);
    assert_int_equal(weir_pace_options_profile(&pace, WEIR_PROFILE_STRICT), 0);
    pace.max_in_flight = 4;
    assert_int_equal(wr_pace_options_check(&pace, &rig->options.pace), 0);
    assert_int_equal(wr_robots_lifecycle_options_check(&robots, &rig->options.robots), 0);
    rig->options.hash_key = &rig->key;
    rig->options.allocator = &rig->allocator.allocator;
    rig->options.ignores_robots = true;
    rig->options.seed = 1;
    rig->now = 100 * S;
}

void rig_begin(struct plan_store_fixture *rig)
{
    assert_int_equal(wr_plan_new(&rig->options, &rig->plan), 0);
}

void rig_release(struct plan_store_fixture *rig)
{
    assert_true(wr_plan_ok(rig->plan));
    wr_plan_free(rig->plan);
    assert_int_equal(rig->allocator.live, 0);
    assert_int_equal(rig->allocator.live_bytes, 0);
}

void rig_job(struct plan_store_fixture *rig, uint32_t id)
{
    assert_int_equal(wr_plan_job_add(rig->plan, &(struct wr_plan_job){.id = id}), 0);
}

void rig_begin_job(struct plan_store_fixture *rig)
{
    rig_begin(rig);
    rig_job(rig, 1);
}

void rig_plain(struct plan_store_fixture *rig)
{
    rig_init(rig);
    rig_begin_job(rig);
}

static void parse(const char *text, char memory[WR_URL_ROOM], struct wr_url *ret_url)
{
    assert_int_equal(wr_url_parse(wr_span_of(text), NULL, NULL, memory, WR_URL_ROOM, ret_url), WR_URL_OK);
}

enum wr_add_url_verdict rig_offer_at(struct plan_store_fixture *rig, uint32_t job, const char *text, uint32_t depth,
                                     uint32_t hops)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    parse(text, memory, &url);
    struct wr_url_to_add offer = {
        .job = job, .fingerprint = wr_hash(&rig->key, url.text, url.bytes), .url = &url, .depth = depth, .hops = hops};
    enum wr_add_url_verdict verdict = wr_plan_add_url(rig->plan, &offer, rig->now);
    if (verdict == WR_ADD_URL_NEW) {
        assert_true(rig->count < ROWS);
        struct row *row = &rig->rows[rig->count++];
        *row = (struct row){.job = job, .fingerprint = offer.fingerprint};
        snprintf(row->url, sizeof row->url, "%s", text);
    }
    return verdict;
}

enum wr_add_url_verdict rig_offer(struct plan_store_fixture *rig, uint32_t job, const char *text)
{
    return rig_offer_at(rig, job, text, 0, 0);
}

void rig_offer_many(struct plan_store_fixture *rig, uint32_t job, const char *host, int count)
{
    char url[128];
    for (int i = 0; i < count; i++) {
        snprintf(url, sizeof url, "http://%s/%d", host, i);
        assert_offer(rig_offer(rig, job, url), WR_ADD_URL_NEW);
    }
}

/* Loads row i if `action` asks for rows of its host and job. Returns 1 if it was loaded, 0 if it
 * was not asked for, and -1 if the plan has no memory for it. */
static int give_row(struct plan_store_fixture *rig, const struct wr_plan_action *action, size_t i)
{
    char memory[WR_URL_ROOM], key[WEIR_PACE_KEY_MAX + 1];
    struct wr_url url;
    struct wr_buf buf;
    struct row *row = &rig->rows[i];
    struct wr_span host = wr_plan_host_key(action->host);
    if (row->job != action->job || row->ended)
        return 0;
    parse(row->url, memory, &url);
    wr_buf_init_fixed(&buf, key, sizeof key);
    wr_url_append_key(&buf, &url);
    if (buf.length != host.bytes || memcmp(key, host.data, host.bytes) != 0)
        return 0;
    struct wr_plan_row given = {.fingerprint = row->fingerprint, .position = {(int64_t)i + 1, 0}, .url = &url};
    row->ended = row->is_lost;
    if (row->is_lost)
        given.url = NULL;
    int error = wr_plan_load_row(rig->plan, action->host, action->job, &given, rig->now);
    assert_true(error == 0 || (error == WEIR_E_NOMEM && rig->allocator.fail_for_ever));
    return error == 0 ? 1 : -1;
}

void rig_answer_load(struct plan_store_fixture *rig, const struct wr_plan_action *action)
{
    uint64_t given = 0;
    int taken = 0;
    if (action->wants_memory) {
        struct wr_plan_stored_host memory = {
            .pace = rig->memory, .blocked_ns = rig->blocked_ns, .blocked_by = rig->blocked_by};
        memory.robots[0].is_known = memory.robots[1].is_known = rig->robots_are_known;
        memory.robots[0].max_age_ns = memory.robots[1].max_age_ns = -1;
        wr_plan_restore_host(rig->plan, action->host, &memory, rig->now, 1700000000 * S + rig->now);
    }
    if (action->count == 0)
        return;
    for (size_t i = (size_t)action->after.id; i < rig->count && given < action->count && taken >= 0; i++) {
        taken = give_row(rig, action, i);
        given += taken > 0;
    }
    wr_plan_load_end(rig->plan, action->host, action->job, taken >= 0 && given < action->count, 0, rig->now);
}

struct wr_plan_action rig_next(struct plan_store_fixture *rig)
{
    struct wr_plan_action action;
    for (size_t loads = 0;; loads++) {
        assert_true(loads <= 2 * ROWS); /* otherwise the plan asks without end */
        wr_plan_next(rig->plan, rig->now, &action);
        assert_true(wr_plan_ok(rig->plan));
        if (action.kind != WR_PLAN_LOAD || rig->store_is_slow)
            return action;
        rig_answer_load(rig, &action);
    }
}

struct wr_plan_action rig_wait(struct plan_store_fixture *rig, int64_t until)
{
    for (;;) {
        struct wr_plan_action action = rig_next(rig);
        if (action.kind != WR_PLAN_IDLE)
            return action;
        assert_true(action.at > rig->now);
        if (action.at > until)
            fail_msg("idle until %lld ms", (long long)(action.at == WEIR_FOREVER ? -1 : action.at / MS));
        rig->now = action.at;
    }
}

struct wr_plan_action rig_page(struct plan_store_fixture *rig, int64_t until)
{
    struct wr_plan_action action = rig_wait(rig, until);
    while (action.kind == WR_PLAN_DRAINED)
        action = rig_wait(rig, until);
    assert_kind(action, WR_PLAN_START);
    return action;
}

void rig_send(struct plan_store_fixture *rig, const struct wr_plan_action *action)
{
    assert_int_equal(wr_plan_may_send(rig->plan, action->task, rig->now).verdict, WEIR_GO);
    wr_plan_sent(rig->plan, action->task, rig->now);
}

void rig_ended(struct plan_store_fixture *rig, const struct wr_plan_action *action)
{
    for (size_t i = 0; i < rig->count; i++)
        if (rig->rows[i].job == action->job && rig->rows[i].fingerprint == action->fingerprint)
            rig->rows[i].ended = true;
}

struct wr_task_outcome rig_tell(struct plan_store_fixture *rig, const struct wr_plan_action *action, int status)
{
    weir_outcome outcome = {.size = sizeof outcome, .status = status};
    struct wr_task_outcome fate = wr_plan_page_finished(rig->plan, action->task, &outcome, 1000, rig->now);
    if (fate.kind != WR_TASK_OUTCOME_RETRY)
        rig_ended(rig, action);
    return fate;
}

struct wr_task_outcome rig_fetch(struct plan_store_fixture *rig, const struct wr_plan_action *action, int status)
{
    rig_send(rig, action);
    rig->now += 10 * MS;
    return rig_tell(rig, action, status);
}

struct wr_robots_action rig_robots(struct plan_store_fixture *rig, const struct wr_plan_action *action, int status,
                                   const char *text)
{
    struct wr_robots *rules = NULL;
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    weir_outcome outcome = {.size = sizeof outcome, .status = status};
    struct wr_robots_event event = {.kind = status == 0 ? WR_ROBOTS_EVENT_FAILED : WR_ROBOTS_EVENT_ANSWERED,
                                    .status = status,
                                    .max_age_ns = -1,
                                    .retry_after_ns = -1};
    if (text != NULL)
        assert_int_equal(wr_robots_parse(wr_span_of(text), &options, rig->options.allocator, &rules), 0);
    rig_send(rig, action);
    rig->now += 10 * MS;
    return wr_plan_robots_finished(rig->plan, action->task, &outcome, &event, rules, false, rig->now);
}
