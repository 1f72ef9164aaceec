/* SPDX-License-Identifier: MIT */
/* tide.h - inside of the strategy tide: its state, its modes and its numbers.
 *
 * A host's limit is learned from answers alone. The finding behind it: *from empty to empty*. When a token bucket
 * rejects, it holds less than one token; between two rejections it accepted exactly what it refilled, so
 *
 *     accepted / elapsed = the limit, within 1/accepted, whatever was sent in between,
 *
 * as long as it did not overflow. A rejection is a measurement. So tide hovers: it sets out just below what it
 * measured, comes up to it after `span` requests, and goes beyond ever faster until a rejection measures again:
 *
 *     rate = centre * (1 + margin * (phase - 1)^3),  phase = requests / span        from phase 2 on it grows by e-folds
 *
 *      centre ......................._____....        below the limit at first, so the bucket fills a little; above it
 *                        ________----     |           later, so it empties again: on average exactly the limit, at one
 *             ______-----                 | rejected  rejection in about 2 * span requests
 *             0           1           2
 *
 * When measurements agree, span grows and margin shrinks: settled hosts are asked ever more rarely. Early rejections
 * widen the margin; a measurement far off starts over with a short span.
 *
 *     mode      holds                    leaves by
 *     start     no rejection yet         a rejection -> search at half
 *     search    safe < limit < bad       12 clean -> sqrt(rate * bad); near bad, or measured -> cruise
 *     cruise    the limit is `centre`    measured anew -> cruise; rejected too early to measure -> search
 *     blocked   nothing is accepted      a single probe accepted -> where it came from, or hold
 *     hold      a quota or a ban         a second block tells which: window -> cruise; ban -> hold, and stay below
 *
 * Parts: tide_rate.c (measuring, start, search, cruise), tide_block.c (blocked, hold), tide_cap.c (requests in flight:
 * queues and limits of concurrency), tide.c (what the gate calls).
 */
#ifndef WR_CORE_PACE_TIDE_H
#define WR_CORE_PACE_TIDE_H

#include "core/pace/strategy.h"
#include <assert.h>

enum wr_tide_mode {
    WR_TIDE_START,
    WR_TIDE_SEARCH,
    WR_TIDE_CRUISE,
    WR_TIDE_BLOCKED,
    WR_TIDE_HOLD,
};

/* What kind of limit it is: the low bits of weir_pace_memory.traits. */
enum wr_tide_trait {
    WR_TIDE_BANS = 1,        /* violations are punished: never probe the limit */
    WR_TIDE_CONCURRENCY = 2, /* it counts requests in flight: `cap` is the limit, not the rate */
    WR_TIDE_STRAY_503 = 4,   /* single 503s come whatever the rate */
    WR_TIDE_FREE = 8,        /* no limit was met: in memory only */
    WR_TIDE_TRAITS = 15,
};

/* Seconds and rates are floats: they are estimates. */
struct wr_tide {
    int64_t next_at;      /* of the next start */
    int64_t empty_at;     /* when the rejection was sent that last showed the bucket empty */
    int64_t block_at;     /* when the first of the rejections in a row was sent */
    int64_t free_at;      /* when the last block ended, or the host was new: its quota was whole */
    int64_t header_until; /* header_rate holds until then */
    int64_t epoch_at;     /* when this epoch of the cap began */

    /* The rate. */
    float rate;    /* starts per second, now */
    float centre;  /* cruise: the limit, as measured. hold: where a climb began */
    float margin;  /* cruise: share of centre */
    float span;    /* cruise: requests from margin below up to centre */
    float phase;   /* cruise: how far, in spans. search: successes at this rate. hold: share that was last added */
    float bad;     /* search: a rate that was rejected */
    float peak;    /* the highest centre of late */
    float credit;  /* rejections that may be spent on asking */
    float held;    /* seconds that the server made us wait since empty_at */
    float penalty; /* seconds that a rejection costs, by Retry-After */
    float gap;     /* seconds between starts, as they were */
    float burst;   /* tokens that the bucket held when it was full, at least */
    float resume;  /* the rate before the rejections in a row */
    float header_rate;

    /* Blocks. */
    float quota;                   /* accepted before the first block, within a short window */
    float block_least, block_most; /* the last one's length was between these, s */
    float free_early;              /* free_at may have been this much earlier, s */

    /* Requests in flight. */
    float cap;
    float base;       /* log2 of the unloaded latency in ns; 0: unknown */
    float epoch_logs; /* sum of log2 of latencies */
    float epoch_rate; /* answers per second in the epoch before a test */
    float flight;     /* mean number in flight at starts */
    float crowd_rate; /* the rate at the last rejection that may have been of concurrency */
    float share;      /* of rejections among the last 32 answers, unless blocked */

    uint32_t sent_seq;   /* the latest start */
    uint32_t cut_seq;    /* the latest start before the last cut: answers to those say nothing new */
    uint32_t empty_seq;  /* the start that was rejected at empty_at */
    uint32_t refused;    /* rejections of starts since */
    uint32_t accepted;   /* since free_at */
    uint32_t epoch_n;    /* successes in this epoch */
    uint32_t epoch_full; /* of its starts, those that filled the cap */
    float stray_rate;    /* the rate when the single 503s began */

    uint16_t crowd_at;      /* in flight at that rejection */
    uint8_t crowd_n : 4;    /* such rejections in a row */
    uint8_t crowd_wait : 4; /* log2 of successes until a higher cap is tried */
    uint8_t mode;           /* wr_tide_mode */
    uint8_t resume_mode;
    uint8_t traits;     /* wr_tide_trait */
    uint8_t streak;     /* rejections in a row of starts after a cut */
    uint8_t blocks;     /* long ones, so far */
    uint8_t strays;     /* single 503s in a row */
    uint8_t cap_up;     /* epochs in a row in which the cap grew */
    bool marked : 1;    /* empty_at and empty_seq hold */
    bool paced : 1;     /* the last start came when the rate allowed it: not cap, work or headers held it back */
    bool outage : 1;    /* blocked by 503s */
    bool climbing : 1;  /* hold: looking for a shorter window */
    bool no_window : 1; /* hold: the block was not the rest of a window, though it was long */
    bool cap_found : 1; /* the first growth of the cap has ended */
    bool cap_test : 1;  /* this epoch tries a smaller cap */
    bool back : 1;      /* search: centre was the limit until just now */
    bool by_header : 1; /* header_rate set next_at */
    bool cap_tried : 1; /* the last change of a cap of concurrency was upwards */
};

static_assert(sizeof(struct wr_tide) <= 192, "a million hosts have one each");

static inline float wr_tide_least(float a, float b)
{
    return a < b ? a : b;
}

static inline float wr_tide_most(float a, float b)
{
    return a > b ? a : b;
}

static inline float wr_tide_within(float x, float least, float most)
{
    return x < least ? least : x > most ? most : x;
}

static inline float wr_tide_seconds(int64_t ns)
{
    return (float)ns * 1e-9f;
}

/* The time between starts at the present rate. */
static inline int64_t wr_tide_interval(float rate)
{
    return (int64_t)(1e9f / rate);
}

/* ---- the numbers --------------------------------------------------------------------------------------- */

/* Of any rate. */
#define TIDE_RATE_LEAST 0.001f      /* what a window or a ban may ask for, and memory */
#define TIDE_RATE_FLOOR (1 / 60.0f) /* single rejections push no lower: what is slower learns nothing for hours */
#define TIDE_RATE_MOST 1e6f

/* start: one a second, growing with success. */
#define TIDE_FIRST_RATE 1.0f  /* nobody minds one a second */
#define TIDE_GROW_LEAST 6.0f  /* successes per e-fold at least, so that small quotas are met gently */
#define TIDE_GROW_S 1.0f      /* seconds per e-fold at least, so that what is in flight overshoots little */
#define TIDE_GROW_FAST 200.0f /* starts per second: from here on it slows down, for so much is in flight */
#define TIDE_AHEAD 2.0f       /* times what is really sent: a rate beyond it is not tested */

/* search: between a rate that was accepted and one that was not. */
#define TIDE_CLEAN 12.0f     /* successes that show a rate good: enough to notice that it is 8 % too high */
#define TIDE_CLEAN_FAR 5.0f  /* the same while the rate is far below what is bad */
#define TIDE_NEAR 1.12f      /* bad / rate from which cruise finds the rest */
#define TIDE_MEASURED 5.0f   /* accepted from which a measurement is worth more than a guess */
#define TIDE_ACCUMULATE 8.0f /* accepted below which the next measurement begins at the same rejection */
#define TIDE_BURST 3.0f      /* a bucket this deep does not overflow within a search: what is measured is exact */

/* cruise: how far below the limit to set out. */
#define TIDE_MARGIN_LEAST 0.004f /* what is lost at a host that never changes */
#define TIDE_MARGIN_MOST 0.06f   /* a limit that falls faster is better followed by measuring again */
#define TIDE_MARGIN_NEW 0.02f
#define TIDE_MARGIN_UP 1.5f   /* after an early rejection */
#define TIDE_MARGIN_DOWN 0.7f /* after one in time */
#define TIDE_EARLY 1.0f       /* phase before which a rejection came early: the limit had not been reached */

/* cruise: how many requests until it is asked again. */
#define TIDE_SPAN_NEW 24.0f
#define TIDE_SPAN_LEAST 12.0f
#define TIDE_SPAN_MOST 300.0f  /* one rejection in 600 requests */
#define TIDE_SPAN_S 10.0f      /* or this many seconds, if they are more: fast hosts need not be asked more often */
#define TIDE_SPAN_LOW 24.0f    /* the same two when it was faster of late, and may come back */
#define TIDE_SPAN_LOW_S 5.0f   /* s */
#define TIDE_LOW 0.7f          /* share of the peak below which that holds */
#define TIDE_PEAK_FADES 0.995f /* per measurement */
#define TIDE_SPAN_FLIGHT 10.0f /* times the number in flight at least: answers come late */
#define TIDE_PENALTY 100.0f    /* times what a rejection costs (Retry-After): at most 1 % of the time is lost */
#define TIDE_SAME 0.02f        /* a measurement this close confirms the last: four times the span; else twice */
#define TIDE_MOVED 1.3f        /* times the span when the limit falls: stay below it for longer */
#define TIDE_GROWTH 2.77f      /* e-folds per span from phase 2 on: times 16, so a limit that rose is soon found */
#define TIDE_LATE 2.0f         /* phase after which a rejection came late: one of a static limit comes about then */
#define TIDE_ROSE_BURST 1.5f   /* times the known burst, and ... */
#define TIDE_ROSE_TOKENS 5.0f  /* ... tokens more: a full bucket does not explain that it came so late: it rose */

/* Far below what it once bore, or at the floor: it starts again from there, for to search and cruise would take hours.
 */
#define TIDE_FAR 0.1f       /* of the peak ... */
#define TIDE_FAR_CLEAN 5.0f /* ... after so many successes in a row */
#define TIDE_FAR_FADES 0.5f /* of the peak is left when that is rejected soon: it may never come back */

/* The budget of rejections: while they are owed, cruise asks more slowly. */
#define TIDE_CREDIT 4.0f        /* learning may cost this many */
#define TIDE_CREDIT_LEAST -4.0f /* what is forgiven beyond */
#define TIDE_EARN 0.003f        /* per success */
#define TIDE_DEBT 0.5f          /* of a span longer for each that is owed */

/* blocked: single probes. */
#define TIDE_STREAK 3                           /* rejections in a row that are a block */
#define TIDE_STREAK_503 4                       /* of 503s, which have other reasons too */
#define TIDE_BLOCK_RETRY_NS INT64_C(5000000000) /* a Retry-After this long is one at once */
#define TIDE_BLOCK_PAUSE_NS INT64_C(2000000000) /* before the first probe */
#define TIDE_BLOCK_SHORT 6.0f                   /* s: if a probe failed no later, it may be a slow bucket */
#define TIDE_BLOCK_BRIEF 0.25f /* of the time since the quota was whole: the end of a window, met a little early */
#define TIDE_OUTAGE_PAUSE 4.0f /* s between probes of an outage, or ... */
#define TIDE_OUTAGE_SHARE 0.1f /* ... of the time since it began: its end is noticed within a tenth of its length */
#define TIDE_PROBE_PAUSE_MOST 86400.0f /* s between two probes, however long a block lasts */

/* hold: a quota, and perhaps a ban. */
#define TIDE_WINDOW_SHORT 10.0f /* s: quotas are per ten seconds or per minute, more often than not */
#define TIDE_WINDOW_LONG 60.0f  /* s */
#define TIDE_BAN_LONG 180.0f    /* s: what lasts longer is the rest of a window rather than a ban */
#define TIDE_CLIMB 0.03f /* e-folds per second: a window of 30 s is told from one of 60 s by where the climb ends */
#define TIDE_HOLD_SHARE 0.98f  /* of a quota: jitter may push requests together */
#define TIDE_HOLD_AGAIN 0.88f  /* of a rate that was banned */
#define TIDE_HOLD_AT_LAST 0.7f /* of one that was banned again and again */
#define TIDE_PATIENCE 100.0f   /* times the length of the last ban until a little more is tried ... */
#define TIDE_HOLD_MORE 0.03f   /* ... twice as much each time */

/* Strays: single rejections that come whatever the rate. */
#define TIDE_STRAYS 6          /* single 503s ... */
#define TIDE_STRAYS_FALL 0.93f /* ... while the rate fell so much */
#define TIDE_STRAYS_START 3    /* single 503s while it grew */
#define TIDE_STRAY_SHARE 0.2f  /* of the last 32 answers: more are no strays */
#define TIDE_403_SHARE 0.3f    /* of the last 32 answers: more 403s may be about the rate */

/* cap: latencies are judged by the mean of their logarithm over an epoch. */
#define TIDE_CAP_FIRST 4.0f
#define TIDE_CAP_GROWS 0.7f    /* per success at first: times 1.7 in a round trip */
#define TIDE_EPOCH_FIRST 16.0f /* successes, at first */
#define TIDE_EPOCH 96.0f       /* successes, or ... */
#define TIDE_EPOCH_CAPS 4.0f   /* ... times the cap */
#define TIDE_QUEUE_LOW 0.5f    /* log2 of latency / unloaded: 1.4 times, no queue to speak of: more may fly */
#define TIDE_QUEUE_HIGH 1.23f  /* 2.3 times: more only wait longer */
#define TIDE_QUEUE_FIRST 0.8f  /* while the cap grows at first, for what was sent meanwhile waits too */
#define TIDE_QUEUE_FULL 1.0f   /* a rejection while answers take twice the time is of a full queue ... */
#define TIDE_QUEUE_CUT 0.7f    /* ... and this share is enough to fill the servers */
#define TIDE_CAP_TEST 0.8f     /* a smaller cap is tried for an epoch */
#define TIDE_CAP_FELL 0.9f     /* and undone if it lowers the answers per second below this share ... */
#define TIDE_BASE_RISES 0.5f   /* ... by this part of what seemed a queue, and was a heavy tail */
#define TIDE_BASE_FALLS 0.15f  /* of the difference, per epoch: one fast epoch is chance */
#define TIDE_CROWD 4           /* rejections in a row that point at the number in flight */
#define TIDE_CROWD_WAIT 9      /* log2 of successes until one more is tried: fewer after success, more after failure */
#define TIDE_CROWD_WAIT_LEAST 6
#define TIDE_CROWD_WAIT_MOST 14 /* epochs of 96 are counted in 8 bits */

/* ---- the parts ----------------------------------------------------------------------------------------- */

/* tide_rate.c */
void wr_tide_cut(struct wr_tide *tide);
void wr_tide_mark(struct wr_tide *tide, const struct wr_told *answer);
void wr_tide_search(struct wr_tide *tide, float rate, float bad);
void wr_tide_cruise(struct wr_tide *tide, float centre, float margin, float span);
void wr_tide_restart(struct wr_tide *tide, float rate);
void wr_tide_accepted(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
void wr_tide_rejected(struct wr_tide *tide, const struct wr_told *answer);

/* tide_block.c */
void wr_tide_block(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
void wr_tide_probe_failed(struct wr_tide *tide, int64_t now);
void wr_tide_probe_accepted(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
void wr_tide_hold_accepted(struct wr_tide *tide, int64_t now);

/* tide_cap.c */
void wr_tide_cap_sent(struct wr_tide *tide, const struct wr_start *start);
void wr_tide_cap_accepted(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
/* Whether the number in flight was to blame, and not the rate. */
bool wr_tide_cap_rejected(struct wr_tide *tide, const struct wr_told *answer);

#endif
