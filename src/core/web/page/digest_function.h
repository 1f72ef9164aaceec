/* SPDX-License-Identifier: MIT */
/* digest_function.h - the interface of hash functions that identify a body; the shell provides
 * them. */
#ifndef WR_CORE_WEB_PAGE_DIGEST_FUNCTION_H
#define WR_CORE_WEB_PAGE_DIGEST_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

#define WR_DIGEST_MAX 32      /* bytes of the longest hash value */
#define WR_DIGEST_TEXT_MAX 80 /* room for a name such as "sha256", ':' and the hex digits */

/* A hash function. It hashes one body at a time; begin() starts the next one. */
struct wr_digest {
    const char *name; /* name such as "xxh128", at most 8 bytes */
    size_t bytes;     /* bytes of a hash value */
    void (*begin)(struct wr_digest *digest);
    void (*add)(struct wr_digest *digest, const void *data, size_t bytes);
    void (*end)(struct wr_digest *digest, uint8_t ret_value[WR_DIGEST_MAX]);
};

#endif
