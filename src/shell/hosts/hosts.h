/* SPDX-License-Identifier: MIT */
/* hosts.h - what the parts of a pacer share.
 *
 *     rule.c     one host's gate as an algorithm, so     acquire.c  asking: now, or waiting for it
 *                that a weir_table can hold the gates    ticket.c   waiting in an event loop
 *     group.c    the keys of domains and addresses       permit.c   sending, telling, giving back
 *     pacer.c    making, changing, ending                learned.c  seeding, saving, pausing
 *     lend.c     gates that go round among processes     look.c     looking
 *
 * A request passes up to three gates: its host's, its domain's, its address's. To try, all their shards are locked at
 * once, in an order that cannot deadlock. To wait, they are taken one after the other, always in this order, and those
 * that are held are held as reserved but unsent, for as long as it takes: nothing else starts there. Nobody who holds
 * an address waits, nobody who holds a domain waits but for an address, so there is no circle. All are marked as sent
 * together, and only if each still agrees: while we waited for the next, somebody may have been told to go away.
 *
 * The listener, and whatever else is not ours, is called with no lock held.
 */
#ifndef WR_SHELL_HOSTS_HOSTS_H
#define WR_SHELL_HOSTS_HOSTS_H

#include "core/pace/gate.h"
#include "core/pace/options.h"
#include "shell/clock/clock.h"
#include "shell/hosts/lend.h"
#include "shell/table/table.h"

#include <weir/pace.h>

#define WR_GATES 3                         /* host, domain, address */
#define WR_GROUP_KEY_MAX WEIR_PACE_KEY_MAX /* "domain:" and a name of 253 bytes fit */

/* ---- one host in the table ---- */

/* The state of the algorithm `wr_host_gate`. */
struct wr_host {
    uint32_t life;      /* tells a host from what had its key before: old permits do not end new flights */
    uint32_t changes;   /* of what is worth storing: shows whether what was saved is the last word */
    int64_t lent_until; /* the gate is here until then, and elsewhere after; INT64_MAX: it always is */
    uint32_t flights;   /* of this process, sent and not ended */
    uint32_t lent_mark; /* wr_clock_sleep_mark of when it was asked for: a machine that slept has it no more */
    /* struct wr_gate */
};

extern const weir_algorithm wr_host_gate;

static inline const struct wr_host *wr_entry_host(const struct wr_entry *entry)
{
    return (const struct wr_host *)(const void *)(entry + 1);
}

/* What the rule's params point to. */
struct wr_host_rule {
    weir_pace_options pace;
    weir_pacer *pacer;
};

/* A host, as seen with its shard's lock held. */
struct wr_seen {
    struct wr_host *host;
    struct wr_gate *gate;
    const weir_pace_options *pace;
    int64_t now;
};

/* Whether the gate is not here: it says nothing but "wait", and what ended is told elsewhere. */
static inline bool wr_host_is_away(const struct wr_host *host, int64_t now)
{
    return now >= host->lent_until || (host->lent_until != INT64_MAX && wr_clock_slept_since(host->lent_mark));
}

/* As wr_gate_ask. */
weir_decision wr_host_ask(const struct wr_host *host, const weir_pace_options *pace, int64_t now);

/* `entry` must not be NULL. */
struct wr_seen wr_host_see(const weir_table *table, const struct wr_shard *shard, struct wr_entry *entry, int64_t now);

/* ---- the pacer ---- */

#define WR_TALLIES 16 /* so that threads rarely count in the same cache line; a power of two */

struct wr_tally {
    _Alignas(WR_CACHE_LINE) _Atomic uint64_t requests;
    _Atomic uint64_t throttled, denied, retries, rejected, waited_ns;
};

struct weir_pacer {
    weir_table *table;
    const weir_clock *clock;
    const weir_clock *wall; /* NULL: the system's */
    const weir_allocator *allocator;
    uint32_t groups;
    bool keeps_unsaved;
    int64_t throttled_over_ns;
    uint64_t seed;
    weir_pace_listener *listener;
    void *listener_context;
    struct wr_lender lender; /* zeroed: gates stay here */
    atomic_bool off;
    atomic_uint lives; /* given to hosts so far */
    atomic_uint holds; /* the owner's, and one for each that waits or has a ticket */
    /* Two rules, as the table has two sets of plans: a change fills the idle one. */
    struct wr_host_rule rules[2];
    pthread_mutex_t changing;
    bool rule_set; /* the one in force; under `changing` */
    struct wr_tally tallies[WR_TALLIES];
};

int64_t wr_pacer_wall(const weir_pacer *pacer);

/* WEIR_E_INVAL unless there is a pacer, and its key is sound. */
int wr_pacer_check(const weir_pacer *pacer, const char *key, size_t key_bytes);

static inline struct wr_tally *wr_pacer_tally(weir_pacer *pacer, uint64_t hash)
{
    return &pacer->tallies[hash & (WR_TALLIES - 1)];
}

static inline void wr_count(_Atomic uint64_t *number, uint64_t by)
{
    (void)atomic_fetch_add_explicit(number, by, memory_order_relaxed);
}

void wr_pacer_hold(weir_pacer *pacer);
void wr_pacer_drop(weir_pacer *pacer);

/* Calls the listener, if there is one; with no lock held. */
void wr_pacer_say(const weir_pacer *pacer, const weir_pace_event *event);

/* ---- gates that go round (lend.c), with no lock held ---- */

/* Somebody waits for a gate that is elsewhere. */
void wr_pacer_want(const weir_pacer *pacer, const struct wr_query *query);

/* What ended, or began to, at a gate that is elsewhere; `outcome` may be NULL. */
void wr_pacer_write(const weir_pacer *pacer, const struct wr_query *query, const struct wr_gate_start *start,
                    const weir_outcome *outcome, enum wr_word word);

/* What a gate that is here heard, of wr_gate_news. */
void wr_pacer_news(const weir_pacer *pacer, const struct wr_query *query, uint32_t news);

/* ---- groups (group.c) ---- */

/* Where the registrable domain is in a host key: its bytes, 0 if it has none. */
size_t wr_domain_find(const char *key, size_t key_bytes, size_t *ret_at);

/* Whether the public suffix list is there. */
bool wr_domains_known(void);

/* Whether it is the key of a group. */
bool wr_key_is_group(const char *key, size_t key_bytes);

/* Fills in the permit's key and those of its groups. `address` may be NULL. WEIR_E_INVAL. */
int wr_permit_fill(weir_permit *permit, const weir_pacer *pacer, const char *key, size_t key_bytes,
                   const char *address);

/* ---- the gates of one request (group.c) ---- */

struct wr_gates {
    struct wr_part parts[WR_GATES]; /* their keys point into the permit, or here: */
    size_t count;
    char domain[WR_GROUP_KEY_MAX], address[WR_GROUP_KEY_MAX];
};

void wr_gates_init(struct wr_gates *ret_gates, const weir_pacer *pacer, const weir_permit *permit, int64_t now,
                   bool insists);

/* The first in line of each gate, to be woken without the lock. */
struct wr_called {
    struct weir_ticket *first[WR_GATES];
};

/* With the locks held, and then without. */
struct wr_called wr_gates_call(const struct wr_gates *gates, int64_t now);
void wr_called_wake(const struct wr_called *called);

/* ---- permits (permit.c) ---- */

/* Gate `i` of the permit, and those before it, are reserved. `life` is that of the host, `seq` the reservation's
 * number. */
void wr_permit_hold(weir_permit *permit, size_t i, uint32_t life, uint32_t seq);

/* Gate `i` stays reserved while the next is waited for, however long that takes. With no lock held. */
void wr_permit_keep(const weir_permit *permit, const struct wr_part *part, size_t i);

/* With the locks held: all gates were reserved just now. Marks the request as sent, too, if `sends`. */
void wr_permit_grant(weir_permit *permit, struct wr_gates *gates, bool sends);

/* The same for the only gate there is, which said WEIR_GO: reserves it. */
void wr_permit_grant_one(weir_permit *permit, const struct wr_seen *seen, bool sends);

/* A number that differs from tell to tell, and is the same again for the same seed. */
double wr_permit_unit(const weir_pacer *pacer, const struct wr_seen *seen, uint32_t seq);

/* The last word before sending: whether all gates still agree. Marks the request as sent if `sends`. Else
 * WEIR_E_WITHDRAWN, and the permit holds nothing. */
int wr_permit_confirm(weir_permit *permit, bool sends);

/* ---- asking (acquire.c) ---- */

#define WR_FLAGS_ALL (WEIR_REPORTS_SENT | WEIR_WAITS_BREAKER)

/* One caller's request. */
struct wr_claim {
    weir_pacer *pacer;
    weir_permit *permit;
    uint32_t flags;
    int64_t began_at;
    int64_t deadline_at;
    weir_decision decision; /* the latest */
};

/* Checks, and fills a permit that holds nothing. 1: pacing is off, and the permit is fine as it is. */
int wr_claim_begin(struct wr_claim *ret_claim, weir_pacer *pacer, const char *key, size_t key_bytes,
                   const char *address, uint32_t flags, int64_t timeout_ns, weir_permit *ret_permit);

/* It begins to wait at the gate of this query, as the decision says. */
void wr_claim_wait(struct wr_claim *claim, const struct wr_query *query);

/* Notes the life of the host whose line is joined. */
struct wr_witness wr_life_witness(uint32_t *ret_life);

/* Gate `i` is reserved. */
void wr_claim_took(struct wr_claim *claim, const struct wr_gates *gates, size_t i, uint32_t life,
                   const weir_receipt *receipt);

/* After a failure: gives back what was taken. */
void wr_claim_give(struct wr_claim *claim);

/* All gates are reserved: as wr_permit_confirm. */
int wr_claim_confirm(struct wr_claim *claim);

/* Notes why it failed. Returns `result`. */
int wr_claim_fail(const struct wr_claim *claim, int result);

/* Counts how it ended, and notes why it failed. `hash` is the host key's. Returns `result`. */
int wr_claim_end(struct wr_claim *claim, uint64_t hash, int result);

#endif
