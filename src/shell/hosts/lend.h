/* SPDX-License-Identifier: MIT */
/* lend.h - gates that go round among processes: each is here for a while, and then elsewhere.
 *
 * While it is elsewhere, nothing starts: whoever asks waits, and the lender hears that somebody does. What was started
 * before and ends now is told to the lender, who takes it to where the gate is. All of this is for one who brings gates
 * in and takes them out, in a thread of its own (shell/relay); a pacer without a lender knows nothing of it.
 */
#ifndef WR_SHELL_HOSTS_LEND_H
#define WR_SHELL_HOSTS_LEND_H

#include "core/pace/gate.h"

/* What is said of a request. The numbers are those of letters. */
enum wr_word {
    WR_WORD_ENDED = 0,
    WR_WORD_HEAD = 1, /* it goes on: as wr_gate_hear */
    WR_WORD_LATE = 2, /* it got out only at start->sent_at: as wr_gate_late */
};

/* What is said of a request whose gate is elsewhere. */
struct wr_away {
    const char *key;
    size_t key_bytes;
    const struct wr_gate_start *start; /* seq 0: it was not sent */
    const weir_outcome *outcome;       /* NULL: nothing is known of it */
    enum wr_word word;
    int64_t now; /* by the pacer's clock */
};

/* All are called with no lock held, from any thread. */
struct wr_lender {
    void (*want)(void *context, const char *key, size_t key_bytes); /* somebody waits */
    void (*told)(void *context, const struct wr_away *away);
    void (*news)(void *context, const char *key, size_t key_bytes); /* a gate that is here heard what all must know */
    void *context;
};

/* Before anything is asked of the pacer. WEIR_E_INVAL: it has groups. */
int wr_pacer_lend(weir_pacer *pacer, const struct wr_lender *lender);

int64_t wr_pacer_now(const weir_pacer *pacer);

/* What somebody who decides about a gate must know. */
struct wr_lent {
    size_t waiters;
    bool is_reserved; /* a request may be written at any moment */
    uint32_t flights; /* of this process */
    uint64_t starts;
    int64_t wait_ns; /* until the next start; may be WEIR_UNTIL_RELEASE */
};

/* False: the pacer does not know the key. */
bool wr_pacer_lent(weir_pacer *pacer, const char *key, size_t key_bytes, struct wr_lent *ret_lent);

/* Bytes of a packed gate. */
size_t wr_pacer_packed_bytes(weir_pacer *pacer);

/* The gate comes, as wr_gate_unpack has it; but nobody may start before it is extended, so that letters can be told
 * first. False: the pacer does not know the key. */
bool wr_pacer_bring(weir_pacer *pacer, const char *key, size_t key_bytes, const void *packed, size_t packed_bytes,
                    int64_t elapsed_ns, bool lost);

/* It is here until then, unless the machine sleeps, or has since the mark (wr_clock_sleep_mark). In the past: it is not
 * here any more. */
void wr_pacer_extend(weir_pacer *pacer, const char *key, size_t key_bytes, int64_t until, uint32_t mark);

/* It is packed as it is, and, if it `goes`, gone; also after a sleep, for the store knows whether it is still ours.
 * False: it is not here. */
bool wr_pacer_pack(weir_pacer *pacer, const char *key, size_t key_bytes, bool goes, void *ret_packed);

/* That was said of a request of another process; and so many of others are in flight. For a gate that is here, or
 * comes. */
void wr_pacer_tell_away(weir_pacer *pacer, const struct wr_away *away);
void wr_pacer_count(weir_pacer *pacer, const char *key, size_t key_bytes, uint32_t others);

#endif
