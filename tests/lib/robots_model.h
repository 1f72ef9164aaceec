/* SPDX-License-Identifier: MIT */
/* robots_model.h - a slow and simple model of robots.txt path matching: a table of all pairs of
 * pattern and path symbols. For tests and the fuzz target. */
#ifndef WEIR_TEST_ROBOTS_MODEL_H
#define WEIR_TEST_ROBOTS_MODEL_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_ANY 1000 /* the symbol of '*' */

/* Adds one byte of a path in normal form: itself, or percent-encoded. Returns the new count. */
static inline size_t model_add(int byte, bool was_encoded, int *symbols, size_t count)
{
    bool is_unreserved = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                         byte == '-' || byte == '.' || byte == '_' || byte == '~';
    bool is_reserved = byte > 0 && byte < 128 && strchr(":/?#[]@!&'()+,;=", byte) != NULL;
    if (is_unreserved || (is_reserved && !was_encoded)) {
        symbols[count] = byte;
        return count + 1;
    }
    symbols[count] = '%';
    symbols[count + 1] = "0123456789ABCDEF"[byte / 16];
    symbols[count + 2] = "0123456789ABCDEF"[byte % 16];
    return count + 3;
}

static inline int model_hex(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF";
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)((at - digits) % 16);
}

/* Writes the symbols of `text`; in a pattern '*' is MODEL_ANY. Returns their number. */
static inline size_t model_symbols(struct wr_span text, bool is_pattern, int *ret_symbols)
{
    size_t count = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (is_pattern && c == '*') {
            if (count == 0 || ret_symbols[count - 1] != MODEL_ANY)
                ret_symbols[count++] = MODEL_ANY;
        } else if (c == '%' && i + 2 < text.bytes && model_hex(text.data[i + 1]) >= 0 &&
                   model_hex(text.data[i + 2]) >= 0) {
            int byte = model_hex(text.data[i + 1]) * 16 + model_hex(text.data[i + 2]);
            count = model_add(byte, true, ret_symbols, count);
            i += 2;
        } else
            count = model_add(c, false, ret_symbols, count);
    }
    return count;
}

/* Returns true if the pattern matches the path. matches[j] says whether the pattern so far matches
 * exactly the first j symbols of the path. */
static inline bool model_fits(const int *pattern, size_t pattern_count, const int *path, size_t path_count,
                              bool is_anchored, bool *matches)
{
    memset(matches, 0, (path_count + 1) * sizeof *matches);
    matches[0] = true;
    for (size_t i = 0; i < pattern_count; i++) {
        bool before = matches[0], any = matches[0];
        matches[0] = matches[0] && pattern[i] == MODEL_ANY;
        for (size_t j = 1; j <= path_count; j++) {
            bool here = matches[j];
            any |= here;
            matches[j] = pattern[i] == MODEL_ANY ? any : before && pattern[i] == path[j - 1];
            before = here;
        }
    }
    for (size_t j = 0; j < path_count && !is_anchored; j++)
        if (matches[j])
            return true;
    return matches[path_count];
}

/* Returns true if a rule with this path, which must not be empty, matches `path`. Sets the number
 * of octets of the rule. */
static inline bool model_matches(struct wr_span rule, struct wr_span path, size_t *ret_octets)
{
    bool is_anchored = rule.data[rule.bytes - 1] == '$';
    rule.bytes -= is_anchored ? 1 : 0;
    int *symbols = malloc((3 * (rule.bytes + path.bytes) + 1) * sizeof *symbols);
    bool *matches = malloc((3 * path.bytes + 1) * sizeof *matches);
    if (symbols == NULL || matches == NULL)
        abort();
    size_t rule_count = model_symbols(rule, true, symbols);
    size_t path_count = model_symbols(path, false, symbols + rule_count);
    bool fits = model_fits(symbols, rule_count, symbols + rule_count, path_count, is_anchored, matches);
    free(symbols);
    free(matches);
    *ret_octets = rule_count + (is_anchored ? 1 : 0);
    return fits;
}

#endif
