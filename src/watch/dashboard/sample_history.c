/* SPDX-License-Identifier: MIT */
/* sample_history.c - a ring buffer of the last samples. */
#include "watch/dashboard/sample_history.h"

#include "base/alloc.h"
#include "watch/dashboard/dashboard.h"

int wr_sample_history_init(struct wr_sample_history *ret_history, uint32_t most, const weir_allocator *allocator)
{
    struct wr_buf *texts = wr_alloc_array(allocator, most, sizeof *texts, _Alignof(struct wr_buf));
    if (texts == NULL)
        return WEIR_E_NOMEM;
    for (uint32_t i = 0; i < most; i++)
        wr_buf_init(&texts[i], allocator, WR_DASHBOARD_SAMPLE_MAX);
    *ret_history = (struct wr_sample_history){.texts = texts, .most = most, .allocator = allocator};
    return 0;
}

void wr_sample_history_release(struct wr_sample_history *history)
{
    for (uint32_t i = 0; i < history->most; i++)
        wr_buf_release(&history->texts[i]);
    wr_free(history->allocator, history->texts, history->most * sizeof *history->texts, _Alignof(struct wr_buf));
    *history = (struct wr_sample_history){.texts = NULL};
}

static struct wr_buf *sample_text(const struct wr_sample_history *history, uint64_t number)
{
    return &history->texts[number % history->most];
}

struct wr_buf *wr_sample_history_next(struct wr_sample_history *history)
{
    struct wr_buf *text = sample_text(history, history->number + 1);
    wr_buf_clear(text);
    return text;
}

void wr_sample_history_commit(struct wr_sample_history *history)
{
    if (sample_text(history, history->number + 1)->error == 0)
        history->number++;
}

/* Returns the number of the first stored sample after `since` that fits into the limits. */
static uint64_t first_sample_after(const struct wr_sample_history *history, uint64_t since, size_t most_bytes)
{
    uint64_t first = history->number + 1;
    size_t bytes = 0;
    /* One fewer than there are buffers: the oldest is reused for the next sample. */
    while (first > 1 && first - 1 > since && history->number - first + 2 < history->most) {
        bytes += sample_text(history, first - 1)->length + 1;
        if (bytes > most_bytes)
            break;
        first--;
    }
    return first;
}

void wr_sample_history_append(const struct wr_sample_history *history, uint64_t since, size_t most_bytes,
                              struct wr_buf *buf)
{
    uint64_t first = first_sample_after(history, since, most_bytes);
    for (uint64_t number = first; number <= history->number; number++) {
        if (number > first)
            wr_buf_append_string(buf, ",");
        wr_buf_append_span(buf, wr_buf_from(sample_text(history, number), 0));
    }
}

struct wr_span wr_sample_history_last(const struct wr_sample_history *history)
{
    return history->number == 0 ? (struct wr_span){NULL, 0} : wr_buf_from(sample_text(history, history->number), 0);
}
