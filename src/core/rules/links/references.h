/* SPDX-License-Identifier: MIT */
/* references.h - named character references. */
#ifndef WR_CORE_RULES_LINKS_REFERENCES_H
#define WR_CORE_RULES_LINKS_REFERENCES_H

#include "base/span.h"

#include <stdint.h>

#define WR_REFERENCE_NAME_MAX 8

/* The code point of a name without '&' and ';', 0 if we do not know it; *ret_is_old: it needs no ';'. */
uint32_t wr_reference_point(struct wr_span name, bool *ret_is_old);

#endif
