/* SPDX-License-Identifier: MIT */
/* gate_transfer.c - Serialises a gate, and restores it under another clock. */
#include "core/pace/gate_transfer.h"

#include "core/pace/gate_state.h"

#include <assert.h>
#include <string.h>

#define MARK UINT32_C(0x57454952) /* "WEIR"; also shows the byte order */
#define FORMAT 2                  /* increment it when a gate or a strategy changes its meaning */
#define STATE_MAX 256             /* maximum size of a strategy's state, bytes */
#define SUM_FIRST UINT64_C(14695981039346656037)
#define SUM_FACTOR UINT64_C(1099511628211)

/* The header in front of a packed gate. */
struct label {
    uint32_t mark;
    uint16_t format, header_bytes; /* header_bytes: the size of struct wr_gate */
    uint32_t strategy, gate_bytes;
    uint32_t strategy_bytes, latency_bytes; /* sizes of parts of the gate, which show its layout */
    uint64_t sum;                           /* FNV-1a of all other bytes */
};

static uint64_t add_to_checksum(uint64_t sum, const void *data, size_t bytes)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ byte[i]) * SUM_FACTOR;
    return sum;
}

/* Returns the label for these options, without the sum. */
static struct label label_of_options(const weir_pace_options *options)
{
    return (struct label){.mark = MARK,
                          .format = FORMAT,
                          .header_bytes = sizeof(struct wr_gate),
                          .strategy = (uint32_t)options->strategy,
                          .gate_bytes = (uint32_t)wr_gate_bytes(options),
                          .strategy_bytes = (uint32_t)wr_strategy_of(options->strategy)->state_bytes,
                          .latency_bytes = (uint32_t)wr_latency_bytes(options)};
}

/* Returns the sum of a label and the gate of `gate_bytes` bytes that follows it. */
static uint64_t checksum_of(const struct label *label, const char *packed)
{
    uint64_t sum = add_to_checksum(SUM_FIRST, label, offsetof(struct label, sum));
    return add_to_checksum(sum, packed + sizeof *label, label->gate_bytes);
}

size_t wr_gate_packed_bytes(const weir_pace_options *options)
{
    return sizeof(struct label) + wr_gate_bytes(options);
}

void wr_gate_set_in_flight(struct wr_gate *gate, uint32_t in_flight)
{
    gate->in_flight = in_flight + gate->reserved;
}

bool wr_gate_reserved(const struct wr_gate *gate, const weir_pace_options *options, int64_t now)
{
    return gate->reserved && !wr_gate_expired(gate, options, now);
}

void wr_gate_pack(const struct wr_gate *gate, const weir_pace_options *options, int64_t now, void *ret_packed)
{
    size_t bytes = wr_gate_bytes(options);
    char *packed = ret_packed;
    struct wr_gate header = *gate;
    header.latest_at = wr_gate_time(gate, now);
    header.in_flight -= header.reserved;
    header.seq -= header.reserved;
    header.reserved = header.kept = header.paused = false;
    memcpy(packed + sizeof(struct label), gate, bytes);
    memcpy(packed + sizeof(struct label), &header, sizeof header);
    struct label label = label_of_options(options);
    label.sum = checksum_of(&label, packed);
    memcpy(packed, &label, sizeof label);
}

/* ---- restoring ---- */

static bool is_time(int64_t instant)
{
    return instant > -2 * WEIR_DURATION_MAX && instant < 2 * WEIR_DURATION_MAX;
}

/* Validates the times and numbers of a header. A process with access to the store may write
 * anything, with a correct sum. NaN fails too. */
static bool is_sound(const struct wr_gate *header)
{
    return is_time(header->latest_at) && is_time(header->hold_until) && is_time(header->last_success_at) &&
           is_time(header->breaker.open_until) && is_time(header->last_start_at) &&
           header->last_start_at <= header->latest_at && header->robots_delay_ns >= 0 &&
           header->robots_delay_ns <= WEIR_DURATION_MAX && header->noted_rate >= 0 &&
           header->hold_reason <= WEIR_REASON_RATE_LIMIT_RESET;
}

static bool is_readable(const void *packed, size_t packed_bytes, struct label *ret_label, struct wr_gate *ret_header)
{
    const char *at = packed;
    if (packed_bytes < sizeof *ret_label + sizeof *ret_header)
        return false;
    memcpy(ret_label, at, sizeof *ret_label);
    memcpy(ret_header, at + sizeof *ret_label, sizeof *ret_header);
    return ret_label->mark == MARK && ret_label->format == FORMAT && ret_label->header_bytes == sizeof *ret_header &&
           ret_label->gate_bytes == packed_bytes - sizeof *ret_label && ret_label->sum == checksum_of(ret_label, at) &&
           is_sound(ret_header);
}

/* Returns true if the mode is valid and the strategy makes a valid decision from the state. */
static bool is_state_valid(const struct wr_strategy *strategy, const weir_pace_options *options, const void *state,
                           int64_t now)
{
    if (strategy->has_mode != NULL && !strategy->has_mode(state))
        return false;
    struct wr_pace_bounds want = strategy->want(options, state, now);
    return want.rate >= 0 && is_time(want.earliest_at);
}

/* Returns true if the packed gate has our layout and every index in it is in range. */
static bool has_our_layout(const struct label *label, const weir_pace_options *options, const char *packed, int64_t now)
{
    const struct wr_strategy *strategy = wr_strategy_of(options->strategy);
    const char *gate = packed + sizeof *label, *state = gate + sizeof(struct wr_gate);
    _Alignas(8) char copy[STATE_MAX];
    struct wr_latency latency;
    struct wr_window window;
    struct label own = label_of_options(options);
    if (memcmp(label, &own, offsetof(struct label, sum)) != 0)
        return false;
    for (const uint16_t *at = strategy->instants; *at != WR_NO_INSTANT; at++) {
        int64_t instant;
        memcpy(&instant, state + *at, sizeof instant);
        if (!is_time(instant))
            return false;
    }
    assert(strategy->state_bytes <= sizeof copy);
    memcpy(copy, state, strategy->state_bytes);
    memcpy(&latency, gate + wr_latency_offset(strategy), offsetof(struct wr_latency, samples));
    memcpy(&window, gate + wr_window_offset(strategy, options), offsetof(struct wr_window, totals));
    return is_state_valid(strategy, options, copy, now) && latency.at < options->latency_ring &&
           wr_window_ok(&window, options);
}

static void move_header(struct wr_gate *header, int64_t by_ns)
{
    header->latest_at += by_ns;
    header->last_start_at += by_ns;
    header->hold_until += by_ns;
    header->last_success_at += by_ns;
    header->breaker.open_until += by_ns;
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool is_stated_by_server(const struct wr_gate *gate)
{
    return gate->hold_reason == WEIR_REASON_RETRY_AFTER || gate->hold_reason == WEIR_REASON_RATE_LIMIT_RESET;
}

/* Keeps the server's statements to this process, and whether the gate is paused here. */
static void keep_own(struct wr_gate *gate, const struct wr_gate *own)
{
    gate->robots_delay_ns = later_of(gate->robots_delay_ns, own->robots_delay_ns);
    gate->paused = own->paused;
    if (is_stated_by_server(own) && own->hold_until > gate->hold_until) {
        gate->hold_until = own->hold_until;
        gate->hold_reason = own->hold_reason;
    }
}

/* Copies the strategy, ring and window of the packed gate, converted to our clock. */
static void take_whole_gate(struct wr_gate *gate, const weir_pace_options *options, const char *packed,
                            const struct wr_gate *header, int64_t by_ns)
{
    const struct wr_strategy *strategy = wr_strategy_of(options->strategy);
    memcpy(gate, packed + sizeof(struct label), wr_gate_bytes(options));
    *gate = *header;
    for (const uint16_t *at = strategy->instants; *at != WR_NO_INSTANT; at++)
        *(int64_t *)(void *)((char *)(gate + 1) + *at) += by_ns;
    wr_window_move((struct wr_window *)(void *)((char *)gate + wr_window_offset(strategy, options)), options,
                   gate->latest_at - by_ns, gate->latest_at);
    if (strategy->change != NULL)
        strategy->change(options, gate + 1, gate->latest_at); /* our options may differ */
}

/* Takes the last start and the server's waits from a gate of another strategy or other sizes. */
static void take_stated_waits(struct wr_gate *gate, const struct wr_gate *header, int64_t now)
{
    gate->latest_at = later_of(gate->latest_at, now);
    gate->last_start_at = later_of(gate->last_start_at, header->last_start_at);
    keep_own(gate, &(struct wr_gate){.robots_delay_ns = header->robots_delay_ns,
                                     .paused = gate->paused,
                                     .hold_until = header->hold_until,
                                     .hold_reason = header->hold_reason});
}

/* Waits one interval from now, because a request may have just been sent. */
static void hold_one_interval(struct wr_gate *gate, const weir_pace_options *options)
{
    double rate = wr_strategy_of(options->strategy)->want(options, gate + 1, gate->latest_at).rate;
    int64_t interval_ns = wr_rate_interval(rate);
    interval_ns = interval_ns < options->retry_after_max_ns ? interval_ns : options->retry_after_max_ns;
    gate->last_start_at = gate->latest_at;
    if (gate->hold_until >= gate->latest_at + interval_ns)
        return;
    if (gate->hold_until <= gate->latest_at || !is_stated_by_server(gate))
        gate->hold_reason = WEIR_REASON_PACE;
    gate->hold_until = gate->latest_at + interval_ns;
}

static void unreserve(struct wr_gate *gate)
{
    gate->in_flight -= gate->reserved;
    gate->reserved = gate->kept = false;
}

bool wr_gate_unpack(struct wr_gate *gate, const weir_pace_options *options, const void *packed, size_t packed_bytes,
                    int64_t elapsed_ns, bool lost, int64_t now)
{
    struct label label;
    struct wr_gate header, own = *gate;
    bool is_good = is_readable(packed, packed_bytes, &label, &header);
    int64_t elapsed = wr_ns_within(elapsed_ns, 0, WEIR_DURATION_MAX);
    int64_t by_ns = is_good ? now - elapsed - header.latest_at : 0;
    unreserve(gate);
    if (is_good && has_our_layout(&label, options, packed, header.latest_at)) {
        move_header(&header, by_ns);
        take_whole_gate(gate, options, packed, &header, by_ns);
        keep_own(gate, &own);
    } else if (is_good) {
        move_header(&header, by_ns);
        take_stated_waits(gate, &header, now);
    }
    gate->latest_at = later_of(gate->latest_at, now);
    gate->hold_until = gate->hold_until < gate->latest_at + options->retry_after_max_ns
                           ? gate->hold_until
                           : gate->latest_at + options->retry_after_max_ns;
    gate->unsaved = true;
    if (lost || !is_good)
        hold_one_interval(gate, options);
    return is_good;
}
