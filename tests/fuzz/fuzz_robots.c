/* SPDX-License-Identifier: MIT */
/* fuzz_robots.c - fuzzes robots.txt and a path: the verdict is that of a simple matcher over the
 * listed rules.
 *
 * The first line of the input is the path, the rest the file.
 */
#include "core/web/robots/robots.h"
#include "core/web/url/url.h"

#include "fuzz/fuzz.h"
#include "lib/alloc.h"
#include "lib/robots_model.h"

#define MODEL_WORK_MAX 4000000 /* symbols compared; more would time out */

static bool is_stronger(const struct wr_robots_rule *rule, size_t octets, const struct wr_robots_rule *than,
                        size_t than_octets)
{
    if (octets != than_octets)
        return octets > than_octets;
    return rule->allows != than->allows ? rule->allows : rule->line < than->line;
}

static void check_answer(const struct wr_robots *robots, struct wr_span path)
{
    struct wr_fetch_deliver_robots answer = wr_robots_match(robots, path);
    struct wr_robots_rule best = {.allows = true};
    size_t octets, best_octets = 0;

    fuzz_check(answer.allowed || answer.line > 0);
    for (uint32_t i = 0; i < wr_robots_facts(robots)->rules; i++) {
        struct wr_robots_rule rule = wr_robots_rule(robots, i);
        if (!model_matches(rule.path, path, &octets))
            continue;
        if (best.line == 0 || is_stronger(&rule, octets, &best, best_octets)) {
            best = rule;
            best_octets = octets;
        }
    }
    if (answer.gave_up)
        return;
    if (model_matches(wr_span_of("/robots.txt$"), path, &octets))
        best = (struct wr_robots_rule){.allows = true};
    fuzz_check(answer.allowed == best.allows && answer.line == best.line);
}

static void check_facts(const struct wr_robots *robots, const test_allocator *memory)
{
    const struct wr_robots_facts *facts = wr_robots_facts(robots);

    fuzz_check(atomic_load(&memory->live) == 1 && (size_t)atomic_load(&memory->live_bytes) == facts->block_bytes);
    fuzz_check(facts->delay_ns >= -1 && facts->delay_ns <= WR_ROBOTS_DELAY_MAX_NS);
    fuzz_check(wr_robots_interval_ns(robots) >= 0 && wr_robots_interval_ns(robots) <= WR_ROBOTS_DELAY_MAX_NS);
    for (uint32_t i = 0; i < facts->sitemaps; i++)
        fuzz_check(wr_robots_sitemap(robots, i).bytes > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wr_robots_options options = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    struct wr_span text = {(const char *)data, bytes};
    struct wr_span path = {text.data, wr_span_find(text, '\n')};
    struct wr_robots *robots;
    test_allocator memory;

    text = wr_span_after(text, path.bytes < text.bytes ? path.bytes + 1 : path.bytes);
    test_allocator_init(&memory);
    fuzz_check(wr_robots_parse(text, &options, &memory.allocator, &robots) == 0);
    check_facts(robots, &memory);
    if (path.bytes <= WR_URL_MAX && path.bytes * 3 * text.bytes * 3 < MODEL_WORK_MAX)
        check_answer(robots, path);
    wr_robots_free(robots);
    fuzz_check(atomic_load(&memory.live) == 0);
    return 0;
}
