/* SPDX-License-Identifier: MIT */
/* decode.c - decodes the content codings that requests accept, some bytes at a time. */
#include "http/net/decode.h"

#include "base/alloc.h"
#include "core/web/http/field.h"

#include <assert.h>

#define ZLIB_CONST
#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define ZSTD_WINDOW_LOG 23 /* 8 MB, the most for zstd (RFC 9659); br has 16 MB (RFC 7932) */

struct wr_decoder {
    enum wr_decode_result (*decode)(struct wr_decoder *decoder, struct wr_span *in, struct wr_span *room);
    union {
        z_stream z;
        BrotliDecoderState *brotli;
        ZSTD_DCtx *zstd;
    } is;
    struct wr_decoder_work work;
    bool is_begun;      /* the library's state in `is` exists */
    bool is_ended;      /* the stream has ended */
    bool in_frame;      /* inside a zstd frame */
    bool may_have_more; /* the last step filled its output */
    size_t made;        /* bytes in `out` */
    char out[WR_DECODE_OUT];
};

/* ---- gzip, deflate ---- */

static enum wr_decode_result inflate_some(struct wr_decoder *decoder, struct wr_span *in, struct wr_span *room)
{
    z_stream *z = &decoder->is.z;

    z->next_in = (const Bytef *)in->data;
    z->avail_in = (uInt)in->bytes;
    z->next_out = (Bytef *)(uintptr_t)room->data;
    z->avail_out = (uInt)room->bytes;
    int code = inflate(z, Z_NO_FLUSH);
    *in = wr_span_after(*in, in->bytes - z->avail_in);
    *room = wr_span_after(*room, room->bytes - z->avail_out);
    decoder->is_ended = code == Z_STREAM_END;
    if (code == Z_MEM_ERROR)
        return WR_DECODE_MEMORY;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? WR_DECODE_OK : WR_DECODE_BAD;
}

static enum wr_decode_result begin_inflate(struct wr_decoder *decoder, int window_bits)
{
    if (inflateInit2(&decoder->is.z, window_bits) != Z_OK)
        return WR_DECODE_MEMORY;
    decoder->is_begun = true;
    return WR_DECODE_OK;
}

static enum wr_decode_result decode_gzip(struct wr_decoder *decoder, struct wr_span *in, struct wr_span *room)
{
    if (!decoder->is_begun && begin_inflate(decoder, MAX_WBITS + 16) != WR_DECODE_OK)
        return WR_DECODE_MEMORY;
    return inflate_some(decoder, in, room);
}

/* Decodes deflate with zlib's header, as it should be, or without, as some servers send it. The
 * first byte shows which. */
static enum wr_decode_result decode_deflate(struct wr_decoder *decoder, struct wr_span *in, struct wr_span *room)
{
    if (!decoder->is_begun) {
        bool has_header = (in->data[0] & 0x0f) == Z_DEFLATED;
        if (begin_inflate(decoder, has_header ? MAX_WBITS : -MAX_WBITS) != WR_DECODE_OK)
            return WR_DECODE_MEMORY;
    }
    return inflate_some(decoder, in, room);
}

/* ---- br, zstd ---- */

static bool is_brotli_out_of_memory(const struct wr_decoder *decoder)
{
    BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(decoder->is.brotli);

    return code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES && code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
}

static enum wr_decode_result decode_brotli(struct wr_decoder *decoder, struct wr_span *in, struct wr_span *room)
{
    const uint8_t *from = (const uint8_t *)in->data;
    uint8_t *to = (uint8_t *)(uintptr_t)room->data;
    size_t left = in->bytes, room_left = room->bytes;

    if (!decoder->is_begun)
        decoder->is.brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (decoder->is.brotli == NULL)
        return WR_DECODE_MEMORY;
    decoder->is_begun = true;
    BrotliDecoderResult result = BrotliDecoderDecompressStream(decoder->is.brotli, &left, &from, &room_left, &to, NULL);
    *in = wr_span_after(*in, in->bytes - left);
    *room = wr_span_after(*room, room->bytes - room_left);
    decoder->is_ended = result == BROTLI_DECODER_RESULT_SUCCESS;
    if (result != BROTLI_DECODER_RESULT_ERROR)
        return WR_DECODE_OK;
    return is_brotli_out_of_memory(decoder) ? WR_DECODE_MEMORY : WR_DECODE_BAD;
}

/* Returns true if a frame that begins with this byte is one of RFC 8878. The library may also
 * decode frames of zstd before 1.0, with a window of up to 128 MB. Their magic numbers differ in
 * the first byte only. */
static bool is_zstd_frame(char first)
{
    return first == 0x28 || (first & 0xf0) == 0x50;
}

static enum wr_decode_result decode_zstd(struct wr_decoder *decoder, struct wr_span *in, struct wr_span *room)
{
    ZSTD_inBuffer from = {in->data, in->bytes, 0};
    ZSTD_outBuffer to = {(void *)(uintptr_t)room->data, room->bytes, 0};

    if (!decoder->is_begun)
        decoder->is.zstd = ZSTD_createDCtx();
    if (decoder->is.zstd == NULL)
        return WR_DECODE_MEMORY;
    if (!decoder->is_begun)
        (void)ZSTD_DCtx_setParameter(decoder->is.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    decoder->is_begun = true;
    if (!decoder->in_frame && from.size > 0 && !is_zstd_frame(in->data[0]))
        return WR_DECODE_BAD;
    size_t code = ZSTD_decompressStream(decoder->is.zstd, &to, &from);
    decoder->in_frame = code != 0 && (decoder->in_frame || from.pos > 0);
    *in = wr_span_after(*in, from.pos);
    *room = wr_span_after(*room, to.pos);
    if (!ZSTD_isError(code))
        return WR_DECODE_OK;
    return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation ? WR_DECODE_MEMORY : WR_DECODE_BAD;
}

static void end_stream(struct wr_decoder *decoder)
{
    if (!decoder->is_begun)
        return;
    if (decoder->decode == decode_brotli)
        BrotliDecoderDestroyInstance(decoder->is.brotli);
    else if (decoder->decode == decode_zstd)
        (void)ZSTD_freeDCtx(decoder->is.zstd);
    else
        (void)inflateEnd(&decoder->is.z);
}

/* ---- choosing the decoder ---- */

static const struct content_coding {
    const char *name;
    enum wr_decode_result (*decode)(struct wr_decoder *decoder, struct wr_span *in, struct wr_span *room);
} codings[] = {
    {"gzip", decode_gzip}, {"x-gzip", decode_gzip}, {"deflate", decode_deflate},
    {"br", decode_brotli}, {"zstd", decode_zstd},
};

static const struct content_coding *find_coding(struct wr_span name)
{
    for (size_t i = 0; i < sizeof codings / sizeof codings[0]; i++)
        if (wr_field_is(name, codings[i].name))
            return &codings[i];
    return NULL;
}

/* Finds the one coding among empty elements and "identity", which is no coding. */
static bool find_coding_name(struct wr_span value, struct wr_span *ret_name)
{
    for (bool has_more = true; has_more;) {
        size_t comma = wr_span_find(value, ',');
        *ret_name = wr_span_trim((struct wr_span){value.data, comma});
        if (wr_head_is_coding(*ret_name))
            return true;
        has_more = comma < value.bytes;
        value = wr_span_after(value, comma + has_more);
    }
    return false;
}

enum wr_decode_result wr_decoder_new(const weir_allocator *allocator, const struct wr_head *head,
                                     struct wr_decoder **ret_decoder)
{
    struct wr_span field, value, name = {NULL, 0};
    bool is_found = false;

    if (head->codings > 1)
        return WR_DECODE_NESTED;
    for (size_t cursor = 0; !is_found && wr_head_next(head, &cursor, &field, &value);)
        is_found = wr_field_is(field, "Content-Encoding") && find_coding_name(value, &name);
    const struct content_coding *coding = is_found ? find_coding(name) : NULL;
    if (coding == NULL)
        return WR_DECODE_UNKNOWN;
    struct wr_decoder *decoder = wr_alloc(allocator, sizeof *decoder, _Alignof(struct wr_decoder));
    if (decoder == NULL)
        return WR_DECODE_MEMORY;
    decoder->decode = coding->decode;
    *ret_decoder = decoder;
    return WR_DECODE_OK;
}

void wr_decoder_free(const weir_allocator *allocator, struct wr_decoder *decoder)
{
    if (decoder == NULL)
        return;
    end_stream(decoder);
    wr_free(allocator, decoder, sizeof *decoder, _Alignof(struct wr_decoder));
}

/* ---- decoding ---- */

bool wr_decoder_has_work(const struct wr_decoder *decoder, struct wr_span in)
{
    return in.bytes > 0 || (decoder->may_have_more && !decoder->is_ended);
}

bool wr_decoder_is_full(const struct wr_decoder *decoder)
{
    return decoder->made == WR_DECODE_OUT;
}

struct wr_span wr_decoder_take_output(struct wr_decoder *decoder)
{
    struct wr_span made = {decoder->out, decoder->made};

    decoder->made = 0;
    return made;
}

const struct wr_decoder_work *wr_decoder_work(const struct wr_decoder *decoder)
{
    return &decoder->work;
}

static bool has_little_output(const struct wr_decoder_work *work)
{
    return work->read > WR_DECODE_SLACK && (work->read - WR_DECODE_SLACK) / WR_DECODE_TIMES > work->made;
}

/* Skips bytes after the end of the stream, but counts them as read. */
static enum wr_decode_result skip_trailing(struct wr_decoder *decoder, struct wr_span *in)
{
    decoder->work.read += in->bytes;
    decoder->work.steps++;
    *in = wr_span_after(*in, in->bytes);
    return has_little_output(&decoder->work) ? WR_DECODE_LITTLE_OUTPUT : WR_DECODE_OK;
}

enum wr_decode_result wr_decoder_step(struct wr_decoder *decoder, struct wr_span *in)
{
    if (decoder->is_ended)
        return skip_trailing(decoder, in);
    struct wr_span piece = {in->data, in->bytes < WR_DECODE_IN ? in->bytes : WR_DECODE_IN};
    struct wr_span room = {decoder->out + decoder->made, WR_DECODE_OUT - decoder->made};
    struct wr_decoder_work *work = &decoder->work;
    size_t given = piece.bytes, had_room = room.bytes;

    assert(wr_decoder_has_work(decoder, *in) && had_room > 0);
    enum wr_decode_result result = decoder->decode(decoder, &piece, &room);
    size_t read = given - piece.bytes, made = had_room - room.bytes;
    bool is_stuck = read == 0 && made == 0 && given > 0 && !decoder->may_have_more && !decoder->is_ended;
    *in = wr_span_after(*in, read);
    decoder->made += made;
    decoder->may_have_more = room.bytes == 0;
    work->read += read;
    work->made += made;
    work->steps++;
    if (result != WR_DECODE_OK)
        return result;
    if (is_stuck) /* otherwise the caller would loop for ever */
        return WR_DECODE_BAD;
    return has_little_output(work) ? WR_DECODE_LITTLE_OUTPUT : WR_DECODE_OK;
}
