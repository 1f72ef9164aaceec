/* SPDX-License-Identifier: MIT */
/* sum.c - computes the sums for the report of weir warm. */
#include "cli/warm/warm_report.h"

/* Inserts a page into the list of the slowest, ordered from the slowest. */
static void offer_slow_page(struct wr_warm_summary *sum, const struct wr_warm_page *page)
{
    size_t at = sum->slowest_count;
    while (at > 0 && sum->slowest[at - 1]->course.before_ns < page->course.before_ns)
        at--;
    if (at == WR_WARM_SLOWEST)
        return;
    size_t last = sum->slowest_count < WR_WARM_SLOWEST ? sum->slowest_count++ : WR_WARM_SLOWEST - 1;
    for (; last > at; last--)
        sum->slowest[last] = sum->slowest[last - 1];
    sum->slowest[at] = page;
}

static void add_answered_page(struct wr_warm_summary *sum, const struct wr_warm_page *page)
{
    const struct wr_warm_page_steps *course = &page->course;
    sum->answered++;
    sum->before[course->before]++;
    sum->after[course->after]++;
    sum->hits_before += wr_cache_is_hit(course->before);
    sum->hits_after += wr_cache_is_hit(course->after);
    if (course->after_ns > 0 && wr_cache_is_hit(course->after)) {
        sum->compared++;
        sum->before_ns += course->before_ns;
        sum->after_ns += course->after_ns;
        sum->saved_ns += wr_warm_saved_ns(course);
    }
    if (course->before_ns > 0)
        offer_slow_page(sum, page);
}

void wr_warm_summarize(const struct wr_warm *warm, struct wr_warm_summary *ret_sum)
{
    *ret_sum = (struct wr_warm_summary){.pages = warm->pages_count};
    for (size_t i = 0; i < warm->pages_count; i++) {
        const struct wr_warm_page *page = warm->pages[i];
        ret_sum->requests += page->requests;
        if (!page->has_ended)
            ret_sum->missed++;
        else if (page->course.is_sound)
            add_answered_page(ret_sum, page);
        else if (page->failure == WEIR_FAILURE_ROBOTS)
            ret_sum->denied++;
        else
            ret_sum->broken++;
    }
    ret_sum->elapsed_ns = weir_clock_now(weir_clock_monotonic()) - warm->began_at;
    (void)weir_client_stats_get(warm->client, &ret_sum->wire);
}

uint64_t wr_warm_hit_ratio(const struct wr_warm_summary *sum, uint64_t hits)
{
    return sum->answered > 0 ? hits * 1000 / sum->answered : 0;
}
