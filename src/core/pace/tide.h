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
 *     hold      a quota or a ban         a second block tells which: window -> cruise; ban -> hold, and stay below.
 *                                        After a silence of seconds that block is provoked (testing)
 *
 * Parts: tide_rate.c (measuring, start, search, cruise), tide_block.c (blocked, hold), tide_cap.c (requests in flight:
 * queues and limits of concurrency), tide.c (what the gate calls).
 */
#ifndef WR_CORE_PACE_TIDE_H
#define WR_CORE_PACE_TIDE_H

#include "core/pace/refusal.h"
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
    WR_TIDE_WINDOWED = 16,   /* a quota for a time: what is refused is so until the window ends */
    WR_TIDE_TRAITS = 31,
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
    float rate;   /* starts per second, now */
    float centre; /* cruise: the limit, as measured. hold: where a climb began. search: at first, what was refused */
    float margin; /* cruise: share of centre */
    float span;   /* cruise: requests from margin below up to centre */
    float phase;  /* cruise: how far, in spans. search: successes at this rate. hold: share that was last added */
    float bad;    /* search: a rate that was rejected. hold: how far the climb may go */
    float peak;   /* the highest centre of late */
    float credit; /* rejections that may be spent on asking */
    float held;   /* seconds that the server made us wait since empty_at */
    float gap;    /* seconds between starts, as they were */
    float burst;  /* tokens that the bucket held when it was full, at least */
    float resume; /* the rate before the rejections in a row */
    float header_rate;
    float quota_left; /* requests that the server's fields allow until header_until, less what was sent since */

    /* Blocks. */
    float quota;                   /* accepted before the first block, within a short window */
    float block_least, block_most; /* the last one's length was between these, s */

    /* Requests in flight. */
    float cap;
    float base;       /* log2 of the unloaded latency in ns; 0: unknown */
    float epoch_logs; /* sum of log2 of latencies */
    float epoch_rate; /* answers per second in the epoch before a test */
    float flight;     /* mean number in flight at starts */

    uint32_t sent_seq;   /* the latest start */
    uint32_t cut_seq;    /* the latest start before the last cut: answers to those say nothing new */
    uint32_t empty_seq;  /* the start that was rejected at empty_at */
    uint32_t accepted;   /* since free_at */
    uint32_t epoch_n;    /* successes in this epoch */
    uint32_t epoch_full; /* of its starts, those that filled the cap */

    float stray_rate; /* the rate when the single vague rejections began */
    float hope;       /* what was accepted a second before a rejection: the limit, if it is that of a window; or 0 */

    uint16_t share;          /* of rejections among the last 32 answers, unless blocked; in 65535ths */
    uint16_t penalty;        /* tenths of seconds that a rejection costs, by Retry-After */
    uint16_t exact_ms;       /* when, within a second, header_until was told */
    uint16_t refused;        /* rejections of starts since empty_at */
    uint16_t crowd_at;       /* in flight at the last rejection that may have been of concurrency */
    uint16_t crowd_ok;       /* accepted since, and ... */
    uint16_t crowd_past;     /* ... of these, with no fewer in flight */
    uint8_t cap_up;          /* epochs in a row in which the cap grew */
    uint8_t crowd_n : 4;     /* such rejections in a row */
    uint8_t crowd_wait : 4;  /* log2 of successes until a higher cap is tried */
    uint8_t mode : 3;        /* wr_tide_mode */
    uint8_t resume_mode : 3; /* before the rejections in a row */
    bool was_out : 1;        /* the last block was taken for an outage; if another comes soon, it was none */
    uint8_t row : 4;         /* rejections of starts that followed each other; at most 15 */
    uint8_t row_seq : 4;     /* low bits of the number of the last of them */
    uint8_t streak : 4;      /* rejections in a row of starts after a cut; at most 15 */
    uint8_t strays : 4;      /* single vague rejections in a row; at most 15 */
    uint8_t blocks : 4;      /* long ones, so far; at most 15 */
    bool marked : 1;         /* empty_at and empty_seq hold */
    bool paced : 1;          /* the last start came when the rate allowed it: not cap, work or headers held it back */
    bool outage : 1;         /* blocked by vague rejections */
    bool forbidden : 1;      /* blocked by 403s */
    bool broken : 1;         /* blocked by other 5xx than 503, or by no answers */
    uint8_t traits : 5;      /* wr_tide_trait */
    bool back : 1;           /* search: centre was the limit until just now */
    bool by_header : 1;      /* header_rate set next_at */
    bool no_window : 1;      /* hold: the block was not the rest of a window, though it was long */
    bool testing : 1;        /* hold: is the silence that was met part of a window, a ban, or of a bucket? */
    bool climbing : 1;       /* hold: looking for a shorter window */
    bool exact : 1;          /* hold: climbing, and the quota is known */
    bool from_start : 1;     /* hold: the first block came in the mode start */
    bool cap_found : 1;      /* the first growth of the cap has ended */
    bool cap_test : 1;       /* this epoch tries a smaller cap */
    bool hoped : 1;          /* cruise: centre is what was accepted lately, and not measured */
    uint8_t horizon : 2;     /* of what is accepted lately: 10, 20, 30 s, or none */
    bool rounded : 1;        /* the server tells resets in whole seconds */
    bool cap_tried : 1;      /* the last change of a cap of concurrency was upwards */
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

/* cruise: the limit may be a window, not a bucket: then what was accepted in it just now was its quota. */
#define TIDE_HOPE 1.1f        /* times what was measured: below it is the same */
#define TIDE_HOPE_SHARE 0.97f /* of that rate is tried, after the window has passed at what was measured */
#define TIDE_HOPE_LEAST 20.0f /* accepted in it: fewer are chance */
#define TIDE_HORIZONS 3       /* 10, 20 and 30 s */

/* Fields: the quota that they tell. */
#define TIDE_EXACT_SLACK 0.02f /* s after the instant at which an end that is rounded up is exact */

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
#define TIDE_STREAK_CROWD 8                     /* ... and however they look: all are refused, not those beyond a cap */
#define TIDE_BLOCK_RETRY_NS INT64_C(5000000000) /* a Retry-After this long is one at once */
#define TIDE_BLOCK_PAUSE 2.0f                   /* s before the first probe */
#define TIDE_STALLED_NS INT64_C(1500000000)     /* refusals this late come when nothing was accepted for long */
#define TIDE_OUTAGE_LEAST 8.0f                  /* s: what does not answer or says 5xx for so long is down */
#define TIDE_OUTAGE_APART 10.0f                 /* times its length until the next, or our requests caused both */
#define TIDE_BLOCK_SHORT 6.0f                   /* s: if a probe failed no later, it may be a slow bucket */
#define TIDE_TEST_SHARP 0.4f    /* of a silence's length: if a probe failed no earlier, it is tested ... */
#define TIDE_TEST_MOST 16.0f    /* s: ... up to here: a ban that long costs little */
#define TIDE_ROW_TESTED 2       /* vague refusals in a row that count in hold */
#define TIDE_TEST_IN_VAIN 3.0f  /* times what was accepted before: the silence was of no quota */
#define TIDE_TEST_RATE 1.5f     /* times the rate that was refused: uses a window up in good time */
#define TIDE_WINDOW_PAUSE 0.25f /* s before the end of a known window is probed, and twice that in a test, */
#define TIDE_PROBE_SHARE 0.2f   /* or this share of the window: its length is known as well as that */
#define TIDE_EXACT_CLIMB 0.3f   /* e-folds in each quota of requests: ends a seventh above the limit */
#define TIDE_BLOCK_BRIEF 0.25f  /* of the time since the quota was whole: the end of a window, met a little early */
#define TIDE_BRIEF_BAN 0.7f     /* times the length of a known ban: a longer silence is another ban */
#define TIDE_OUTAGE_PAUSE 4.0f  /* s between probes of an outage, ... */
#define TIDE_BROKEN_PAUSE 1.0f  /* ... of one that says 500 or nothing (the breaker counts these, too), or ... */
#define TIDE_OUTAGE_SHARE 0.1f  /* ... of the time since it began: its end is noticed within a tenth of its length */
#define TIDE_PROBE_PAUSE_MOST 86400.0f /* s between two probes, however long a block lasts */

/* hold: a quota, and perhaps a ban. */
#define TIDE_WINDOW_SHORT 10.0f /* s: quotas are per ten seconds or per minute, more often than not */
#define TIDE_WINDOW_LONG 60.0f  /* s */
#define TIDE_BAN_LONG 180.0f    /* s: what lasts longer is the rest of a window rather than a ban */
#define TIDE_CLIMB 0.03f /* e-folds per second: a window of 30 s is told from one of 60 s by where the climb ends */
#define TIDE_CLIMB_MOST 0.1f
#define TIDE_CLIMB_BANS 1.0f /* e-folds in the time that the ban lasted */
#define TIDE_CLIMB_TOP 0.63f /* of the rate that was refused first: what a window of a second would bear */
#define TIDE_FIXED_SHARE 0.7f
#define TIDE_CLIMB_DOUBT 0.18f    /* at most, less: a fixed window ends anywhere in the time that was taken for it */
#define TIDE_BAN_SHORT 45.0f      /* s: a ban that costs less than a climb to the limit of a shorter window earns */
#define TIDE_HOLD_SHARE 0.98f     /* of a quota: jitter may push requests together */
#define TIDE_HOLD_AGAIN 0.88f     /* of a rate that was banned */
#define TIDE_HOLD_AT_LAST 0.7f    /* of one that was banned again and again */
#define TIDE_PATIENCE 100.0f      /* times the length of the last ban until a little more is tried ... */
#define TIDE_PATIENCE_SHORT 20.0f /* the same for bans that cost little */
#define TIDE_HOLD_MORE 0.03f      /* ... twice as much each time */

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
#define TIDE_STALL 3.0f        /* in flight, and ... */
#define TIDE_STALL_TIMES 4.0f  /* ... times as many as the rate needs: answers have stopped */
#define TIDE_CROWD 4           /* rejections in a row that point at the number in flight */
#define TIDE_CROWD_RARE 0.04f  /* of what is accepted has as many in flight: so it is the number */
#define TIDE_CROWD_OFTEN 0.12f /* more has: so it is not */
#define TIDE_CROWD_WAIT 9      /* log2 of successes until one more is tried: fewer after success, more after failure */
#define TIDE_CROWD_WAIT_LEAST 6
#define TIDE_CROWD_WAIT_MOST 14 /* epochs of 96 are counted in 8 bits */

/* ---- the parts ----------------------------------------------------------------------------------------- */

/* A 5xx or no answer may be a refusal: servers refuse in many ways. It may also be a broken page or a server that is
 * down. */
static inline bool wr_tide_is_vague(const struct wr_told *answer)
{
    return !wr_status_refuses(answer->status) && answer->status != 403;
}

/* Of rejections among the last 32 answers. */
static inline float wr_tide_share(const struct wr_tide *tide)
{
    return (float)tide->share / 65535;
}

/* Seconds that a rejection costs. */
static inline float wr_tide_penalty(const struct wr_tide *tide)
{
    return (float)tide->penalty / 10;
}

static inline void wr_tide_count_refused(struct wr_tide *tide)
{
    tide->refused = (uint16_t)(tide->refused + (tide->refused < UINT16_MAX));
}

/* tide_rate.c */
void wr_tide_cut(struct wr_tide *tide);
void wr_tide_mark(struct wr_tide *tide, const struct wr_told *answer);
void wr_tide_search(struct wr_tide *tide, float rate, float bad);
void wr_tide_cruise(struct wr_tide *tide, float centre, float margin, float span);
void wr_tide_restart(struct wr_tide *tide, float rate);
/* A rejection: notes what was accepted in the time before it, for the limit may be that of a window. */
void wr_tide_hope(struct wr_tide *tide, const struct wr_told *answer);
void wr_tide_accepted(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
void wr_tide_rejected(struct wr_tide *tide, const struct wr_told *answer);

/* tide_block.c */
void wr_tide_block(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
void wr_tide_probe_failed(struct wr_tide *tide, int64_t now);
void wr_tide_probe_accepted(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
/* A rejection while it is tested what a silence was. Returns whether that is a block. */
bool wr_tide_test_rejected(struct wr_tide *tide, const struct wr_told *answer);
void wr_tide_hold_accepted(struct wr_tide *tide, int64_t now);

/* tide_cap.c */
void wr_tide_cap_sent(struct wr_tide *tide, const struct wr_start *start);
void wr_tide_cap_accepted(struct wr_tide *tide, const struct wr_told *answer, int64_t now);
uint32_t wr_tide_cap(const struct wr_tide *tide);
/* Whether the number in flight was to blame, and not the rate. */
bool wr_tide_cap_rejected(struct wr_tide *tide, const struct wr_told *answer);
/* The same of one that seems to come whatever we do. */
bool wr_tide_cap_stray(struct wr_tide *tide, const struct wr_told *answer);

/* tide_belief.c */
const char *wr_tide_believe(const void *state, int64_t now, struct wr_buf *buf);

#endif
