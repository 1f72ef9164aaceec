/* SPDX-License-Identifier: MIT */
/* digest_algorithms.h - digests of page bodies: XXH128, which is fast, and SHA-256, which is
 * secure. */
#ifndef WR_CRAWL_ENGINE_DIGEST_ALGORITHMS_H
#define WR_CRAWL_ENGINE_DIGEST_ALGORITHMS_H

#include "core/web/page/digest_function.h"

#include <weir/memory.h>

enum wr_digest_kind {
    WR_DIGEST_XXH128, /* libxxhash; detects equal bodies, but not bodies made to collide */
    WR_DIGEST_SHA256, /* libcrypto; about ten times the work */
    WR_DIGEST_NONE,
};

/* Creates a digest; *ret_digest is NULL for WR_DIGEST_NONE. Returns 0 or WEIR_E_NOMEM. */
int wr_digest_new(enum wr_digest_kind kind, const weir_allocator *allocator, struct wr_digest **ret_digest);

/* Frees the digest; NULL is fine. */
void wr_digest_free(struct wr_digest *digest);

#endif
