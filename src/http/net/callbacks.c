/* SPDX-License-Identifier: MIT */
/* callbacks.c - calls the owner's callbacks, for libcurl and the direct path alike. */
#include "http/net/net_internal.h"

#include "http/loop/watchdog.h"
#include "limiter/clock/clock.h"

#define LATE_NS (20 * WEIR_MICROSECOND)
/* After a shorter delay, the request was most probably written before the process lost the CPU. */
#define STOPPED_NS (50 * WEIR_MILLISECOND)

static bool owner_allows_send(struct wr_transfer *transfer, const struct wr_net_send *send)
{
    return transfer->calls.before_send == NULL || transfer->calls.before_send(transfer->context, send);
}

bool wr_callback_before_send(struct wr_transfer *transfer, const struct wr_address *address, uint16_t port)
{
    struct wr_net_result *result = &transfer->result;
    const struct wr_net_send send = {
        .address = *address, .port = port, .number = result->sends + 1, .now = wr_clock_now(transfer->net->clock)};

    if (result->sends > 0 && !transfer->is_idempotent)
        wr_transfer_set_end(transfer, WR_NET_BROKEN,
                            "the connection was closed already, and the request must not be sent twice");
    bool may_go = !transfer->has_end && !transfer->is_cancelled && owner_allows_send(transfer, &send);
    if (!may_go || transfer->is_cancelled)
        wr_transfer_set_end(transfer, transfer->is_cancelled ? WR_NET_CANCELLED : WR_NET_REFUSED, NULL);
    if (transfer->has_end)
        return false;
    result->address = *address;
    result->port = port;
    result->sends++;
    result->sent_at = send.now;
    wr_deadline_change(transfer, send.now);
    return true;
}

static void report_late(struct wr_transfer *transfer, int64_t now)
{
    if (transfer->is_cancelled)
        return;
    if (transfer->result.first_byte_at == 0) { /* libcurl may have read the response already */
        transfer->result.sent_at = now;
        wr_deadline_change(transfer, now);
    }
    if (transfer->calls.on_late != NULL)
        transfer->calls.on_late(transfer->context, now);
}

void wr_callback_writing(struct wr_transfer *transfer)
{
    int64_t now = wr_clock_now(transfer->net->clock);

    if (now - transfer->result.sent_at >= LATE_NS)
        report_late(transfer, now);
}

void wr_callback_written(struct wr_transfer *transfer)
{
    int64_t now = wr_clock_now(transfer->net->clock);

    if (now - transfer->result.sent_at >= STOPPED_NS)
        report_late(transfer, now);
}

void wr_callback_first_byte(struct wr_transfer *transfer)
{
    if (transfer->result.first_byte_at != 0)
        return;
    wr_memory_guard_mark_grown(transfer);
    transfer->result.first_byte_at = transfer->speed_at = wr_clock_now(transfer->net->clock);
    wr_deadline_change(transfer, transfer->speed_at);
}

static void report_head(struct wr_transfer *transfer)
{
    transfer->is_head_reported = true;
    transfer->result.status = transfer->head.status;
    if (transfer->calls.on_head == NULL || transfer->calls.on_head(transfer->context, &transfer->head))
        return;
    transfer->result.is_truncated = true;
    wr_transfer_set_end(transfer, WR_NET_DONE, NULL);
}

bool wr_callback_line(struct wr_transfer *transfer, struct wr_span line)
{
    WR_DOING("a head");
    wr_callback_first_byte(transfer);
    transfer->net->has_read_certificates |= transfer->is_https;
    if (transfer->calls.on_line != NULL && !transfer->is_cancelled && !wr_head_is_whole(&transfer->head))
        transfer->calls.on_line(transfer->context, line);
    enum wr_head_fault fault = wr_head_line(&transfer->head, line);
    if (fault != WR_HEAD_OK)
        wr_transfer_set_end(transfer, fault == WR_HEAD_MEMORY ? WR_NET_SCARCE : WR_NET_PROTOCOL,
                            wr_head_fault_text(fault));
    if (transfer->is_cancelled)
        wr_transfer_set_end(transfer, WR_NET_CANCELLED, NULL);
    if (!transfer->has_end && wr_head_is_whole(&transfer->head) && !transfer->is_head_reported)
        report_head(transfer);
    return !transfer->has_end;
}

bool wr_callback_body(struct wr_transfer *transfer, const char *data, size_t bytes)
{
    WR_DOING("a body");
    uint64_t left = transfer->body_max - transfer->result.body_bytes;
    size_t wanted = bytes <= left ? bytes : (size_t)left;

    if (transfer->is_cancelled) {
        wr_transfer_set_end(transfer, WR_NET_CANCELLED, NULL);
        return false;
    }
    transfer->result.body_bytes += wanted;
    bool goes_on =
        transfer->calls.on_body == NULL || wanted == 0 || transfer->calls.on_body(transfer->context, data, wanted);
    if (goes_on && wanted == bytes)
        return true;
    transfer->result.is_truncated = true;
    wr_transfer_set_end(transfer, WR_NET_DONE, NULL);
    return false;
}
