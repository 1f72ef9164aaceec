/* SPDX-License-Identifier: MIT */
/* key.h - keys out of requests, for those who have checked them before. */
#ifndef WR_CORE_ADMIT_KEY_H
#define WR_CORE_ADMIT_KEY_H

#include <weir/admit.h>

/* WEIR_E_INVAL unless it is sound, with all its parts. */
int wr_key_check(const weir_key *key);

/* As weir_key_extract, of a sound key and request. */
weir_fault wr_key_extract(const weir_key *key, const weir_request *request, char *buffer, size_t *ret_bytes);

/* A sound rule's permits for a request. WEIR_FAULT_NONE, _REPEATED or _COST. */
weir_fault wr_rule_cost(const weir_rule *rule, const weir_request *request, uint32_t *ret_permits);

#endif
