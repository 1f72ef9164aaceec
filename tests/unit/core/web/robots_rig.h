/* SPDX-License-Identifier: MIT */
/* robots_rig.h - parses a robots.txt and asks it about paths. */
#ifndef WEIR_TEST_ROBOTS_RIG_H
#define WEIR_TEST_ROBOTS_RIG_H

#include "lib/alloc.h"
#include "lib/test.h"

#include "core/web/robots/robots.h"

struct robots_fixture {
    test_allocator memory;
    struct wr_robots *robots;
};

static inline void rig_read_as(struct robots_fixture *rig, const char *agent, const char *text, size_t bytes)
{
    struct wr_robots_options options = {.agent = wr_span_of(agent), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    test_allocator_init(&rig->memory);
    assert_int_equal(wr_robots_parse((struct wr_span){text, bytes}, &options, &rig->memory.allocator, &rig->robots), 0);
    assert_int_equal(atomic_load(&rig->memory.live), 1); /* all in one block */
    assert_int_equal(atomic_load(&rig->memory.live_bytes), wr_robots_facts(rig->robots)->block_bytes);
}

static inline void rig_read(struct robots_fixture *rig, const char *text)
{
    rig_read_as(rig, "weir", text, strlen(text));
}

static inline void rig_release(struct robots_fixture *rig)
{
    wr_robots_free(rig->robots);
    assert_int_equal(atomic_load(&rig->memory.live), 0);
}

static inline struct wr_fetch_deliver_robots ask(const struct robots_fixture *rig, const char *path)
{
    return wr_robots_match(rig->robots, wr_span_of(path));
}

/* Returns the line of the rule that decided, negative if it denies. Returns 0 if no rule matched,
 * which allows. */
static inline int verdict(const struct robots_fixture *rig, const char *path)
{
    struct wr_fetch_deliver_robots answer = ask(rig, path);
    assert_true(answer.allowed || answer.line > 0);
    return answer.allowed ? (int)answer.line : -(int)answer.line;
}

/* Returns the verdict for one path and the agent "weir". */
static inline int judge(const char *text, const char *path)
{
    struct robots_fixture rig;
    rig_read(&rig, text);
    int result = verdict(&rig, path);
    rig_release(&rig);
    return result;
}

static inline int judge_bytes(const char *text, size_t bytes, const char *path)
{
    struct robots_fixture rig;
    rig_read_as(&rig, "weir", text, bytes);
    int result = verdict(&rig, path);
    rig_release(&rig);
    return result;
}

struct judged {
    const char *rules; /* rules for '*', from line 2 on */
    const char *path;
    int expected;
};

static inline void check_judged(const struct judged *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[1024];
        snprintf(text, sizeof text, "User-agent: *\n%s", cases[i].rules);
        int result = judge(text, cases[i].path);
        if (result != cases[i].expected)
            fail_msg("%s on %s: %d and not %d", cases[i].path, cases[i].rules, result, cases[i].expected);
    }
}

#define check_all_judged(cases) check_judged(cases, sizeof cases / sizeof cases[0])

#endif
