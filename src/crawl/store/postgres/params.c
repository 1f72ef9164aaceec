/* SPDX-License-Identifier: MIT */
/* params.c - encodes parameters in the binary protocol, so that none is taken as SQL. */
#include "crawl/store/postgres/pg.h"

#define PARAM_BYTES_MAX ((size_t)512 << 20)

/* Offset of the number of elements in an array. Before it: dimensions, NULL flag, element type;
 * after it: the first index. */
#define HEAD_ELEMENTS 12

static void append_32(struct wr_buf *buf, uint32_t number)
{
    const unsigned char bytes[4] = {(unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                    (unsigned char)(number >> 8), (unsigned char)number};
    wr_buf_append(buf, bytes, sizeof bytes);
}

static void append_64(struct wr_buf *buf, uint64_t number)
{
    append_32(buf, (uint32_t)(number >> 32));
    append_32(buf, (uint32_t)number);
}

static bool is_array(char letter)
{
    return letter == 'n' || letter == 'f' || letter == 't';
}

static uint32_t element_type(char letter)
{
    return letter == 'n' ? 20 : letter == 'f' ? 701 : 25; /* type ids of int8, float8, text */
}

void wr_pg_params_clear(struct wr_pg_params *params)
{
    for (int i = 0; i < params->count; i++) {
        struct wr_buf *buf = &params->list[i].buf;
        wr_buf_clear(buf);
        params->list[i].elements = 0;
        if (!is_array(params->list[i].letter))
            continue;
        append_32(buf, 1);
        append_32(buf, 0);
        append_32(buf, element_type(params->list[i].letter));
        append_32(buf, 0);
        append_32(buf, 1);
    }
}

void wr_pg_params_init(struct wr_pg_params *ret_params, const weir_allocator *allocator, const char *letters)
{
    ret_params->count = (int)strlen(letters);
    for (int i = 0; i < ret_params->count; i++) {
        ret_params->list[i].letter = letters[i];
        wr_buf_init(&ret_params->list[i].buf, allocator, PARAM_BYTES_MAX);
    }
    wr_pg_params_clear(ret_params);
}

void wr_pg_params_release(struct wr_pg_params *params)
{
    for (int i = 0; i < params->count; i++)
        wr_buf_release(&params->list[i].buf);
}

/* Starts an element of an array: appends its length and counts it. */
static struct wr_buf *begin_element(struct wr_pg_params *params, int at, size_t bytes)
{
    struct wr_buf *buf = &params->list[at].buf;
    uint32_t elements = ++params->list[at].elements;

    if (!is_array(params->list[at].letter) || buf->error != 0)
        return buf;
    const char count[4] = {(char)(elements >> 24), (char)(elements >> 16), (char)(elements >> 8), (char)elements};
    memcpy(buf->bytes + HEAD_ELEMENTS, count, sizeof count);
    append_32(buf, (uint32_t)bytes);
    return buf;
}

void wr_pg_put_integer(struct wr_pg_params *params, int at, int64_t number)
{
    append_64(begin_element(params, at, 8), (uint64_t)number);
}

void wr_pg_put_integers(struct wr_pg_params *params, int at, const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        wr_pg_put_integer(params, at + i, numbers[i]);
}

void wr_pg_put_double(struct wr_pg_params *params, int at, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    append_64(begin_element(params, at, 8), bits);
}

void wr_pg_put_bytes(struct wr_pg_params *params, int at, struct wr_span bytes)
{
    wr_buf_append(begin_element(params, at, bytes.bytes), bytes.bytes > 0 ? bytes.data : "", bytes.bytes);
}
