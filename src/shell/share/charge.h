/* SPDX-License-Identifier: MIT */
/* charge.h - what is said to the store to charge a key, and what it says. */
#ifndef WR_SHELL_SHARE_CHARGE_H
#define WR_SHELL_SHARE_CHARGE_H

#include "shell/share/wire.h"

#define WR_SEAT_NS WEIR_SECOND          /* for which a seat is given, and renewed at a third of it */
#define WR_FLIGHT_NS (10 * WEIR_SECOND) /* after which a node that says nothing has no requests in flight any more */
#define WR_TARIFF_BYTES (WEIR_STACK_MAX * 64)
#define WR_SEEN_HEAD 80  /* of a key's state, as text; */
#define WR_SEEN_LIMIT 56 /* then, of each limit: three numbers of up to 16 digits */
#define WR_SEEN_BYTES (WR_SEEN_HEAD + WEIR_STACK_MAX * WR_SEEN_LIMIT)

/* Rules as the store reads them: words, made once. */
struct wr_tariff {
    int count;
    const char *words[4 * WEIR_STACK_MAX];
    uint32_t permits; /* the most that can be granted at once */
    char text[WR_TARIFF_BYTES];
};

/* It points into itself: do not copy it. WEIR_E_INVAL: a rule that the store cannot keep. */
int wr_tariff_make(const weir_stack *stack, struct wr_tariff *ret_tariff);

struct wr_charge {
    const char *key; /* as the store knows it */
    size_t key_bytes;
    uint32_t permits, extra;
    uint32_t owed;    /* admitted without asking: charged in any case, but ... */
    uint64_t bill;    /* ... once under this number or a lower one, of this `who` */
    const char *seen; /* the key's state as last told, in case the store has forgotten it; "" is none */
    uint32_t back;    /* of what was charged at that instant (by the store's clock) so many were not used */
    int64_t charged_at;
    const char *who; /* a node, how many of its requests are in flight, and which of its messages this is: */
    uint64_t held, message;
    bool reset; /* forget the key first */
};

struct wr_charge_told {
    struct wr_share_reply reply;
    weir_quota quota; /* limit 0; reset: until all is as new */
    int64_t at;       /* by the store's clock, in us: only for `charged_at` */
    bool damaged;     /* something else was found in its place; it counts as used up */
    char seen[WR_SEEN_BYTES];
};

/* As wr_wire_send. */
int wr_charge_send(struct wr_wire *wire, const struct wr_tariff *tariff, const struct wr_charge *charge,
                   wr_wire_told *told, void *context);

/* WEIR_E_INVAL: that is not an answer of ours. */
int wr_charge_read(const struct redisReply *reply, struct wr_charge_told *ret_told);

/* Asks for a seat, or to keep it, for WR_SEAT_NS. As wr_wire_send. */
int wr_seat_send(struct wr_wire *wire, const char *prefix, const char *who, uint32_t seats, wr_wire_told *told,
                 void *context);

/* Whether it is ours. NULL: it is not. *ret_born tells a store that has forgotten everything from the one before; it
 * stays if there is no answer. */
bool wr_seat_read(const struct redisReply *reply, uint64_t *ret_born);

#endif
