/* SPDX-License-Identifier: MIT */
/* rig.h - a book under a fake clock, out of a text, and requests out of few words. */
#ifndef WEIR_TEST_RULEBOOK_RIG_H
#define WEIR_TEST_RULEBOOK_RIG_H

#include "lib/alloc.h"
#include "serve/rules/rules.h"

#define HEADERS_MAX 8

struct rig {
    weir_clock *clock;
    test_allocator memory;
    struct wr_rules *book;
    struct wr_verdict verdict; /* of the last request */
    char why[WR_CONFIG_WHY_BYTES];
};

/* A request; what is NULL is not known. Headers come in pairs. */
struct call {
    const char *method, *target, *host, *peer;
    const char *headers[2 * HEADERS_MAX];
    uint32_t cost;
};

/* Settings out of YAML; the test ends if they are refused. Free them. */
struct wr_rules_settings *settings_of(const char *yaml);

void rig_open(struct rig *rig, const char *yaml);
int rig_reload(struct rig *rig, const char *yaml);
void rig_close(struct rig *rig); /* fails the test if anything leaked */

void rig_advance(struct rig *rig, int64_t by_ns);

/* Whether the request is allowed; rig->verdict has the rest. */
bool rig_try(struct rig *rig, const struct call *call);

/* How many of `times` such requests are allowed. */
int rig_count(struct rig *rig, const struct call *call, int times);

/* For what is not a mere try. The request is good as long as `list` and `call`. */
struct call_list {
    weir_header headers[HEADERS_MAX];
    weir_header_list list;
};
weir_request request_of(const struct call *call, struct call_list *ret_list);

/* A rule's number of requests with this cause. */
uint64_t rig_tally(struct rig *rig, const char *rule, enum wr_cause cause);

#endif
