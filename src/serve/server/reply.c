/* SPDX-License-Identifier: MIT */
/* reply.c - writes responses and streams. */
#include "serve/server/http_server_internal.h"

#include "base/json.h"

#include <sys/socket.h>
#include <time.h>

/* ---- response headers ---- */

static const char *status_line_of(int status)
{
    switch (status) {
#define X(number, words) \
    case number:         \
        return "HTTP/1.1 " #number " " words "\r\n";
        X(200, "OK")
        X(201, "Created")
        X(202, "Accepted")
        X(204, "No Content")
        X(303, "See Other")
        X(304, "Not Modified")
        X(400, "Bad Request")
        X(401, "Unauthorized")
        X(403, "Forbidden")
        X(404, "Not Found")
        X(405, "Method Not Allowed")
        X(408, "Request Timeout")
        X(409, "Conflict")
        X(413, "Content Too Large")
        X(414, "URI Too Long")
        X(415, "Unsupported Media Type")
        X(417, "Expectation Failed")
        X(421, "Misdirected Request")
        X(429, "Too Many Requests")
        X(431, "Request Header Fields Too Large")
        X(500, "Internal Server Error")
        X(501, "Not Implemented")
        X(503, "Service Unavailable")
        X(505, "HTTP Version Not Supported")
#undef X
    default:
        return NULL;
    }
}

/* Starts the header of every response. */
static void append_status_line(struct wr_buf *buf, int status)
{
    const char *line = status_line_of(status);
    if (line != NULL)
        wr_buf_append_string(buf, line);
    else {
        wr_buf_append_string(buf, "HTTP/1.1 ");
        wr_buf_append_u64(buf, (uint64_t)status);
        /* the reason phrase is optional, the space is not (RFC 9112 4) */
        wr_buf_append_string(buf, " \r\n");
    }
    wr_buf_append_string(buf, WR_HTTP_MARK);
}

void wr_http_date_write(char ret_line[WR_HTTP_DATE_BYTES + 1], int64_t wall_s)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = (time_t)wall_s;
    struct tm tm = {0};
    struct wr_buf buf;
    (void)gmtime_r(&now, &tm);
    wr_buf_init_fixed(&buf, ret_line, WR_HTTP_DATE_BYTES + 1);
    wr_buf_append_string(&buf, "Date: ");
    wr_buf_append_string(&buf, days[tm.tm_wday]);
    const int numbers[] = {tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec};
    const char *const before[] = {", ", " ", ":", ":"};
    for (int i = 0; i < 4; i++) {
        wr_buf_append_string(&buf, before[i]);
        wr_buf_append_char(&buf, (char)('0' + numbers[i] / 10));
        wr_buf_append_char(&buf, (char)('0' + numbers[i] % 10));
        if (i > 0)
            continue;
        wr_buf_append_char(&buf, ' ');
        wr_buf_append_string(&buf, months[tm.tm_mon]);
        wr_buf_append_char(&buf, ' ');
        wr_buf_append_u64(&buf, 1900 + (uint64_t)tm.tm_year);
    }
    wr_buf_append_string(&buf, " GMT\r\n");
}

static void append_connection(struct wr_buf *buf, bool closes, bool is_old)
{
    if (closes)
        wr_buf_append_string(buf, "Connection: close\r\n");
    else if (is_old)
        wr_buf_append_string(buf, "Connection: keep-alive\r\n");
}

/* Returns the buffer for a response: shared while the connection is read, else a separate one. */
static struct wr_buf *response_buffer(struct wr_http_conn *conn)
{
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    if (conn->is_processing)
        return &loop->out;
    wr_http_buf_empty(loop->server, &loop->late);
    return &loop->late;
}

static struct wr_span error_body(const char *why, char *memory, size_t bytes)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, bytes);
    wr_append_json_text(&buf, "{\"error\": ", wr_span_of(why));
    wr_buf_append_string(&buf, "}\n");
    return wr_buf_from(&buf, 0);
}

/* Builds a response after which the connection closes. Uses only `memory`, of
 * WR_HTTP_FINAL_ERROR_BYTES bytes. */
static struct wr_span final_error_response(const struct wr_http_loop *loop, int status, const char *why, char *memory)
{
    char body_memory[WR_HTTP_FINAL_ERROR_BYTES / 2];
    struct wr_span body = error_body(why, body_memory, sizeof body_memory);
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, WR_HTTP_FINAL_ERROR_BYTES);
    append_status_line(&buf, status);
    wr_buf_append(&buf, loop->date, WR_HTTP_DATE_BYTES);
    wr_buf_append_string(&buf, "Content-Type: application/json\r\nConnection: close\r\nContent-Length: ");
    wr_buf_append_u64(&buf, body.bytes);
    wr_buf_append_string(&buf, "\r\n\r\n");
    wr_buf_append_span(&buf, body);
    assert(buf.error == 0);
    return wr_buf_from(&buf, 0);
}

/* Sends a finished response, unless the connection is being read: then answer_requests sends all at
 * once. */
static void send_response(struct wr_http_conn *conn, const struct wr_buf *buf)
{
    if (conn->is_processing)
        return;
    if (buf->error == 0)
        wr_http_send(conn, wr_buf_from(buf, 0));
    else
        wr_http_final_error(conn, 503, WR_HTTP_NO_MEMORY);
}

static void count_response(struct wr_http_loop *loop, int status)
{
    wr_http_count(&loop->counts.answered[status >= 100 && status < 600 ? status / 100 : 5]);
}

/* ---- responses ---- */

static struct wr_http_conn *conn_of(struct wr_http_exchange *exchange)
{
    return (struct wr_http_conn *)(void *)exchange;
}

/* Ends the exchange. */
static void end_exchange(struct wr_http_conn *conn)
{
    conn->has_exchange = false;
    conn->exchange.gone = NULL;
    conn->exchange.context = NULL;
    if (conn->is_processing)
        return;
    conn->lingers |= conn->closes; /* input that arrived meanwhile was not read */
    wr_http_conn_settle_later(conn);
}

void wr_http_reply(struct wr_http_exchange *exchange, int status, struct wr_span fields, struct wr_span body)
{
    struct wr_http_conn *conn = conn_of(exchange);
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    struct wr_buf *buf = response_buffer(conn);
    bool closes = loop->is_stopping || !wr_request_keeps_alive(exchange->request);
    append_status_line(buf, status);
    wr_buf_append(buf, loop->date, WR_HTTP_DATE_BYTES);
    if (status != 204 && status != 304) {
        wr_buf_append_string(buf, "Content-Length: ");
        wr_buf_append_u64(buf, body.bytes);
        wr_buf_append(buf, "\r\n", 2);
    }
    append_connection(buf, closes, exchange->request->minor == 0);
    wr_buf_append_span(buf, fields);
    wr_buf_append(buf, "\r\n", 2);
    if (exchange->method != WR_METHOD_HEAD && status != 204 && status != 304)
        wr_buf_append_span(buf, body);
    conn->closes |= closes;
    send_response(conn, buf);
    count_response(loop, status);
    end_exchange(conn);
}

void wr_http_refuse(struct wr_http_exchange *exchange, int status, const char *why)
{
    char memory[1024];
    wr_http_reply(exchange, status, WR_HTTP_JSON, error_body(why, memory, sizeof memory));
}

void wr_http_final_error(struct wr_http_conn *conn, int status, const char *why)
{
    char memory[WR_HTTP_FINAL_ERROR_BYTES];
    struct wr_span words = final_error_response(wr_http_conn_loop(conn), status, why, memory);
    if (conn->is_processing)
        wr_buf_append_span(&wr_http_conn_loop(conn)->out, words);
    else
        wr_http_send(conn, words);
    conn->closes = conn->lingers = true;
    count_response(wr_http_conn_loop(conn), status);
}

bool wr_http_final_error_send(struct wr_http_loop *loop, int fd, int status, const char *why)
{
    char memory[WR_HTTP_FINAL_ERROR_BYTES];
    struct wr_span words = final_error_response(loop, status, why, memory);
    count_response(loop, status);
    return send(fd, words.data, words.bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)words.bytes;
}

void wr_http_reply_continue(struct wr_http_conn *conn)
{
    struct wr_buf *buf = response_buffer(conn);
    wr_buf_append_string(buf, "HTTP/1.1 100 Continue\r\n\r\n");
    send_response(conn, buf);
}

/* ---- streams ---- */

void wr_http_stream_begin(struct wr_http_exchange *exchange, int status, struct wr_span fields)
{
    struct wr_http_conn *conn = conn_of(exchange);
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    struct wr_buf *buf = response_buffer(conn);
    append_status_line(buf, status);
    wr_buf_append(buf, loop->date, WR_HTTP_DATE_BYTES);
    append_connection(buf, true, false);
    wr_buf_append_span(buf, fields);
    wr_buf_append(buf, "\r\n", 2);
    /* headers that report an error cannot be followed by events */
    conn->is_broken |= buf->error != 0;
    send_response(conn, buf);
    conn->is_stream = true;
    wr_http_count(&loop->counts.answered[0]);
    wr_http_count(&loop->counts.streams);
}

size_t wr_http_stream_waiting(const struct wr_http_exchange *exchange)
{
    const struct wr_http_conn *conn = (const struct wr_http_conn *)(const void *)exchange;
    return conn->out_bytes - conn->out_at;
}

int wr_http_stream_write(struct wr_http_exchange *exchange, struct wr_span bytes)
{
    struct wr_http_conn *conn = conn_of(exchange);
    struct wr_http_loop *loop = wr_http_conn_loop(conn);
    size_t waiting = wr_http_stream_waiting(exchange);
    if (waiting > 0 && waiting + bytes.bytes > loop->server->options.stream_max)
        return WEIR_E_FULL; /* with an empty buffer, a write of any size is accepted */
    if (conn->is_processing)
        wr_buf_append_span(&loop->out, bytes);
    else
        wr_http_send(conn, bytes);
    if (conn->is_broken || wr_http_has_output(conn))
        wr_http_conn_settle_later(conn);
    return 0;
}

void wr_http_stream_end(struct wr_http_exchange *exchange)
{
    struct wr_http_conn *conn = conn_of(exchange);
    conn->closes = true;
    end_exchange(conn);
}
