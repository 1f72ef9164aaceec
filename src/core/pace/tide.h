/* SPDX-License-Identifier: MIT */
/* tide.h - The internals of the strategy tide: its state, modes and numbers.
 *
 * Tide learns the limit of a host from responses alone. The principle is *from empty to empty*:
 * when a token bucket rejects, it holds less than one token. Between two rejections it accepted
 * exactly what it refilled, so
 *
 *     accepted / elapsed = the limit, within 1/accepted, however the requests were spaced,
 *
 * unless it overflowed. A rejection is a measurement. Tide starts just below the measured limit,
 * reaches it after `span` requests, and rises ever faster until a rejection measures again:
 *
 *     rate = centre * (1 + margin * (phase - 1)^3),  phase = requests / span;  e-folds from phase 2
 *
 *      centre ......................._____....
 *                        ________----     |
 *             ______-----                 | rejected
 *             0           1           2
 *
 * The bucket fills a little below the limit and empties above it: the mean is exactly the limit, at
 * one rejection in about 2 * span requests. When measurements agree, span grows and margin shrinks,
 * so a settled host is tested ever more rarely. An early rejection widens the margin. A measurement
 * far off starts over with a short span.
 *
 *     mode      assumption             next mode
 *     start     no rejection yet       a rejection -> search at half
 *     search    safe < limit < bad     12 clean -> sqrt(rate * bad); near bad or measured -> cruise
 *     cruise    the limit is `centre`  measured -> cruise; rejected too early to measure -> search
 *     blocked   nothing is accepted    a single probe accepted -> the mode before, or hold
 *     hold      a quota or a ban       second block: window -> cruise, ban -> hold below it. After
 *                                      a silence of seconds it provokes that block (testing)
 *
 * Parts: tide_rate.c (measuring, start, search, cruise), tide_block.c (blocked, hold), tide_cap.c
 * (in flight: queues and concurrency limits), tide.c (the interface to the gate).
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

/* The kind of limit: the low bits of weir_pace_memory.traits. */
enum wr_tide_trait {
    WR_TIDE_BANS = 1,        /* violations cause a ban: never probe the limit */
    WR_TIDE_CONCURRENCY = 2, /* the limit counts requests in flight: it is `cap`, not a rate */
    WR_TIDE_STRAY_503 = 4,   /* single 503s occur at any rate */
    WR_TIDE_FREE = 8,        /* no limit was found; used in the stored memory only */
    WR_TIDE_WINDOWED = 16,   /* a quota per window: rejections last until the window ends */
    WR_TIDE_TRAITS = 31,
};

/* Seconds and rates are floats, because they are estimates. */
struct wr_tide {
    int64_t next_at;      /* earliest time of the next start */
    int64_t empty_at;     /* send time of the last request that found the bucket empty */
    int64_t block_at;     /* send time of the first rejected request in the current row */
    int64_t free_at;      /* end of the last block, or creation: the quota was full then */
    int64_t header_until; /* end of the validity of header_rate */
    int64_t epoch_at;     /* start of the current epoch of the cap */

    /* Fields for the rate. */
    float rate; /* current rate, starts per second */
    /* Measured limit (cruise), start of a climb (hold), or first rejected rate (search). */
    float centre;
    float margin; /* cruise: initial distance below centre, as a share of centre */
    float span;   /* cruise: requests up to centre. testing: s before the first block */
    /* Progress in spans (cruise), successes at this rate (search), share last added (hold), or
     * seconds until the last failed probe (blocked). */
    float phase;
    float bad;    /* search: a rejected rate. hold: upper end of a climb */
    float peak;   /* highest centre; fades with each measurement */
    float credit; /* rejections that may be spent on tests; negative: owed */
    float held;   /* seconds of waiting for the server since empty_at */
    float gap;    /* moving mean of the time between starts, s */
    float burst;  /* lower bound of the bucket's capacity, tokens */
    float resume; /* rate before the current row of rejections */
    float header_rate;
    float quota_left; /* requests left until header_until, less those sent since */

    /* Fields for blocks. */
    float quota;                   /* requests accepted in a short window before the first block */
    float block_least, block_most; /* bounds of the length of the last block, s */

    /* Fields for requests in flight. */
    float cap;
    float base;       /* log2 of the unloaded latency in ns; 0 if unknown */
    float epoch_logs; /* sum of log2 of the latencies in this epoch */
    float epoch_rate; /* responses per second in the epoch before a test */
    float flight;     /* moving mean of the number in flight at starts */

    uint32_t sent_seq;   /* number of the latest start */
    uint32_t cut_seq;    /* last start before the last cut; responses up to it are stale */
    uint32_t empty_seq;  /* number of the start that was rejected at empty_at */
    uint32_t accepted;   /* requests accepted since free_at */
    uint32_t epoch_n;    /* successes in this epoch */
    uint32_t epoch_full; /* starts in this epoch that filled the cap */

    float stray_rate; /* rate when the current row of single vague rejections began */
    float hope;       /* recent accepted rate, the limit if it is that of a window; or 0 */

    uint16_t share;          /* rejections in the last 32 responses outside blocks, /65535 */
    uint16_t penalty;        /* mean cost of a rejection by Retry-After, tenths of a second */
    uint16_t exact_ms;       /* ms within the second at which header_until was stated */
    uint16_t refused;        /* rejected starts since empty_at */
    uint16_t crowd_at;       /* in flight at the last rejection that may be by concurrency */
    uint16_t crowd_ok;       /* requests accepted since crowd_at was set */
    uint16_t crowd_past;     /* requests of crowd_ok with at least crowd_at in flight */
    uint8_t cap_up;          /* epochs in a row in which the cap grew, or waited to grow */
    uint8_t crowd_n : 4;     /* rejections in a row that suggest a concurrency limit */
    uint8_t crowd_wait : 4;  /* log2 of the successes until a higher cap is tried */
    uint8_t mode : 3;        /* value of wr_tide_mode */
    uint8_t resume_mode : 3; /* mode before the current row of rejections */
    bool was_out : 1;        /* the last block seemed an outage; not if another follows soon */
    uint8_t row : 4;         /* rejections of consecutive starts, at most 15 */
    uint8_t row_seq : 4;     /* low bits of the number of the last start in `row` */
    uint8_t streak : 4;      /* rejections in a row of starts after a cut, at most 15 */
    uint8_t strays : 4;      /* single vague rejections in a row, at most 15 */
    uint8_t blocks : 4;      /* long blocks so far, at most 15 */
    bool marked : 1;         /* empty_at and empty_seq are valid */
    bool paced : 1;          /* only the rate delayed the last start, not cap, work or headers */
    bool outage : 1;         /* the block is by vague rejections (5xx or no response) */
    bool forbidden : 1;      /* the block is by 403s */
    bool broken : 1;         /* the block is by 5xx other than 503, or by no response */
    uint8_t traits : 5;      /* set of wr_tide_trait */
    bool back : 1;           /* search: centre was the limit until now */
    bool by_header : 1;      /* next_at was set by header_rate */
    bool no_window : 1;      /* hold: the long block was not the rest of a window */
    bool testing : 1;        /* hold: tests if a silence was a window, a ban or a slow bucket */
    bool climbing : 1;       /* hold: raises the rate to find a shorter window */
    bool exact : 1;          /* hold: the climb uses a known quota */
    bool from_start : 1;     /* hold: the first block came in the mode start */
    bool cap_found : 1;      /* the initial growth of the cap has ended */
    bool cap_test : 1;       /* this epoch tests a smaller cap */
    bool hoped : 1;          /* cruise: centre is a recent accepted rate, not a measurement */
    uint8_t horizon : 2;     /* window that `hope` assumes: 10, 20, 30 s, or none (3) */
    bool rounded : 1;        /* the server states resets in whole seconds */
    bool cap_tried : 1;      /* the last change of a concurrency cap raised it */
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

/* Returns the time between starts at this rate, ns. */
static inline int64_t wr_tide_interval(float rate)
{
    return (int64_t)(1e9f / rate);
}

/* ---- the numbers ----------------------------------------------------------------------------- */

/* Limits of every rate, starts per second. */
#define TIDE_RATE_LEAST 0.001f      /* minimum for a window, a ban or a stored memory */
#define TIDE_RATE_FLOOR (1 / 60.0f) /* minimum after single rejections: less learns for hours */
#define TIDE_RATE_MOST 1e6f

/* start: one request a second, growing with success. */
#define TIDE_FIRST_RATE 1.0f  /* one request a second burdens no server */
#define TIDE_GROW_LEAST 6.0f  /* minimum successes per e-fold, to meet small quotas gently */
#define TIDE_GROW_S 1.0f      /* minimum seconds per e-fold, to limit the overshoot in flight */
#define TIDE_GROW_FAST 200.0f /* starts per second; growth slows from here: many are in flight */
#define TIDE_AHEAD 2.0f       /* rate / real starts; a higher rate would be untested */

/* search: between an accepted and a rejected rate. */
#define TIDE_CLEAN 12.0f     /* successes that confirm a rate; enough to notice an excess of 8 % */
#define TIDE_CLEAN_FAR 5.0f  /* successes that suffice while the rate is far below `bad` */
#define TIDE_NEAR 1.12f      /* bad / rate from which cruise finds the limit */
#define TIDE_MEASURED 5.0f   /* accepted requests from which a measurement beats a guess */
#define TIDE_ACCUMULATE 8.0f /* accepted requests from which a measurement may end */
#define TIDE_BURST 3.0f      /* tokens; a bucket of this size does not overflow in a search */

/* cruise: the initial distance below the limit. */
#define TIDE_MARGIN_LEAST 0.004f /* minimum: share that is lost at a host that never changes */
#define TIDE_MARGIN_MOST 0.06f   /* maximum: a limit that falls faster is better measured again */
#define TIDE_MARGIN_NEW 0.02f
#define TIDE_MARGIN_UP 1.5f   /* factor after an early rejection */
#define TIDE_MARGIN_DOWN 0.7f /* factor after a rejection in time */
#define TIDE_EARLY 1.0f       /* phase before which a rejection is early: below the limit */

/* cruise: the number of requests between tests. */
#define TIDE_SPAN_NEW 24.0f
#define TIDE_SPAN_LEAST 12.0f
#define TIDE_SPAN_MOST 300.0f  /* maximum span: one rejection in 600 requests */
#define TIDE_SPAN_S 10.0f      /* s; maximum span at fast hosts, which need no more tests */
#define TIDE_SPAN_LOW 24.0f    /* maximum span while the limit is far below its peak */
#define TIDE_SPAN_LOW_S 5.0f   /* s; TIDE_SPAN_LOW at fast hosts */
#define TIDE_LOW 0.7f          /* share of the peak that counts as far below */
#define TIDE_PEAK_FADES 0.995f /* factor on the peak per measurement */
#define TIDE_SPAN_FLIGHT 10.0f /* minimum span / number in flight: responses come late */
#define TIDE_PENALTY 100.0f    /* minimum span / cost of a rejection: loses at most 1 % of time */
#define TIDE_SAME 0.02f        /* difference that confirms the limit: span * 4, else * 2 */
#define TIDE_MOVED 1.3f        /* factor on the span when the limit falls: stays below longer */
#define TIDE_GROWTH 2.77f      /* e-folds per span from phase 2 on (* 16): finds a rise soon */
#define TIDE_LATE 2.0f         /* phase after which a rejection is late; usual at a static limit */
#define TIDE_ROSE_BURST 1.5f   /* times the known burst + TIDE_ROSE_TOKENS: see there */
#define TIDE_ROSE_TOKENS 5.0f  /* tokens; a rejection that needs more shows that the limit rose */

/* cruise: the limit may be a window, not a bucket. Then its quota is what it accepted recently. */
#define TIDE_HOPE 1.1f        /* minimum ratio to the measured limit; less is no difference */
#define TIDE_HOPE_SHARE 0.97f /* share of the accepted rate to try, one window later */
#define TIDE_HOPE_LEAST 20.0f /* minimum requests accepted in the window; fewer are chance */
#define TIDE_HORIZONS 3       /* assumed windows: 10, 20 and 30 s */

/* Quota fields in responses. */
#define TIDE_EXACT_SLACK 0.02f /* s after the instant at which a rounded-up end is exact */

/* A rate far below its former value, or at the floor, restarts: searching would take hours. */
#define TIDE_FAR 0.1f       /* share of the peak that counts as far below */
#define TIDE_FAR_CLEAN 5.0f /* successes in a row that allow the restart */
#define TIDE_FAR_FADES 0.5f /* factor on the peak if the restart is rejected soon */

/* The budget of rejections: cruise tests more slowly while it is overdrawn. */
#define TIDE_CREDIT 4.0f        /* maximum: learning may cost this many rejections */
#define TIDE_CREDIT_LEAST -4.0f /* minimum: a larger debt is forgiven */
#define TIDE_EARN 0.003f        /* credit per success */
#define TIDE_DEBT 0.5f          /* share of a span that each owed rejection adds */

/* blocked: only single probes are sent. */
#define TIDE_STREAK 3       /* rejections in a row that mean a block */
#define TIDE_STREAK_503 4   /* 503s in a row that mean a block; they have other causes too */
#define TIDE_STREAK_CROWD 8 /* rejections in a row that no concurrency limit explains */
/* A Retry-After of at least this length means a block at once. */
#define TIDE_BLOCK_RETRY_NS INT64_C(5000000000)
#define TIDE_BLOCK_PAUSE 2.0f /* s before the first probe */
/* Refusals with at least this latency come when nothing was accepted for long. */
#define TIDE_STALLED_NS INT64_C(1500000000)
#define TIDE_OUTAGE_LEAST 8.0f  /* s of 5xx or no response that mean an outage */
#define TIDE_OUTAGE_APART 10.0f /* gap / length of outages; if smaller, our requests cause them */
#define TIDE_BLOCK_SHORT 6.0f   /* s; if a probe failed no later, it may be a slow bucket */
#define TIDE_TEST_SHARP 0.4f    /* last failed probe / silence: a silence is tested above this */
#define TIDE_TEST_MOST 16.0f    /* s; longest silence that is tested: such a ban costs little */
#define TIDE_ROW_TESTED 2       /* vague refusals in a row that count in the mode hold */
#define TIDE_TEST_IN_VAIN 3.0f  /* accepted / quota at which a test ends: there is no quota */
#define TIDE_TEST_RATE 1.5f     /* test rate / refused rate: uses up a window in good time */
#define TIDE_WINDOW_PAUSE 0.25f /* s between probes near the end of a window; doubled in a test */
#define TIDE_PROBE_SHARE 0.2f   /* pause between probes / window, if that is longer */
#define TIDE_EXACT_CLIMB 0.3f   /* e-folds of a climb per quota; ends a seventh above the limit */
#define TIDE_BLOCK_BRIEF 0.25f  /* block / time before it: below this it is a window's end */
#define TIDE_BRIEF_BAN 0.7f     /* block / length of a known ban: above this it is another ban */
#define TIDE_OUTAGE_PAUSE 4.0f  /* s between probes of an outage that answers 503 */
#define TIDE_BROKEN_PAUSE 1.0f  /* s between probes of an outage by other 5xx or no response */
#define TIDE_OUTAGE_SHARE 0.1f  /* pause between probes / length of the outage, if longer */
/* Longest pause between probes, s. */
#define TIDE_PROBE_PAUSE_MOST 86400.0f

/* hold: a quota, and perhaps a ban. */
#define TIDE_WINDOW_SHORT 10.0f /* s; quotas are mostly per ten seconds or per minute */
#define TIDE_WINDOW_LONG 60.0f  /* s; the longer usual window */
#define TIDE_BAN_LONG 180.0f    /* s; a longer block is the rest of a window, not a ban */
#define TIDE_CLIMB 0.03f        /* e-folds per s; tells a window of 30 s from one of 60 s */
#define TIDE_CLIMB_MOST 0.1f
#define TIDE_CLIMB_BANS 1.0f /* e-folds in the time that the ban lasted */
#define TIDE_CLIMB_TOP 0.63f /* share of the rate refused first, for a window of 1 s */
#define TIDE_FIXED_SHARE 0.7f
#define TIDE_CLIMB_DOUBT 0.18f    /* maximum deduction, as the phase of a fixed window is unknown */
#define TIDE_BAN_SHORT 45.0f      /* s; costs less than finding a shorter window gains */
#define TIDE_HOLD_SHARE 0.98f     /* share of a quota to use: jitter may push requests together */
#define TIDE_HOLD_AGAIN 0.88f     /* factor on a rate that was banned */
#define TIDE_HOLD_AT_LAST 0.7f    /* factor on a rate that was banned repeatedly */
#define TIDE_PATIENCE 100.0f      /* wait / length of the last ban until a higher rate is tried */
#define TIDE_PATIENCE_SHORT 20.0f /* TIDE_PATIENCE for bans that cost little */
#define TIDE_HOLD_MORE 0.03f      /* share added after TIDE_PATIENCE; doubles each time */

/* Strays: single rejections that occur at any rate. */
#define TIDE_STRAYS 6          /* single 503s that are strays if the rate fell meanwhile */
#define TIDE_STRAYS_FALL 0.93f /* factor of the fall that TIDE_STRAYS requires */
#define TIDE_STRAYS_START 3    /* single 503s that are strays while the rate grew */
#define TIDE_STRAY_SHARE 0.2f  /* maximum share of strays in the last 32 responses */
#define TIDE_403_SHARE 0.3f    /* share of 403s in the last 32 responses that may mean the rate */

/* cap: latencies are judged by the mean of their logarithm over an epoch. */
#define TIDE_CAP_FIRST 4.0f
#define TIDE_CAP_GROWS 0.7f    /* per success in the initial growth: * 1.7 per round trip */
#define TIDE_EPOCH_FIRST 16.0f /* successes per epoch in the initial growth */
#define TIDE_EPOCH 96.0f       /* minimum successes per epoch */
#define TIDE_EPOCH_CAPS 4.0f   /* minimum successes per epoch / cap */
#define TIDE_QUEUE_LOW 0.5f    /* log2 of latency / unloaded (* 1.4): no queue, the cap may grow */
#define TIDE_QUEUE_HIGH 1.23f  /* log2 of latency / unloaded (* 2.3): more would only queue */
#define TIDE_QUEUE_FIRST 0.8f  /* TIDE_QUEUE_HIGH in the initial growth, which overshoots */
#define TIDE_QUEUE_FULL 1.0f   /* log2 of latency / unloaded: a rejection is by a full queue */
#define TIDE_QUEUE_CUT 0.7f    /* share of the cap that still fills the servers */
#define TIDE_CAP_TEST 0.8f     /* factor on the cap for a test epoch */
#define TIDE_CAP_FELL 0.9f     /* share of responses per second below which a test is undone */
#define TIDE_BASE_RISES 0.5f   /* share of a false queue (heavy tail) that raises the base */
#define TIDE_BASE_FALLS 0.15f  /* share of the difference per epoch: one fast epoch is chance */
#define TIDE_STALL 3.0f        /* maximum in flight when responses stop, plus TIDE_STALL_TIMES */
#define TIDE_STALL_TIMES 4.0f  /* times the number that the rate needs; see TIDE_STALL */
#define TIDE_CROWD 4           /* rejections in a row that show a concurrency limit */
#define TIDE_CROWD_RARE 0.04f  /* share accepted with as many in flight: a limit if below this */
#define TIDE_CROWD_OFTEN 0.12f /* share accepted with as many in flight: no limit if above */
#define TIDE_CROWD_WAIT 9      /* log2 of successes until one more is tried; adapts to results */
#define TIDE_CROWD_WAIT_LEAST 6
#define TIDE_CROWD_WAIT_MOST 14 /* epochs of 96 are counted in 8 bits */

/* ---- the parts ------------------------------------------------------------------------------- */

/* Returns true for a 5xx or no response. It may be a refusal, because servers refuse in many ways.
 * It may also be a broken page or a server that is down. */
static inline bool wr_tide_is_vague(const struct wr_pace_response *answer)
{
    return !wr_status_refuses(answer->status) && answer->status != 403;
}

/* Returns the share of rejections in the last 32 responses. */
static inline float wr_tide_share(const struct wr_tide *tide)
{
    return (float)tide->share / 65535;
}

/* Returns the mean cost of a rejection, s. */
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
void wr_tide_mark(struct wr_tide *tide, const struct wr_pace_response *answer);
void wr_tide_search(struct wr_tide *tide, float rate, float bad);
void wr_tide_cruise(struct wr_tide *tide, float centre, float margin, float span);
void wr_tide_restart(struct wr_tide *tide, float rate);
/* Notes the rate accepted before a rejection, because the limit may be that of a window. */
void wr_tide_note_window_rate(struct wr_tide *tide, const struct wr_pace_response *answer);
void wr_tide_accepted(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now);
void wr_tide_rejected(struct wr_tide *tide, const struct wr_pace_response *answer);

/* tide_block.c */
void wr_tide_block(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now);
void wr_tide_probe_failed(struct wr_tide *tide, int64_t now);
void wr_tide_probe_accepted(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now);
/* Handles a rejection while a silence is tested. Returns true if it means a block. */
bool wr_tide_test_rejected(struct wr_tide *tide, const struct wr_pace_response *answer);
void wr_tide_hold_accepted(struct wr_tide *tide, int64_t now);

/* tide_cap.c */
void wr_tide_cap_sent(struct wr_tide *tide, const struct wr_pace_start *start);
void wr_tide_cap_accepted(struct wr_tide *tide, const struct wr_pace_response *answer, int64_t now);
uint32_t wr_tide_cap(const struct wr_tide *tide);
/* Returns true if the number in flight caused the rejection, not the rate. */
bool wr_tide_cap_rejected(struct wr_tide *tide, const struct wr_pace_response *answer);
/* Returns true if the number in flight caused a rejection that seems independent of the rate. */
bool wr_tide_cap_stray(struct wr_tide *tide, const struct wr_pace_response *answer);

/* tide_describe.c */
const char *wr_tide_describe_limit(const void *state, int64_t now, struct wr_buf *buf);

#endif
