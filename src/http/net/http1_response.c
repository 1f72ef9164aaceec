/* SPDX-License-Identifier: MIT */
/* http1_response.c - reads a response: lines of heads, body, trailer, and its end (RFC 9112
 * 6.3). */
#include "http/net/net_internal.h"

#include "core/web/http/field.h"
#include "http/loop/round.h"

#include <errno.h>
#include <sys/socket.h>

#define READS_MAX 4 /* most reads of a connection at once: others wait */

static void refuse_response(struct wr_transfer *transfer, const char *words)
{
    wr_transfer_set_end(transfer, WR_NET_PROTOCOL, words);
}

/* ---- the head ---- */

/* Returns true if the bytes can begin a status line. Otherwise sets the end of the transfer. */
static bool has_valid_version(struct wr_transfer *transfer, struct wr_span line)
{
    static const char begin[] = "HTTP/1.";
    size_t bytes = line.bytes < sizeof begin - 1 ? line.bytes : sizeof begin - 1;

    if (memcmp(line.data, begin, bytes) != 0) {
        refuse_response(transfer, bytes < 5 || memcmp(line.data, begin, 5) != 0
                                      ? "neither HTTP/1.1 nor HTTP/1.0; perhaps HTTP/0.9"
                                      : "a version of HTTP that was not requested");
        return false;
    }
    if (line.bytes < sizeof begin)
        return true;
    char minor = line.data[sizeof begin - 1];
    transfer->http1.version = (uint8_t)(10 + minor - '0');
    if (minor != '0' && minor != '1')
        refuse_response(transfer, "a version of HTTP that was not requested");
    return !transfer->has_end;
}

/* Returns true if the connection persists: "close" or "keep-alive" in Connection (RFC 9112 9.3). */
static bool is_persistent(const struct wr_transfer *transfer)
{
    bool is_kept = transfer->http1.version == 11;
    struct wr_span name, value;

    for (size_t cursor = 0; wr_head_next(&transfer->head, &cursor, &name, &value);) {
        if (name.bytes != 10 || !wr_field_is(name, "Connection"))
            continue;
        for (bool more = true; more;) {
            size_t comma = wr_span_find(value, ',');
            struct wr_span word = wr_span_trim((struct wr_span){value.data, comma});
            if (wr_field_is(word, "close"))
                return false;
            is_kept = is_kept || wr_field_is(word, "keep-alive");
            more = comma < value.bytes;
            value = wr_span_after(value, comma + more);
        }
    }
    return is_kept;
}

/* Returns how the body ends. wr_head has rejected heads with both a length and chunks. */
static enum wr_http1_framing framing_of(const struct wr_transfer *transfer)
{
    const struct wr_head *head = &transfer->head;
    struct wr_span coding;

    if (transfer->http1.is_head || head->status == 204 || head->status == 304 || head->length == 0)
        return WR_FRAMING_COMPLETE;
    if (head->has_transfer && wr_head_find(head, "Transfer-Encoding", &coding) && wr_field_is(coding, "chunked"))
        return WR_FRAMING_CHUNKS;
    return head->length > 0 ? WR_FRAMING_LENGTH : WR_FRAMING_CLOSE;
}

static void begin_response_body(struct wr_transfer *transfer)
{
    struct wr_http1_transfer *http1 = &transfer->http1;

    http1->frame = framing_of(transfer);
    http1->left = transfer->head.length > 0 ? (uint64_t)transfer->head.length : 0;
    wr_chunks_init(&http1->chunks);
    http1->is_kept = http1->frame != WR_FRAMING_CLOSE && is_persistent(transfer) &&
                     /* HTTP/1.0 has no chunks. */
                     !(http1->version == 10 && http1->frame == WR_FRAMING_CHUNKS);
}

/* ---- lines ---- */

/* Returns true and the next line, which may have begun in an earlier read; false if incomplete. */
static bool next_response_line(struct wr_transfer *transfer, struct wr_span *rest, struct wr_span *ret_line)
{
    struct wr_buf *kept = &transfer->http1.line;
    size_t end = wr_span_find(*rest, '\n');
    bool is_whole = end < rest->bytes;
    struct wr_span line = {rest->data, end + is_whole};

    *rest = wr_span_after(*rest, line.bytes);
    if (!is_whole || kept->length > 0) {
        wr_buf_append_span(kept, line);
        line = wr_buf_from(kept, 0);
    }
    if (kept->error != 0)
        wr_transfer_set_end(transfer, kept->error == WEIR_E_NOMEM ? WR_NET_SCARCE : WR_NET_PROTOCOL,
                            kept->error == WEIR_E_NOMEM ? NULL : wr_head_fault_text(WR_HEAD_LARGE));
    *ret_line = line;
    return is_whole;
}

static bool is_blank_head_line(struct wr_span line)
{
    return line.data[0] == '\n' || (line.bytes == 2 && line.data[0] == '\r');
}

static void take_head_line(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_http1_transfer *http1 = &transfer->http1;
    struct wr_span line;
    bool is_whole = next_response_line(transfer, rest, &line);

    if (transfer->has_end || line.data == NULL ||
        (wr_head_wants_status(&transfer->head) && !has_valid_version(transfer, line)) || !is_whole)
        return;
    bool is_last = http1->frame == WR_FRAMING_TRAILER && is_blank_head_line(line);
    bool goes_on = wr_callback_line(transfer, line);
    wr_buf_clear(&http1->line);
    if (!goes_on)
        return;
    if (is_last)
        http1->frame = WR_FRAMING_COMPLETE;
    else if (http1->frame == WR_FRAMING_HEAD && wr_head_is_whole(&transfer->head))
        begin_response_body(transfer);
}

/* ---- the body ---- */

static void take_counted_body(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_http1_transfer *http1 = &transfer->http1;
    size_t bytes = rest->bytes < http1->left ? rest->bytes : (size_t)http1->left;
    struct wr_span piece = {rest->data, bytes};

    *rest = wr_span_after(*rest, bytes);
    http1->left -= bytes;
    if (http1->left == 0)
        http1->frame = WR_FRAMING_COMPLETE;
    (void)wr_transfer_body_take(transfer, piece);
}

static void take_chunked_body(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_http1_transfer *http1 = &transfer->http1;
    struct wr_span piece;

    switch (wr_chunks_next(&http1->chunks, rest, &piece)) {
    case WR_CHUNKS_BODY:
        (void)wr_transfer_body_take(transfer, piece);
        break;
    case WR_CHUNKS_LAST:
        http1->frame = WR_FRAMING_TRAILER;
        break;
    case WR_CHUNKS_BAD:
        refuse_response(transfer, "a malformed chunk");
        break;
    case WR_CHUNKS_MORE:
        break;
    }
}

/* ---- received bytes ---- */

static void take_response_bytes(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_http1_transfer *http1 = &transfer->http1;

    while (rest->bytes > 0 && !transfer->has_end && http1->frame != WR_FRAMING_COMPLETE) {
        switch (http1->frame) {
        case WR_FRAMING_HEAD:
        case WR_FRAMING_TRAILER:
            take_head_line(transfer, rest);
            break;
        case WR_FRAMING_LENGTH:
            take_counted_body(transfer, rest);
            break;
        case WR_FRAMING_CHUNKS:
            take_chunked_body(transfer, rest);
            break;
        case WR_FRAMING_CLOSE:
            (void)wr_transfer_body_take(transfer, *rest);
            rest->bytes = 0;
            break;
        case WR_FRAMING_COMPLETE:
            break;
        }
    }
}

/* Handles the end of the connection. */
static enum wr_http1_read_result result_at_close(struct wr_transfer *transfer, int failure)
{
    if (failure != 0 || transfer->http1.frame != WR_FRAMING_CLOSE)
        return WR_HTTP1_READ_BROKEN;
    transfer->http1.frame = WR_FRAMING_COMPLETE;
    return WR_HTTP1_READ_ENDED;
}

enum wr_http1_read_result wr_http1_read(struct wr_http1_conn *conn, int *ret_errno)
{
    struct wr_transfer *transfer = conn->transfer;
    struct wr_http1_transfer *http1 = &transfer->http1;
    ssize_t bytes = (ssize_t)WR_HTTP1_READ_BYTES;

    struct wr_time_slice slice = wr_time_slice_begin(WR_TIME_SLICE_NS);

    for (int reads = 0;
         reads < READS_MAX && bytes == (ssize_t)WR_HTTP1_READ_BYTES && (reads == 0 || wr_time_slice_lasts(&slice));
         reads++) {
        bytes = recv(conn->fd, transfer->net->http1.bytes, WR_HTTP1_READ_BYTES, MSG_DONTWAIT);
        if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return WR_HTTP1_READ_INCOMPLETE;
        *ret_errno = bytes < 0 ? errno : 0;
        if (bytes <= 0)
            return result_at_close(transfer, *ret_errno);
        http1->received += (uint64_t)bytes;
        wr_callback_first_byte(transfer);
        struct wr_span rest = {transfer->net->http1.bytes, (size_t)bytes};
        take_response_bytes(transfer, &rest);
        if (transfer->is_cancelled)
            wr_transfer_set_end(transfer, WR_NET_CANCELLED, NULL);
        if (rest.bytes > 0) /* extra bytes would be taken for the next response */
            http1->is_kept = false;
        if (!transfer->has_end && wr_transfer_body_waits(transfer))
            return WR_HTTP1_READ_DECODING;
        if (transfer->has_end || http1->frame == WR_FRAMING_COMPLETE)
            return WR_HTTP1_READ_ENDED;
    }
    return WR_HTTP1_READ_INCOMPLETE;
}
