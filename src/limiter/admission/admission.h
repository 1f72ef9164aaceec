/* SPDX-License-Identifier: MIT */
/* admission.h - internals of a counter. It needs no lock, because only its tallies change after its
 * creation. */
#ifndef WR_LIMITER_ADMISSION_ADMISSION_H
#define WR_LIMITER_ADMISSION_ADMISSION_H

#include "base/bits.h"
#include "base/span.h"
#include "core/admit/match.h"

#include <stdatomic.h>
#include <weir/admit.h>

#define WR_OUTCOMES (WEIR_OUTCOME_FAILED + 1)

/* One rule. It has cache lines of its own, so that threads counting in different rules do not
 * compete. */
struct wr_admission_rule {
    _Alignas(WR_CACHE_LINE) weir_rule rule;
    weir_key_store repository;
    bool has_custom_key; /* the key may differ between readings of a path */
    bool reads_request;  /* functions of the rule read the request */
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t tallies[WR_OUTCOMES];
};

struct weir_admission {
    weir_admission_options options; /* options, with clock and allocator set */
    uint32_t count;
    bool reads;                      /* a rule reads method, target or host */
    struct wr_admission_rule *rules; /* `count` rules, in the same memory block */
};

/* ---- steps of a decision, for callers that wait in an event loop ---- */

/* Resets an admission before rules are checked. */
void wr_admission_start(weir_admission_result *ret_admission);

/* Like weir_admission_try, for a request that was checked and parsed. If it fails and asked->steps
 * is 0, the request must be refused in every failure mode. */
int wr_admission_try(weir_admission *counter, struct wr_request_reading *asked, weir_admission_result *ret_admission);

/* Adds the ruling of one matching rule for this reading of the request: key and plan, or MALFORMED.
 * The caller takes *ret_permits afterwards. *ret_ruling is NULL if an earlier reading has the same
 * rule and key. Returns false if there is no room for the ruling. */
bool wr_admission_prepare(const weir_admission *counter, uint32_t rule, const struct wr_request_reading *asked,
                          weir_admission_result *admission, weir_ruling **ret_ruling, uint32_t *ret_permits);

/* Adds the ruling of one rule for a given key of 1 ... WEIR_KEY_MAX bytes. Returns WEIR_E_INVAL for
 * an invalid key. */
int wr_admission_prepare_key(const weir_admission *counter, uint32_t rule, struct wr_span key,
                             weir_admission_result *admission);

/* Returns the repository that decides a ruling, by its plan. */
const weir_key_store *wr_admission_key_store(const weir_admission *counter, const weir_ruling *ruling);

/* Takes permits at once, without waiting. */
void wr_admission_take(const weir_admission *counter, weir_admission_result *admission, weir_ruling *ruling,
                       uint32_t permits);

/* Sets the outcome of a ruling from the repository's `error`, and the decision and receipt in the
 * ruling. */
void wr_admission_note(weir_ruling *ruling, int error, uint32_t permits);

/* If ruling `last` refuses, refuses the admission and returns what the earlier rulings took. */
void wr_admission_conclude(const weir_admission *counter, weir_admission_result *admission, uint32_t last);

/* Reads the remaining quotas, counts, and calls options.rejected for refusals. `request` may be
 * NULL. */
void wr_admission_finish(weir_admission *counter, const weir_request *request, weir_admission_result *admission);

#endif
