/* SPDX-License-Identifier: MIT */
/* pages.h - generates random pages with unusual markup from a seed. */
#ifndef WEIR_TEST_PAGES_H
#define WEIR_TEST_PAGES_H

#include "base/rng.h"

#include <stdbool.h>

#define PAGE_BYTES 65536

/* Writes a page of about `pieces` pieces and returns its size. The same seed gives the same page.
 * If `halves` is set, svg and math elements are also left open or closed in the wrong order. */
size_t make_page(struct wr_rng *rng, int pieces, bool halves, char ret_page[PAGE_BYTES]);

#endif
