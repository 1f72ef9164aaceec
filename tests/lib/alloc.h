/* SPDX-License-Identifier: MIT */
/* alloc.h - an allocator for tests that counts, fails on request, and detects leaks. */
#ifndef WEIR_TEST_ALLOC_H
#define WEIR_TEST_ALLOC_H

#include <stdatomic.h>
#include <weir/memory.h>

typedef struct test_allocator {
    weir_allocator allocator;
    atomic_long fail_at;       /* the n-th take from now fails (1: the next); 0: none */
    atomic_bool fail_for_ever; /* every later take fails, too */
    atomic_long takes;         /* calls of take */
    atomic_long live;          /* blocks that were not given back */
    atomic_long live_bytes;
} test_allocator;

void test_allocator_init(test_allocator *ret_allocator);

#endif
