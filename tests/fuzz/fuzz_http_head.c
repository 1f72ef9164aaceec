/* SPDX-License-Identifier: MIT */
/* fuzz_http_head.c - fuzzes heads of responses: each is refused, or its fields are whole and have
 * no bytes that could split them. */
#include "core/web/http/head.h"

#include <stdlib.h>

#include "fuzz/fuzz.h"

static void *take(void *context, size_t bytes, size_t align)
{
    (void)context, (void)align;
    return calloc(1, bytes);
}

static void give(void *context, void *block, size_t bytes, size_t align)
{
    (void)context, (void)bytes, (void)align;
    free(block);
}

static bool is_clean(struct wr_span text)
{
    return wr_span_find(text, '\r') == text.bytes && wr_span_find(text, '\n') == text.bytes &&
           wr_span_find(text, '\0') == text.bytes;
}

static void check_fields(const struct wr_head *head)
{
    struct wr_span name, value, first;

    for (size_t cursor = 0; wr_head_next(head, &cursor, &name, &value);) {
        char text[64];
        fuzz_check(name.bytes > 0 && is_clean(name) && is_clean(value));
        if (name.bytes >= sizeof text)
            continue;
        memcpy(text, name.data, name.bytes);
        text[name.bytes] = '\0';
        fuzz_check(wr_head_find(head, text, &first));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const weir_allocator allocator = {take, give, NULL};
    static const struct wr_head_limits limits = {.bytes_max = 4096, .interims_max = 3};
    struct wr_span rest = {(const char *)data, bytes};
    enum wr_head_fault fault = WR_HEAD_OK;
    struct wr_head head;

    wr_head_init(&head, &allocator, &limits);
    while (rest.bytes > 0 && fault == WR_HEAD_OK) {
        size_t end = wr_span_find(rest, '\n');
        struct wr_span line = {rest.data, end < rest.bytes ? end + 1 : end};
        fault = wr_head_line(&head, line);
        rest = wr_span_after(rest, line.bytes);
    }
    if (fault == WR_HEAD_OK)
        check_fields(&head);
    fuzz_check(head.bytes <= limits.bytes_max && head.text.length <= limits.bytes_max);
    wr_head_release(&head);
    return 0;
}
