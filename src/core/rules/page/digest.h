/* SPDX-License-Identifier: MIT */
/* digest.h - what names a body by its bytes: by functions that the shell has. */
#ifndef WR_CORE_RULES_PAGE_DIGEST_H
#define WR_CORE_RULES_PAGE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define WR_DIGEST_MAX 32      /* bytes */
#define WR_DIGEST_TEXT_MAX 80 /* of "sha256:" and its hex digits */

/* One body after the other, one at a time. */
struct wr_digest {
    const char *name; /* "xxh128"; at most 8 bytes */
    size_t bytes;     /* of a value */
    void (*begin)(struct wr_digest *digest);
    void (*add)(struct wr_digest *digest, const void *data, size_t bytes);
    void (*end)(struct wr_digest *digest, uint8_t ret_value[WR_DIGEST_MAX]);
};

#endif
