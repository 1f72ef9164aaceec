/* SPDX-License-Identifier: MIT */
/* references.h - looks up named character references. */
#ifndef WR_CORE_WEB_LINKS_REFERENCES_H
#define WR_CORE_WEB_LINKS_REFERENCES_H

#include "base/span.h"

#include <stdint.h>

#define WR_CHAR_REFERENCE_NAME_MAX 8

/* Returns the code point of a name without '&' and ';', 0 if it is unknown. *ret_is_old: the name
 * is valid without ';'. */
uint32_t wr_char_reference_point(struct wr_span name, bool *ret_is_old);

#endif
