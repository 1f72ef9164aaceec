/* SPDX-License-Identifier: MIT */
/* request_rig.h - parses a request that arrives in pieces, each in a block of its own, so that
 * sanitizers detect overreads. */
#ifndef WEIR_REQUEST_RIG_H
#define WEIR_REQUEST_RIG_H

#include "lib/test.h"

#include "core/web/request/http_request.h"

#define RIG_BODY_MAX 256

/* Result of parsing a text. */
struct request_fixture {
    struct wr_request request;
    enum wr_request_step step;
    char body[RIG_BODY_MAX]; /* first bytes of the body */
    size_t body_bytes, taken;
};

static inline struct wr_span rig_copy(const char *text, size_t bytes, char **ret_block)
{
    *ret_block = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(*ret_block);
    memcpy(*ret_block, text, bytes);
    return (struct wr_span){*ret_block, bytes};
}

/* Parses the head in the first `bytes` bytes. Its fields then refer to `text`. */
static inline void rig_head(struct request_fixture *rig, const char *text, size_t bytes)
{
    char *block;

    rig->step = wr_request_head(&rig->request, rig_copy(text, bytes, &block));
    free(block);
    rig->request.data = text;
    rig->taken = rig->request.head_bytes;
}

/* Parses the body in the bytes after rig->taken. */
static inline void rig_body(struct request_fixture *rig, const char *text, size_t bytes)
{
    char *block;
    struct wr_span rest = rig_copy(text + rig->taken, bytes - rig->taken, &block), piece;

    while ((rig->step = wr_request_body(&rig->request, &rest, &piece)) == WR_REQUEST_BODY) {
        assert_true(piece.bytes > 0);
        for (size_t i = 0; i < piece.bytes; i++, rig->body_bytes++)
            if (rig->body_bytes < RIG_BODY_MAX)
                rig->body[rig->body_bytes] = piece.data[i];
    }
    rig->taken = bytes - rest.bytes;
    free(block);
}

/* Parses a request that arrives in pieces, which end at each of `cuts` and at the end. */
static inline struct request_fixture rig_read(const char *text, size_t bytes, const size_t *cuts, size_t cut_count)
{
    struct request_fixture rig = {.step = WR_REQUEST_MORE};
    bool has_head = false;

    memset(&rig.request, 0xa5, sizeof rig.request);
    wr_request_init(&rig.request);
    for (size_t i = 0; i <= cut_count && rig.step == WR_REQUEST_MORE; i++) {
        size_t come = i < cut_count ? cuts[i] : bytes;
        if (!has_head)
            rig_head(&rig, text, come);
        has_head = has_head || rig.step == WR_REQUEST_HEAD;
        if (has_head)
            rig_body(&rig, text, come);
    }
    return rig;
}

static inline struct request_fixture rig_read_whole(const char *text, size_t bytes)
{
    return rig_read(text, bytes, NULL, 0);
}

static inline struct request_fixture rig_read_single(const char *text, size_t bytes)
{
    size_t *cuts = calloc(bytes + 1, sizeof *cuts);

    assert_non_null(cuts);
    for (size_t i = 0; i < bytes; i++)
        cuts[i] = i;
    struct request_fixture rig = rig_read(text, bytes, cuts, bytes);
    free(cuts);
    return rig;
}

#endif
