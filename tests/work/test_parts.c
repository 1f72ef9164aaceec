/* SPDX-License-Identifier: MIT */
/* test_parts.c - tests that operations on maps, heaps and reservations cost the same with few and
 * with many entries, and that a decision costs at most its budget (M12). */
#include "steps.h"

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/admit/match.h"
#include "unit/serve/rules/rig.h"

static uint64_t larger_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns the larger of `most` and the steps since `before`. */
static uint64_t most_of(uint64_t before, uint64_t most)
{
    return larger_of(steps_now() - before, most);
}

/* ---- maps ---- */

struct name {
    char text[24];
    size_t bytes;
};

/* Adds and removes names while the map holds `count`. Returns the steps per name. */
static uint64_t churn_map(size_t count)
{
    static const char secret[WR_HASH_SECRET_BYTES] = "any bytes do";
    struct name *names = calloc(count, sizeof *names);
    struct wr_hash_key key;
    struct wr_map map;
    wr_hash_key_init(&key, secret);
    wr_map_init(&map, weir_allocator_system(), &key, count);
    uint64_t before = steps_now();
    for (size_t i = 0; i < 4 * count; i++) {
        struct name *name = &names[i % count];
        if (i >= count)
            assert_ptr_equal(wr_map_remove(&map, name->text, name->bytes), name);
        name->bytes = (size_t)snprintf(name->text, sizeof name->text, "a%zu.example", i);
        assert_int_equal(wr_map_put(&map, name->text, name->bytes, name, NULL), 0);
        assert_ptr_equal(wr_map_get(&map, name->text, name->bytes), name);
    }
    uint64_t each = (steps_now() - before) / (4 * count);
    wr_map_release(&map);
    free(names);
    return each;
}

static void map_operations_cost_the_same_with_few_and_many_names(void **state)
{
    (void)state;
    uint64_t few = churn_map(1000), many = churn_map(64000);
    if (getenv("WEIR_TEST_STEPS") != NULL)
        print_message("map: %llu steps each of 1000, %llu of 64000\n", (unsigned long long)few,
                      (unsigned long long)many);
    assert_true(many < 2 * few);
}

/* ---- heaps ---- */

/* Replaces items in a heap of `count`. Returns the most steps of one change. */
static uint64_t churn_heap(size_t count, int order)
{
    struct wr_heap_item *items = calloc(count, sizeof *items);
    struct wr_heap heap;
    struct wr_rng rng;
    uint64_t most = 0;
    wr_rng_init(&rng, 1);
    wr_heap_init(&heap, weir_allocator_system(), count);
    assert_int_equal(wr_heap_reserve(&heap, count), 0);
    for (size_t i = 0; i < 4 * count; i++) {
        struct wr_heap_item *item = &items[order < 0   ? count - 1 - i % count
                                           : order > 0 ? i % count
                                                       : wr_rng_below(&rng, count)];
        int64_t key = order != 0 ? (int64_t)i * order : (int64_t)wr_rng_below(&rng, 1000);
        uint64_t before = steps_now();
        wr_heap_remove(&heap, item);
        assert_int_equal(wr_heap_push(&heap, key, item), 0);
        most = most_of(before, most);
    }
    wr_heap_release(&heap);
    free(items);
    return most;
}

/* 64 times as many items make three levels more. */
static void heap_operations_cost_its_number_of_levels(void **state)
{
    (void)state;
    for (int order = -1; order <= 1; order++) {
        uint64_t few = churn_heap(1000, order), many = churn_heap(64000, order);
        if (getenv("WEIR_TEST_STEPS") != NULL)
            print_message("heap: %llu steps of 1000, %llu of 64000\n", (unsigned long long)few,
                          (unsigned long long)many);
        assert_true(many < 3 * few);
    }
}

/* ---- reservations ---- */

/* Takes all reservations, then cancels and takes each once more. Returns the most steps of one
 * call. */
static uint64_t churn_holds(size_t count)
{
    static const struct call somebody = {.peer = "203.0.113.7"};
    uint64_t *holds = calloc(count, sizeof *holds), most = 0;
    struct call_list list;
    struct rules_fixture rig;
    char yaml[128];
    snprintf(yaml, sizeof yaml, "rules:\n  - {name: a, limit: 1000000000/s}\nadmission: {holds: %zu}\n", count);
    rig_open(&rig, yaml);
    weir_request request = request_of(&somebody, &list);
    for (size_t i = 0; i < 2 * count; i++) {
        /* the last one first, so that a linear search would visit all */
        size_t place = i < count ? i : 2 * count - 1 - i;
        uint64_t before = steps_now();
        if (i >= count)
            assert_int_equal(wr_reservation_cancel(rig.book, holds[place]), 0);
        wr_rules_reserve(rig.book, &request, 0, &rig.verdict);
        most = most_of(before, most);
        holds[place] = rig.verdict.hold;
        assert_int_not_equal(holds[place], 0);
    }
    rig_close(&rig);
    free(holds);
    return most;
}

static void reservations_cost_the_same_when_nearly_all_are_taken(void **state)
{
    (void)state;
    uint64_t few = churn_holds(500), many = churn_holds(32000);
    if (getenv("WEIR_TEST_STEPS") != NULL)
        print_message("holds: %llu steps of 500, %llu of 32000\n", (unsigned long long)few, (unsigned long long)many);
    assert_true(many < 2 * few);
}

/* ---- decisions ---- */

#define FIELD_BYTES ((size_t)16 * 1024)

/* Returns 100 rules, each with a path and 8 header patterns. */
static char *rules_of(const char *path, const char *value)
{
    static const char match[] = "{name: r%d, key: global, limit: 1/s, match: {path: '%s', header: [";
    size_t bytes = 1 << 20, at = 0;
    char *yaml = malloc(bytes);

    at += (size_t)snprintf(yaml, bytes, "rules:\n");
    for (int rule = 0; rule < 100; rule++) {
        at += (size_t)snprintf(yaml + at, bytes - at, "  - ");
        at += (size_t)snprintf(yaml + at, bytes - at, match, rule, path);
        for (int i = 0; i < 8; i++)
            at += (size_t)snprintf(yaml + at, bytes - at, "%s{name: x-a, value: '%s%d'}", i > 0 ? ", " : "", value,
                                   i < 7 ? 0 : rule + 1);
        at += (size_t)snprintf(yaml + at, bytes - at, "]}}\n");
    }
    return yaml;
}

static uint64_t steps_of_decision(const char *path, const char *value, const char *target, const char *field,
                                  size_t lines)
{
    char *yaml = rules_of(path, value);
    weir_header headers[64];
    weir_header_list list = {headers, lines};
    weir_request request;
    struct rules_fixture rig;

    rig_open(&rig, yaml);
    weir_request_init(&request, "GET", target, "203.0.113.7");
    for (size_t i = 0; i < lines; i++)
        headers[i] = (weir_header){"X-A", i == 0 || i + 1 < lines ? field : "0"};
    request.header = weir_header_list_find;
    request.header_context = &list;
    uint64_t before = steps_now();
    wr_rules_try(rig.book, &request, &rig.verdict);
    uint64_t steps = steps_now() - before;
    assert_int_equal(rig.verdict.fault, WEIR_FAULT_WORK);
    rig_close(&rig);
    free(yaml);
    if (getenv("WEIR_TEST_STEPS") != NULL)
        print_message("decision: %llu steps\n", (unsigned long long)steps);
    return steps;
}

/* The request has long headers, many lines of one header of which the last matches, or a path with
 * many readings. A step of the budget is at most 25 counted steps. */
static void decision_stays_within_its_step_budget_for_any_request(void **state)
{
    char field[FIELD_BYTES + 1], target[4000] = "/";
    uint64_t most = 0;
    (void)state;
    memset(field, 'a', FIELD_BYTES);
    memcpy(field + FIELD_BYTES - 1, "0", 2);
    for (size_t i = 1; i + 6 < sizeof target; i += 6)
        memcpy(target + i, "aA%40;", 7);
    most = larger_of(steps_of_decision("/**", "*a*aaaaaaaaaaaaaaaa", "/", field, 1), most);
    most = larger_of(steps_of_decision("/**", "*a*", "/", field, 64), most);
    most = larger_of(steps_of_decision("/**", "*", "/", "a", 64), most);
    most = larger_of(steps_of_decision("/*a*b", "a", target, "b", 1), most);
    assert_true(most < (uint64_t)25 * WR_MATCH_STEPS_MAX);
}

WEIR_TESTS(test(map_operations_cost_the_same_with_few_and_many_names), test(heap_operations_cost_its_number_of_levels),
           test(reservations_cost_the_same_when_nearly_all_are_taken),
           test(decision_stays_within_its_step_budget_for_any_request))
