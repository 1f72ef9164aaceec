/* SPDX-License-Identifier: MIT */
/* client_fetch.c - one fetch: checks and copies its options, moves it between its states, and ends
 * it. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/web/http/field.h"
#include "core/web/http/server_limits.h"
#include "core/web/url/redirect.h"
#include "http/client/client_internal.h"
#include "http/net/idna.h"

#define TEXTS_MAX ((size_t)1 << 20)
#define SHOWN_MAX 2000 /* bytes shown of an invalid URL */

/* ---- checks ---- */

static int check_validator(const char *value, const char *what)
{
    if (value == NULL || (value[0] != '\0' && wr_header_value_ok(value)))
        return 0;
    return wr_invalid_text(what, value, strlen(value), "empty, or with a control character", WR_NOWHERE,
                           "it must be one line");
}

static int check_fetch_method(const weir_fetch_options *options)
{
    const char *method = options->method != NULL ? options->method : "GET";
    if (!wr_method_ok(method) || strcmp(method, "CONNECT") == 0)
        return wr_invalid("method must be 1 to 20 letters, such as GET, and not CONNECT");
    if (options->body_bytes > 0 && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0))
        return wr_invalid("GET and HEAD have no body; set method to POST, PUT or the like");
    return 0;
}

static int check_fetch_options(const weir_fetch_options *options)
{
    if (options->size != sizeof *options)
        return wr_invalid("options->size is not that of weir_fetch_options; use weir_fetch_options_init");
    if (check_fetch_method(options) != 0)
        return WEIR_E_INVAL;
    if (options->key != NULL && (options->key[0] == '\0' || strlen(options->key) > WEIR_PACE_KEY_MAX))
        return wr_invalid("key must be 1 to WEIR_PACE_KEY_MAX bytes; hash longer keys first");
    if (options->body == NULL && options->body_bytes > 0)
        return wr_invalid("body is NULL, but body_bytes is not 0");
    if (options->deadline_ns != WEIR_FOREVER && (options->deadline_ns < 0 || options->deadline_ns > WEIR_DURATION_MAX))
        return wr_invalid("deadline_ns must be 1 ns to WEIR_DURATION_MAX, WEIR_FOREVER, or 0 for the client's");
    if (options->max_body_bytes > WR_NET_BODY_MAX)
        return wr_invalid("max_body_bytes must be 1 to 2^40, or 0 for the client's");
    if (check_validator(options->etag, "etag") != 0 || check_validator(options->last_modified, "last_modified") != 0)
        return WEIR_E_INVAL;
    return 0;
}

/* ---- copies ---- */

/* Offsets of the texts in the fetch's block. */
struct fetch_text_offsets {
    size_t method, headers, key, authorization, etag, last_modified;
};

static size_t append_authorization(struct wr_buf *buf, const weir_fetch_options *options, const struct wr_url *url)
{
    size_t at = buf->length;
    size_t user_at = url->is_https ? sizeof "https://" - 1 : sizeof "http://" - 1;
    bool is_given = false;
    for (const char *const *line = options->headers; line != NULL && *line != NULL; line++)
        is_given = is_given || wr_field_is(wr_header_name(*line), "Authorization");
    if (!wr_url_has_userinfo(url) || is_given)
        return WR_NO_TEXT;
    wr_headers_append_basic(buf, wr_url_part(url, user_at, (size_t)url->host_at - 1));
    return at;
}

static int pack_fetch_texts(struct wr_buf *buf, const weir_fetch_options *options, const struct wr_url *url,
                            struct fetch_text_offsets *ret_places)
{
    ret_places->method = wr_text_append(buf, options->method);
    ret_places->key = wr_text_append(buf, options->key);
    ret_places->etag = wr_text_append(buf, options->etag);
    ret_places->last_modified = wr_text_append(buf, options->last_modified);
    ret_places->authorization = append_authorization(buf, options, url);
    ret_places->headers = WR_NO_TEXT;
    if (options->headers != NULL) {
        ret_places->headers = buf->length;
        if (wr_headers_pack(buf, options->headers) != 0)
            return WEIR_E_INVAL;
    }
    return buf->error == WEIR_E_SPACE ? wr_invalid("headers have more than 1 MiB") : buf->error;
}

static void init_fetch(struct weir_fetch *fetch, weir_client *client, const weir_fetch_options *options,
                       const struct fetch_text_offsets *places)
{
    fetch->client = client;
    fetch->allocator = client->allocator;
    fetch->due.on_due = wr_fetch_on_timer;
    atomic_init(&fetch->holds, 1);
    fetch->method = options->method != NULL ? wr_text_at(fetch + 1, places->method) : "GET";
    fetch->headers = wr_text_at(fetch + 1, places->headers);
    fetch->key = wr_text_at(fetch + 1, places->key);
    fetch->authorization = wr_text_at(fetch + 1, places->authorization);
    fetch->etag = wr_text_at(fetch + 1, places->etag);
    fetch->last_modified = wr_text_at(fetch + 1, places->last_modified);
    fetch->body = options->body;
    fetch->body_bytes = options->body_bytes;
    fetch->max_body_bytes = options->max_body_bytes != 0 ? options->max_body_bytes : client->options.max_body_bytes;
    fetch->on_body = options->on_body;
    fetch->on_status = options->on_status;
    fetch->body_context = options->context;
    fetch->asks_robots = client->options.robots != WEIR_ROBOTS_IGNORE && !options->ignore_robots;
    fetch->retry = client->retry;
    if (options->attempts != 0)
        fetch->retry.attempts = options->attempts;
    fetch->tries_once = options->attempts == 1;
    int64_t deadline_ns = options->deadline_ns != 0 ? options->deadline_ns : client->options.deadline_ns;
    fetch->began_at = wr_client_now(client);
    fetch->attempts.deadline_at = deadline_ns == WEIR_FOREVER ? WEIR_FOREVER : fetch->began_at + deadline_ns;
}

/* Returns a fetch with its texts behind the struct, or NULL without memory. */
static struct weir_fetch *make_client_fetch(weir_client *client, const weir_fetch_options *options,
                                            const struct wr_buf *texts, const struct fetch_text_offsets *places)
{
    size_t bytes = sizeof(struct weir_fetch) + texts->length;
    struct weir_fetch *fetch = wr_alloc(client->allocator, bytes, _Alignof(struct weir_fetch));
    if (fetch == NULL)
        return NULL;
    fetch->block_bytes = bytes;
    if (texts->length > 0)
        memcpy(fetch + 1, texts->bytes, texts->length);
    init_fetch(fetch, client, options, places);
    return fetch;
}

static int make_fetch_of_url(weir_client *client, struct wr_url *url, char *url_memory,
                             const weir_fetch_options *options, struct weir_fetch **ret_fetch)
{
    struct wr_buf texts;
    struct fetch_text_offsets places;
    wr_buf_init(&texts, client->allocator, TEXTS_MAX);
    int error = pack_fetch_texts(&texts, options, url, &places);
    if (error == 0) {
        wr_url_drop_userinfo(url, url_memory);
        struct weir_fetch *fetch = make_client_fetch(client, options, &texts, &places);
        error = fetch == NULL ? WEIR_E_NOMEM : wr_fetch_set_url(fetch, url);
        if (error == 0)
            *ret_fetch = fetch;
        else if (fetch != NULL)
            wr_fetch_drop(fetch);
    }
    wr_buf_release(&texts);
    return error;
}

/* Reports an invalid URL without its password, because details may be logged. */
static int refuse_url(const char *url, enum wr_url_fault fault)
{
    char shown[SHOWN_MAX + 1];
    wr_url_redact_invalid(wr_span_of(url), shown, sizeof shown);
    (void)wr_invalid_text("url", shown, strlen(shown), wr_url_fault_text(fault), WR_NOWHERE,
                          "it must be an http or https URL");
    return WEIR_E_INVAL;
}

int wr_fetch_new(weir_client *client, const char *url, const weir_fetch_options *options, struct weir_fetch **ret_fetch)
{
    char memory[WR_URL_ROOM];
    struct wr_url parsed;
    weir_fetch_options defaults = {.size = sizeof defaults};
    options = options != NULL ? options : &defaults;
    if (url == NULL)
        return wr_invalid("url is NULL; it must be an http or https URL");
    if (check_fetch_options(options) != 0)
        return WEIR_E_INVAL;
    enum wr_url_fault fault = wr_url_parse(wr_span_of(url), NULL, wr_idna_libidn2(), memory, sizeof memory, &parsed);
    if (fault == WR_URL_MEMORY)
        return WEIR_E_NOMEM;
    if (fault != WR_URL_OK)
        return refuse_url(url, fault);
    return make_fetch_of_url(client, &parsed, memory, options, ret_fetch);
}

int wr_fetch_set_url(struct weir_fetch *fetch, const struct wr_url *url)
{
    const weir_allocator *allocator = fetch->client->allocator;
    char *text = wr_alloc(allocator, (size_t)url->bytes + 1, 1);
    if (text == NULL)
        return WEIR_E_NOMEM;
    memcpy(text, url->text, (size_t)url->bytes + 1);
    if (fetch->url.text != NULL)
        wr_free(allocator, (char *)fetch->url.text, (size_t)fetch->url.bytes + 1, 1);
    fetch->url = *url;
    fetch->url.text = text;
    return 0;
}

void wr_fetch_drop(struct weir_fetch *fetch)
{
    const weir_allocator *allocator = fetch->allocator;
    if (atomic_fetch_sub(&fetch->holds, 1) != 1)
        return;
    if (fetch->url.text != NULL)
        wr_free(allocator, (char *)fetch->url.text, (size_t)fetch->url.bytes + 1, 1);
    wr_free(allocator, fetch, fetch->block_bytes, _Alignof(struct weir_fetch));
}

/* ---- states ---- */

void wr_fetch_add_wait(struct weir_fetch *fetch, weir_reason reason)
{
    int64_t waited_ns = wr_client_now(fetch->client) - fetch->joined_at;
    fetch->waited_ns += waited_ns;
    if (reason == WEIR_REASON_NONE || waited_ns < fetch->longest_ns)
        return;
    fetch->longest_ns = waited_ns;
    fetch->waited_for = reason;
}

void wr_fetch_enqueue(struct weir_fetch *fetch, bool at_front)
{
    if (fetch->place == WR_FETCH_STATE_BACKOFF)
        wr_fetch_add_wait(fetch, fetch->backoff_reason);
    fetch->place = WR_FETCH_STATE_NEW;
    fetch->joined_at = wr_client_now(fetch->client);
    int error = wr_origin_queue_add(fetch, at_front);
    if (error == 0) {
        fetch->place = WR_FETCH_STATE_QUEUED;
        error = wr_client_timer_set(fetch->client, &fetch->due, fetch->attempts.deadline_at);
    }
    if (error != 0)
        wr_fetch_fail(fetch, WEIR_FAILURE_INTERNAL, weir_error_text(error));
}

void wr_fetch_on_timer(struct wr_client_timer *due)
{
    struct weir_fetch *fetch = (struct weir_fetch *)due;
    if (fetch->place == WR_FETCH_STATE_BACKOFF)
        wr_fetch_enqueue(fetch, true);
    else
        wr_fetch_fail(fetch, WEIR_FAILURE_DEADLINE, "not finished before the deadline");
}

void wr_fetch_link_live(struct weir_fetch *fetch)
{
    weir_client *client = fetch->client;
    fetch->prev_live = NULL;
    fetch->next_live = client->live;
    if (client->live != NULL)
        client->live->prev_live = fetch;
    client->live = fetch;
}

static void unlink_live(struct weir_fetch *fetch)
{
    *(fetch->prev_live != NULL ? &fetch->prev_live->next_live : &fetch->client->live) = fetch->next_live;
    if (fetch->next_live != NULL)
        fetch->next_live->prev_live = fetch->prev_live;
}

/* ---- ending ---- */

/* Removes a fetch from timers, origin queue, wire and lists. */
static void withdraw_fetch(struct weir_fetch *fetch)
{
    (void)wr_client_timer_set(fetch->client, &fetch->due, WEIR_FOREVER);
    if (fetch->place == WR_FETCH_STATE_QUEUED)
        wr_origin_queue_remove(fetch);
    else if (fetch->place == WR_FETCH_STATE_BACKOFF)
        wr_fetch_add_wait(fetch, fetch->backoff_reason);
    else if (fetch->place == WR_FETCH_STATE_ON_WIRE)
        wr_wire_request_abandon(fetch);
    wr_origin_queue_release(fetch);
    unlink_live(fetch);
    fetch->place = WR_FETCH_STATE_ENDED;
    /* A later cancel must not use the client, which may be freed by then. */
    atomic_store(&fetch->is_cancelled, true);
}

void wr_fetch_end(struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    weir_client *client = fetch->client;
    withdraw_fetch(fetch);
    if (fetch->robots != NULL) {
        wr_fetch_deliver_robots(fetch, ended);
    } else {
        weir_response *response = wr_response_new(fetch, ended, wr_client_now(client));
        atomic_fetch_add_explicit(&client->finished, 1, memory_order_relaxed);
        (void)atomic_fetch_sub(&client->unfinished, 1);
        fetch->fetched(fetch->context, response);
    }
    wr_fetch_drop(fetch);
}

void wr_fetch_fail(struct weir_fetch *fetch, weir_failure failure, const char *detail)
{
    const struct wr_fetch_result ended = {.failure = failure, .detail = detail, .said = WR_NO_LIMITS_REPORTED};
    wr_fetch_end(fetch, &ended);
}

/* ---- public functions ---- */

int weir_client_fetch_async(weir_client *client, const char *url, const weir_fetch_options *options,
                            weir_fetched *fetched, void *context, weir_fetch **ret_fetch)
{
    struct weir_fetch *fetch;
    if (client == NULL || fetched == NULL)
        return wr_invalid("client and fetched must not be NULL");
    int error = wr_fetch_new(client, url, options, &fetch);
    if (error != 0)
        return error;
    fetch->fetched = fetched;
    fetch->context = context;
    if (ret_fetch != NULL)
        (void)atomic_fetch_add(&fetch->holds, 1);
    error = wr_client_loop_post(client, fetch);
    if (error == 0 && ret_fetch != NULL)
        *ret_fetch = fetch;
    if (error != 0) {
        atomic_store(&fetch->holds, 1);
        wr_fetch_drop(fetch);
    }
    return error;
}

void weir_fetch_cancel(weir_fetch *fetch)
{
    if (fetch != NULL && !atomic_exchange(&fetch->is_cancelled, true))
        wr_client_loop_cancel(fetch);
}

void weir_fetch_free(weir_fetch *fetch)
{
    if (fetch != NULL)
        wr_fetch_drop(fetch);
}
