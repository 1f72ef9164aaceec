/* SPDX-License-Identifier: MIT */
/* charge.h - encodes charges of a key for the store, and reads its answers. */
#ifndef WR_CLUSTER_LIMIT_CHARGE_H
#define WR_CLUSTER_LIMIT_CHARGE_H

#include "cluster/limit/redis_connection.h"

#define WR_MEMBERSHIP_NS WEIR_SECOND       /* validity of a membership; renewed after a third of it */
#define WR_IN_FLIGHT_NS (10 * WEIR_SECOND) /* validity of a node's requests in flight */
#define WR_CHARGE_LIMITS_BYTES (WEIR_STACK_MAX * 64)
#define WR_KEY_STATE_HEAD 80  /* most bytes of a key's state before its limits */
#define WR_KEY_STATE_LIMIT 56 /* most bytes per limit: three numbers of up to 16 digits */
#define WR_KEY_STATE_BYTES (WR_KEY_STATE_HEAD + WEIR_STACK_MAX * WR_KEY_STATE_LIMIT)

/* The limits of a rule as arguments of the script. */
struct wr_charge_limits {
    int count;
    const char *words[4 * WEIR_STACK_MAX];
    uint32_t permits; /* most permits that can be granted at once */
    char text[WR_CHARGE_LIMITS_BYTES];
};

/* Encodes the limits. The result points into itself: do not copy it. Returns WEIR_E_INVAL if the
 * store cannot represent the rule. */
int wr_charge_limits_make(const weir_stack *stack, struct wr_charge_limits *ret_tariff);

struct wr_charge {
    const char *key; /* name of the key in the store */
    size_t key_bytes;
    uint32_t permits, extra;
    uint32_t owed; /* permits admitted without asking: charged in any case, once */
    /* number of that charge; the store skips numbers of `who` that are not higher than the last */
    uint64_t bill;
    const char *seen; /* state of the key as last seen, in case the store lost it; "": none */
    uint32_t back;    /* permits that were charged at charged_at (store time) but not used */
    int64_t charged_at;
    const char *who; /* name of the node, its permits in flight, and the number of this message */
    uint64_t held, message;
    bool reset; /* makes the store forget the key first */
};

struct wr_charge_reply {
    struct wr_permit_lease_reply reply;
    weir_quota quota; /* limit is 0; reset_ns: time until the key is as good as new */
    int64_t at;       /* store time in us, only for `charged_at` */
    bool damaged;     /* the key's data was invalid, and counts as used up */
    char seen[WR_KEY_STATE_BYTES];
};

/* Sends a charge. Returns the errors of wr_redis_connection_send. */
int wr_charge_send(struct wr_redis_connection *wire, const struct wr_charge_limits *charge_limits,
                   const struct wr_charge *charge, wr_redis_on_reply *told, void *context);

/* Reads the answer to a charge. Returns WEIR_E_INVAL if it is not one of charge.lua. */
int wr_charge_read(const struct redisReply *reply, struct wr_charge_reply *ret_told);

/* Asks for a membership for WR_MEMBERSHIP_NS, or renews it. Returns the errors of
 * wr_redis_connection_send. */
int wr_membership_send(struct wr_redis_connection *wire, const char *prefix, const char *who, uint32_t seats,
                       wr_redis_on_reply *told, void *context);

/* Returns true if the node has a membership; false also for a NULL reply. *ret_born changes if the
 * store has lost its data; it is kept if there is no answer. */
bool wr_membership_read(const struct redisReply *reply, uint64_t *ret_born);

#endif
