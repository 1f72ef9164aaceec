/* SPDX-License-Identifier: MIT */
/* rig.h - runs a plan in virtual time, with a store that answers at once. */
#ifndef WEIR_TEST_PLAN_RIG_H
#define WEIR_TEST_PLAN_RIG_H

#include "lib/alloc.h"
#include "lib/test.h"

#include "core/pace/pace_options.h"
#include "core/plan/ledger.h"
#include "core/plan/plan.h"
#include "core/web/robots/robots.h"

#define MS WEIR_MILLISECOND
#define S WEIR_SECOND
#define M WEIR_MINUTE
#define ROWS 8192

struct row {
    uint32_t job;
    uint64_t fingerprint;
    char url[128];
    bool ended;
    bool is_lost; /* the store has lost its URL */
};

struct plan_store_fixture {
    test_allocator allocator;
    struct wr_hash_key key;
    struct wr_plan_options options;
    struct wr_plan *plan;
    int64_t now;
    struct row rows[ROWS];
    size_t count;
    bool store_is_slow;             /* rig_next does not answer LOAD actions */
    bool robots_are_known;          /* every host is known to have no robots.txt */
    const weir_pace_memory *memory; /* stored memory of every host */
    int64_t blocked_ns;             /* time left of a firewall's block, for every host */
    uint8_t blocked_by;
};

/* Sets up options: one start per second and host, at most 4 in flight, robots.txt ignored. A test
 * may change rig->options before rig_begin. */
void rig_init(struct plan_store_fixture *rig);
void rig_begin(struct plan_store_fixture *rig);
/* Begins the plan with job 1. */
void rig_begin_job(struct plan_store_fixture *rig);
/* Calls rig_init and rig_begin_job. */
void rig_plain(struct plan_store_fixture *rig);
void rig_release(struct plan_store_fixture *rig);

void rig_job(struct plan_store_fixture *rig, uint32_t id);
/* Offers a URL to the plan. A new one is also added to the store. */
enum wr_add_url_verdict rig_offer(struct plan_store_fixture *rig, uint32_t job, const char *url);
enum wr_add_url_verdict rig_offer_at(struct plan_store_fixture *rig, uint32_t job, const char *url, uint32_t depth,
                                     uint32_t hops);
/* Offers `count` URLs: "http://HOST/0", "http://HOST/1" and so on. */
void rig_offer_many(struct plan_store_fixture *rig, uint32_t job, const char *host, int count);

/* Answers LOAD actions and returns the first other action. */
struct wr_plan_action rig_next(struct plan_store_fixture *rig);
void rig_answer_load(struct plan_store_fixture *rig, const struct wr_plan_action *action);
/* Like rig_next, but moves the clock until the action is not IDLE. Fails the test if the plan would
 * idle for ever or beyond `until`. */
struct wr_plan_action rig_wait(struct plan_store_fixture *rig, int64_t until);

/* Like rig_wait, but also skips DRAINED, and expects a START. */
struct wr_plan_action rig_page(struct plan_store_fixture *rig, int64_t until);

void rig_send(struct plan_store_fixture *rig, const struct wr_plan_action *action);
struct wr_task_outcome rig_tell(struct plan_store_fixture *rig, const struct wr_plan_action *action, int status);
/* Sends the page, and reports its answer after 10 ms. */
struct wr_task_outcome rig_fetch(struct plan_store_fixture *rig, const struct wr_plan_action *action, int status);
/* Sends a robots.txt request, and reports its answer after 10 ms. `text` NULL: no body. */
struct wr_robots_action rig_robots(struct plan_store_fixture *rig, const struct wr_plan_action *action, int status,
                                   const char *text);
/* Marks the task as ended in the store. */
void rig_ended(struct plan_store_fixture *rig, const struct wr_plan_action *action);

#define assert_kind(action, expected) \
    assert_string_equal(wr_plan_action_kind_name((action).kind), wr_plan_action_kind_name(expected))
#define assert_url(action, expected)                                            \
    do {                                                                        \
        assert_int_equal((action).url.bytes, strlen(expected));                 \
        assert_memory_equal((action).url.data, (expected), (action).url.bytes); \
    } while (0)
#define assert_offer(verdict, expected) \
    assert_string_equal(wr_add_url_verdict_name(verdict), wr_add_url_verdict_name(expected))

#endif
