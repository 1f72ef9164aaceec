/* SPDX-License-Identifier: MIT */
/* key.c - extracts the key of a request, which identifies the caller. */
#include "core/admit/key.h"

#include "base/ascii.h"
#include "base/error.h"
#include "core/admit/credentials.h"
#include "core/admit/method.h"
#include "core/admit/network.h"
#include "core/admit/path.h"
#include "core/admit/request_headers.h"
#include "core/admit/sha256.h"

#define DIGEST_SHOWN_BYTES 16 /* 128 bits of the digest: no collision can be found */

void weir_key_rule_init(weir_key_rule *ret_key, weir_key_kind kind)
{
    if (ret_key == NULL)
        return;
    *ret_key = (weir_key_rule){
        .size = sizeof *ret_key,
        .kind = kind,
        .header = kind == WEIR_KEY_IP ? "x-forwarded-for" : "x-user-id",
        .fallback = kind == WEIR_KEY_IP     ? "unknown"
                    : kind == WEIR_KEY_USER ? "anonymous"
                                            : NULL,
        .hops = WEIR_HOPS_TRUSTED,
        .v4_prefix = 32,
        .v6_prefix = 64,
        .separator = ':',
    };
}

const char *weir_request_fault_name(weir_request_fault fault)
{
    static const char *const names[] = {
#define X(fault, name, text) name,
        WEIR_FAULTS(X)
#undef X
    };
    return (unsigned)fault < sizeof names / sizeof names[0] ? names[fault] : names[0];
}

const char *weir_request_fault_text(weir_request_fault fault)
{
    static const char *const texts[] = {
#define X(fault, name, text) text,
        WEIR_FAULTS(X)
#undef X
    };
    return (unsigned)fault < sizeof texts / sizeof texts[0] ? texts[fault] : texts[0];
}

static weir_request_fault address_value(const weir_key_rule *key, const weir_request *request, struct wr_buf *scratch)
{
    struct wr_address address;
    weir_request_fault fault = wr_request_client(request, key, &address);

    if (fault == WEIR_FAULT_NONE)
        wr_network_append(scratch, &address, key->v4_prefix, key->v6_prefix);
    return fault;
}

static weir_request_fault route_value(const weir_key_rule *key, const weir_request *request, struct wr_buf *scratch)
{
    if (key->with_method) {
        wr_method_append(scratch, (struct wr_span){request->method, request->method_bytes});
        wr_buf_append_char(scratch, ' ');
    }
    return wr_route_append(scratch, (struct wr_span){request->target, request->target_bytes}, key->exact);
}

static weir_request_fault header_value(const weir_key_rule *key, const weir_request *request, struct wr_span *ret_value)
{
    weir_request_fault fault = wr_request_header(request, key->header, ret_value);

    if (fault != WEIR_FAULT_NONE || !wr_credentials_are_in(key->header))
        return fault;
    return wr_credentials_read(*ret_value, ret_value);
}

static weir_request_fault custom_value(const weir_key_rule *key, const weir_request *request, struct wr_buf *scratch,
                                       struct wr_span *ret_value)
{
    size_t bytes = key->custom(key->custom_context, request, scratch->bytes, WEIR_KEY_MAX);

    *ret_value = (struct wr_span){scratch->bytes, bytes};
    return bytes == 0 ? WEIR_FAULT_MISSING : bytes > WEIR_KEY_MAX ? WEIR_FAULT_LONG : WEIR_FAULT_NONE;
}

/* Finds the value of a key that is not composite. *ret_value refers to `scratch` or the request. */
static weir_request_fault find_value(const weir_key_rule *key, const weir_request *request, struct wr_buf *scratch,
                                     struct wr_span *ret_value)
{
    weir_request_fault fault = WEIR_FAULT_NONE;

    switch (key->kind) {
    case WEIR_KEY_USER:
        return header_value(key, request, ret_value);
    case WEIR_KEY_IP:
        fault = address_value(key, request, scratch);
        break;
    case WEIR_KEY_ROUTE:
        fault = route_value(key, request, scratch);
        break;
    case WEIR_KEY_CUSTOM:
        return custom_value(key, request, scratch, ret_value);
    default:
        wr_buf_append_string(scratch, "__global__");
        break;
    }
    *ret_value = wr_buf_from(scratch, 0);
    return fault;
}

void wr_digest_append(struct wr_buf *buf, const char *secret, struct wr_span token)
{
    uint8_t digest[WR_SHA256_BYTES];

    wr_sha256(wr_span_of(secret), token, digest);
    wr_buf_append_char(buf, '#');
    for (int i = 0; i < DIGEST_SHOWN_BYTES; i++)
        wr_buf_append_hex(buf, digest[i], 2, WR_HEX_SMALL);
}

bool wr_digest_is(struct wr_span text)
{
    if (text.bytes != 1 + 2 * DIGEST_SHOWN_BYTES || text.data[0] != '#')
        return false;
    for (size_t i = 1; i < text.bytes; i++)
        if (wr_ascii_hex_value(text.data[i]) < 0 || wr_ascii_lower(text.data[i]) != text.data[i])
            return false;
    return true;
}

/* Appends the value of a key that is not composite. */
static weir_request_fault append_simple(struct wr_buf *buf, const weir_key_rule *key, const weir_request *request)
{
    char memory[WR_KEY_BUFFER];
    struct wr_buf scratch;
    struct wr_span value;

    wr_buf_init_fixed(&scratch, memory, sizeof memory);
    weir_request_fault fault = find_value(key, request, &scratch, &value);
    if (fault != WEIR_FAULT_NONE)
        return fault;
    if (value.bytes > WEIR_KEY_MAX && key->secret == NULL)
        return WEIR_FAULT_LONG;
    if (!wr_span_is_clean(value))
        return WEIR_FAULT_BYTES;
    if (key->secret != NULL)
        wr_digest_append(buf, key->secret, value);
    else
        wr_buf_append_span(buf, value);
    return WEIR_FAULT_NONE;
}

/* Handles a fault: appends the fallback key if there is one for it, and otherwise returns the
 * fault. */
static weir_request_fault apply_fallback(struct wr_buf *buf, const weir_key_rule *key, weir_request_fault fault)
{
    if (fault == WEIR_FAULT_NONE || key->fallback == NULL || (fault != WEIR_FAULT_MISSING && !key->share_malformed))
        return fault;
    wr_buf_clear(buf);
    wr_buf_append_string(buf, key->fallback);
    return WEIR_FAULT_NONE;
}

static weir_request_fault append_composite(struct wr_buf *buf, const weir_key_rule *key, const weir_request *request)
{
    for (size_t i = 0; i < key->parts_count; i++) {
        char memory[WR_KEY_BUFFER];
        struct wr_buf part;
        wr_buf_init_fixed(&part, memory, sizeof memory);
        weir_request_fault fault = apply_fallback(&part, key->parts[i], append_simple(&part, key->parts[i], request));
        if (fault != WEIR_FAULT_NONE)
            return fault;
        if (i > 0)
            wr_buf_append_char(buf, key->separator);
        wr_buf_append_escaped(buf, wr_buf_from(&part, 0), key->separator);
    }
    return buf->error != 0 ? WEIR_FAULT_LONG : WEIR_FAULT_NONE;
}

weir_request_fault wr_key_extract(const weir_key_rule *key, const weir_request *request, struct wr_buf *buf)
{
    bool is_composite = key->kind == WEIR_KEY_COMPOSITE;

    return apply_fallback(buf, key,
                          is_composite ? append_composite(buf, key, request) : append_simple(buf, key, request));
}

int weir_key_extract(const weir_key_rule *key, const weir_request *request, char *buffer, size_t buffer_bytes,
                     size_t *ret_bytes, weir_request_fault *ret_fault)
{
    char memory[WR_KEY_BUFFER];
    struct wr_buf buf;
    int error = wr_key_check(key);

    if (error == 0)
        error = wr_request_check(request);
    if (error < 0)
        return error;
    if (buffer == NULL || ret_bytes == NULL)
        return wr_invalid("the buffer or ret_bytes is NULL; give a buffer of WEIR_KEY_MAX bytes and a size_t");
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    weir_request_fault fault = wr_key_extract(key, request, &buf);
    if (ret_fault != NULL)
        *ret_fault = fault;
    if (fault != WEIR_FAULT_NONE)
        return WEIR_E_ABSENT;
    if (buf.length > buffer_bytes)
        return WEIR_E_SPACE;
    memcpy(buffer, buf.bytes, buf.length);
    *ret_bytes = buf.length;
    return 0;
}
