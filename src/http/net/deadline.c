/* SPDX-License-Identifier: MIT */
/* deadline.c - ends transfers that take too long: connecting, first byte, total time, slow body.
 *
 * All running transfers are in one heap, ordered by the earliest instant at which they might be
 * overdue. A completed step does not move a transfer in the heap, unless its next deadline is
 * earlier: progress is checked when the instant comes.
 */
#include "http/net/net_internal.h"

#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"

#define HELD_CHECK_NS WEIR_SECOND /* interval of checks while the owner holds a body */

static uint64_t wire_bytes(struct wr_transfer *transfer)
{
    curl_off_t body = 0;

    if (transfer->bypasses_libcurl)
        return transfer->http1.received;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_DOWNLOAD_T, &body);
    return (uint64_t)body + transfer->head.bytes;
}

/* Returns the deadline of the current step, and how the transfer ends if it is missed. */
static int64_t step_deadline(const struct wr_transfer *transfer, enum wr_net_end *ret_end)
{
    const struct wr_net_options *options = &transfer->net->options;
    const struct wr_net_result *result = &transfer->result;

    if (result->first_byte_at != 0) {
        *ret_end = WR_NET_TOO_SLOW;
        return transfer->speed_at + options->speed_ns;
    }
    if (result->sent_at != 0) {
        *ret_end = WR_NET_FIRST_BYTE_TIMEOUT;
        return result->sent_at + options->first_byte_ns;
    }
    *ret_end = WR_NET_CONNECT_TIMEOUT;
    return result->asked_at + options->connect_ns;
}

static int64_t earliest_deadline(const struct wr_transfer *transfer, enum wr_net_end *ret_end)
{
    int64_t total = transfer->result.asked_at + transfer->net->options.total_ns + transfer->body.held_ns;
    int64_t step = step_deadline(transfer, ret_end);

    if (step <= total)
        return step;
    *ret_end = WR_NET_TOTAL_TIMEOUT;
    return total;
}

/* Returns the next instant to check a transfer: a deadline, or the start of a parallel attempt. */
static int64_t next_check_at(const struct wr_transfer *transfer)
{
    enum wr_net_end end;
    int64_t at = earliest_deadline(transfer, &end), race_at = transfer->http1.race_at;

    return race_at != 0 && race_at < at ? race_at : at;
}

static void arm_deadline_timer(struct wr_net *net, int64_t now)
{
    int64_t at;

    if (wr_heap_peek(&net->dues, &at) == NULL || at >= net->due_armed_at)
        return;
    uint64_t after_ms = at <= now ? 0 : (uint64_t)((at - now + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND);
    net->due_armed_at = at;
    uv_update_time(net->options.loop);
    (void)uv_timer_start(&net->due_timer, wr_deadline_on_timer, after_ms, 0);
}

int wr_deadline_begin(struct wr_transfer *transfer)
{
    transfer->due_at = next_check_at(transfer);
    int error = wr_heap_push(&transfer->net->dues, transfer->due_at, &transfer->due);
    if (error == 0)
        arm_deadline_timer(transfer->net, transfer->result.asked_at);
    return error;
}

void wr_deadline_change(struct wr_transfer *transfer, int64_t now)
{
    int64_t at = next_check_at(transfer);

    if (at >= transfer->due_at)
        return;
    wr_heap_remove(&transfer->net->dues, &transfer->due);
    transfer->due_at = at;
    (void)wr_heap_push(&transfer->net->dues, at, &transfer->due); /* cannot fail: room was freed */
    arm_deadline_timer(transfer->net, now);
}

void wr_deadline_end(struct wr_transfer *transfer)
{
    wr_heap_remove(&transfer->net->dues, &transfer->due);
}

/* Returns true if enough bytes arrived in the speed window just ended, and starts the next one. */
static bool is_fast_enough(struct wr_transfer *transfer, int64_t now)
{
    const struct wr_net_options *options = &transfer->net->options;
    uint64_t bytes = wire_bytes(transfer);
    double least = (double)options->speed_min * ((double)(now - transfer->speed_at) / (double)WEIR_SECOND);

    if ((double)(bytes - transfer->speed_bytes) < least)
        return false;
    transfer->speed_at = now;
    transfer->speed_bytes = bytes;
    return true;
}

static void check_deadlines(struct wr_transfer *transfer, int64_t now)
{
    enum wr_net_end end;
    int64_t at = earliest_deadline(transfer, &end);

    if (at > now && transfer->http1.race_at != 0 && transfer->http1.race_at <= now)
        wr_http1_try_next_address(transfer);
    if (transfer->stage == WR_STAGE_ENDED)
        return;
    bool is_held = transfer->body.is_held;
    if (at <= now && !is_held && !(end == WR_NET_TOO_SLOW && is_fast_enough(transfer, now))) {
        wr_transfer_set_end(transfer, end, NULL);
        wr_transfer_end(transfer);
        return;
    }
    transfer->due_at = is_held ? now + HELD_CHECK_NS : next_check_at(transfer);
    (void)wr_heap_push(&transfer->net->dues, transfer->due_at, &transfer->due);
}

void wr_deadline_on_timer(uv_timer_t *timer)
{
    WR_DOING("deadlines");
    struct wr_net *net = timer->data;
    int64_t now = wr_clock_now(net->clock);
    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);
    int64_t at;

    net->due_armed_at = WEIR_FOREVER;
    while (wr_heap_peek(&net->dues, &at) != NULL && at <= now && wr_time_slice_lasts(&slice)) {
        struct wr_heap_item *item = wr_heap_pop(&net->dues);
        check_deadlines((struct wr_transfer *)((char *)item - offsetof(struct wr_transfer, due)), now);
        wr_net_settle(net);
    }
    arm_deadline_timer(net, now); /* fires at once if some are left */
}
