/* SPDX-License-Identifier: MIT */
/* rig.h - a plan, a store that answers at once, and virtual time. */
#ifndef WEIR_TEST_PLAN_RIG_H
#define WEIR_TEST_PLAN_RIG_H

#include "lib/alloc.h"
#include "lib/test.h"

#include "core/pace/options.h"
#include "core/plan/ledger.h"
#include "core/plan/plan.h"
#include "core/rules/robots/robots.h"

#define MS WEIR_MILLISECOND
#define S WEIR_SECOND
#define M WEIR_MINUTE
#define ROWS 8192

struct row {
    uint32_t job;
    uint64_t fingerprint;
    char url[128];
    bool ended;
    bool is_lost; /* it comes without its URL */
};

struct rig {
    test_allocator allocator;
    struct wr_hash_key key;
    struct wr_plan_options options;
    struct wr_plan *plan;
    int64_t now;
    struct row rows[ROWS];
    size_t count;
    bool store_is_slow;             /* LOADs are not answered by rig_next */
    bool robots_are_known;          /* of every host: there are none */
    const weir_pace_memory *memory; /* of every host */
    int64_t blocked_ns;             /* likewise */
    uint8_t blocked_by;
};

/* A start each second and host, at most 4 in flight; robots.txt is ignored. Change rig->options, then rig_begin. */
void rig_init(struct rig *rig);
void rig_begin(struct rig *rig);
/* With job 1. */
void rig_begin_job(struct rig *rig);
/* Both, with options as they are. */
void rig_plain(struct rig *rig);
void rig_release(struct rig *rig);

void rig_job(struct rig *rig, uint32_t id);
/* What is new goes to the store. */
enum wr_offer_verdict rig_offer(struct rig *rig, uint32_t job, const char *url);
enum wr_offer_verdict rig_offer_at(struct rig *rig, uint32_t job, const char *url, uint32_t depth, uint32_t hops);
/* "http://HOST/0" and so on. */
void rig_offer_many(struct rig *rig, uint32_t job, const char *host, int count);

/* Answers LOADs; returns what else comes. */
struct wr_plan_action rig_next(struct rig *rig);
void rig_answer_load(struct rig *rig, const struct wr_plan_action *action);
/* As rig_next, letting time pass until it is not IDLE; fails if it would for ever, or beyond `until`. */
struct wr_plan_action rig_wait(struct rig *rig, int64_t until);

/* The same until a START, passing over DRAINED. */
struct wr_plan_action rig_page(struct rig *rig, int64_t until);

void rig_send(struct rig *rig, const struct wr_plan_action *action);
struct wr_fate rig_tell(struct rig *rig, const struct wr_plan_action *action, int status);
/* Sends, and is answered after 10 ms. */
struct wr_fate rig_fetch(struct rig *rig, const struct wr_plan_action *action, int status);
/* The same for a robots.txt. NULL: there is no text. */
struct wr_life_action rig_robots(struct rig *rig, const struct wr_plan_action *action, int status, const char *text);
/* The task has ended: the store knows. */
void rig_ended(struct rig *rig, const struct wr_plan_action *action);

#define assert_kind(action, expected) assert_string_equal(wr_plan_kind_name((action).kind), wr_plan_kind_name(expected))
#define assert_url(action, expected)                                            \
    do {                                                                        \
        assert_int_equal((action).url.bytes, strlen(expected));                 \
        assert_memory_equal((action).url.data, (expected), (action).url.bytes); \
    } while (0)
#define assert_offer(verdict, expected) assert_string_equal(wr_offer_name(verdict), wr_offer_name(expected))

#endif
