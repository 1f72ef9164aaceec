/* SPDX-License-Identifier: MIT */
/* fuzz_match.c - fuzzes patterns of rules against a simple model, and lines of a state file, which
 * must be formatted as they were parsed. The first byte selects one of them; a newline separates
 * texts. (fuzz_spelling.c has the requests.) */
#include "core/admit/match.h"
#include "core/admit/usage_record.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define TEXT_MAX 300

/* Simple model of a pattern: tries each star at each possible end. Only for short texts. */
static bool model(const char *pattern, const char *text, char stop)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return model(pattern + 1, text, stop) || (*text != '\0' && *text != stop && model(pattern, text + 1, stop));
    if (*text == '\0' || (*pattern == '?' ? *text == stop && *text != '?' : *pattern != *text))
        return false;
    return model(pattern + 1, text + 1, stop);
}

static size_t stars_in(const char *pattern)
{
    size_t stars = 0;

    for (; *pattern != '\0'; pattern++)
        stars += *pattern == '*';
    return stars;
}

static void check_pattern(const char *text, const char *value)
{
    struct wr_glob pattern;
    struct wr_span span = wr_span_of(value);
    uint32_t steps = UINT32_MAX;

    if (wr_glob_parse_path(text, &pattern) == 0) {
        bool fits = wr_glob_fits(&pattern, span, 0, &steps);
        if (pattern.kind == WR_GLOB_STARS && stars_in(text) <= 4 && span.bytes < 64)
            fuzz_check(fits == model(text, value, '/'));
        if (pattern.kind == WR_GLOB_EXACT)
            fuzz_check(fits == (strcmp(text, value) == 0));
    }
    if (wr_glob_parse_value(text, &pattern) == 0) {
        bool fits = wr_glob_fits(&pattern, span, 0, &steps);
        if (stars_in(text) <= 4 && span.bytes < 64)
            fuzz_check(fits == model(text, value, '\0'));
    }
}

static void check_record(struct wr_span line)
{
    static struct wr_usage_record record, again;
    char memory[WR_USAGE_RECORD_BYTES_MAX + 1];
    struct wr_buf buf;

    if (!wr_usage_record_parse(line, &record))
        return;
    fuzz_check(record.count >= 1 && record.count <= WEIR_STACK_MAX && record.key_bytes >= 1);
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_usage_record_append(&buf, record.kind, (struct wr_span){record.key, record.key_bytes}, record.usages,
                           record.count);
    fuzz_check(buf.error == 0 && wr_usage_record_parse(wr_buf_from(&buf, 0), &again));
    fuzz_check(again.key_bytes == record.key_bytes && memcmp(again.key, record.key, record.key_bytes) == 0);
    for (uint32_t i = 0; i < record.count; i++)
        fuzz_check(again.usages[i].used == record.usages[i].used &&
                   again.usages[i].back_ns == record.usages[i].back_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wr_span all = {(const char *)data, bytes};

    if (bytes == 0)
        return 0;
    all = wr_span_after(all, 1);
    struct wr_span first = {all.data, wr_span_find(all, '\n')};
    struct wr_span second = wr_span_after(all, first.bytes < all.bytes ? first.bytes + 1 : first.bytes);
    if (data[0] == 'k') {
        check_record(all);
    } else if (first.bytes < TEXT_MAX && second.bytes < TEXT_MAX) {
        char text[TEXT_MAX] = "", value[TEXT_MAX] = "";
        if (first.bytes > 0)
            memcpy(text, first.data, first.bytes);
        if (second.bytes > 0)
            memcpy(value, second.data, second.bytes);
        if (memchr(value, '\0', second.bytes) == NULL)
            check_pattern(text, value);
    }
    return 0;
}
