/* SPDX-License-Identifier: MIT */
/* lean_answer.c - reads a response: lines of heads, body, trailer, and its end (RFC 9112 6.3). */
#include "shell/net/state.h"

#include "core/rules/http/field.h"
#include "shell/loop/round.h"

#include <errno.h>
#include <sys/socket.h>

#define READS_MAX 4 /* most reads of a connection at once: others wait */

static void refuse(struct wr_transfer *transfer, const char *words)
{
    wr_transfer_set_end(transfer, WR_NET_PROTOCOL, words);
}

/* ---- the head ---- */

/* Returns true if the bytes can begin a status line. Otherwise sets the end of the transfer. */
static bool begins_well(struct wr_transfer *transfer, struct wr_span line)
{
    static const char begin[] = "HTTP/1.";
    size_t bytes = line.bytes < sizeof begin - 1 ? line.bytes : sizeof begin - 1;

    if (memcmp(line.data, begin, bytes) != 0) {
        refuse(transfer, bytes < 5 || memcmp(line.data, begin, 5) != 0
                             ? "neither HTTP/1.1 nor HTTP/1.0; perhaps HTTP/0.9"
                             : "a version of HTTP that nobody asked for");
        return false;
    }
    if (line.bytes < sizeof begin)
        return true;
    char minor = line.data[sizeof begin - 1];
    transfer->lean.version = (uint8_t)(10 + minor - '0');
    if (minor != '0' && minor != '1')
        refuse(transfer, "a version of HTTP that nobody asked for");
    return !transfer->has_end;
}

/* Returns true if the connection persists: "close" or "keep-alive" in Connection (RFC 9112 9.3). */
static bool is_kept(const struct wr_transfer *transfer)
{
    bool is_kept = transfer->lean.version == 11;
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
static enum wr_frame frame_of(const struct wr_transfer *transfer)
{
    const struct wr_head *head = &transfer->head;
    struct wr_span coding;

    if (transfer->lean.is_head || head->status == 204 || head->status == 304 || head->length == 0)
        return WR_FRAME_WHOLE;
    if (head->has_transfer && wr_head_find(head, "Transfer-Encoding", &coding) && wr_field_is(coding, "chunked"))
        return WR_FRAME_CHUNKS;
    return head->length > 0 ? WR_FRAME_LENGTH : WR_FRAME_CLOSE;
}

static void begin_body(struct wr_transfer *transfer)
{
    struct wr_lean_part *lean = &transfer->lean;

    lean->frame = frame_of(transfer);
    lean->left = transfer->head.length > 0 ? (uint64_t)transfer->head.length : 0;
    wr_chunks_init(&lean->chunks);
    lean->is_kept = lean->frame != WR_FRAME_CLOSE && is_kept(transfer) &&
                    /* HTTP/1.0 has no chunks. */
                    !(lean->version == 10 && lean->frame == WR_FRAME_CHUNKS);
}

/* ---- lines ---- */

/* Returns true and the next line, which may have begun in an earlier read; false if incomplete. */
static bool next_line(struct wr_transfer *transfer, struct wr_span *rest, struct wr_span *ret_line)
{
    struct wr_buf *kept = &transfer->lean.line;
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

static bool is_empty(struct wr_span line)
{
    return line.data[0] == '\n' || (line.bytes == 2 && line.data[0] == '\r');
}

static void take_line(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_lean_part *lean = &transfer->lean;
    struct wr_span line;
    bool is_whole = next_line(transfer, rest, &line);

    if (transfer->has_end || line.data == NULL ||
        (wr_head_wants_status(&transfer->head) && !begins_well(transfer, line)) || !is_whole)
        return;
    bool is_last = lean->frame == WR_FRAME_TRAILER && is_empty(line);
    bool goes_on = wr_tell_line(transfer, line);
    wr_buf_clear(&lean->line);
    if (!goes_on)
        return;
    if (is_last)
        lean->frame = WR_FRAME_WHOLE;
    else if (lean->frame == WR_FRAME_HEAD && wr_head_is_whole(&transfer->head))
        begin_body(transfer);
}

/* ---- the body ---- */

static void take_counted(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_lean_part *lean = &transfer->lean;
    size_t bytes = rest->bytes < lean->left ? rest->bytes : (size_t)lean->left;
    struct wr_span piece = {rest->data, bytes};

    *rest = wr_span_after(*rest, bytes);
    lean->left -= bytes;
    if (lean->left == 0)
        lean->frame = WR_FRAME_WHOLE;
    (void)wr_body_take(transfer, piece);
}

static void take_chunk(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_lean_part *lean = &transfer->lean;
    struct wr_span piece;

    switch (wr_chunks_next(&lean->chunks, rest, &piece)) {
    case WR_CHUNKS_BODY:
        (void)wr_body_take(transfer, piece);
        break;
    case WR_CHUNKS_LAST:
        lean->frame = WR_FRAME_TRAILER;
        break;
    case WR_CHUNKS_BAD:
        refuse(transfer, "a chunk that is none");
        break;
    case WR_CHUNKS_MORE:
        break;
    }
}

/* ---- received bytes ---- */

static void take(struct wr_transfer *transfer, struct wr_span *rest)
{
    struct wr_lean_part *lean = &transfer->lean;

    while (rest->bytes > 0 && !transfer->has_end && lean->frame != WR_FRAME_WHOLE) {
        switch (lean->frame) {
        case WR_FRAME_HEAD:
        case WR_FRAME_TRAILER:
            take_line(transfer, rest);
            break;
        case WR_FRAME_LENGTH:
            take_counted(transfer, rest);
            break;
        case WR_FRAME_CHUNKS:
            take_chunk(transfer, rest);
            break;
        case WR_FRAME_CLOSE:
            (void)wr_body_take(transfer, *rest);
            rest->bytes = 0;
            break;
        case WR_FRAME_WHOLE:
            break;
        }
    }
}

/* Handles the end of the connection. */
static enum wr_read at_close(struct wr_transfer *transfer, int failure)
{
    if (failure != 0 || transfer->lean.frame != WR_FRAME_CLOSE)
        return WR_READ_BROKE;
    transfer->lean.frame = WR_FRAME_WHOLE;
    return WR_READ_ENDED;
}

enum wr_read wr_lean_read(struct wr_conn *conn, int *ret_errno)
{
    struct wr_transfer *transfer = conn->transfer;
    struct wr_lean_part *lean = &transfer->lean;
    ssize_t bytes = (ssize_t)WR_LEAN_READ_BYTES;

    struct wr_share share = wr_share_begin(WR_SHARE_NS);

    for (int reads = 0;
         reads < READS_MAX && bytes == (ssize_t)WR_LEAN_READ_BYTES && (reads == 0 || wr_share_lasts(&share)); reads++) {
        bytes = recv(conn->fd, transfer->net->lean.bytes, WR_LEAN_READ_BYTES, MSG_DONTWAIT);
        if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return WR_READ_ON;
        *ret_errno = bytes < 0 ? errno : 0;
        if (bytes <= 0)
            return at_close(transfer, *ret_errno);
        lean->received += (uint64_t)bytes;
        wr_tell_first_byte(transfer);
        struct wr_span rest = {transfer->net->lean.bytes, (size_t)bytes};
        take(transfer, &rest);
        if (transfer->is_cancelled)
            wr_transfer_set_end(transfer, WR_NET_CANCELLED, NULL);
        if (rest.bytes > 0) /* extra bytes would be taken for the next response */
            lean->is_kept = false;
        if (!transfer->has_end && wr_body_waits(transfer))
            return WR_READ_WAITS;
        if (transfer->has_end || lean->frame == WR_FRAME_WHOLE)
            return WR_READ_ENDED;
    }
    return WR_READ_ON;
}
