/* SPDX-License-Identifier: MIT */
/* trap.c - detects endless sites. */
#include "core/plan/trap.h"

#include "base/alloc.h"

#include <stdalign.h>
#include <weir/error.h>

#define SEGMENTS_MAX 64
#define CYCLE_MAX 4
#define NEIGHBOURS 8 /* slots in which one path may be: a cache line */
#define COUNT_MASK UINT64_C(0xffff)

/* ---- paths that repeat ---- */

static size_t split_segments(struct wr_span path, struct wr_span segments[SEGMENTS_MAX])
{
    size_t count = 0;
    while (path.bytes > 0 && count < SEGMENTS_MAX) {
        path = wr_span_after(path, 1); /* skips the '/' */
        size_t end = wr_span_find(path, '/');
        segments[count++] = (struct wr_span){path.data, end};
        path = wr_span_after(path, end);
    }
    return count;
}

static bool same_segment(struct wr_span a, struct wr_span b)
{
    return a.bytes == b.bytes && memcmp(a.data, b.data, a.bytes) == 0;
}

/* Returns true if `length` segments repeat more than `most` times: r equal pairs in a row at that
 * distance are r / length + 1 repetitions. */
static bool has_cycle(const struct wr_span *segments, size_t count, size_t length, uint32_t most)
{
    size_t run = 0;
    for (size_t i = length; i < count; i++) {
        run = same_segment(segments[i], segments[i - length]) ? run + 1 : 0;
        if (run / length + 1 > most)
            return true;
    }
    return false;
}

bool wr_path_repeats(struct wr_span path, uint32_t most)
{
    struct wr_span segments[SEGMENTS_MAX];
    size_t count = split_segments(path, segments);
    if (count == SEGMENTS_MAX)
        return true;
    for (size_t length = 1; length <= CYCLE_MAX; length++)
        if (has_cycle(segments, count, length, most))
            return true;
    return false;
}

/* ---- queries of one path ---- */

int wr_variants_init(struct wr_variants *ret_variants, const weir_allocator *allocator)
{
    ret_variants->allocator = allocator;
    ret_variants->slots = wr_alloc_array(allocator, WR_VARIANT_SLOTS, sizeof(uint64_t), alignof(uint64_t));
    return ret_variants->slots == NULL ? WEIR_E_NOMEM : 0;
}

void wr_variants_release(struct wr_variants *variants)
{
    wr_free(variants->allocator, variants->slots, WR_VARIANT_SLOTS * sizeof(uint64_t), alignof(uint64_t));
    variants->slots = NULL;
}

/* Returns the slot of the path; if it has none, the slot with the lowest count that it may use. */
static uint64_t *find_variant_slot(const struct wr_variants *variants, uint64_t path)
{
    uint64_t *slots = &variants->slots[path % (WR_VARIANT_SLOTS / NEIGHBOURS) * NEIGHBOURS];
    uint64_t *least = slots;
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        if (slots[i] != 0 && ((slots[i] ^ path) & ~COUNT_MASK) == 0)
            return &slots[i];
        if ((slots[i] & COUNT_MASK) < (*least & COUNT_MASK))
            least = &slots[i];
    }
    return least;
}

static bool is_slot_of_path(uint64_t slot, uint64_t path)
{
    return slot != 0 && ((slot ^ path) & ~COUNT_MASK) == 0;
}

uint32_t wr_variants_of(const struct wr_variants *variants, uint64_t path)
{
    uint64_t slot = *find_variant_slot(variants, path);
    return is_slot_of_path(slot, path) ? (uint32_t)(slot & COUNT_MASK) : 0;
}

void wr_variants_add(struct wr_variants *variants, uint64_t path)
{
    uint64_t *slot = find_variant_slot(variants, path);
    if (!is_slot_of_path(*slot, path))
        *slot = (path & ~COUNT_MASK) + 1;
    else if ((*slot & COUNT_MASK) < COUNT_MASK)
        *slot += 1;
}
