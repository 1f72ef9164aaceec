/* SPDX-License-Identifier: MIT */
/* easy.c - a transfer's libcurl handle: its options, its callbacks, and its pinned addresses. */
#include "http/net/net_internal.h"

#include "base/alloc.h"
#include "core/web/http/field.h"

#define CONNECT_MS_MAX ((int64_t)86400 * 1000)
/* Most bytes of a proxy's response to CONNECT in one call: some 10 ms. */
#define PROGRESS_CALLS_MAX 16384

/* ---- callbacks ---- */

/* Returns the host to connect to: the proxy, or the target. */
static const char *peer_of(const struct wr_transfer *transfer)
{
    return transfer->net->proxy.is_set ? transfer->net->proxy.host : transfer->host;
}

/* Returns true if a host is an address, which needs no pin. An IPv6 address cannot have one. */
static bool is_address(const char *host)
{
    struct wr_address address;

    return wr_address_parse(wr_span_of(host), &address);
}

/* Called before libcurl looks up a name. Fails, because all names are pinned: any other would be an
 * error in this code. */
static int on_resolve(void *resolver, void *reserved, void *context)
{
    (void)resolver;
    (void)reserved;
    return !is_address(peer_of(context));
}

static int on_send(void *context, char *address, char *local_address, int port, int local_port)
{
    struct wr_transfer *transfer = context;
    struct wr_address to = {.bytes = {0}};

    (void)local_address;
    (void)local_port;
    (void)wr_address_parse(wr_span_of(address), &to);
    if (!wr_callback_before_send(transfer, &to, (uint16_t)port))
        return CURL_PREREQFUNC_ABORT;
    transfer->is_pin_known = true;
    if (!transfer->is_writing) {
        transfer->is_writing = true;
        transfer->next_writing = transfer->net->writing;
        transfer->net->writing = transfer;
    }
    return CURL_PREREQFUNC_OK;
}

/* Returns true if the connection may be kept. libcurl's idle connections cannot be closed on
 * demand, so one must always be left for the direct path. */
static bool may_keep_connection(const struct wr_net *net)
{
    return !net->is_short && !wr_net_is_crowded(net) && net->connections < net->options.connections_max;
}

/* Passes on a header line. A result smaller than the line ends the transfer. */
static size_t on_header(char *data, size_t each, size_t count, void *context)
{
    struct wr_transfer *transfer = context;
    bool was_told = transfer->is_head_reported;

    if (!wr_callback_line(transfer, (struct wr_span){data, each * count}))
        return 0;
    if (transfer->is_head_reported && !was_told && !may_keep_connection(transfer->net)) {
        transfer->has_settings = true;
        (void)curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, 1L);
    }
    return each * count;
}

static size_t on_data(char *data, size_t each, size_t count, void *context)
{
    struct wr_transfer *transfer = context;

    if (wr_transfer_body_is_full(transfer)) {
        transfer->net->paused += !transfer->body.is_paused;
        transfer->body.is_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return wr_transfer_body_take(transfer, (struct wr_span){data, each * count}) ? each * count : 0;
}

/* libcurl reads the body of a proxy's response to CONNECT byte by byte until nothing is left, and
 * calls this function for each byte. In all other cases it calls it a few times per call. Not 0
 * ends the transfer. */
static int on_progress(void *context, curl_off_t wanted, curl_off_t got, curl_off_t to_send, curl_off_t sent)
{
    struct wr_transfer *transfer = context;
    struct wr_net *net = transfer->net;

    (void)wanted, (void)got, (void)to_send, (void)sent;
    net->looks = net->last_progress == transfer ? net->looks + 1 : 0;
    net->last_progress = transfer;
    if (net->looks < PROGRESS_CALLS_MAX)
        return 0;
    wr_transfer_set_end(transfer, net->proxy.is_set ? WR_NET_PROXY : WR_NET_PROTOCOL,
                        "it sends an endless header or control data");
    return 1;
}

/* ---- options shared by all requests ---- */

static void set_time_limits(CURL *easy, const struct wr_net_options *options)
{
    int64_t connect_ms = options->connect_ns / WEIR_MILLISECOND;

    /* libcurl divides this time among the addresses: a dead one leaves time for the next. */
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(connect_ms < 1                ? 1
                            : connect_ms > CONNECT_MS_MAX ? CONNECT_MS_MAX
                                                          : connect_ms));
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)(options->idle_ns / WEIR_SECOND));
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L); /* caches pins only */
}

static void set_proxy(CURL *easy, const struct wr_proxy *proxy)
{
    curl_easy_setopt(easy, CURLOPT_PROXY, proxy->url); /* "" ignores the environment, too */
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (proxy->user[0] != '\0') {
        curl_easy_setopt(easy, CURLOPT_PROXYUSERNAME, proxy->user);
        curl_easy_setopt(easy, CURLOPT_PROXYPASSWORD, proxy->password);
    }
}

static void set_callbacks(struct wr_transfer *transfer)
{
    CURL *easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *)transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error_text);
    curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_resolve);
    curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, wr_socket_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, wr_socket_close);
    /* The context is the net, because a connection outlives its first transfer. */
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer->net);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, transfer);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
}

/* Sets the shared options. libcurl checks the arguments, which are valid, and copies strings. So
 * only the last result shows whether it had memory. */
static int set_shared_options(struct wr_transfer *transfer)
{
    const struct wr_net_options *options = &transfer->net->options;
    CURL *easy = transfer->easy;

    set_callbacks(transfer);
    transfer->net->speaks_http2 = wr_tls_watch(transfer->net, easy);
    set_time_limits(easy, options);
    set_proxy(easy, &transfer->net->proxy);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_SHARE, transfer->share);
    /* With a directory of certificates, libcurl does not cache them and reads all for each
     * connection: 36 ms. */
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
    if (options->ca_file != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
        curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, options->ca_file);
    }
    if (options->agent != NULL)
        curl_easy_setopt(easy, CURLOPT_USERAGENT, options->agent);
    /* libcurl would decode nested codings, a whole piece at once. It also decodes gzip in
     * Transfer-Encoding unasked: such heads are rejected, since 8.14 by libcurl itself. */
    return curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L) == CURLE_OK ? 0 : WEIR_E_NOMEM;
}

int wr_easy_new(struct wr_transfer *transfer)
{
    transfer->easy = curl_easy_init();
    transfer->share = curl_share_init();
    transfer->pin[0] = '\0';
    if (transfer->easy != NULL && transfer->share != NULL &&
        curl_share_setopt(transfer->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS) == CURLSHE_OK &&
        set_shared_options(transfer) == 0)
        return 0;
    wr_easy_free(transfer);
    return WEIR_E_NOMEM;
}

void wr_easy_free(struct wr_transfer *transfer)
{
    if (transfer->easy != NULL)
        curl_easy_cleanup(transfer->easy);
    if (transfer->share != NULL)
        (void)curl_share_cleanup(transfer->share);
    transfer->easy = NULL;
    transfer->share = NULL;
}

/* ---- one request ---- */

/* Appends a line. If that fails, the list is unchanged. */
static int append_to_slist(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);

    if (longer == NULL)
        return WEIR_E_NOMEM;
    *list = longer;
    return 0;
}

static int add_field(struct wr_transfer *transfer, struct wr_span name, struct wr_span value)
{
    struct wr_buf line;

    wr_buf_init(&line, transfer->net->allocator, transfer->net->options.head_max);
    wr_buf_append_span(&line, name);
    /* ';' makes libcurl send an empty field. */
    wr_buf_append_string(&line, value.bytes > 0 ? ": " : ";");
    wr_buf_append_span(&line, value);
    int error = line.error != 0 ? line.error : append_to_slist(&transfer->fields, line.bytes);
    wr_buf_release(&line);
    return error;
}

static int add_validator_header(struct wr_transfer *transfer, const char *name, struct wr_span value)
{
    return wr_net_validator_is_usable(value) ? add_field(transfer, wr_span_of(name), value) : 0;
}

static bool has_field(const struct wr_net_request *request, const char *name)
{
    for (size_t i = 0; i < request->field_count; i++)
        if (wr_field_is(request->fields[i].name, name))
            return true;
    return false;
}

static int set_fields(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    int error = has_field(request, "Accept-Encoding")
                    ? 0
                    : append_to_slist(&transfer->fields, "Accept-Encoding: " WR_NET_CODINGS);

    if (error == 0)
        error = add_validator_header(transfer, "If-None-Match", request->etag);
    if (error == 0)
        error = add_validator_header(transfer, "If-Modified-Since", request->last_modified);
    if (error == 0 && request->body.bytes > 0)
        error = append_to_slist(&transfer->fields, "Expect:"); /* do not wait for "100 Continue" */
    for (size_t i = 0; error == 0 && i < request->field_count; i++)
        error = add_field(transfer, request->fields[i].name, request->fields[i].value);
    if (error == 0 && transfer->fields != NULL)
        curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->fields);
    return error;
}

/* Sets the method. A new handle sends a plain GET; other methods leave settings behind. */
static int set_method(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    CURL *easy = transfer->easy;
    CURLcode code = CURLE_OK;

    if (request->method == NULL || strcmp(request->method, "GET") == 0)
        return 0;
    transfer->has_settings = true;
    if (strcmp(request->method, "HEAD") == 0)
        return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK ? 0 : WEIR_E_NOMEM;
    if (request->body.bytes > 0 || strcmp(request->method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.bytes);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.bytes > 0 ? request->body.data : "");
    }
    code = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    return code == CURLE_OK ? 0 : WEIR_E_NOMEM;
}

/* Allows HTTP/2 only where TLS negotiates it. There a second request waits for the first connection
 * and shares it. */
static void set_http_version(struct wr_transfer *transfer)
{
    curl_easy_setopt(transfer->easy, CURLOPT_HTTP_VERSION,
                     transfer->is_https && transfer->net->speaks_http2 ? (long)CURL_HTTP_VERSION_2TLS
                                                                       : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(transfer->easy, CURLOPT_PIPEWAIT, transfer->is_https ? 1L : 0L);
}

static int set_url(struct wr_transfer *transfer, const struct wr_url *url)
{
    char text[WR_URL_ROOM];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_string(&buf, url->is_https ? "https://" : "http://");
    wr_buf_append_span(&buf, wr_url_part(url, url->host_at, url->fragment_at));
    return curl_easy_setopt(transfer->easy, CURLOPT_URL, text) == CURLE_OK ? 0 : WEIR_E_NOMEM;
}

int wr_easy_set_request(struct wr_transfer *transfer, const struct wr_net_request *request)
{
    int error = set_url(transfer, request->url);

    if (error == 0)
        error = set_fields(transfer, request);
    if (error == 0)
        error = set_method(transfer, request);
    set_http_version(transfer);
    if (request->is_last) {
        transfer->has_settings = true;
        curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, 1L);
    }
    transfer->error_text[0] = '\0';
    return error;
}

void wr_easy_done(struct wr_transfer *transfer, CURLcode code)
{
    wr_easy_forget_connection(transfer);
    transfer->body.is_received = true;
    transfer->body.code = code;
    if (transfer->has_end || !wr_transfer_body_waits(transfer))
        wr_easy_decoded(transfer);
}

static void count_unpaused(struct wr_net *net)
{
    if (--net->paused == 0)
        wr_socket_watch_idle(net);
}

void wr_easy_unpause(struct wr_transfer *transfer)
{
    if (transfer->body.is_paused)
        count_unpaused(transfer->net);
    transfer->body.is_paused = false;
}

/* Continues a paused transfer. libcurl at once delivers data that it has kept, which may pause it
 * anew. */
static void resume_transfer(struct wr_transfer *transfer)
{
    struct wr_net *net = transfer->net;

    if (!transfer->body.is_paused)
        return;
    transfer->body.is_paused = false;
    net->in_curl = true;
    (void)curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
    net->in_curl = false;
    count_unpaused(net); /* only now is known which sockets libcurl uses */
}

void wr_easy_decoded(struct wr_transfer *transfer)
{
    struct wr_transfer_body *body = &transfer->body;

    if (!transfer->has_end && !body->is_received) {
        resume_transfer(transfer);
        return;
    }
    if (!transfer->has_end)
        wr_result_from_curl(transfer, body->code);
    wr_transfer_end(transfer);
}

/* Makes libcurl 7 forget the handle's connection. Otherwise removing the handle scans all
 * connections for one of its own (CONNECT_ONLY). A search in an empty cache finds none, which
 * libcurl then remembers. */
void wr_easy_forget_connection(struct wr_transfer *transfer)
{
    curl_socket_t none;

    if (transfer->net->empty_cache == NULL)
        return;
    curl_easy_setopt(transfer->easy, CURLOPT_SHARE, transfer->net->empty_cache);
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_ACTIVESOCKET, &none);
    curl_easy_setopt(transfer->easy, CURLOPT_SHARE, transfer->share);
}

void wr_easy_clear(struct wr_transfer *transfer)
{
    if (transfer->fields != NULL && transfer->easy != NULL)
        curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(transfer->fields);
    transfer->fields = NULL;
    if (transfer->pins != NULL && transfer->easy != NULL)
        curl_easy_setopt(transfer->easy, CURLOPT_RESOLVE, NULL);
    curl_slist_free_all(transfer->pins);
    transfer->pins = NULL;
    /* Frees the handle if libcurl may not have processed the pin, because the content of its DNS
     * cache is then unknown. A failed reset has the same effect. */
    if (transfer->pin[0] != '\0' && !transfer->is_pin_known) {
        wr_easy_free(transfer);
        return;
    }
    if (!transfer->has_settings || transfer->easy == NULL)
        return;
    transfer->has_settings = false;
    curl_easy_reset(transfer->easy);
    if (set_shared_options(transfer) < 0)
        wr_easy_free(transfer);
}

/* ---- pins ---- */

static int set_pins(struct wr_transfer *transfer, const char *pin)
{
    char removal[WR_NAME_MAX + sizeof "-:65535"];
    struct wr_span old = wr_span_of(transfer->pin);
    struct wr_buf buf;
    int error = 0;

    if (old.bytes > 0) { /* removes "host:port" of the old "host:port:…" */
        size_t host_end = wr_span_find(old, ':');
        size_t port_end = host_end + 1 + wr_span_find(wr_span_after(old, host_end + 1), ':');
        wr_buf_init_fixed(&buf, removal, sizeof removal);
        wr_buf_append_char(&buf, '-');
        wr_buf_append(&buf, old.data, port_end);
        error = append_to_slist(&transfer->pins, removal);
    }
    if (error == 0)
        error = append_to_slist(&transfer->pins, pin);
    if (error == 0)
        curl_easy_setopt(transfer->easy, CURLOPT_RESOLVE, transfer->pins);
    return error;
}

int wr_easy_pin(struct wr_transfer *transfer, const struct wr_dns_answer *answer)
{
    const struct wr_proxy *proxy = &transfer->net->proxy;
    char pin[WR_PIN_MAX];
    struct wr_buf buf;

    if (is_address(peer_of(transfer)))
        return 0;
    wr_buf_init_fixed(&buf, pin, sizeof pin);
    wr_buf_append_string(&buf, peer_of(transfer));
    wr_buf_append_char(&buf, ':');
    wr_buf_append_u64(&buf, proxy->is_set ? proxy->port : transfer->port);
    for (size_t i = 0; i < answer->count; i++) {
        wr_buf_append_char(&buf, i == 0 ? ':' : ',');
        wr_address_append(&buf, &answer->list[i]);
    }
    if (strcmp(pin, transfer->pin) == 0)
        return 0;
    int error = set_pins(transfer, pin);
    if (error < 0)
        return error;
    memcpy(transfer->pin, pin, buf.length + 1);
    transfer->is_pin_known = false;
    return 0;
}
