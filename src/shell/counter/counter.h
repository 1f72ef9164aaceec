/* SPDX-License-Identifier: MIT */
/* counter.h - what a counter is made of. It never changes once made, but for the tallies: so there is no lock. */
#ifndef WR_SHELL_COUNTER_COUNTER_H
#define WR_SHELL_COUNTER_COUNTER_H

#include "base/bits.h"
#include "base/span.h"
#include "core/admit/match.h"

#include <stdatomic.h>
#include <weir/admit.h>

#define WR_OUTCOMES (WEIR_OUTCOME_FAILED + 1)

/* Each has its own cache lines, so that threads that count in different rules do not meet. */
struct wr_counted_rule {
    _Alignas(WR_CACHE_LINE) weir_rule rule;
    weir_repository repository;
    bool has_custom_key; /* it may differ from one reading of a path to the next */
    bool has_eyes;       /* its functions look at the request */
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t tallies[WR_OUTCOMES];
};

struct weir_counter {
    weir_counter_options options; /* with clock and allocator filled in */
    uint32_t count;
    bool reads;                    /* a rule looks at method, target or host */
    struct wr_counted_rule *rules; /* in the same block */
};

/* ---- the steps of a decision, for one that waits without a thread ---- */

/* Nothing was asked yet. */
void wr_counter_start(weir_admission *ret_admission);

/* As weir_counter_try, of a request that has been checked and read. If it fails and asked->steps is 0, the
 * request must be refused, whatever the fail mode is. */
int wr_counter_try(weir_counter *counter, struct wr_asked *asked, weir_admission *ret_admission);

/* Adds the ruling of one rule that applies to this reading, with the request's key and plan, or MALFORMED.
 * *ret_permits are to be taken then. *ret_ruling is NULL if an earlier reading had this rule and key: then it is asked
 * already. False: there is no room for one more. */
bool wr_counter_prepare(const weir_counter *counter, uint32_t rule, const struct wr_asked *asked,
                        weir_admission *admission, weir_ruling **ret_ruling, uint32_t *ret_permits);

/* The same for a key that is there already, of 1 ... WEIR_KEY_MAX bytes. WEIR_E_INVAL. */
int wr_counter_prepare_key(const weir_counter *counter, uint32_t rule, struct wr_span key, weir_admission *admission);

/* The one that decides for a ruling. */
const weir_repository *wr_counter_repository(const weir_counter *counter, const weir_ruling *ruling);

/* Takes permits now or not at all. */
void wr_counter_take(const weir_counter *counter, weir_admission *admission, weir_ruling *ruling, uint32_t permits);

/* What an answer of the repository comes to, with the ruling's decision and receipt filled in. */
void wr_counter_note(weir_ruling *ruling, int error, uint32_t permits);

/* If ruling `last` refuses, so does the admission, and nothing stays charged. */
void wr_counter_conclude(const weir_counter *counter, weir_admission *admission, uint32_t last);

/* Looks at what is left, counts, and tells whoever wants to know of refusals. `request` may be NULL. */
void wr_counter_finish(weir_counter *counter, const weir_request *request, weir_admission *admission);

#endif
