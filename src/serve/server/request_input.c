/* SPDX-License-Identifier: MIT */
/* request_input.c - reads input, passes each complete request to the handler, and keeps the
 * rest. */
#include "serve/server/http_server_internal.h"

#include "base/alloc.h"

#include <errno.h>
#include <sys/socket.h>

#define INBOX_LEAST 1024
#define READ_LEAST 4096   /* minimum free space of the inbox before a read */
#define OUT_AT_ONCE 65536 /* bytes of responses gathered before they are sent */

/* ---- inboxes ---- */

static struct wr_http_server *server_of(const struct wr_http_conn *conn)
{
    return wr_http_conn_loop(conn)->server;
}

void wr_http_inbox_drop(struct wr_http_conn *conn)
{
    struct wr_http_inbox *inbox = conn->inbox;
    if (inbox == NULL)
        return;
    wr_http_buffer_release(conn, inbox->room);
    wr_free(server_of(conn)->allocator, inbox, sizeof *inbox + inbox->room, _Alignof(struct wr_http_inbox));
    conn->inbox = NULL;
}

static struct wr_http_inbox *inbox_new(struct wr_http_conn *conn, size_t room)
{
    if (!wr_http_buffer_reserve(conn, room))
        return NULL;
    struct wr_http_inbox *inbox =
        wr_alloc(server_of(conn)->allocator, sizeof *inbox + room, _Alignof(struct wr_http_inbox));
    if (inbox == NULL)
        wr_http_buffer_release(conn, room);
    else
        inbox->room = room;
    return inbox;
}

static void copy_reading(struct wr_http_partial_request *to, const struct wr_http_partial_request *from)
{
    memcpy(to, from,
           offsetof(struct wr_http_partial_request, request.fields) +
               from->request.field_count * sizeof from->request.fields[0]);
}

static void reading_init(struct wr_http_partial_request *reading)
{
    reading->body_bytes = reading->raw_at = 0;
    reading->has_head = reading->is_continued = false;
    wr_request_init(&reading->request);
}

/* Grows the inbox to at least `bytes`. */
static bool inbox_grow(struct wr_http_conn *conn, size_t bytes)
{
    struct wr_http_inbox *old = conn->inbox;
    size_t room = old->room;
    if (bytes <= room)
        return true;
    while (room < bytes)
        room *= 2;
    struct wr_http_inbox *inbox = inbox_new(conn, room);
    if (inbox == NULL)
        return false;
    copy_reading(&inbox->reading, &old->reading);
    memcpy(inbox->text, old->text, old->bytes);
    inbox->bytes = old->bytes;
    wr_http_inbox_drop(conn);
    conn->inbox = inbox;
    return true;
}

void wr_http_inbox_fill(struct wr_http_conn *conn, struct wr_span text)
{
    size_t room = INBOX_LEAST;
    if (text.bytes == 0)
        return;
    while (room < text.bytes)
        room *= 2;
    conn->inbox = inbox_new(conn, room);
    if (conn->inbox == NULL) {
        wr_http_conn_refuse(conn, 503, WR_HTTP_NO_BUFFER);
        return;
    }
    reading_init(&conn->inbox->reading);
    memcpy(conn->inbox->text, text.data, text.bytes);
    conn->inbox->bytes = text.bytes;
    conn->has_pending_input = true;
}

/* ---- one request ---- */

/* Moves the unparsed bytes to the end of the decoded body, which is shorter than the chunks
 * received. Returns the new number of bytes. */
static size_t compact(struct wr_http_partial_request *reading, char *text, size_t bytes)
{
    size_t end = (size_t)reading->request.head_bytes + reading->body_bytes;
    if (!reading->has_head || reading->raw_at == end)
        return bytes;
    memmove(text + end, text + reading->raw_at, bytes - reading->raw_at);
    bytes -= reading->raw_at - end;
    reading->raw_at = (uint32_t)end;
    return bytes;
}

static enum wr_request_step too_large(struct wr_http_partial_request *reading)
{
    reading->request.fault = WR_REQUEST_BODY_LARGE;
    return WR_REQUEST_REFUSED;
}

static enum wr_request_step read_request_head(struct wr_http_conn *conn, struct wr_http_partial_request *reading,
                                              struct wr_span text)
{
    struct wr_request *request = &reading->request;
    enum wr_request_step step = wr_request_head(request, text);
    if (step != WR_REQUEST_HEAD || reading->has_head)
        return step;
    reading->has_head = true;
    reading->raw_at = request->head_bytes;
    if (request->has_length && request->body_bytes > server_of(conn)->options.body_max)
        return too_large(reading);
    if (!reading->is_continued && text.bytes == request->head_bytes && wr_request_expects_continue(request)) {
        reading->is_continued = true;
        wr_http_reply_continue(conn);
    }
    return step;
}

/* Parses one request. On WR_REQUEST_END, the next request begins at raw_at. */
static enum wr_request_step parse_request(struct wr_http_conn *conn, struct wr_http_partial_request *reading,
                                          char *text, size_t bytes)
{
    struct wr_span rest, piece;
    enum wr_request_step step = read_request_head(conn, reading, (struct wr_span){text, bytes});
    if (step != WR_REQUEST_HEAD)
        return step;
    rest = (struct wr_span){text + reading->raw_at, bytes - reading->raw_at};
    while ((step = wr_request_body(&reading->request, &rest, &piece)) == WR_REQUEST_BODY) {
        if (piece.bytes > server_of(conn)->options.body_max - reading->body_bytes)
            return too_large(reading);
        memmove(text + reading->request.head_bytes + reading->body_bytes, piece.data, piece.bytes);
        reading->body_bytes += (uint32_t)piece.bytes;
    }
    reading->raw_at = (uint32_t)(rest.data - text);
    return step;
}

/* ---- the exchange of a request ---- */

/* Sets the spans of the exchange to the present location of the text. */
static void set_exchange_spans(struct wr_http_conn *conn, struct wr_http_partial_request *reading, const char *text)
{
    struct wr_http_exchange *exchange = &conn->exchange;
    struct wr_request *request = &reading->request;
    request->data = text;
    struct wr_span target = wr_request_target(request);
    size_t mark = wr_span_find(target, '?');
    exchange->request = request;
    exchange->path = (struct wr_span){target.data, mark};
    exchange->query = mark < target.bytes ? wr_span_after(target, mark + 1) : (struct wr_span){target.data + mark, 0};
    exchange->host = wr_request_span(request, request->host);
    exchange->body = (struct wr_span){text + request->head_bytes, reading->body_bytes};
}

static void answer_http_request(struct wr_http_conn *conn, struct wr_http_partial_request *reading, const char *text)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    set_exchange_spans(conn, reading, text);
    conn->exchange.method = (enum wr_request_method)reading->request.method;
    conn->has_exchange = conn->is_renewed = true;
    conn->is_fresh = false;
    wr_http_count(&loop->counts.requests);
    if (!wr_http_refuse_cross_origin(&conn->exchange))
        loop->server->options.answer(loop->server->options.context, &conn->exchange);
}

/* ---- all requests in the buffer ---- */

static void flush_responses(struct wr_http_conn *conn)
{
    struct wr_buf *out = &wr_http_conn_loop(conn)->out;
    if (out->error != 0 && !conn->is_broken)
        wr_http_conn_refuse(conn, 503, WR_HTTP_NO_MEMORY);
    else if (out->length > 0 && !conn->is_broken)
        wr_http_send(conn, wr_buf_from(out, 0));
    wr_http_buf_empty(server_of(conn), out);
}

static bool may_continue(const struct wr_http_conn *conn)
{
    return !conn->closes && !conn->has_exchange && !conn->is_broken && !wr_http_has_output(conn);
}

/* Saves the rest of `text` in the inbox. `text` is the loop's buffer or the inbox itself. */
static void keep_input(struct wr_http_conn *conn, struct wr_http_partial_request *reading, char *text, size_t bytes)
{
    if (conn->inbox != NULL) {
        /* otherwise already in place: a slow request must not be moved at each byte */
        if (text != conn->inbox->text)
            memmove(conn->inbox->text, text, bytes);
        conn->inbox->bytes = bytes;
        return;
    }
    size_t room = INBOX_LEAST;
    while (room < bytes)
        room *= 2;
    conn->inbox = inbox_new(conn, room);
    if (conn->inbox == NULL) {
        wr_http_conn_refuse(conn, 503, WR_HTTP_NO_BUFFER);
        return;
    }
    copy_reading(&conn->inbox->reading, reading);
    memcpy(conn->inbox->text, text, bytes);
    conn->inbox->bytes = bytes;
}

/* Saves or drops the remaining input when no further request can be processed now. */
static void keep_or_drop_input(struct wr_http_conn *conn, struct wr_http_partial_request *reading, char *text,
                               size_t bytes)
{
    /* closing with unread input would send a reset and discard the response */
    conn->lingers |= conn->closes && bytes > 0;
    if (bytes == 0 || (conn->closes && !conn->has_exchange)) {
        wr_http_inbox_drop(conn);
        return;
    }
    bytes = conn->has_exchange ? bytes : compact(reading, text, bytes);
    keep_input(conn, reading, text, bytes);
    if (conn->has_exchange && conn->inbox != NULL)
        set_exchange_spans(conn, &conn->inbox->reading, conn->inbox->text);
}

static void refuse_request(struct wr_http_conn *conn, enum wr_request_fault fault)
{
    wr_http_final_error(conn, wr_request_fault_status(fault), wr_request_fault_text(fault));
    wr_http_count(&wr_http_conn_loop(conn)->counts.refused);
}

static void answer_requests(struct wr_http_conn *conn, struct wr_http_partial_request *reading, char *text,
                            size_t bytes)
{
    enum wr_request_step step = WR_REQUEST_END;
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    struct wr_buf *out = &loop->out;
    bool lasts = true; /* processes at least one request, whatever the time slice */
    conn->is_processing = true;
    while (bytes > 0 && may_continue(conn) && lasts) {
        step = parse_request(conn, reading, text, bytes);
        if (step == WR_REQUEST_REFUSED)
            refuse_request(conn, (enum wr_request_fault)reading->request.fault);
        if (step != WR_REQUEST_END)
            break;
        answer_http_request(conn, reading, text);
        if (conn->has_exchange)
            break;
        bytes -= reading->raw_at;
        text += reading->raw_at;
        reading_init(reading);
        if (out->length > OUT_AT_ONCE)
            flush_responses(conn);
        lasts = wr_time_slice_lasts(&loop->round.slice);
    }
    flush_responses(conn);
    conn->is_processing = false;
    conn->has_pending_input = step != WR_REQUEST_MORE && bytes > 0;
    keep_or_drop_input(conn, reading, text, bytes);
}

/* ---- entry points ---- */

static bool drop_input(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    ssize_t count = recv(conn->fd, loop->in, sizeof loop->in, MSG_DONTWAIT);
    if (count < 0)
        return errno == EAGAIN || errno == EINTR;
    conn->dropped += (uint32_t)count;
    return count > 0 && conn->dropped <= WR_REQUEST_DRAIN_MAX;
}

static bool read_into_inbox(struct wr_http_conn *conn)
{
    if (!inbox_grow(conn, conn->inbox->bytes + READ_LEAST)) {
        wr_http_conn_refuse(conn, 503, WR_HTTP_NO_BUFFER);
        return true;
    }
    struct wr_http_inbox *inbox = conn->inbox;
    size_t room = inbox->room - inbox->bytes;
    /* a limit per read, so that other connections get their turn */
    room = room < WR_HTTP_READ_BYTES ? room : WR_HTTP_READ_BYTES;
    ssize_t count = recv(conn->fd, inbox->text + inbox->bytes, room, MSG_DONTWAIT);
    if (count <= 0)
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    inbox->bytes += (size_t)count;
    answer_requests(conn, &inbox->reading, inbox->text, inbox->bytes);
    return true;
}

bool wr_http_read(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (conn->wait == WR_WAIT_LINGER)
        return drop_input(conn);
    if (conn->has_pending_input) /* buffered requests come first; wr_http_conn_settle processes them */
        return true;
    if (conn->inbox != NULL)
        return read_into_inbox(conn);
    ssize_t count = recv(conn->fd, loop->in, sizeof loop->in, MSG_DONTWAIT);
    if (count <= 0)
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    reading_init(&loop->reading);
    answer_requests(conn, &loop->reading, loop->in, (size_t)count);
    return true;
}

void wr_http_read_buffered(struct wr_http_conn *conn)
{
    struct wr_http_inbox *inbox = conn->inbox;
    conn->has_pending_input = false;
    if (inbox != NULL)
        answer_requests(conn, &inbox->reading, inbox->text, inbox->bytes);
}

/* Continues with the input behind a request whose response was given later. */
void wr_http_inbox_next(struct wr_http_conn *conn)
{
    struct wr_http_inbox *inbox = conn->inbox;
    size_t used = inbox->reading.raw_at;
    conn->is_held = false;
    inbox->bytes -= used;
    conn->has_pending_input = inbox->bytes > 0;
    if (!conn->has_pending_input) {
        wr_http_inbox_drop(conn);
        return;
    }
    memmove(inbox->text, inbox->text + used, inbox->bytes);
    reading_init(&inbox->reading);
}
