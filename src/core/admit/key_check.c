/* SPDX-License-Identifier: MIT */
/* key_check.c - rejects invalid keys before the first request. */
#include "core/admit/key.h"

#include "base/ascii.h"
#include "base/error.h"
#include "core/admit/request_headers.h"

static int check_fallback(const weir_key_rule *key)
{
    struct wr_span fallback = wr_span_of(key->fallback);

    if (key->fallback == NULL && key->share_malformed)
        return wr_invalid("share_malformed without a fallback; set the fallback to the key to be shared");
    if (key->fallback != NULL && (fallback.bytes == 0 || fallback.bytes > WEIR_KEY_MAX || !wr_span_is_clean(fallback)))
        return wr_invalid("the fallback is not a key; use 1 ... 1024 bytes of UTF-8 without control characters");
    if (key->secret != NULL && key->secret[0] == '\0')
        return wr_invalid("the secret is empty; set a secret, or NULL to use the value itself");
    return 0;
}

static int check_ip(const weir_key_rule *key)
{
    if (key->hops != WEIR_HOPS_TRUSTED && key->hops != WEIR_HOPS_FIRST)
        return wr_invalid("no such hops; use WEIR_HOPS_TRUSTED or WEIR_HOPS_FIRST");
    if (key->trusted == NULL && key->trusted_count > 0)
        return wr_invalid("trusted is NULL but trusted_count is not 0; give the networks, or 0");
    if (key->v4_prefix < 1 || key->v4_prefix > 32 || key->v6_prefix < 1 || key->v6_prefix > 128)
        return wr_invalid("a prefix is out of range; v4_prefix is 1 ... 32, v6_prefix 1 ... 128");
    for (size_t i = 0; i < key->trusted_count; i++) {
        if (key->trusted[i].prefix > 128)
            return wr_invalid("a trusted network has more than 128 bits; make it with weir_network_parse");
    }
    return 0;
}

static int check_simple(const weir_key_rule *key)
{
    if (key == NULL || key->size != sizeof *key)
        return wr_invalid("the key is NULL or not filled by weir_key_rule_init; fill it first");
    if ((unsigned)key->kind > WEIR_KEY_COMPOSITE)
        return wr_invalid("no such kind of key; use WEIR_KEY_GLOBAL ... WEIR_KEY_COMPOSITE");
    if ((key->kind == WEIR_KEY_IP || key->kind == WEIR_KEY_USER) && !wr_header_name_ok(key->header))
        return wr_invalid("the header is not a name in lower case; use one such as x-user-id");
    if (key->kind == WEIR_KEY_CUSTOM && key->custom == NULL)
        return wr_invalid("a custom key without a function; set custom");
    if ((key->exact & ~(unsigned)WEIR_EXACT_ALL) != 0)
        return wr_invalid("exact has unknown bits; use bits of WEIR_EXACT_ALL");
    int error = check_fallback(key);
    if (error == 0 && key->kind == WEIR_KEY_IP)
        error = check_ip(key);
    return error;
}

static int check_composite(const weir_key_rule *key)
{
    if (key->parts == NULL || key->parts_count < 2 || key->parts_count > WEIR_KEY_PARTS_MAX)
        return wr_invalid("a composite key has 2 ... 8 parts");
    if (!wr_ascii_is_printable(key->separator) || key->separator == ' ' || key->separator == '\\')
        return wr_invalid("the separator is not printable ASCII other than \\; use one such as :");
    if (key->secret != NULL)
        return wr_invalid("a composite key has no secret of its own; set it in the part that is one");
    for (size_t i = 0; i < key->parts_count; i++) {
        int error = check_simple(key->parts[i]);
        if (error < 0)
            return error;
        if (key->parts[i]->kind == WEIR_KEY_COMPOSITE)
            return wr_invalid("a part of a composite key is composite; list its parts instead");
    }
    return 0;
}

int wr_key_check(const weir_key_rule *key)
{
    int error = check_simple(key);

    return error == 0 && key->kind == WEIR_KEY_COMPOSITE ? check_composite(key) : error;
}
