/* SPDX-License-Identifier: MIT */
/* remote_gate.h - Gates that processes share: each gate is in one process at a time.
 *
 * While a gate is in another process, no request starts here: callers wait, and the lender is
 * informed. The outcome of a request that started before is reported to the lender, who passes it
 * on to the process with the gate. This interface is for a component that imports and exports gates
 * in its own thread (cluster/gate). A pacer without a lender ignores it.
 */
#ifndef WR_LIMITER_PACER_REMOTE_GATE_H
#define WR_LIMITER_PACER_REMOTE_GATE_H

#include "core/pace/gate.h"

/* Kinds of reports about a request. The numbers are part of the message format. */
enum wr_remote_report_kind {
    WR_REMOTE_ENDED = 0,
    WR_REMOTE_HEAD = 1,      /* the response has begun: as wr_gate_tell_head */
    WR_REMOTE_SENT_LATE = 2, /* the request left only at start->sent_at: as wr_gate_sent_late */
};

/* A report about a request whose gate is in another process. */
struct wr_remote_report {
    const char *key;
    size_t key_bytes;
    const struct wr_gate_start *start; /* its seq is 0 if the request was not sent */
    const weir_outcome *outcome;       /* NULL if the outcome is unknown */
    enum wr_remote_report_kind word;
    int64_t now; /* time by the pacer's clock */
};

/* Callbacks of the lender. They are called with no lock held, from any thread. */
struct wr_remote_gate_callbacks {
    void (*want)(void *context, const char *key, size_t key_bytes); /* a caller waits for a gate */
    void (*told)(void *context, const struct wr_remote_report *away);
    /* A local gate learned something that all processes must know. */
    void (*news)(void *context, const char *key, size_t key_bytes);
    void *context;
};

/* Sets the lender before any other use of the pacer. Returns WEIR_E_INVAL if it has groups. */
int wr_pacer_share_gates(weir_pacer *pacer, const struct wr_remote_gate_callbacks *lender);

int64_t wr_pacer_now(const weir_pacer *pacer);

/* The state of a gate, for decisions about moving it. */
struct wr_pacer_gate_state {
    size_t waiters;
    bool is_reserved; /* a request may be written at any moment */
    uint32_t flights; /* requests of this process in flight */
    uint64_t starts;
    int64_t wait_ns; /* time until the next start; may be WEIR_UNTIL_RELEASE */
};

/* Fills in the state of a gate. Returns false if the pacer does not know the key. */
bool wr_pacer_gate_state_get(weir_pacer *pacer, const char *key, size_t key_bytes,
                             struct wr_pacer_gate_state *ret_lent);

/* Returns the size of a packed gate, bytes. */
size_t wr_pacer_gate_packed_bytes(weir_pacer *pacer);

/* Imports a gate as wr_gate_unpack does. No request starts before wr_pacer_gate_extend, so that
 * pending messages can be processed first. Returns false if the pacer does not know the key. */
bool wr_pacer_gate_import(weir_pacer *pacer, const char *key, size_t key_bytes, const void *packed, size_t packed_bytes,
                          int64_t elapsed_ns, bool lost);

/* Sets the end of the gate's stay here. A sleep of the machine ends the stay earlier, also a sleep
 * since the mark (wr_clock_sleep_mark). A time in the past ends it now. */
void wr_pacer_gate_extend(weir_pacer *pacer, const char *key, size_t key_bytes, int64_t until, uint32_t mark);

/* Packs the gate; with `goes` its stay here ends. Works after a sleep too, because the store knows
 * whether the gate is still ours. Returns false if the gate is not here. */
bool wr_pacer_gate_export(weir_pacer *pacer, const char *key, size_t key_bytes, bool goes, void *ret_packed);

/* wr_pacer_gate_tell_remote applies a report by another process. wr_pacer_gate_set_remote_count
 * sets the number of requests that other processes have in flight. The gate must be here or being
 * imported. */
void wr_pacer_gate_tell_remote(weir_pacer *pacer, const struct wr_remote_report *away);
void wr_pacer_gate_set_remote_count(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t others);

#endif
