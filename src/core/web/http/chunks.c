/* SPDX-License-Identifier: MIT */
/* chunks.c - parses the framing of chunks byte by byte, and passes on their data in whole
 * pieces. */
#include "core/web/http/chunks.h"

#include "base/ascii.h"

#include <stdbool.h>

#define DIGITS_MAX 16

enum chunk_state {
    PLACE_SIZE,      /* hex digits of the size */
    PLACE_BLANK,     /* blanks after the size */
    PLACE_EXTENSION, /* extension after a ';' */
    PLACE_SIZE_LF,
    PLACE_BODY,
    PLACE_BODY_CR,
    PLACE_BODY_LF,
    PLACE_TRAILER,
    PLACE_BAD,
};

/* Returns the value of a hex digit, -1 for any other character. */
static int digit_of(char c)
{
    if (wr_ascii_is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum chunk_state take_size_digit(struct wr_chunks *chunks, int digit)
{
    if (chunks->digits == DIGITS_MAX || chunks->left > (uint64_t)INT64_MAX >> 4)
        return PLACE_BAD;
    chunks->digits++;
    chunks->left = chunks->left << 4 | (uint64_t)digit;
    return PLACE_SIZE;
}

/* Returns the next state for a byte after the size. */
static enum chunk_state after_size(char c)
{
    switch (c) {
    case '\r':
        return PLACE_SIZE_LF;
    case ';':
        return PLACE_EXTENSION;
    case ' ':
    case '\t':
        return PLACE_BLANK;
    default:
        return PLACE_BAD;
    }
}

static enum chunk_state in_extension(char c)
{
    if (c == '\r')
        return PLACE_SIZE_LF;
    return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f) ? PLACE_EXTENSION : PLACE_BAD;
}

/* Returns the state after the end of the size line. */
static enum chunk_state end_size_line(struct wr_chunks *chunks)
{
    chunks->line_bytes = 0;
    chunks->digits = 0;
    return chunks->left > 0 ? PLACE_BODY : PLACE_TRAILER;
}

/* Returns the next state for a byte that is not data. */
static enum chunk_state next_chunk_state(struct wr_chunks *chunks, char c)
{
    int digit;

    switch ((enum chunk_state)chunks->place) {
    case PLACE_SIZE:
        digit = digit_of(c);
        if (digit >= 0)
            return take_size_digit(chunks, digit);
        return chunks->digits > 0 ? after_size(c) : PLACE_BAD;
    case PLACE_BLANK:
        return after_size(c);
    case PLACE_EXTENSION:
        return in_extension(c);
    case PLACE_SIZE_LF:
        return c == '\n' ? end_size_line(chunks) : PLACE_BAD;
    case PLACE_BODY_CR:
        return c == '\r' ? PLACE_BODY_LF : PLACE_BAD;
    case PLACE_BODY_LF:
        return c == '\n' ? PLACE_SIZE : PLACE_BAD;
    case PLACE_BODY:
    case PLACE_TRAILER:
    case PLACE_BAD:
        break;
    }
    return PLACE_BAD;
}

static void take_chunk_data(struct wr_chunks *chunks, struct wr_span *rest, struct wr_span *ret_piece)
{
    size_t bytes = rest->bytes < chunks->left ? rest->bytes : (size_t)chunks->left;

    *ret_piece = (struct wr_span){rest->data, bytes};
    *rest = wr_span_after(*rest, bytes);
    chunks->left -= bytes;
    if (chunks->left == 0)
        chunks->place = PLACE_BODY_CR;
}

enum wr_chunks_step wr_chunks_next(struct wr_chunks *chunks, struct wr_span *rest, struct wr_span *ret_piece)
{
    while (rest->bytes > 0 && chunks->place != PLACE_TRAILER && chunks->place != PLACE_BAD) {
        if (chunks->place == PLACE_BODY) {
            take_chunk_data(chunks, rest, ret_piece);
            return WR_CHUNKS_BODY;
        }
        bool is_line = chunks->place < PLACE_BODY;
        if (is_line && ++chunks->line_bytes > WR_CHUNKS_LINE_MAX)
            chunks->place = PLACE_BAD;
        else
            chunks->place = (uint8_t)next_chunk_state(chunks, rest->data[0]);
        *rest = wr_span_after(*rest, 1);
    }
    return chunks->place == PLACE_BAD       ? WR_CHUNKS_BAD
           : chunks->place == PLACE_TRAILER ? WR_CHUNKS_LAST
                                            : WR_CHUNKS_MORE;
}
