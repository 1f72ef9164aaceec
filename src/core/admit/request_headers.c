/* SPDX-License-Identifier: MIT */
/* request_headers.c - reads headers of a request, and finds the address of its client. */
#include "core/admit/request_headers.h"

#include "base/ascii.h"
#include "base/error.h"

void weir_request_init(weir_request *ret_request, const char *method, const char *target, const char *peer)
{
    struct wr_span spans[] = {wr_span_of(method), wr_span_of(target), wr_span_of(peer)};

    if (ret_request == NULL)
        return;
    *ret_request = (weir_request){
        .size = sizeof *ret_request,
        .method = spans[0].data,
        .method_bytes = spans[0].bytes,
        .target = spans[1].data,
        .target_bytes = spans[1].bytes,
        .peer = spans[2].data,
        .peer_bytes = spans[2].bytes,
    };
}

/* Returns true if `name`, which is terminated, equals the `bytes` bytes of `wanted` without
 * case. */
static bool is_header_named(const char *name, const char *wanted, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        /* Ends at the '\0' of `name`, which equals no wanted byte. */
        if (wr_ascii_lower(name[i]) != wr_ascii_lower(wanted[i]))
            return false;
    }
    return name[bytes] == '\0';
}

const char *weir_header_list_find(void *context, const char *name, size_t index, size_t *ret_bytes)
{
    const weir_header_list *list = context;
    size_t bytes = strlen(name);

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const weir_header *header = &list->headers[i];
        if (header->name == NULL || header->value == NULL || !is_header_named(header->name, name, bytes) || index-- > 0)
            continue;
        *ret_bytes = strlen(header->value);
        return header->value;
    }
    return NULL;
}

int wr_request_check(const weir_request *request)
{
    if (request == NULL || request->size != sizeof *request)
        return wr_invalid("the request is NULL or not filled by weir_request_init; fill it first");
    if ((request->method == NULL && request->method_bytes > 0) || (request->host == NULL && request->host_bytes > 0) ||
        (request->target == NULL && request->target_bytes > 0) || (request->peer == NULL && request->peer_bytes > 0))
        return wr_invalid("a text of the request is NULL but has bytes; an unknown text has 0 bytes");
    return 0;
}

bool wr_header_name_ok(const char *name)
{
    if (name == NULL || name[0] == '\0')
        return false;
    for (; *name != '\0'; name++) {
        bool is_capital = wr_ascii_lower(*name) != *name;
        if (is_capital || !(wr_ascii_is_alnum(*name) || *name == '-' || *name == '_'))
            return false;
    }
    return true;
}

static bool header_at(const weir_request *request, const char *name, size_t index, struct wr_span *ret_value)
{
    struct wr_span value = {NULL, 0};

    if (request->header == NULL)
        return false;
    value.data = request->header(request->header_context, name, index, &value.bytes);
    if (value.data == NULL)
        return false;
    *ret_value = wr_span_trim(value);
    return true;
}

weir_request_fault wr_request_header(const weir_request *request, const char *name, struct wr_span *ret_value)
{
    struct wr_span value, second;

    if (!header_at(request, name, 0, &value))
        return WEIR_FAULT_MISSING;
    if (header_at(request, name, 1, &second))
        return WEIR_FAULT_REPEATED; /* the service might use either value */
    if (value.bytes == 0)
        return WEIR_FAULT_MISSING;
    *ret_value = value;
    return WEIR_FAULT_NONE;
}

/* ---- forwarding headers ---------------------------------------------------------------------- */

/* Iterates over the elements of a list header, over all its lines in order (RFC 9110 5.3). */
struct hops {
    const weir_request *request;
    const char *name;
    size_t line; /* index of the next line */
    struct wr_span rest;
};

/* Finds the next element that is not empty. Returns false at the end. */
static bool next_hop(struct hops *hops, struct wr_span *ret_hop)
{
    for (;;) {
        while (hops->rest.bytes == 0) {
            if (!header_at(hops->request, hops->name, hops->line, &hops->rest))
                return false;
            hops->line++;
        }
        size_t comma = wr_span_find(hops->rest, ',');
        struct wr_span hop = wr_span_trim((struct wr_span){hops->rest.data, comma});
        hops->rest = wr_span_after(hops->rest, comma < hops->rest.bytes ? comma + 1 : comma);
        if (hop.bytes > 0) {
            *ret_hop = hop;
            return true;
        }
    }
}

static bool is_trusted(const weir_key_rule *key, const struct wr_address *address)
{
    for (size_t i = 0; i < key->trusted_count; i++) {
        if (wr_network_holds(&key->trusted[i], address))
            return true;
    }
    return false;
}

/* Finds the right-most untrusted hop. If only trusted hops follow the start or an element that is
 * not an address, finds the left-most of them. A walk from the right would stop at the same hop;
 * this one goes from the left, in one pass however long the list is. Returns false if there are no
 * hops. */
static bool last_untrusted(const weir_request *request, const weir_key_rule *key, struct wr_address *ret_address)
{
    struct hops hops = {request, key->header, 0, {NULL, 0}};
    struct wr_address address, best;
    struct wr_span hop;
    bool found = false;

    while (next_hop(&hops, &hop)) {
        if (!wr_address_parse_peer(hop, &address)) {
            found = false;
        } else if (!found || !is_trusted(key, &address)) {
            best = address;
            found = true;
        }
    }
    if (found)
        *ret_address = best;
    return found;
}

/* Returns true if the peer is a Unix socket, as servers write it, or unknown. */
static bool has_no_address(struct wr_span peer)
{
    return peer.bytes == 0 || (peer.bytes >= 5 && memcmp(peer.data, "unix:", 5) == 0);
}

/* Returns true if the peer is a trusted proxy. `address` is the peer's, or NULL if it has none. */
static bool is_proxy(const weir_key_rule *key, struct wr_span peer, const struct wr_address *address)
{
    return address != NULL ? is_trusted(key, address) : key->trust_unix && has_no_address(peer);
}

bool wr_peer_is_trusted(const weir_key_rule *key, struct wr_span peer)
{
    struct wr_address address;

    return is_proxy(key, peer, wr_address_parse_peer(peer, &address) ? &address : NULL);
}

static weir_request_fault client_by_trust(const weir_request *request, const weir_key_rule *key,
                                          struct wr_address *ret_address)
{
    struct wr_span peer = wr_span_trim((struct wr_span){request->peer, request->peer_bytes});
    struct wr_address address;
    bool has_address = wr_address_parse_peer(peer, &address);
    bool is_believed = is_proxy(key, peer, has_address ? &address : NULL);
    struct wr_span beyond;

    if (is_believed && header_at(request, key->header, WEIR_HEADER_LINES_MAX, &beyond))
        /* Finding line n may take n steps, so this limits the work a caller can cause. */
        return WEIR_FAULT_REPEATED;
    if (is_believed && last_untrusted(request, key, &address))
        has_address = true;
    if (!has_address)
        return has_no_address(peer) ? WEIR_FAULT_MISSING : WEIR_FAULT_ADDRESS;
    *ret_address = address;
    return WEIR_FAULT_NONE;
}

static weir_request_fault client_by_claim(const weir_request *request, const weir_key_rule *key,
                                          struct wr_address *ret_address)
{
    struct hops forwarded = {request, key->header, 0, {NULL, 0}};
    struct hops real = {request, "x-real-ip", 0, {NULL, 0}};
    struct wr_span hop;

    if (!next_hop(&forwarded, &hop) && !next_hop(&real, &hop))
        return WEIR_FAULT_MISSING;
    return wr_address_parse_peer(hop, ret_address) ? WEIR_FAULT_NONE : WEIR_FAULT_ADDRESS;
}

weir_request_fault wr_request_client(const weir_request *request, const weir_key_rule *key,
                                     struct wr_address *ret_address)
{
    if (key->hops == WEIR_HOPS_FIRST)
        return client_by_claim(request, key, ret_address);
    return client_by_trust(request, key, ret_address);
}
