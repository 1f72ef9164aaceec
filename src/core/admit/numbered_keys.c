/* SPDX-License-Identifier: MIT */
/* numbered_keys.c - sorts and searches a list of keys. */
#include "core/admit/numbered_keys.h"

static int compare_spans(struct wr_span a, struct wr_span b)
{
    if (a.bytes != b.bytes) /* any order will do; the shortest comes first */
        return a.bytes < b.bytes ? -1 : 1;
    return a.bytes == 0 ? 0 : memcmp(a.data, b.data, a.bytes);
}

const struct wr_numbered_key *wr_numbered_keys_sort(struct wr_numbered_key *words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct wr_numbered_key word = words[i];
        size_t at = i;
        for (; at > 0 && compare_spans(word.text, words[at - 1].text) < 0; at--)
            words[at] = words[at - 1];
        words[at] = word;
    }
    for (size_t next = 1; next < count; next++) {
        if (compare_spans(words[next - 1].text, words[next].text) == 0)
            return &words[next];
    }
    return NULL;
}

const struct wr_numbered_key *wr_numbered_keys_find(const struct wr_numbered_key *words, size_t count,
                                                    struct wr_span text)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        int order = compare_spans(text, words[middle].text);
        if (order == 0)
            return &words[middle];
        if (order < 0)
            count = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
