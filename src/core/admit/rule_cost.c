/* SPDX-License-Identifier: MIT */
/* rule_cost.c - initialises rules, and computes the cost of a request. */
#include "core/admit/rule_cost.h"

#include "base/parse.h"
#include "core/admit/request_headers.h"

void weir_rule_init(weir_rule *ret_rule, const char *name, const weir_key_rule *key, const weir_key_store *repository)
{
    if (ret_rule == NULL)
        return;
    *ret_rule = (weir_rule){
        .size = sizeof *ret_rule, .name = name, .key = key, .repository = repository, .permits = 1, .cost_max = 1};
}

weir_request_fault wr_rule_cost(const weir_rule *rule, const weir_request *request, uint32_t *ret_permits)
{
    struct wr_span value;
    uint64_t permits = request->cost > 0 ? request->cost : rule->permits;

    if (request->cost == 0 && rule->cost_header != NULL) {
        weir_request_fault fault = wr_request_header(request, rule->cost_header, &value);
        if (fault == WEIR_FAULT_REPEATED)
            return fault;
        if (fault == WEIR_FAULT_NONE && !wr_scan_u64(value.data, value.bytes, 1, rule->cost_max, &permits))
            return WEIR_FAULT_COST;
    }
    *ret_permits = (uint32_t)permits;
    return WEIR_FAULT_NONE;
}
