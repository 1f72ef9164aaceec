/* SPDX-License-Identifier: MIT */
/* rule_cost.h - computes the cost of a request. */
#ifndef WR_CORE_ADMIT_RULE_COST_H
#define WR_CORE_ADMIT_RULE_COST_H

#include <weir/admit.h>

/* Computes how many permits a request takes by a valid rule. Returns WEIR_FAULT_NONE, _REPEATED or
 * _COST. */
weir_request_fault wr_rule_cost(const weir_rule *rule, const weir_request *request, uint32_t *ret_permits);

#endif
