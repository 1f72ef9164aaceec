/* SPDX-License-Identifier: MIT */
/* permit_lease.c - counts the permits of a key that a node holds, and tracks the membership that
 * allows holding them.
 *
 * Invariant: left + asked <= batch, and both belong to the current membership. A late reply is
 * ignored, because its permits may have been asked for a second time. A reply from before the
 * membership was lost is ignored as well, because other nodes may have held as much meanwhile.
 */
#include "core/cluster/permit_lease.h"

static void forget_asked(struct wr_permit_lease *lease)
{
    lease->asked = 0;
    lease->number++;                     /* a late reply no longer matches */
    lease->number += lease->number == 0; /* 0 is reserved for no call */
}

/* Drops permits that may no longer be held, because the rules changed or the membership ended.
 * Returns how many may be held. */
static uint32_t hold_within(const struct wr_permit_lease_terms *terms, struct wr_permit_lease *lease,
                            const struct wr_membership *membership, int64_t now)
{
    uint32_t batch = wr_membership_is_held(membership, now) ? terms->batch : 0;
    uint32_t kept = lease->tenure == membership->tenure ? batch : 0;

    if (lease->left > kept)
        lease->left = kept;
    if (lease->asked > kept - lease->left)
        forget_asked(lease);
    lease->tenure = membership->tenure;
    return batch;
}

/* Starts a call for all further permits that may be held, unless one is pending. Returns their
 * number. */
static uint32_t ask_extra(struct wr_permit_lease *lease, uint32_t batch)
{
    if (lease->asked > 0 || lease->left >= batch)
        return 0;
    forget_asked(lease);
    lease->asked = batch - lease->left;
    return lease->asked;
}

static struct wr_permit_lease_move move_of(const struct wr_permit_lease *lease, enum wr_permit_lease_way way,
                                           uint32_t extra)
{
    return (struct wr_permit_lease_move){.way = way, .extra = extra, .number = extra > 0 ? lease->number : 0};
}

struct wr_permit_lease_move wr_permit_lease_try(const struct wr_permit_lease_terms *terms,
                                                struct wr_permit_lease *lease, const struct wr_membership *membership,
                                                int64_t now, uint32_t permits)
{
    uint32_t batch = hold_within(terms, lease, membership, now);
    bool shut = now < lease->shut_until;

    if (permits <= lease->left) {
        lease->left -= permits;
        bool low = lease->left <= batch / 2;
        return move_of(lease, WR_PERMIT_LEASE_GO, low && !shut ? ask_extra(lease, batch) : 0);
    }
    if (shut && permits >= lease->shut_permits)
        return (struct wr_permit_lease_move){.way = WR_PERMIT_LEASE_WAIT, .wait_ns = lease->open_at - now};
    return move_of(lease, WR_PERMIT_LEASE_ASK, shut ? 0 : ask_extra(lease, batch));
}

/* Stops asking until it is worthwhile: until the refused cost, and a whole batch, would be
 * granted. */
static void note_refusal(struct wr_permit_lease *lease, int64_t now, uint32_t permits,
                         const struct wr_permit_lease_reply *reply)
{
    int64_t batch_ns = reply->full_wait_ns < WR_BATCH_WAIT_NS ? reply->full_wait_ns : WR_BATCH_WAIT_NS;
    int64_t wait_ns = reply->granted || reply->wait_ns < batch_ns ? batch_ns : reply->wait_ns;

    if (wait_ns <= 0 || wait_ns > WEIR_DURATION_MAX)
        return; /* nothing was short, or only a release helps, and releases are not reported */
    lease->shut_permits = reply->granted ? UINT32_MAX : permits;
    lease->open_at = now + wait_ns;
    lease->shut_until = now + (wait_ns < WR_REFUSAL_CACHE_NS ? wait_ns : WR_REFUSAL_CACHE_NS);
}

void wr_permit_lease_answered(const struct wr_permit_lease_terms *terms, struct wr_permit_lease *lease,
                              const struct wr_membership *membership, int64_t now, uint32_t number, uint32_t permits,
                              const struct wr_permit_lease_reply *reply)
{
    note_refusal(lease, now, permits, reply);
    hold_within(terms, lease, membership, now);
    if (number == 0 || number != lease->number || reply->extra > lease->asked)
        return;
    lease->left += reply->extra;
    forget_asked(lease);
}

void wr_permit_lease_missed(struct wr_permit_lease *lease, uint32_t number)
{
    if (number != 0 && number == lease->number)
        forget_asked(lease);
}

uint32_t wr_permit_lease_give_back(const struct wr_permit_lease_terms *terms, struct wr_permit_lease *lease,
                                   const struct wr_membership *membership, int64_t now, uint32_t permits)
{
    uint32_t batch = hold_within(terms, lease, membership, now);
    uint32_t room = batch > lease->left + lease->asked ? batch - lease->left - lease->asked : 0;
    uint32_t held = permits < room ? permits : room;
    lease->left += held;
    return held;
}

void wr_permit_lease_clear(struct wr_permit_lease *lease)
{
    forget_asked(lease);
    lease->left = 0;
    lease->shut_until = INT64_MIN;
}

bool wr_permit_lease_is_idle(const struct wr_permit_lease *lease, int64_t now)
{
    return lease->left == 0 && lease->asked == 0 && now >= lease->shut_until;
}

void wr_membership_renew(struct wr_membership *membership, int64_t sent_at, int64_t now, int64_t for_ns)
{
    int64_t until = sent_at + for_ns - for_ns / 100;

    membership->tenure += !wr_membership_is_held(membership, now);
    membership->until = until > membership->until ? until : membership->until;
}

bool wr_membership_is_held(const struct wr_membership *membership, int64_t now)
{
    return membership->tenure > 0 && now < membership->until;
}
