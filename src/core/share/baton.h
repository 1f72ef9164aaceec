/* SPDX-License-Identifier: MIT */
/* baton.h - one host's gate for many processes: whose turn is it?
 *
 * A gate is at one process at a time: the one that has the turn. It starts requests as if it were alone, and passes the
 * gate on, with all that it knows, when others wait and it had its time. The store keeps who has the turn and until
 * when (by the store's clock), who waits, what each has in flight, letters to whoever has the gate, and the gate as it
 * was last told.
 *
 *     away ── want ──▶ waits in line ── granted ──▶ has the turn ── pass ──▶ away
 *                                                        │  keep: the turn goes on; what the gate learned is stored,
 *                                                        │        and letters come
 *                                                        └─ not told in time: the turn is over, whatever comes later
 *
 * A turn is counted from when it was asked for, and a hundredth less: a process lets go before the store does. So there
 * are never two that start requests, whatever is late, lost, stands still, or runs by another clock.
 *
 * Pure: what is to be done follows from what is known and the time. One call is on its way at a time.
 */
#ifndef WR_CORE_SHARE_BATON_H
#define WR_CORE_SHARE_BATON_H

#include <stdbool.h>
#include <weir/time.h>

#define WR_BATON_LEASE (2 * WEIR_SECOND)        /* of a turn, unless it is kept */
#define WR_BATON_TURN (400 * WEIR_MILLISECOND)  /* while others wait; and one start at least */
#define WR_BATON_KEEP (300 * WEIR_MILLISECOND)  /* how often the store is told while nobody else is there */
#define WR_BATON_READ (20 * WEIR_MILLISECOND)   /* ... while others are: letters come */
#define WR_BATON_LINGER (30 * WEIR_MILLISECOND) /* without anybody here who wants it, before it is passed to others */
#define WR_BATON_IDLE (500 * WEIR_MILLISECOND)  /* ... before it is let go with nobody else there */
#define WR_BATON_LINE (1500 * WEIR_MILLISECOND) /* how long one who waits is believed to be there */
#define WR_BATON_CREW (4 * WEIR_SECOND)         /* the same of requests in flight */
#define WR_BATON_BEAT (WR_BATON_CREW / 4)       /* how often they are told */
#define WR_BATON_AGAIN (50 * WEIR_MILLISECOND)  /* after a call that was not answered */

enum wr_baton_verb {
    WR_BATON_NOTHING,
    WR_BATON_WANT,  /* the turn, or to wait for it */
    WR_BATON_HOLD,  /* the turn goes on */
    WR_BATON_PASS,  /* it is over */
    WR_BATON_WRITE, /* letters, and what is in flight */
};

/* What a process knows of one host's turns. Zeroed: nothing. */
struct wr_baton {
    uint64_t token; /* of the turn; 0: it is not ours */
    uint64_t seen;  /* the highest that was ever told: a store that has less has forgotten */
    int64_t until;  /* of the turn */
    int64_t taken_at;
    uint64_t taken_starts; /* before it */
    int64_t wanted_at;     /* when somebody here last wanted to start something */
    uint64_t starts;       /* as last seen */
    int64_t due_at;        /* of the next call */
    int64_t asked_at;
    int64_t rest_until;       /* no call before: the last one was not answered */
    enum wr_baton_verb asked; /* on its way */
    bool asked_line;          /* ... that we want to wait */
    bool in_line;             /* the store thinks that we wait */
    uint32_t waiting, others; /* who wait, and in flight elsewhere, as last told */
    uint32_t flights_told;
    int64_t told_at;
};

/* How it is in this process. */
struct wr_baton_here {
    bool wants; /* somebody waits for the gate, or is about to start something */
    bool is_reserved;
    bool has_letters;
    bool has_news; /* the gate heard what must be stored at once */
    bool leaves;   /* the process ends */
    uint32_t flights;
    uint64_t starts;
    int64_t wait_ns; /* of the gate, while it is here: until the next start, or WEIR_UNTIL_RELEASE */
};

struct wr_baton_move {
    enum wr_baton_verb verb;
    int64_t at;      /* NOTHING: look again then; WEIR_FOREVER: when something happens */
    int64_t pass_ns; /* HOLD: when it will be passed on, as far as we know */
    bool waits;      /* WANT, PASS: we want to wait in line */
    bool is_over;    /* there is nothing to know any more */
};

/* What the store said. */
struct wr_baton_reply {
    bool is_ours; /* the turn, from now on or still */
    uint64_t token;
    uint32_t place;   /* in line: how many come before us */
    uint32_t waiting; /* others that wait */
    uint32_t others;  /* in flight, of others */
    int64_t busy_ns;  /* until the turn of who has it is over, as far as that knows */
};

/* Whether requests may start here. */
bool wr_baton_is_held(const struct wr_baton *baton, int64_t now);

/* What to do. A verb other than NOTHING counts as called: told or missed must follow. After PASS the gate is not here
 * any more, whatever becomes of the call. */
struct wr_baton_move wr_baton_next(struct wr_baton *baton, const struct wr_baton_here *here, int64_t now);

/* The answer. Returns whether the turn is ours from now on and was not before: then say what starts the gate that came
 * has seen. */
bool wr_baton_told(struct wr_baton *baton, const struct wr_baton_reply *reply, int64_t now);
void wr_baton_took(struct wr_baton *baton, uint64_t starts);

/* There is none. */
void wr_baton_missed(struct wr_baton *baton, int64_t now);

#endif
