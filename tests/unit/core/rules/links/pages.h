/* SPDX-License-Identifier: MIT */
/* pages.h - makes pages, odd ones, out of a seed. */
#ifndef WEIR_TEST_PAGES_H
#define WEIR_TEST_PAGES_H

#include "base/rng.h"

#include <stdbool.h>

#define PAGE_BYTES 65536

/* Writes a page of some `pieces` pieces; returns its bytes. The same seed gives the same page. With `halves`, svg and
 * math are also left open, and closed out of turn. */
size_t make_page(struct wr_rng *rng, int pieces, bool halves, char ret_page[PAGE_BYTES]);

#endif
