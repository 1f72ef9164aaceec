/* SPDX-License-Identifier: MIT */
/* usage_record.c - writes and parses the usage of a key as a line of a state file. */
#include "core/admit/usage_record.h"

#include "base/ascii.h"
#include "base/parse.h"

void wr_usage_record_append(struct wr_buf *buf, char kind, struct wr_span key, const struct wr_limit_usage *usages,
                            uint32_t count)
{
    wr_buf_append_char(buf, kind);
    wr_buf_append_char(buf, ' ');
    for (size_t i = 0; i < key.bytes; i++)
        wr_buf_append_hex(buf, (unsigned char)key.data[i], 2, WR_HEX_SMALL);
    for (uint32_t i = 0; i < count; i++) {
        wr_buf_append_char(buf, ' ');
        wr_buf_append_u64(buf, usages[i].used);
        if (usages[i].back_ns != 0) {
            wr_buf_append_char(buf, '/');
            wr_buf_append_u64(buf, (uint64_t)usages[i].back_ns);
        }
    }
}

/* Takes the text up to the next blank, or all of it, from the front of `line`. */
static struct wr_span take_record_word(struct wr_span *line)
{
    struct wr_span word = {line->data, wr_span_find(*line, ' ')};

    *line = wr_span_after(*line, word.bytes < line->bytes ? word.bytes + 1 : word.bytes);
    return word;
}

static bool parse_record_key(struct wr_span word, struct wr_usage_record *record)
{
    if (word.bytes == 0 || word.bytes % 2 != 0 || word.bytes > 2 * WEIR_KEY_MAX)
        return false;
    for (size_t i = 0; i < word.bytes; i += 2) {
        int high = wr_ascii_hex_value(word.data[i]), low = wr_ascii_hex_value(word.data[i + 1]);
        if (high < 0 || low < 0)
            return false;
        record->key[i / 2] = (char)(high * 16 + low);
    }
    record->key_bytes = word.bytes / 2;
    return true;
}

static bool parse_usage(struct wr_span word, struct wr_limit_usage *ret_past)
{
    size_t slash = wr_span_find(word, '/');
    uint64_t used, back_ns = 0;

    if (!wr_scan_u64(word.data, slash, 0, WEIR_PERMITS_MAX, &used))
        return false;
    if (slash < word.bytes &&
        !wr_scan_u64(word.data + slash + 1, word.bytes - slash - 1, 1, (uint64_t)WEIR_DURATION_MAX, &back_ns))
        return false;
    *ret_past = (struct wr_limit_usage){(uint32_t)used, (int64_t)back_ns};
    return true;
}

bool wr_usage_record_parse(struct wr_span line, struct wr_usage_record *ret_record)
{
    struct wr_span kind = take_record_word(&line);

    if (!(wr_span_is(kind, "k") || wr_span_is(kind, "c") || wr_span_is(kind, "t")) ||
        !parse_record_key(take_record_word(&line), ret_record))
        return false;
    ret_record->kind = kind.data[0];
    for (ret_record->count = 0; line.bytes > 0; ret_record->count++) {
        if (ret_record->count == WEIR_STACK_MAX ||
            !parse_usage(take_record_word(&line), &ret_record->usages[ret_record->count]))
            return false;
    }
    return ret_record->count > 0;
}
