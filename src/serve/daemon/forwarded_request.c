/* SPDX-License-Identifier: MIT */
/* forwarded_request.c - reads a proxy's header fields about the request that it asks about. */
#include "serve/daemon/forwarded_request.h"

struct forwarded_field {
    const char *names[2];
    const char *shown;
};

static const struct forwarded_field method_field = {{"x-original-method", "x-forwarded-method"},
                                                    "X-Original-Method or X-Forwarded-Method"};
static const struct forwarded_field target_field = {{"x-original-uri", "x-forwarded-uri"},
                                                    "X-Original-URI or X-Forwarded-Uri"};
static const struct forwarded_field host_field = {{"x-original-host", "x-forwarded-host"},
                                                  "X-Original-Host or X-Forwarded-Host"};

/* Finds the value of the only header field that has one of the two names. */
static weir_request_fault find_only_field(const struct wr_request *asks, const struct forwarded_field *field,
                                          struct wr_span *ret_value)
{
    weir_request_fault fault = WEIR_FAULT_MISSING;
    *ret_value = (struct wr_span){NULL, 0};
    for (int i = 0; i < 2; i++) {
        struct wr_span value;
        uint32_t cursor = 0;
        while (wr_request_find(asks, field->names[i], &cursor, &value)) {
            if (fault == WEIR_FAULT_NONE)
                return WEIR_FAULT_REPEATED;
            *ret_value = value;
            fault = WEIR_FAULT_NONE;
        }
    }
    return fault;
}

/* Like find_one; also reports which field is wrong. */
static weir_request_fault find_required_field(const struct wr_request *asks, const struct forwarded_field *field,
                                              struct wr_span *ret_value, const char **ret_field)
{
    weir_request_fault fault = find_only_field(asks, field, ret_value);
    if (fault != WEIR_FAULT_NONE)
        *ret_field = field->shown;
    return fault;
}

weir_request_fault wr_forwarded_request_read(const struct wr_request *asks, weir_request *said, const char **ret_field)
{
    struct wr_span method, target, host = {NULL, 0}, none;
    weir_request_fault fault = find_required_field(asks, &method_field, &method, ret_field);
    if (fault == WEIR_FAULT_NONE)
        fault = find_required_field(asks, &target_field, &target, ret_field);
    if (fault != WEIR_FAULT_NONE)
        return fault;
    bool is_url = target.bytes > 0 && target.data[0] != '/' && target.data[0] != '?';
    if (!is_url || find_only_field(asks, &host_field, &none) != WEIR_FAULT_MISSING)
        fault = find_required_field(asks, &host_field, &host, ret_field);
    if (fault != WEIR_FAULT_NONE)
        return fault;
    said->method = method.data;
    said->method_bytes = method.bytes;
    said->target = target.data;
    said->target_bytes = target.bytes;
    said->host = host.data;
    said->host_bytes = host.bytes;
    return WEIR_FAULT_NONE;
}

bool wr_forwarded_request_is_present(const struct wr_request *asks)
{
    struct wr_span value;
    return find_only_field(asks, &target_field, &value) != WEIR_FAULT_MISSING;
}

const char *wr_forwarded_request_header(void *context, const char *name, size_t index, size_t *ret_bytes)
{
    const struct wr_request *request = context;
    struct wr_span value;
    uint32_t cursor = 0;
    do {
        if (!wr_request_find(request, name, &cursor, &value))
            return NULL;
    } while (index-- > 0);
    *ret_bytes = value.bytes;
    return value.data;
}
