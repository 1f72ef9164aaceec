/* SPDX-License-Identifier: MIT */
/* known_urls.c - the set of URLs that were seen. */
#include "core/plan/known_urls.h"

#include "base/alloc.h"
#include "base/bits.h"

#include <stdalign.h>
#include <weir/error.h>

#define FIRST_ROOM 4096
/* Old slots moved per URL added: all are moved long before the set is crowded once more. */
#define MOVES 16

int wr_known_urls_init(struct wr_known_urls *ret_known, const weir_allocator *allocator, size_t max)
{
    struct wr_known_urls known = {.allocator = allocator, .max = wr_round_up_pow2(max)};
    known.room = known.max < FIRST_ROOM ? known.max : FIRST_ROOM;
    known.slots = wr_alloc_array(allocator, known.room, sizeof *known.slots, alignof(uint64_t));
    if (known.slots == NULL)
        return WEIR_E_NOMEM;
    *ret_known = known;
    return 0;
}

static void give_slots(const struct wr_known_urls *known, uint64_t *slots, size_t room)
{
    wr_free(known->allocator, slots, room * sizeof *slots, alignof(uint64_t));
}

void wr_known_urls_release(struct wr_known_urls *known)
{
    give_slots(known, known->slots, known->room);
    give_slots(known, known->old, known->room / 2);
    known->slots = known->old = NULL;
}

/* Combines job and fingerprint to a key, never 0. Fingerprints are keyed hashes and so already
 * random; job ids are our own numbers. */
static uint64_t key_of_known_url(uint32_t job, uint64_t fingerprint)
{
    uint64_t mix = fingerprint ^ (uint64_t)job * UINT64_C(0x9e3779b97f4a7c15);
    return mix != 0 ? mix : 1;
}

static uint64_t *find_known_slot(uint64_t *slots, size_t room, uint64_t mix)
{
    size_t place = (size_t)mix & (room - 1);
    while (slots[place] != 0 && slots[place] != mix)
        place = (place + 1) & (room - 1);
    return &slots[place];
}

static bool has_known_key(const struct wr_known_urls *known, uint64_t mix)
{
    return *find_known_slot(known->slots, known->room, mix) != 0 ||
           (known->old != NULL && *find_known_slot(known->old, known->room / 2, mix) != 0);
}

void wr_known_urls_prefetch(const struct wr_known_urls *known, uint32_t job, uint64_t fingerprint)
{
    __builtin_prefetch(&known->slots[key_of_known_url(job, fingerprint) & (known->room - 1)]);
}

bool wr_known_urls_has(const struct wr_known_urls *known, uint32_t job, uint64_t fingerprint)
{
    return has_known_key(known, key_of_known_url(job, fingerprint));
}

static bool is_known_set_full(const struct wr_known_urls *known)
{
    return known->count >= known->room / 4 * 3;
}

/* Moves up to `most` old slots. A moved key also stays in its old slot, so that searches do not
 * stop before the keys behind it. */
static void move_old_slots(struct wr_known_urls *known, size_t most)
{
    for (; most > 0 && known->moved < known->room / 2; most--) {
        uint64_t mix = known->old[known->moved++];
        if (mix != 0)
            *find_known_slot(known->slots, known->room, mix) = mix;
    }
    if (known->moved < known->room / 2)
        return;
    give_slots(known, known->old, known->room / 2);
    known->old = NULL;
}

void wr_known_urls_add(struct wr_known_urls *known, uint32_t job, uint64_t fingerprint)
{
    uint64_t mix = key_of_known_url(job, fingerprint);
    if (has_known_key(known, mix))
        return;
    if (is_known_set_full(known)) {
        known->incomplete = true;
        return;
    }
    if (known->old != NULL)
        move_old_slots(known, MOVES);
    *find_known_slot(known->slots, known->room, mix) = mix;
    known->count++;
}

size_t wr_known_urls_bytes(const struct wr_known_urls *known)
{
    return (known->room + (known->old != NULL ? known->room / 2 : 0)) * sizeof *known->slots;
}

bool wr_known_urls_is_crowded(const struct wr_known_urls *known)
{
    return known->count >= known->room / 2 && known->room < known->max;
}

int wr_known_urls_grow(struct wr_known_urls *known)
{
    size_t room = known->room * 2;
    if (room > known->max)
        return WEIR_E_FULL;
    uint64_t *slots = wr_alloc_array(known->allocator, room, sizeof *slots, alignof(uint64_t));
    if (slots == NULL)
        return WEIR_E_NOMEM;
    if (known->old != NULL)
        move_old_slots(known, SIZE_MAX);
    known->old = known->slots;
    known->moved = 0;
    known->slots = slots;
    known->room = room;
    return 0;
}
