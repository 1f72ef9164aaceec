/* SPDX-License-Identifier: MIT */
/* digest_algorithms.c - computes digests with libxxhash and libcrypto. */
#include "crawl/engine/digest_algorithms.h"

#include "base/alloc.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>
#include <weir/error.h>
#include <xxhash.h>
#ifdef WR_HAS_XXH_DISPATCH
/* The same functions with the widest vector instructions of the processor. */
#include <xxh_x86dispatch.h>
#endif

struct body_digest {
    struct wr_digest base; /* first, so that a pointer to it can be cast */
    const weir_allocator *allocator;
    XXH3_state_t *xxh; /* one of `xxh` and `sha` is set */
    EVP_MD_CTX *sha;
};

static struct body_digest *body_digest_of(struct wr_digest *digest)
{
    return (struct body_digest *)(void *)digest;
}

static void xxh_begin(struct wr_digest *digest)
{
    XXH3_128bits_reset(body_digest_of(digest)->xxh);
}

static void xxh_add(struct wr_digest *digest, const void *data, size_t bytes)
{
    XXH3_128bits_update(body_digest_of(digest)->xxh, data, bytes);
}

/* Writes the digest in the byte order of xxh128sum. */
static void xxh_end(struct wr_digest *digest, uint8_t ret_value[WR_DIGEST_MAX])
{
    XXH128_canonical_t value;

    XXH128_canonicalFromHash(&value, XXH3_128bits_digest(body_digest_of(digest)->xxh));
    memcpy(ret_value, value.digest, sizeof value.digest);
}

/* Starts a new digest. Cannot fail, because set_up chose the algorithm. */
static void sha_begin(struct wr_digest *digest)
{
    EVP_DigestInit_ex(body_digest_of(digest)->sha, NULL, NULL);
}

static void sha_add(struct wr_digest *digest, const void *data, size_t bytes)
{
    EVP_DigestUpdate(body_digest_of(digest)->sha, data, bytes);
}

static void sha_end(struct wr_digest *digest, uint8_t ret_value[WR_DIGEST_MAX])
{
    EVP_DigestFinal_ex(body_digest_of(digest)->sha, ret_value, NULL);
}

static bool set_up_algorithm(struct body_digest *digest, enum wr_digest_kind kind)
{
    if (kind == WR_DIGEST_XXH128) {
        digest->base = (struct wr_digest){"xxh128", 16, xxh_begin, xxh_add, xxh_end};
        digest->xxh = XXH3_createState();
        return digest->xxh != NULL;
    }
    digest->base = (struct wr_digest){"sha256", 32, sha_begin, sha_add, sha_end};
    digest->sha = EVP_MD_CTX_new();
    return digest->sha != NULL && EVP_DigestInit_ex(digest->sha, EVP_sha256(), NULL) == 1;
}

int wr_digest_new(enum wr_digest_kind kind, const weir_allocator *allocator, struct wr_digest **ret_digest)
{
    if (kind == WR_DIGEST_NONE) {
        *ret_digest = NULL;
        return 0;
    }
    struct body_digest *digest = wr_alloc(allocator, sizeof *digest, _Alignof(struct body_digest));
    if (digest == NULL)
        return WEIR_E_NOMEM;
    digest->allocator = allocator;
    if (!set_up_algorithm(digest, kind)) {
        wr_digest_free(&digest->base);
        return WEIR_E_NOMEM;
    }
    *ret_digest = &digest->base;
    return 0;
}

void wr_digest_free(struct wr_digest *digest)
{
    if (digest == NULL)
        return;
    struct body_digest *self = body_digest_of(digest);
    XXH3_freeState(self->xxh);
    EVP_MD_CTX_free(self->sha);
    wr_free(self->allocator, self, sizeof *self, _Alignof(struct body_digest));
}
