/* SPDX-License-Identifier: MIT */
/* decode.c - the content codings that we ask for, one on top of the other: each layer's output feeds the next.
 *
 * Nothing is unpacked before it is wanted: a layer makes OUT_BYTES at a time, and stops when the owner does (A5). Bytes
 * after a stream's end are ignored, as browsers do.
 */
#include "shell/net/state.h"

#include "base/alloc.h"
#include "core/rules/http/field.h"

#define ZLIB_CONST
#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define OUT_BYTES ((size_t)16 << 10)
#define ZSTD_WINDOW_LOG 23 /* 8 MB, the most that this coding may ask for (RFC 9659) */

struct layer {
    /* Reads of `in` what makes OUT_BYTES at most. */
    enum wr_decode (*decode)(struct layer *layer, struct wr_span *in, size_t *ret_made);
    union {
        z_stream z;
        BrotliDecoderState *brotli;
        ZSTD_DCtx *zstd;
    } is;
    struct wr_span in; /* still to be read */
    bool is_begun;     /* `is` holds something */
    bool is_ended;     /* the stream is */
    bool is_full;      /* made as much as fits: may have more */
    char out[OUT_BYTES];
};

struct wr_decoder {
    wr_decoded *decoded;
    void *context;
    int count, room;
    struct layer layers[]; /* the last was put on last */
};

/* ---- gzip, deflate ------------------------------------------------------------------------------------- */

static enum wr_decode inflate_some(struct layer *layer, struct wr_span *in, size_t *ret_made)
{
    z_stream *z = &layer->is.z;

    z->next_in = (const Bytef *)in->data;
    z->avail_in = (uInt)in->bytes; /* of what was read at once */
    z->next_out = (Bytef *)layer->out;
    z->avail_out = OUT_BYTES;
    int code = inflate(z, Z_NO_FLUSH);
    *in = wr_span_after(*in, in->bytes - z->avail_in);
    *ret_made = OUT_BYTES - z->avail_out;
    layer->is_ended = code == Z_STREAM_END;
    if (code == Z_MEM_ERROR)
        return WR_DECODE_MEMORY;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? WR_DECODE_OK : WR_DECODE_BAD;
}

static enum wr_decode begin_inflate(struct layer *layer, int window_bits)
{
    if (inflateInit2(&layer->is.z, window_bits) != Z_OK)
        return WR_DECODE_MEMORY;
    layer->is_begun = true;
    return WR_DECODE_OK;
}

static enum wr_decode decode_gzip(struct layer *layer, struct wr_span *in, size_t *ret_made)
{
    if (!layer->is_begun && begin_inflate(layer, MAX_WBITS + 16) != WR_DECODE_OK)
        return WR_DECODE_MEMORY;
    return inflate_some(layer, in, ret_made);
}

/* With zlib's header, as it should be, or without, as some send it: the header's first byte tells. */
static enum wr_decode decode_deflate(struct layer *layer, struct wr_span *in, size_t *ret_made)
{
    if (!layer->is_begun) {
        bool has_header = (in->data[0] & 0x0f) == Z_DEFLATED;
        if (begin_inflate(layer, has_header ? MAX_WBITS : -MAX_WBITS) != WR_DECODE_OK)
            return WR_DECODE_MEMORY;
    }
    return inflate_some(layer, in, ret_made);
}

/* ---- br, zstd ------------------------------------------------------------------------------------------ */

static enum wr_decode decode_brotli(struct layer *layer, struct wr_span *in, size_t *ret_made)
{
    const uint8_t *from = (const uint8_t *)in->data;
    uint8_t *to = (uint8_t *)layer->out;
    size_t left = in->bytes, room = OUT_BYTES;

    if (!layer->is_begun)
        layer->is.brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (layer->is.brotli == NULL)
        return WR_DECODE_MEMORY;
    layer->is_begun = true;
    BrotliDecoderResult result = BrotliDecoderDecompressStream(layer->is.brotli, &left, &from, &room, &to, NULL);
    *in = wr_span_after(*in, in->bytes - left);
    *ret_made = OUT_BYTES - room;
    layer->is_ended = result == BROTLI_DECODER_RESULT_SUCCESS;
    if (result != BROTLI_DECODER_RESULT_ERROR)
        return WR_DECODE_OK;
    BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(layer->is.brotli);
    return code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES && code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES
               ? WR_DECODE_MEMORY
               : WR_DECODE_BAD;
}

static enum wr_decode decode_zstd(struct layer *layer, struct wr_span *in, size_t *ret_made)
{
    ZSTD_inBuffer from = {in->data, in->bytes, 0};
    ZSTD_outBuffer to = {layer->out, OUT_BYTES, 0};

    if (!layer->is_begun)
        layer->is.zstd = ZSTD_createDCtx();
    if (layer->is.zstd == NULL)
        return WR_DECODE_MEMORY;
    if (!layer->is_begun)
        (void)ZSTD_DCtx_setParameter(layer->is.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    layer->is_begun = true;
    size_t code = ZSTD_decompressStream(layer->is.zstd, &to, &from);
    *in = wr_span_after(*in, from.pos);
    *ret_made = to.pos;
    if (!ZSTD_isError(code))
        return WR_DECODE_OK;
    return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation ? WR_DECODE_MEMORY : WR_DECODE_BAD;
}

static void end_layer(struct layer *layer)
{
    if (!layer->is_begun)
        return;
    if (layer->decode == decode_brotli)
        BrotliDecoderDestroyInstance(layer->is.brotli);
    else if (layer->decode == decode_zstd)
        (void)ZSTD_freeDCtx(layer->is.zstd);
    else
        (void)inflateEnd(&layer->is.z);
}

/* ---- the layers ---------------------------------------------------------------------------------------- */

static const struct coding {
    const char *name;
    enum wr_decode (*decode)(struct layer *layer, struct wr_span *in, size_t *ret_made);
} codings[] = {
    {"gzip", decode_gzip}, {"x-gzip", decode_gzip}, {"deflate", decode_deflate},
    {"br", decode_brotli}, {"zstd", decode_zstd},
};

static enum wr_decode add_layer(struct wr_decoder *decoder, struct wr_span name)
{
    if (name.bytes == 0 || wr_field_is(name, "identity"))
        return WR_DECODE_OK;
    for (size_t i = 0; i < sizeof codings / sizeof codings[0]; i++)
        if (decoder->count < decoder->room && wr_field_is(name, codings[i].name)) {
            decoder->layers[decoder->count++].decode = codings[i].decode;
            return WR_DECODE_OK;
        }
    return WR_DECODE_UNKNOWN;
}

static enum wr_decode add_layers(struct wr_decoder *decoder, struct wr_span value)
{
    enum wr_decode result = WR_DECODE_OK;

    for (bool more = true; more && result == WR_DECODE_OK;) {
        size_t comma = wr_span_find(value, ',');
        result = add_layer(decoder, wr_span_trim((struct wr_span){value.data, comma}));
        more = comma < value.bytes;
        value = wr_span_after(value, comma + more);
    }
    return result;
}

static size_t bytes_of(int count)
{
    return sizeof(struct wr_decoder) + (size_t)count * sizeof(struct layer);
}

enum wr_decode wr_decoder_new(const weir_allocator *allocator, const struct wr_head *head,
                              struct wr_decoder **ret_decoder)
{
    size_t bytes = bytes_of((int)head->codings);
    struct wr_decoder *decoder = wr_take(allocator, bytes, _Alignof(struct wr_decoder));
    enum wr_decode result = WR_DECODE_OK;
    struct wr_span name, value;

    if (decoder == NULL)
        return WR_DECODE_MEMORY;
    decoder->room = (int)head->codings;
    for (size_t cursor = 0; result == WR_DECODE_OK && wr_head_next(head, &cursor, &name, &value);)
        if (wr_field_is(name, "Content-Encoding"))
            result = add_layers(decoder, value);
    if (result != WR_DECODE_OK) {
        wr_give(allocator, decoder, bytes, _Alignof(struct wr_decoder));
        return result;
    }
    *ret_decoder = decoder;
    return WR_DECODE_OK;
}

void wr_decoder_free(const weir_allocator *allocator, struct wr_decoder *decoder)
{
    if (decoder == NULL)
        return;
    for (int i = 0; i < decoder->count; i++)
        end_layer(&decoder->layers[i]);
    wr_give(allocator, decoder, bytes_of(decoder->room), _Alignof(struct wr_decoder));
}

/* The layer makes what it can of what it has. */
static enum wr_decode work(struct layer *layer, size_t *ret_made)
{
    size_t before = layer->in.bytes;
    enum wr_decode result = layer->decode(layer, &layer->in, ret_made);

    layer->is_full = *ret_made == OUT_BYTES;
    if (result == WR_DECODE_OK && *ret_made == 0 && before > 0 && layer->in.bytes == before && !layer->is_ended)
        return WR_DECODE_BAD; /* or it would go on for ever */
    return result;
}

/* To the layer within, or to the owner. */
static enum wr_decode hand_on(struct wr_decoder *decoder, int at, size_t made)
{
    struct wr_span out = {decoder->layers[at].out, made};

    if (at == 0)
        return decoder->decoded(decoder->context, out.data, out.bytes) ? WR_DECODE_OK : WR_DECODE_STOPPED;
    decoder->layers[at - 1].in = out;
    return WR_DECODE_OK;
}

enum wr_decode wr_decoder_feed(struct wr_decoder *decoder, struct wr_span data, wr_decoded *decoded, void *context)
{
    enum wr_decode result = WR_DECODE_OK;
    int at = decoder->count - 1;

    decoder->decoded = decoded;
    decoder->context = context;
    decoder->layers[at].in = data;
    while (result == WR_DECODE_OK && at < decoder->count) {
        struct layer *layer = &decoder->layers[at];
        size_t made = 0;
        if (layer->is_ended || (layer->in.bytes == 0 && !layer->is_full)) {
            at++; /* the layer around it may have more */
            continue;
        }
        result = work(layer, &made);
        if (result == WR_DECODE_OK && made > 0) {
            result = hand_on(decoder, at, made);
            at -= at > 0;
        }
    }
    return result;
}
