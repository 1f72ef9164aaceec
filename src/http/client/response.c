/* SPDX-License-Identifier: MIT */
/* response.c - builds the response that the caller receives. */
#include "base/alloc.h"
#include "core/web/http/server_limits.h"
#include "http/client/client_extras.h"
#include "http/client/client_internal.h"

static const char *const failure_names[] = {
#define X(failure, name) name,
    WEIR_FAILURES(X)
#undef X
};

const char *weir_failure_name(weir_failure failure)
{
    return (size_t)failure < sizeof failure_names / sizeof failure_names[0] ? failure_names[failure] : "none";
}

/* A response and the texts that it owns. */
struct response {
    weir_response open; /* first member, because it is what the caller sees */
    const weir_allocator *allocator;
    char *body, *url;
    char *head;                            /* format as for wr_fields_find */
    size_t body_room, head_room, url_room; /* bytes allocated */
    char detail[WR_DETAIL_MAX];
    char address[WEIR_ADDRESS_MAX + 1];
};

/* Delivered if there is no memory for a response. Never changed or freed. */
static const struct response no_memory = {
    .open = {.failure = WEIR_FAILURE_INTERNAL,
             .detail = "out of memory",
             .url = "",
             .address = "",
             .body = "",
             .said = WR_NO_LIMITS_REPORTED},
};

static void copy_truncated(char *to, size_t room, const char *from)
{
    size_t bytes = strnlen(from, room - 1);
    memcpy(to, from, bytes);
    to[bytes] = '\0';
}

/* Returns a NUL-terminated copy, or NULL without memory. */
static char *copy_bytes(const weir_allocator *allocator, struct wr_span from, size_t *ret_room)
{
    char *to = wr_alloc(allocator, from.bytes + 1, 1);
    if (to == NULL)
        return NULL;
    if (from.data != NULL)
        memcpy(to, from.data, from.bytes);
    *ret_room = from.bytes + 1;
    return to;
}

static bool take_texts(struct response *response, const struct weir_fetch *fetch, const struct wr_fetch_result *ended)
{
    const weir_allocator *allocator = response->allocator;
    size_t bytes = 0;
    response->url = copy_bytes(allocator, (struct wr_span){fetch->url.text, fetch->url.bytes}, &response->url_room);
    if (response->url == NULL)
        return false;
    if (ended->head != NULL && ended->head->length > 0) {
        response->head = copy_bytes(allocator, wr_buf_from(ended->head, 0), &response->head_room);
        if (response->head == NULL)
            return false;
    }
    if (ended->body != NULL && ended->body->length > 0) {
        if (wr_buf_take_string(ended->body, &response->body, &bytes) != 0)
            return false;
        response->body_room = bytes + 1;
    }
    return true;
}

static void fill_response(struct response *response, const struct weir_fetch *fetch,
                          const struct wr_fetch_result *ended, int64_t now)
{
    copy_truncated(response->detail, sizeof response->detail, ended->detail != NULL ? ended->detail : "");
    copy_truncated(response->address, sizeof response->address, ended->address != NULL ? ended->address : "");
    response->open = (weir_response){
        .status = ended->status,
        .failure = ended->failure,
        .detail = response->detail,
        .url = response->url,
        .address = response->address,
        .body = response->body != NULL ? response->body : "",
        .body_bytes = ended->body_bytes,
        .truncated = ended->is_truncated,
        .hops = fetch->hops,
        .attempts = fetch->sent,
        .waited_ns = fetch->waited_ns,
        .waited_for = fetch->waited_for,
        .latency_ns = ended->latency_ns,
        .total_ns = now - fetch->began_at,
        .said = ended->said,
        .robots_line = fetch->robots_line,
    };
}

weir_response *wr_response_new(const struct weir_fetch *fetch, const struct wr_fetch_result *ended, int64_t now)
{
    const weir_allocator *allocator = fetch->client->allocator;
    struct response *response = wr_alloc(allocator, sizeof *response, _Alignof(struct response));
    if (response == NULL)
        return (weir_response *)&no_memory.open;
    response->allocator = allocator;
    if (!take_texts(response, fetch, ended)) {
        weir_response_free(&response->open);
        return (weir_response *)&no_memory.open;
    }
    fill_response(response, fetch, ended, now);
    return &response->open;
}

void weir_response_free(weir_response *open)
{
    struct response *response = (struct response *)open;
    if (open == NULL || open == &no_memory.open)
        return;
    wr_free(response->allocator, response->body, response->body_room, 1);
    wr_free(response->allocator, response->head, response->head_room, 1);
    wr_free(response->allocator, response->url, response->url_room, 1);
    wr_free(response->allocator, response, sizeof *response, _Alignof(struct response));
}

const char *weir_response_header(const weir_response *open, const char *name)
{
    const struct response *response = (const struct response *)open;
    if (open == NULL || name == NULL || response->head == NULL)
        return NULL;
    return wr_fields_find(response->head, response->head_room - 1, name);
}

bool wr_response_next_field(const weir_response *open, size_t *cursor, struct wr_span *ret_name,
                            struct wr_span *ret_value)
{
    const struct response *response = (const struct response *)open;
    if (response->head == NULL || *cursor >= response->head_room - 1)
        return false;
    *ret_name = wr_span_of(response->head + *cursor);
    *cursor += ret_name->bytes + 1;
    *ret_value = wr_span_of(response->head + *cursor);
    *cursor += ret_value->bytes + 1;
    return true;
}
