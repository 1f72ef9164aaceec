/* SPDX-License-Identifier: MIT */
/* known.c - which URLs were seen. */
#include "core/plan/known.h"

#include "base/alloc.h"
#include "base/bits.h"

#include <stdalign.h>
#include <weir/error.h>

#define FIRST_ROOM 4096

int wr_known_init(struct wr_known *ret_known, const weir_allocator *allocator, size_t max)
{
    struct wr_known known = {.allocator = allocator, .max = wr_round_up_pow2(max)};
    known.room = known.max < FIRST_ROOM ? known.max : FIRST_ROOM;
    known.slots = wr_take_array(allocator, known.room, sizeof *known.slots, alignof(uint64_t));
    if (known.slots == NULL)
        return WEIR_E_NOMEM;
    *ret_known = known;
    return 0;
}

void wr_known_release(struct wr_known *known)
{
    wr_give(known->allocator, known->slots, known->room * sizeof *known->slots, alignof(uint64_t));
    known->slots = NULL;
}

/* Fingerprints are keyed and so already random; jobs are numbered by us. Never 0. */
static uint64_t mixed(uint32_t job, uint64_t fingerprint)
{
    uint64_t mix = fingerprint ^ (uint64_t)job * UINT64_C(0x9e3779b97f4a7c15);
    return mix != 0 ? mix : 1;
}

static uint64_t *find(const struct wr_known *known, uint64_t mix)
{
    size_t place = (size_t)mix & (known->room - 1);
    while (known->slots[place] != 0 && known->slots[place] != mix)
        place = (place + 1) & (known->room - 1);
    return &known->slots[place];
}

void wr_known_expect(const struct wr_known *known, uint32_t job, uint64_t fingerprint)
{
    __builtin_prefetch(&known->slots[mixed(job, fingerprint) & (known->room - 1)]);
}

bool wr_known_has(const struct wr_known *known, uint32_t job, uint64_t fingerprint)
{
    return *find(known, mixed(job, fingerprint)) != 0;
}

static bool is_full(const struct wr_known *known)
{
    return known->count >= known->room / 4 * 3;
}

void wr_known_add(struct wr_known *known, uint32_t job, uint64_t fingerprint)
{
    uint64_t mix = mixed(job, fingerprint);
    uint64_t *slot = find(known, mix);
    if (*slot != 0)
        return;
    if (is_full(known)) {
        known->incomplete = true;
        return;
    }
    *slot = mix;
    known->count++;
}

bool wr_known_is_crowded(const struct wr_known *known)
{
    return known->count >= known->room / 2 && known->room < known->max;
}

int wr_known_grow(struct wr_known *known)
{
    struct wr_known wider = *known;
    wider.room = known->room * 2;
    if (wider.room > known->max)
        return WEIR_E_FULL;
    wider.slots = wr_take_array(known->allocator, wider.room, sizeof *wider.slots, alignof(uint64_t));
    if (wider.slots == NULL)
        return WEIR_E_NOMEM;
    for (size_t i = 0; i < known->room; i++)
        if (known->slots[i] != 0)
            *find(&wider, known->slots[i]) = known->slots[i];
    wr_known_release(known);
    *known = wider;
    return 0;
}
