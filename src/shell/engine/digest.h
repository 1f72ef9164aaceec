/* SPDX-License-Identifier: MIT */
/* digest.h - digests of bodies: XXH128, for which nothing is too fast, and SHA-256, for whom that is not enough. */
#ifndef WR_SHELL_ENGINE_DIGEST_H
#define WR_SHELL_ENGINE_DIGEST_H

#include "core/rules/page/digest.h"

#include <weir/memory.h>

enum wr_digest_kind {
    WR_DIGEST_XXH128, /* libxxhash; tells whether two bodies are the same if nobody made them to deceive */
    WR_DIGEST_SHA256, /* libcrypto; about ten times the work */
    WR_DIGEST_NONE,
};

/* NULL for WR_DIGEST_NONE. WEIR_E_NOMEM. */
int wr_digest_new(enum wr_digest_kind kind, const weir_allocator *allocator, struct wr_digest **ret_digest);

/* NULL is fine. */
void wr_digest_free(struct wr_digest *digest);

#endif
