/* SPDX-License-Identifier: MIT */
/* rig.h - a fixture for tests of the rules: an instance made from YAML, on a fake clock, and short
 * requests. */
#ifndef WEIR_TEST_RULEBOOK_RIG_H
#define WEIR_TEST_RULEBOOK_RIG_H

#include "lib/alloc.h"
#include "serve/rules/rules.h"

#define HEADERS_MAX 8

struct rules_fixture {
    weir_clock *clock;
    test_allocator memory;
    struct wr_rules *book;
    struct wr_verdict verdict; /* verdict on the last request */
    char why[WR_CONFIG_WHY_BYTES];
};

/* A request. NULL means unknown. Headers are pairs of name and value. */
struct call {
    const char *method, *target, *host, *peer;
    const char *headers[2 * HEADERS_MAX];
    uint32_t cost;
};

/* Parses settings from YAML; fails the test if they are refused. For free(). */
struct wr_rules_settings *settings_of(const char *yaml);

void rig_open(struct rules_fixture *rig, const char *yaml);
int rig_reload(struct rules_fixture *rig, const char *yaml);
void rig_close(struct rules_fixture *rig); /* fails the test if memory leaked */

void rig_advance(struct rules_fixture *rig, int64_t by_ns);

/* Returns true if the request is allowed. rig->verdict has the verdict. */
bool rig_try(struct rules_fixture *rig, const struct call *call);

/* Returns how many of `times` such requests are allowed. */
int rig_count(struct rules_fixture *rig, const struct call *call, int times);

/* Memory of a request that is passed to another function than rig_try. The request is valid as long
 * as `list` and `call`. */
struct call_list {
    weir_header headers[HEADERS_MAX];
    weir_header_list list;
};
weir_request request_of(const struct call *call, struct call_list *ret_list);

/* Returns the number of a rule's requests with this cause. */
uint64_t rig_tally(struct rules_fixture *rig, const char *rule, enum wr_cause cause);

#endif
