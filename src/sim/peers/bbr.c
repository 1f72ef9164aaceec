/* SPDX-License-Identifier: MIT */
/* bbr.c - Models the congestion control BBR (Cardwell and others, ACM Queue 14(5), 2016), with
 * requests instead of packets. A good response is a delivery, a refusal is a loss, which BBR
 * ignores.
 *
 *     bandwidth = most deliveries per second in the last ten round trips
 *     least     = shortest latency of 10 s
 *     starts at gain * bandwidth; in flight at most 2 * bandwidth * least, but at least 4
 *
 *     startup    gain 2.89, until bandwidth grew by less than a quarter in three round trips
 *     drain      gain 0.35, until at most bandwidth * least are in flight
 *     cruise     gains 1.25, 0.75, 1, 1, 1, 1, 1, 1, each for the shortest latency
 *     look       4 in flight for 200 ms, when the shortest latency is 10 s old
 */
#include "core/pace/rate.h"
#include "sim/peers/peers.h"

#include <math.h>

#define HIGH_GAIN 2.89
#define WINDOW_GAIN 2.0
#define IN_FLIGHT_LEAST 4.0
#define ROUNDS 10
#define LEAST_AGE_NS (10 * WEIR_SECOND)
#define LOOK_NS (200 * WEIR_MILLISECOND)
#define SENT_RING 1024  /* a power of two above the number in flight */
#define FIRST_RATE 10.0 /* per second, before the first delivery */

enum bbr_mode {
    STARTUP,
    DRAIN,
    CRUISE,
    LOOK
};

struct bbr {
    enum bbr_mode mode, before_look;
    uint32_t delivered;
    int64_t delivered_at;
    uint32_t round_ends;  /* a request sent after this many deliveries ends the round trip */
    double rates[ROUNDS]; /* maximum deliveries per second in each of the last rounds */
    uint32_t round;
    double plateau; /* bandwidth when it last grew by a quarter */
    uint32_t plateau_rounds;
    int64_t least_ns, least_at;
    int64_t phase_at, look_until;
    uint32_t phase;
    int64_t next_at;
    struct {
        uint32_t delivered;
        int64_t delivered_at;
    } sent[SENT_RING]; /* indexed by seq */
};

static double bandwidth(const struct bbr *bbr)
{
    double most = 0;
    for (int i = 0; i < ROUNDS; i++)
        most = fmax(most, bbr->rates[i]);
    return most;
}

static double gain(const struct bbr *bbr)
{
    static const double gains[] = {1.25, 0.75, 1, 1, 1, 1, 1, 1};
    switch (bbr->mode) {
    case STARTUP:
        return HIGH_GAIN;
    case DRAIN:
        return 1 / HIGH_GAIN;
    case CRUISE:
        return gains[bbr->phase % 8];
    case LOOK:
        return 1;
    }
    return 1;
}

static double product(const struct bbr *bbr)
{
    return bandwidth(bbr) * (double)bbr->least_ns / (double)WEIR_SECOND;
}

static void bbr_start(const weir_pace_options *options, void *state, const weir_pace_memory *memory, int64_t now)
{
    (void)options, (void)memory;
    struct bbr *bbr = state;
    bbr->delivered_at = bbr->next_at = bbr->least_at = now;
}

static void bbr_sent(const weir_pace_options *options, void *state, const struct wr_pace_start *start, int64_t now)
{
    (void)options;
    struct bbr *bbr = state;
    double rate = bandwidth(bbr) > 0 ? bandwidth(bbr) : FIRST_RATE;
    if (start->in_flight == 1)
        bbr->delivered_at = now; /* idle time before is not part of a measurement */
    bbr->sent[start->seq % SENT_RING].delivered = bbr->delivered;
    bbr->sent[start->seq % SENT_RING].delivered_at = bbr->delivered_at;
    bbr->next_at = now + wr_rate_interval(gain(bbr) * rate);
}

static void end_round(struct bbr *bbr)
{
    bbr->round_ends = bbr->delivered;
    bbr->round++;
    bbr->rates[bbr->round % ROUNDS] = 0;
    if (bbr->mode != STARTUP)
        return;
    if (bandwidth(bbr) >= 1.25 * bbr->plateau) {
        bbr->plateau = bandwidth(bbr);
        bbr->plateau_rounds = 0;
    } else if (++bbr->plateau_rounds >= 3) {
        bbr->mode = DRAIN;
    }
}

static void deliver(struct bbr *bbr, const struct wr_pace_response *answer, int64_t now)
{
    uint32_t delivered = bbr->sent[answer->seq % SENT_RING].delivered;
    int64_t took_ns = now - bbr->sent[answer->seq % SENT_RING].delivered_at;

    bbr->delivered++;
    bbr->delivered_at = now;
    if (took_ns < answer->latency_ns)
        took_ns = answer->latency_ns;
    double rate = (double)(bbr->delivered - delivered) * (double)WEIR_SECOND / (double)took_ns;
    if ((int32_t)(delivered - bbr->round_ends) >= 0)
        end_round(bbr);
    double *most = &bbr->rates[bbr->round % ROUNDS];
    *most = fmax(*most, rate);
    if (bbr->least_ns == 0 || answer->latency_ns <= bbr->least_ns) {
        bbr->least_ns = answer->latency_ns;
        bbr->least_at = now;
    }
}

static void bbr_advance(struct bbr *bbr, const struct wr_pace_response *answer, int64_t now)
{
    if (bbr->mode == DRAIN && answer->in_flight <= product(bbr)) {
        bbr->mode = CRUISE;
        bbr->phase = 2;
        bbr->phase_at = now;
    }
    if (bbr->mode == CRUISE && now - bbr->phase_at >= bbr->least_ns) {
        bbr->phase++;
        bbr->phase_at = now;
    }
    if (bbr->mode == LOOK && now >= bbr->look_until) {
        bbr->mode = bbr->before_look;
        bbr->least_at = now;
    } else if (bbr->mode != LOOK && now - bbr->least_at > LEAST_AGE_NS) {
        bbr->before_look = bbr->mode;
        bbr->mode = LOOK;
        bbr->look_until = now + LOOK_NS;
        bbr->least_ns = 0;
    }
}

static void bbr_tell(const weir_pace_options *options, void *state, const struct wr_pace_response *answer, int64_t now)
{
    (void)options;
    struct bbr *bbr = state;
    if (answer->status == 200)
        deliver(bbr, answer, now);
    bbr_advance(bbr, answer, now);
}

static struct wr_pace_bounds bbr_want(const weir_pace_options *options, const void *state, int64_t now)
{
    (void)options, (void)now;
    const struct bbr *bbr = state;
    double window = bbr->mode == LOOK ? 0 : (bbr->mode == STARTUP ? HIGH_GAIN : WINDOW_GAIN) * product(bbr);
    struct wr_pace_bounds want = wr_peer_limit(fmax(IN_FLIGHT_LEAST, window));
    want.earliest_at = bbr->next_at;
    want.reason = WEIR_REASON_PACE;
    want.rate = gain(bbr) * bandwidth(bbr);
    return want;
}

const struct wr_strategy wr_peer_bbr = {
    .name = "bbr",
    .state_bytes = sizeof(struct bbr),
    .start = bbr_start,
    .sent = bbr_sent,
    .tell = bbr_tell,
    .want = bbr_want,
    .mode = wr_peer_mode,
};
