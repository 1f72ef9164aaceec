/* SPDX-License-Identifier: MIT */
/* fuzz_codings.c - fuzzes the codings of a response, with the body in pieces. The input is four
 * bytes, fields up to an empty line, and a body.
 *
 * The bytes say where the body is divided, whether and how it is packed first, how many bytes of
 * its end are repeated, and how often. Checks that the codings counted are those that a simple
 * model finds, and that more than one coding is refused. Decoding gives what the library makes of
 * the whole body at once, and packed texts are unchanged. After every step the work is within its
 * bounds.
 */
#include "http/net/decode.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "base/rng.h"
#include "fuzz/fuzz.h"

#define BODY_MAX ((size_t)512 << 10) /* twice the slack, so that the slack has an effect */
#define MADE_MAX ((size_t)1 << 20)   /* the test takes no more output than this */
#define ROOM_MAX (2 * MADE_MAX)
#define FRAME_MIN 8 /* smallest skippable frame, bytes; zstd returns after each frame */

enum {
    PACKED = 1,
    HARMED = 2, /* one byte of the packed body is changed */
    SPLIT = 4,  /* into two frames, members or blocks */
    BARE = 8,   /* deflate without zlib's header */
};

struct block {
    char *bytes;
    size_t length;
};

/* ---- a simple model of the fields ---- */

struct plain {
    size_t codings, transfers, lengths;
    bool is_transfer_odd; /* neither "chunked" nor "identity" */
    char name[64];        /* last coding in lower case; empty if it is too long */
};

static bool is_word(const char *text, size_t bytes, const char *word)
{
    return bytes == strlen(word) && strncasecmp(text, word, bytes) == 0;
}

static void trim(const char **text, size_t *bytes)
{
    while (*bytes > 0 && (**text == ' ' || **text == '\t'))
        ++*text, --*bytes;
    while (*bytes > 0 && ((*text)[*bytes - 1] == ' ' || (*text)[*bytes - 1] == '\t'))
        --*bytes;
}

static void read_codings(struct plain *plain, const char *value, size_t bytes)
{
    for (size_t at = 0, end; at <= bytes; at = end + 1) {
        const char *comma = memchr(value + at, ',', bytes - at);
        end = comma != NULL ? (size_t)(comma - value) : bytes;
        const char *word = value + at;
        size_t length = end - at;
        trim(&word, &length);
        if (length == 0 || is_word(word, length, "identity"))
            continue;
        plain->codings++;
        plain->name[0] = '\0';
        if (length < sizeof plain->name)
            memcpy(plain->name, word, length), plain->name[length] = '\0';
    }
}

static void read_line(struct plain *plain, const char *line, size_t bytes)
{
    const char *colon = memchr(line, ':', bytes);

    if (colon == NULL)
        return;
    const char *value = colon + 1;
    size_t name = (size_t)(colon - line), length = bytes - name - 1;
    trim(&value, &length);
    if (is_word(line, name, "content-encoding"))
        read_codings(plain, value, length);
    if (is_word(line, name, "content-length"))
        plain->lengths++;
    if (is_word(line, name, "transfer-encoding")) {
        plain->transfers++;
        plain->is_transfer_odd |= !is_word(value, length, "chunked") && !is_word(value, length, "identity");
    }
}

static enum wr_head_fault give_line(struct wr_head *head, const char *line, size_t bytes)
{
    return wr_head_line(head, (struct wr_span){line, bytes});
}

/* Takes the fields off the front of `rest`. Returns false if they are refused. */
static bool read_fields(struct wr_head *head, struct plain *plain, struct wr_span *rest)
{
    static const char status[] = "HTTP/1.1 200 OK\r\n";

    fuzz_check(give_line(head, status, sizeof status - 1) == WR_HEAD_OK);
    while (!wr_head_is_whole(head)) {
        size_t end = wr_span_find(*rest, '\n');
        if (end == rest->bytes || give_line(head, rest->data, end + 1) != WR_HEAD_OK)
            return false;
        read_line(plain, rest->data, end - (end > 0 && rest->data[end - 1] == '\r'));
        *rest = wr_span_after(*rest, end + 1);
    }
    fuzz_check(head->codings == plain->codings);
    fuzz_check(plain->transfers <= 1 && !plain->is_transfer_odd);
    fuzz_check(plain->transfers == 0 || plain->lengths == 0);
    return true;
}

/* ---- packing ---- */

static void zip(struct block *to, const char *text, size_t bytes, int window, size_t piece)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text};

    fuzz_check(deflateInit2(&z, 1 + (int)(bytes % 9), Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_out = (Bytef *)to->bytes + to->length;
    z.avail_out = (uInt)(ROOM_MAX - to->length);
    for (size_t left = bytes; left > 0; left -= z.avail_in > 0 ? 0 : piece < left ? piece : left) {
        z.avail_in = (uInt)(piece < left ? piece : left);
        fuzz_check(deflate(&z, Z_FULL_FLUSH) == Z_OK);
    }
    fuzz_check(deflate(&z, Z_FINISH) == Z_STREAM_END);
    to->length += z.total_out;
    fuzz_check(deflateEnd(&z) == Z_OK);
}

static void pack(struct block *to, const char *coding, const struct block *text, unsigned how)
{
    size_t room = ROOM_MAX, half = (how & SPLIT) != 0 ? text->length / 2 : 0;

    to->length = 0;
    if (strcasecmp(coding, "br") == 0) {
        fuzz_check(BrotliEncoderCompress((int)(how >> 4 & 3), (int)(10 + text->length % 15), BROTLI_MODE_TEXT,
                                         text->length, (const uint8_t *)text->bytes, &room, (uint8_t *)to->bytes));
        to->length = room;
    } else if (strcasecmp(coding, "zstd") == 0) {
        to->length = ZSTD_compress(to->bytes, room, text->bytes, half, (int)(how >> 4 & 3));
        to->length += ZSTD_compress(to->bytes + to->length, room - to->length, text->bytes + half, text->length - half,
                                    (int)(how >> 4 & 3));
    } else {
        int window = strcasecmp(coding, "deflate") != 0 ? 31 : (how & BARE) != 0 ? -15 : 15;
        zip(to, text->bytes, text->length, window, half > 0 ? half : text->length);
    }
    fuzz_check(to->length <= ROOM_MAX);
}

/* ---- the whole body at once ---- */

enum end {
    WHOLE,
    CUT_OFF,
    FILLED, /* the output is full */
    BAD
};

static enum end unzip(const struct block *body, int window, struct block *made)
{
    z_stream z = {.next_in = (Bytef *)body->bytes, .avail_in = (uInt)body->length};

    fuzz_check(inflateInit2(&z, window) == Z_OK);
    z.next_out = (Bytef *)made->bytes;
    z.avail_out = ROOM_MAX;
    int code = inflate(&z, Z_NO_FLUSH);
    made->length = z.total_out;
    bool is_filled = z.avail_out == 0;
    (void)inflateEnd(&z);
    if (code == Z_STREAM_END)
        return WHOLE;
    if (code != Z_OK && code != Z_BUF_ERROR)
        return BAD;
    return is_filled ? FILLED : CUT_OFF;
}

static enum end unbrotli(const struct block *body, struct block *made)
{
    BrotliDecoderState *state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const uint8_t *from = (const uint8_t *)body->bytes;
    uint8_t *to = (uint8_t *)made->bytes;
    size_t left = body->length, room = ROOM_MAX;

    fuzz_check(state != NULL);
    BrotliDecoderResult result = BrotliDecoderDecompressStream(state, &left, &from, &room, &to, NULL);
    made->length = ROOM_MAX - room;
    BrotliDecoderDestroyInstance(state);
    switch (result) {
    case BROTLI_DECODER_RESULT_SUCCESS:
        return WHOLE;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
        return CUT_OFF;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
        return FILLED;
    default:
        return BAD;
    }
}

/* Decodes in small steps, because the library treats complete frames differently: it ignores the
 * size of their window, and checks their size. Refuses frames of zstd before 1.0. */
static enum end unzstd(const struct block *body, struct block *made)
{
    ZSTD_DCtx *state = ZSTD_createDCtx();
    ZSTD_outBuffer to = {made->bytes, ROOM_MAX, 0};
    size_t code = 0;
    bool is_start = true;

    fuzz_check(state != NULL && ZSTD_isError(ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, 23)) == 0);
    for (size_t at = 0, had = 1;
         !ZSTD_isError(code) && (at < body->length || (code > 0 && to.pos > had)) && to.pos < to.size;) {
        size_t bytes = body->length - at < FRAME_MIN ? body->length - at : FRAME_MIN;
        ZSTD_inBuffer from = {body->bytes + at, bytes, 0};
        unsigned first = bytes > 0 ? (unsigned char)body->bytes[at] : 0x28;
        bool is_old = is_start && first != 0x28 && first >> 4 != 5;
        had = to.pos;
        /* SIZE_MAX is an error code of zstd, too. */
        code = is_old ? SIZE_MAX : ZSTD_decompressStream(state, &to, &from);
        at += from.pos;
        is_start = code == 0;
    }
    made->length = to.pos;
    (void)ZSTD_freeDCtx(state);
    return ZSTD_isError(code) ? BAD : to.pos == to.size ? FILLED : code == 0 ? WHOLE : CUT_OFF;
}

static enum end decode_at_once(const char *coding, const struct block *body, struct block *made)
{
    if (strcasecmp(coding, "br") == 0)
        return unbrotli(body, made);
    if (strcasecmp(coding, "zstd") == 0)
        return unzstd(body, made);
    if (strcasecmp(coding, "deflate") != 0)
        return unzip(body, 31, made);
    return unzip(body, body->length == 0 || (body->bytes[0] & 0x0f) == 8 ? 15 : -15, made);
}

/* ---- the body in pieces ---- */

static void check_work(const struct wr_decoder_work *work, const struct wr_decoder_work *before, size_t pieces)
{
    fuzz_check(work->steps == before->steps + 1);
    fuzz_check(work->made - before->made <= WR_DECODE_OUT && work->made <= MADE_MAX + WR_DECODE_OUT);
    fuzz_check(work->steps <= pieces + work->read / FRAME_MIN + 2 * (work->made / WR_DECODE_OUT) + 2);
}

static void take(struct wr_decoder *decoder, struct block *made)
{
    struct wr_span span = wr_decoder_take_output(decoder);

    fuzz_check(span.bytes <= WR_DECODE_OUT && span.bytes <= ROOM_MAX - made->length);
    memcpy(made->bytes + made->length, span.data, span.bytes);
    made->length += span.bytes;
}

/* Decodes a piece like transfer_body.c does. */
static enum wr_decode_result decode_piece(struct wr_decoder *decoder, struct wr_span piece, size_t pieces,
                                          struct block *made)
{
    enum wr_decode_result result = WR_DECODE_OK;
    const struct wr_decoder_work *work = wr_decoder_work(decoder);

    while (result == WR_DECODE_OK && made->length < MADE_MAX && wr_decoder_has_work(decoder, piece)) {
        struct wr_decoder_work before = *work;
        size_t had = piece.bytes;
        result = wr_decoder_step(decoder, &piece);
        fuzz_check(work->read - before.read == had - piece.bytes);
        fuzz_check(result != WR_DECODE_UNKNOWN && result != WR_DECODE_NESTED && result != WR_DECODE_MEMORY);
        check_work(work, &before, pieces);
        if (result == WR_DECODE_OK)
            fuzz_check(work->read <= WR_DECODE_SLACK + WR_DECODE_TIMES * (work->made + 1));
        if (wr_decoder_is_full(decoder))
            take(decoder, made);
    }
    take(decoder, made);
    fuzz_check(work->made == made->length);
    return result;
}

static enum wr_decode_result decode_in_pieces(struct wr_decoder *decoder, const struct block *body, unsigned seed,
                                              struct block *made)
{
    static const size_t sizes[] = {SIZE_MAX, 2, 5, 17, 300, 1500, 20000, 100000};
    size_t most = sizes[seed % 8], pieces = 0;
    enum wr_decode_result result = WR_DECODE_OK;
    struct wr_rng rng;

    if (body->length > 4096 && most < 300)
        most = 300;
    wr_rng_init(&rng, seed);
    made->length = 0;
    for (size_t at = 0, bytes; at < body->length && result == WR_DECODE_OK && made->length < MADE_MAX; at += bytes) {
        size_t left = body->length - at;
        bytes = most == SIZE_MAX ? left : 1 + (size_t)wr_rng_below(&rng, most);
        bytes = bytes < left ? bytes : left;
        result = decode_piece(decoder, (struct wr_span){body->bytes + at, bytes}, ++pieces, made);
    }
    return result;
}

/* ---- the whole target ---- */

static void *take_block(void *context, size_t bytes, size_t align)
{
    (void)context, (void)align;
    return calloc(1, bytes);
}

static void give_block(void *context, void *block, size_t bytes, size_t align)
{
    (void)context, (void)bytes, (void)align;
    free(block);
}

static const weir_allocator allocator = {take_block, give_block, NULL};

static bool is_known(const char *coding)
{
    static const char *const known[] = {"gzip", "x-gzip", "deflate", "br", "zstd"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcasecmp(coding, known[i]) == 0)
            return true;
    return false;
}

/* Copies the body and repeats its end. */
static void fill(struct block *body, struct wr_span text, size_t tail, size_t times)
{
    body->length = text.bytes < BODY_MAX ? text.bytes : BODY_MAX;
    if (body->length > 0)
        memcpy(body->bytes, text.data, body->length);
    if (tail > body->length)
        tail = body->length;
    for (; tail > 0 && times > 0 && body->length + tail <= BODY_MAX; times--) {
        memcpy(body->bytes + body->length, body->bytes + body->length - tail, tail);
        body->length += tail;
    }
}

static void check_body(struct wr_decoder *decoder, const char *coding, struct wr_span text, const uint8_t *how)
{
    static struct block blocks[4];
    struct block *body = &blocks[0], *plain = &blocks[1], *made = &blocks[2], *wanted = &blocks[3];

    for (size_t i = 0; i < 4; i++)
        if (blocks[i].bytes == NULL)
            fuzz_check((blocks[i].bytes = malloc(ROOM_MAX)) != NULL);
    fill((how[1] & PACKED) != 0 ? plain : body, text, how[2], (size_t)how[3] * 256);
    if ((how[1] & PACKED) != 0)
        pack(body, coding, plain, how[1]);
    bool is_harmed = (how[1] & HARMED) != 0 && body->length > 0;
    if (is_harmed)
        body->bytes[text.bytes * 31 % body->length] ^= (char)(1 << how[3] % 8);
    enum wr_decode_result result = decode_in_pieces(decoder, body, how[0], made);
    enum end end = decode_at_once(coding, body, wanted);
    size_t same = made->length < wanted->length ? made->length : wanted->length;
    fuzz_check(memcmp(made->bytes, wanted->bytes, same) == 0);
    bool is_as_cut = strcasecmp(coding, "zstd") == 0 && (result == WR_DECODE_OK) != (end != BAD);
    if (made->length < MADE_MAX && result != WR_DECODE_LITTLE_OUTPUT && !is_as_cut) {
        fuzz_check((result == WR_DECODE_OK) == (end != BAD) && end != FILLED);
        fuzz_check(end == BAD || made->length == wanted->length);
    }
    if ((how[1] & PACKED) == 0 || is_harmed)
        return;
    fuzz_check(end == WHOLE && result == WR_DECODE_OK && made->length == plain->length);
    fuzz_check(memcmp(made->bytes, plain->bytes, plain->length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct wr_head_limits limits = {.bytes_max = 4096, .interims_max = 3};
    struct wr_span rest = {(const char *)data, bytes};
    struct plain plain = {0};
    struct wr_decoder *decoder = NULL;
    struct wr_head head;

    if (bytes < 4)
        return 0;
    rest = wr_span_after(rest, 4);
    wr_head_init(&head, &allocator, &limits);
    if (read_fields(&head, &plain, &rest) && plain.codings > 0) {
        enum wr_decode_result wanted = plain.codings > 1 ? WR_DECODE_NESTED : WR_DECODE_UNKNOWN;
        if (plain.codings == 1 && is_known(plain.name))
            wanted = WR_DECODE_OK;
        fuzz_check(wr_decoder_new(&allocator, &head, &decoder) == wanted);
        fuzz_check((decoder != NULL) == (wanted == WR_DECODE_OK));
    }
    if (decoder != NULL)
        check_body(decoder, plain.name, rest, data);
    wr_decoder_free(&allocator, decoder);
    wr_head_release(&head);
    return 0;
}
