/* SPDX-License-Identifier: MIT */
/* http1_request.c - builds the bytes of a request: the same lines as libcurl, in the same order. */
#include "http/net/net_internal.h"

#include "core/web/http/field.h"

#define REQUEST_MAX ((size_t)16 << 20)
#define KEEP_BYTES 8192 /* largest buffer kept for the next request */

static void add_field_line(struct wr_buf *buf, struct wr_span name, struct wr_span value)
{
    wr_buf_append_span(buf, name);
    wr_buf_append_string(buf, value.bytes > 0 ? ": " : ":");
    wr_buf_append_span(buf, value);
    wr_buf_append_string(buf, "\r\n");
}

/* Adds a default field, unless the caller has a field of that name. */
static void add_default_field(struct wr_buf *buf, const struct wr_net_request *request, const char *name,
                              const char *value)
{
    for (size_t i = 0; i < request->field_count; i++)
        if (wr_field_is(request->fields[i].name, name))
            return;
    if (value != NULL)
        add_field_line(buf, wr_span_of(name), wr_span_of(value));
}

static void add_validator_field(struct wr_buf *buf, const char *name, struct wr_span value)
{
    if (wr_net_validator_is_usable(value))
        add_field_line(buf, wr_span_of(name), value);
}

void wr_net_append_head(struct wr_buf *buf, const struct wr_net *net, const struct wr_net_request *request,
                        bool is_bare)
{
    const struct wr_url *url = request->url;

    wr_buf_append_string(buf, request->method != NULL ? request->method : "GET");
    wr_buf_append_char(buf, ' ');
    wr_buf_append_span(buf, wr_url_target(url));
    wr_buf_append_string(buf, " HTTP/1.1\r\nHost: ");
    wr_buf_append_span(buf, wr_url_part(url, url->host_at, url->path_at));
    wr_buf_append_string(buf, "\r\n");
    add_default_field(buf, request, "User-Agent", net->options.agent);
    add_default_field(buf, request, "Accept", "*/*");
    add_default_field(buf, request, "Accept-Encoding", WR_NET_CODINGS);
    add_validator_field(buf, "If-None-Match", request->etag);
    add_validator_field(buf, "If-Modified-Since", request->last_modified);
    for (size_t i = 0; !is_bare && i < request->field_count; i++)
        add_field_line(buf, request->fields[i].name, request->fields[i].value);
    wr_buf_append_string(buf, "\r\n");
}

static void set_conn_key(struct wr_transfer *transfer)
{
    struct wr_http1_transfer *http1 = &transfer->http1;
    size_t bytes = strlen(transfer->host);

    memcpy(http1->key, transfer->host, bytes);
    memcpy(http1->key + bytes, &transfer->port, sizeof transfer->port);
    http1->key_bytes = (uint16_t)(bytes + sizeof transfer->port);
}

int wr_http1_set_request(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    struct wr_http1_transfer *http1 = &transfer->http1;

    if (http1->request.allocator == NULL)
        wr_buf_init(&http1->request, transfer->net->allocator, REQUEST_MAX);
    if (http1->line.allocator == NULL)
        wr_buf_init(&http1->line, transfer->net->allocator, transfer->net->options.head_max);
    http1->is_head = request->method != NULL && strcmp(request->method, "HEAD") == 0;
    http1->is_last = request->is_last;
    http1->is_fresh = http1->is_kept = http1->is_given_up = false;
    http1->version = 0;
    http1->frame = WR_FRAMING_HEAD;
    http1->race_at = 0;
    http1->received = 0;
    set_conn_key(transfer);
    wr_net_append_head(&http1->request, transfer->net, request, false);
    return http1->request.error != 0 ? WEIR_E_NOMEM : 0;
}

static void empty_buffer(struct wr_buf *buf)
{
    if (buf->room > KEEP_BYTES)
        wr_buf_release(buf);
    else
        wr_buf_clear(buf);
}

void wr_http1_clear(struct wr_transfer *transfer)
{
    empty_buffer(&transfer->http1.request);
    empty_buffer(&transfer->http1.line);
}

void wr_http1_free(struct wr_transfer *transfer)
{
    wr_http1_clear(transfer);
    wr_buf_release(&transfer->http1.request);
    wr_buf_release(&transfer->http1.line);
}
