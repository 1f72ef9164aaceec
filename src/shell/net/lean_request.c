/* SPDX-License-Identifier: MIT */
/* lean_request.c - builds the bytes of a request: the same lines as libcurl, in the same order. */
#include "shell/net/state.h"

#include "core/rules/http/field.h"

#define REQUEST_MAX ((size_t)16 << 20)
#define KEEP_BYTES 8192 /* largest buffer kept for the next request */

static void add(struct wr_buf *buf, struct wr_span name, struct wr_span value)
{
    wr_buf_append_span(buf, name);
    wr_buf_append_string(buf, value.bytes > 0 ? ": " : ":");
    wr_buf_append_span(buf, value);
    wr_buf_append_string(buf, "\r\n");
}

/* Adds a default field, unless the caller has a field of that name. */
static void add_ours(struct wr_buf *buf, const struct wr_net_request *request, const char *name, const char *value)
{
    for (size_t i = 0; i < request->field_count; i++)
        if (wr_field_is(request->fields[i].name, name))
            return;
    if (value != NULL)
        add(buf, wr_span_of(name), wr_span_of(value));
}

static void add_validator(struct wr_buf *buf, const char *name, struct wr_span value)
{
    if (wr_net_may_echo(value))
        add(buf, wr_span_of(name), value);
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
    add_ours(buf, request, "User-Agent", net->options.agent);
    add_ours(buf, request, "Accept", "*/*");
    add_ours(buf, request, "Accept-Encoding", WR_NET_CODINGS);
    add_validator(buf, "If-None-Match", request->etag);
    add_validator(buf, "If-Modified-Since", request->last_modified);
    for (size_t i = 0; !is_bare && i < request->field_count; i++)
        add(buf, request->fields[i].name, request->fields[i].value);
    wr_buf_append_string(buf, "\r\n");
}

static void set_key(struct wr_transfer *transfer)
{
    struct wr_lean_part *lean = &transfer->lean;
    size_t bytes = strlen(transfer->host);

    memcpy(lean->key, transfer->host, bytes);
    memcpy(lean->key + bytes, &transfer->port, sizeof transfer->port);
    lean->key_bytes = (uint16_t)(bytes + sizeof transfer->port);
}

int wr_lean_set(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    struct wr_lean_part *lean = &transfer->lean;

    if (lean->request.allocator == NULL)
        wr_buf_init(&lean->request, transfer->net->allocator, REQUEST_MAX);
    if (lean->line.allocator == NULL)
        wr_buf_init(&lean->line, transfer->net->allocator, transfer->net->options.head_max);
    lean->is_head = request->method != NULL && strcmp(request->method, "HEAD") == 0;
    lean->is_last = request->is_last;
    lean->is_fresh = lean->is_kept = lean->is_given_up = false;
    lean->version = 0;
    lean->frame = WR_FRAME_HEAD;
    lean->race_at = 0;
    lean->received = 0;
    set_key(transfer);
    wr_net_append_head(&lean->request, transfer->net, request, false);
    return lean->request.error != 0 ? WEIR_E_NOMEM : 0;
}

static void empty(struct wr_buf *buf)
{
    if (buf->room > KEEP_BYTES)
        wr_buf_release(buf);
    else
        wr_buf_clear(buf);
}

void wr_lean_clear(struct wr_transfer *transfer)
{
    empty(&transfer->lean.request);
    empty(&transfer->lean.line);
}

void wr_lean_free(struct wr_transfer *transfer)
{
    wr_lean_clear(transfer);
    wr_buf_release(&transfer->lean.request);
    wr_buf_release(&transfer->lean.line);
}
