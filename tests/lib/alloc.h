/* SPDX-License-Identifier: MIT */
/* alloc.h - an allocator for tests: counts, fails on request, and knows when something leaked. */
#ifndef WEIR_TEST_ALLOC_H
#define WEIR_TEST_ALLOC_H

#include <stdatomic.h>
#include <weir/memory.h>

typedef struct test_allocator {
    weir_allocator allocator;
    atomic_long fail_at;       /* the n-th take from now fails (1: the next); 0: none does */
    atomic_bool fail_for_ever; /* and all after it */
    atomic_long takes;         /* calls of take */
    atomic_long live;          /* blocks not given back */
    atomic_long live_bytes;
} test_allocator;

void test_allocator_init(test_allocator *ret_allocator);

#endif
