/* SPDX-License-Identifier: MIT */
/* exchange.c - writes request and response records, and the description of a file. */
#include "http/warc/warc_record.h"

#include "core/web/http/field.h"

#define RESPONSE "application/http;msgtype=response"
#define REQUEST "application/http;msgtype=request"
#define PROFILE "http://netpreserve.org/warc/1.1/revisit/"
#define FORMAT "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
#define INFO_MAX 8192
#define INFO_LINE_MAX 256

/* ---- a head that matches the body ------------------------------------------------------------ */

/* Takes the next line, without its end. Returns false if there are no more. */
static bool next_head_line(struct wr_span *rest, struct wr_span *ret_line)
{
    if (rest->bytes == 0)
        return false;
    size_t end = wr_span_find(*rest, '\n');
    struct wr_span line = {rest->data, end};
    *rest = wr_span_after(*rest, end < rest->bytes ? end + 1 : end);
    if (line.bytes > 0 && line.data[line.bytes - 1] == '\r')
        line.bytes--;
    *ret_line = line;
    return true;
}

static bool is_field(struct wr_span line, const char *name)
{
    struct wr_span given = {line.data, wr_span_find(line, ':')};
    return given.bytes < line.bytes && wr_field_is(given, name);
}

static bool is_coding(struct wr_span line)
{
    return is_field(line, "Content-Encoding") || is_field(line, "Transfer-Encoding");
}

static bool has_coding(struct wr_span head)
{
    for (struct wr_span line; next_head_line(&head, &line);)
        if (is_coding(line))
            return true;
    return false;
}

/* Appends the status line. "HTTP/2 200" becomes HTTP/1.1, which archive readers know. */
static void write_status_line(struct wr_buf *buf, struct wr_span line)
{
    size_t blank = wr_span_find(line, ' ');
    bool is_old = line.bytes >= 7 && memcmp(line.data, "HTTP/1.", 7) == 0;
    wr_buf_append_string(buf, is_old ? "" : "HTTP/1.1");
    wr_buf_append_span(buf, is_old ? line : wr_span_after(line, blank));
    wr_buf_append_string(buf, "\r\n");
}

static void write_head(struct wr_buf *buf, const struct wr_warc_exchange *exchange)
{
    bool is_coded = has_coding(exchange->head), is_first = true;
    struct wr_span rest = exchange->head;
    for (struct wr_span line; next_head_line(&rest, &line) && line.bytes > 0; is_first = false) {
        if (is_first) {
            write_status_line(buf, line);
            continue;
        }
        if (is_coded && (is_coding(line) || is_field(line, "Content-Length")))
            wr_buf_append_string(buf, "X-Archive-Orig-");
        wr_buf_append_span(buf, line);
        wr_buf_append_string(buf, "\r\n");
    }
    if (is_coded && !exchange->is_unchanged) {
        wr_buf_append_string(buf, "Content-Length: ");
        wr_buf_append_u64(buf, exchange->body.bytes);
        wr_buf_append_string(buf, "\r\n");
    }
    wr_buf_append_string(buf, "\r\n");
}

/* ---- records --------------------------------------------------------------------------------- */

static void add_target(struct wr_warc *warc, const struct wr_warc_exchange *exchange)
{
    wr_warc_record_field(warc, "WARC-Target-URI", exchange->url);
    if (exchange->address != NULL) {
        wr_buf_append_string(&warc->fields, "WARC-IP-Address: ");
        wr_address_append(&warc->fields, exchange->address);
        wr_buf_append_string(&warc->fields, "\r\n");
    }
    if (exchange->is_http2)
        wr_warc_record_field(warc, "WARC-Protocol", wr_span_of("h2"));
}

static void add_revisit(struct wr_warc *warc, const struct wr_warc_exchange *exchange)
{
    const struct wr_warc_original *original = exchange->original;
    wr_warc_record_field(
        warc, "WARC-Profile",
        wr_span_of(exchange->is_unchanged ? PROFILE "server-not-modified" : PROFILE "identical-payload-digest"));
    wr_warc_record_field(warc, "WARC-Refers-To-Target-URI", original != NULL ? original->url : exchange->url);
    if (original == NULL)
        return;
    wr_buf_append_string(&warc->fields, "WARC-Refers-To-Date: ");
    wr_warc_record_date(&warc->fields, original->wall_at);
    wr_buf_append_string(&warc->fields, "\r\n");
}

static int append_response(struct wr_warc *warc, const struct wr_warc_exchange *exchange, const char *id,
                           struct wr_buf *buf)
{
    bool is_revisit = exchange->is_unchanged || exchange->original != NULL;
    wr_warc_record_begin(warc, is_revisit ? "revisit" : "response", id, exchange->wall_at);
    add_target(warc, exchange);
    if (is_revisit)
        add_revisit(warc, exchange);
    if (!exchange->is_unchanged) /* a 304 has no payload */
        wr_warc_record_digest(warc, "WARC-Payload-Digest", exchange->digest);
    if (exchange->truncated != NULL)
        wr_warc_record_field(warc, "WARC-Truncated", wr_span_of(exchange->truncated));
    wr_warc_record_field(warc, "Content-Type", wr_span_of(RESPONSE));
    wr_buf_clear(&warc->head);
    write_head(&warc->head, exchange);
    if (warc->head.error != 0)
        return warc->head.error;
    struct wr_span body = is_revisit ? (struct wr_span){NULL, 0} : exchange->body;
    return wr_warc_record_end(warc, wr_buf_from(&warc->head, 0), body, buf);
}

static int append_request(struct wr_warc *warc, const struct wr_warc_exchange *exchange, const char *response,
                          struct wr_buf *buf)
{
    char id[WR_WARC_ID];
    int error = wr_warc_record_id(id);
    if (error != 0)
        return error;
    wr_warc_record_begin(warc, "request", id, exchange->wall_at);
    add_target(warc, exchange);
    wr_warc_record_field(warc, "WARC-Concurrent-To", wr_span_of(response));
    wr_warc_record_field(warc, "Content-Type", wr_span_of(REQUEST));
    return wr_warc_record_end(warc, exchange->request, (struct wr_span){NULL, 0}, buf);
}

int wr_warc_append_exchange(struct wr_warc *warc, const struct wr_warc_exchange *exchange, struct wr_buf *buf)
{
    char id[WR_WARC_ID];
    int error = wr_warc_record_id(id);
    if (error == 0)
        error = append_response(warc, exchange, id, buf);
    if (error == 0 && exchange->request.bytes > 0)
        error = append_request(warc, exchange, id, buf);
    return error;
}

/* ---- the file description -------------------------------------------------------------------- */

static void add_info_line(struct wr_buf *buf, const char *name, struct wr_span value)
{
    wr_buf_append_string(buf, name);
    wr_buf_append_string(buf, ": ");
    wr_buf_append_span(buf, value);
    wr_buf_append_string(buf, "\r\n");
}

int wr_warc_append_info(struct wr_warc *warc, const struct wr_warc_info *info, struct wr_buf *buf)
{
    char id[WR_WARC_ID];
    int error = wr_warc_record_id(id);
    if (error != 0)
        return error;
    wr_warc_record_begin(warc, "warcinfo", id, info->wall_at);
    wr_warc_record_field(warc, "WARC-Filename", info->name);
    wr_warc_record_field(warc, "Content-Type", wr_span_of("application/warc-fields"));
    wr_buf_clear(&warc->head);
    add_info_line(&warc->head, "software", info->software);
    add_info_line(&warc->head, "format", wr_span_of("WARC File Format 1.1"));
    add_info_line(&warc->head, "conformsTo", wr_span_of(FORMAT));
    add_info_line(&warc->head, "isPartOf", info->part_of);
    add_info_line(&warc->head, "robots", wr_span_of(info->obeys_robots ? "obey" : "ignore"));
    add_info_line(&warc->head, "http-header-user-agent", info->agent);
    if (warc->head.error != 0)
        return warc->head.error;
    return wr_warc_record_end(warc, wr_buf_from(&warc->head, 0), (struct wr_span){NULL, 0}, buf);
}

/* Unpacks a gzipped record, as far as it is valid and fits into `memory`. */
static struct wr_span unpack_record(struct wr_span packed, char *memory, size_t bytes)
{
    z_stream inflation = {.next_in = (Bytef *)(uintptr_t)packed.data,
                          .avail_in = (uInt)packed.bytes,
                          .next_out = (Bytef *)memory,
                          .avail_out = (uInt)bytes};
    if (inflateInit2(&inflation, MAX_WBITS + WR_WARC_GZIP) != Z_OK)
        return (struct wr_span){memory, 0};
    (void)inflate(&inflation, Z_SYNC_FLUSH);
    size_t unpacked = bytes - inflation.avail_out;
    (void)inflateEnd(&inflation);
    return (struct wr_span){memory, unpacked};
}

bool wr_warc_is_part_of(struct wr_span first, struct wr_span part_of)
{
    char memory[INFO_MAX], line[INFO_LINE_MAX];
    struct wr_buf buf;
    struct wr_span info = unpack_record(first, memory, sizeof memory);
    wr_buf_init_fixed(&buf, line, sizeof line);
    wr_buf_append_string(&buf, "\r\n");
    add_info_line(&buf, "isPartOf", part_of);
    return buf.error == 0 && memmem(info.data, info.bytes, line, buf.length) != NULL;
}
