/* SPDX-License-Identifier: MIT */
/* rig.c - implements the fixture for tests of the rules. */
#include "rig.h"

#include "lib/test.h"

#include <stdlib.h>
#include <string.h>
#include <weir/time.h>

static int parse(const char *yaml, struct wr_rules_settings *settings, char *ret_why)
{
    wr_rules_settings_init(settings);
    return wr_config_parse(&wr_rules_schema, "weir.yaml", yaml, strlen(yaml), weir_allocator_system(), settings,
                           ret_why, WR_CONFIG_WHY_BYTES);
}

struct wr_rules_settings *settings_of(const char *yaml)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    struct wr_rules_settings *settings = malloc(sizeof *settings);

    assert_non_null(settings);
    if (parse(yaml, settings, why) != 0)
        fail_msg("%s", why);
    return settings;
}

void rig_open(struct rules_fixture *rig, const char *yaml)
{
    struct wr_rules_settings *settings = settings_of(yaml);

    memset(rig, 0, sizeof *rig);
    test_allocator_init(&rig->memory);
    assert_int_equal(weir_clock_fake_new(1000 * WEIR_SECOND, NULL, &rig->clock), 0);
    struct wr_rules_options options = {.clock = rig->clock, .allocator = &rig->memory.allocator};
    if (wr_rules_new(settings, &options, &rig->book, rig->why, sizeof rig->why) != 0)
        fail_msg("%s", rig->why);
    free(settings);
}

int rig_reload(struct rules_fixture *rig, const char *yaml)
{
    struct wr_rules_settings *settings = malloc(sizeof *settings);

    assert_non_null(settings);
    int error = parse(yaml, settings, rig->why);
    if (error == 0)
        error = wr_rules_reload(rig->book, settings, rig->why, sizeof rig->why);
    free(settings);
    return error;
}

void rig_close(struct rules_fixture *rig)
{
    wr_rules_free(rig->book);
    weir_clock_fake_free(rig->clock);
    assert_int_equal(rig->memory.live, 0);
}

void rig_advance(struct rules_fixture *rig, int64_t by_ns)
{
    assert_int_equal(weir_clock_fake_advance(rig->clock, by_ns), 0);
}

weir_request request_of(const struct call *call, struct call_list *ret_list)
{
    weir_request request;

    weir_request_init(&request, call->method, call->target, call->peer);
    if (call->host != NULL) {
        request.host = call->host;
        request.host_bytes = strlen(call->host);
    }
    request.cost = call->cost;
    ret_list->list = (weir_header_list){ret_list->headers, 0};
    for (size_t i = 0; i < HEADERS_MAX && call->headers[2 * i] != NULL; i++)
        ret_list->headers[ret_list->list.count++] = (weir_header){call->headers[2 * i], call->headers[2 * i + 1]};
    request.header = weir_header_list_find;
    request.header_context = &ret_list->list;
    return request;
}

bool rig_try(struct rules_fixture *rig, const struct call *call)
{
    struct call_list list;
    weir_request request = request_of(call, &list);

    memset(&rig->verdict, 0xee, sizeof rig->verdict);
    wr_rules_try(rig->book, &request, &rig->verdict);
    return rig->verdict.allowed;
}

int rig_count(struct rules_fixture *rig, const struct call *call, int times)
{
    int allowed = 0;

    for (int i = 0; i < times; i++)
        allowed += rig_try(rig, call);
    return allowed;
}

uint64_t rig_tally(struct rules_fixture *rig, const char *rule, enum wr_cause cause)
{
    struct wr_rule_view view;

    for (uint32_t i = 0; wr_rule_view_get(rig->book, i, &view) == 0; i++) {
        if (strcmp(view.name, rule) == 0)
            return view.causes[cause];
    }
    fail_msg("no rule %s", rule);
    return 0;
}
