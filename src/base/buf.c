/* SPDX-License-Identifier: MIT */
/* buf.c - a growing byte buffer with a maximum size and a sticky error. */
#include "base/buf.h"

#include "base/alloc.h"
#include "base/ascii.h"

#include <assert.h>
#include <string.h>
#include <weir/time.h>

/* Most bytes of untrusted text that a message quotes, escapes included. The rest of the message is
 * for what is wrong and what would be right. */
#define QUOTED_BYTES 48
#define NAME_BYTES 40 /* longest name that a message shows, bytes */
#define FIRST_ROOM 64 /* bytes of the first allocation; later ones double the size */

void wr_buf_init(struct wr_buf *ret_buf, const weir_allocator *allocator, size_t max)
{
    assert(allocator != NULL && max < SIZE_MAX / 2);
    *ret_buf = (struct wr_buf){.allocator = allocator, .max = max};
}

void wr_buf_init_fixed(struct wr_buf *ret_buf, char *memory, size_t memory_bytes)
{
    assert(memory_bytes >= 1);
    memory[0] = '\0';
    *ret_buf = (struct wr_buf){.bytes = memory, .room = memory_bytes, .max = memory_bytes - 1};
}

static int reallocate_buf(struct wr_buf *buf, size_t room)
{
    char *bytes = wr_alloc(buf->allocator, room, 1);
    if (bytes == NULL)
        return WEIR_E_NOMEM;
    if (buf->length > 0)
        memcpy(bytes, buf->bytes, buf->length);
    wr_free(buf->allocator, buf->bytes, buf->room, 1);
    buf->bytes = bytes;
    buf->room = room;
    return 0;
}

/* Makes room for `length` <= max bytes and the '\0'. Never called for a fixed buffer, whose room is
 * already its maximum. */
static int grow_buf(struct wr_buf *buf, size_t length)
{
    size_t room = buf->room == 0 ? FIRST_ROOM : buf->room;
    while (room < length + 1)
        room *= 2;
    return reallocate_buf(buf, room < buf->max + 1 ? room : buf->max + 1);
}

void wr_buf_reserve(struct wr_buf *buf, size_t length)
{
    if (length <= buf->max && length + 1 > buf->room)
        (void)reallocate_buf(buf, length + 1);
}

void wr_buf_append_slowly(struct wr_buf *buf, const void *data, size_t data_bytes)
{
    if (buf->error != 0 || data_bytes == 0)
        return;
    size_t fits = buf->max - buf->length;
    size_t wanted = data_bytes < fits ? data_bytes : fits;
    if (buf->length + wanted + 1 > buf->room) {
        buf->error = grow_buf(buf, buf->length + wanted);
        if (buf->error != 0)
            return;
    }
    memcpy(buf->bytes + buf->length, data, wanted);
    buf->length += wanted;
    buf->bytes[buf->length] = '\0';
    if (wanted < data_bytes)
        buf->error = WEIR_E_SPACE;
}

void wr_buf_append_u64(struct wr_buf *buf, uint64_t number)
{
    char digits[20]; /* UINT64_MAX has 20 digits */
    size_t first = sizeof digits;

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    wr_buf_append(buf, digits + first, sizeof digits - first);
}

void wr_buf_append_number(struct wr_buf *buf, double number)
{
    const uint64_t scale = UINT64_C(1000000000);

    if (number < 0)
        wr_buf_append_char(buf, '-');
    number = number < 0 ? -number : number;
    assert(number < 1e18);
    uint64_t whole = (uint64_t)number;
    uint64_t decimals = (uint64_t)((number - (double)whole) * (double)scale + 0.5);
    wr_buf_append_u64(buf, whole + decimals / scale);
    decimals %= scale;
    if (decimals > 0)
        wr_buf_append_char(buf, '.');
    for (uint64_t digit = scale / 10; decimals > 0; decimals %= digit, digit /= 10)
        wr_buf_append_char(buf, (char)('0' + decimals / digit));
}

void wr_buf_append_duration(struct wr_buf *buf, int64_t duration_ns)
{
    static const struct {
        int64_t ns;
        const char *name;
    } units[] = {{WEIR_DAY, "d"},          {WEIR_HOUR, "h"},         {WEIR_MINUTE, "m"},     {WEIR_SECOND, "s"},
                 {WEIR_MILLISECOND, "ms"}, {WEIR_MICROSECOND, "us"}, {WEIR_NANOSECOND, "ns"}};
    size_t i = 0;

    assert(duration_ns >= 0);
    while (duration_ns % units[i].ns != 0)
        i++;
    wr_buf_append_u64(buf, (uint64_t)(duration_ns / units[i].ns));
    wr_buf_append_string(buf, duration_ns == 0 ? "" : units[i].name);
}

void wr_buf_append_hex(struct wr_buf *buf, uint32_t number, int digits, const char *alphabet)
{
    while (digits-- > 0)
        wr_buf_append_char(buf, alphabet[number >> (4 * digits) & 15]);
}

void wr_buf_append_escaped(struct wr_buf *buf, struct wr_span span, char special)
{
    for (size_t i = 0; i < span.bytes; i++) {
        if (span.data[i] == special || span.data[i] == '\\')
            wr_buf_append_char(buf, '\\');
        wr_buf_append_char(buf, span.data[i]);
    }
}

static void append_byte_escaped(struct wr_buf *buf, unsigned char byte)
{
    if (!wr_ascii_is_printable((char)byte)) {
        wr_buf_append_string(buf, "\\x");
        wr_buf_append_hex(buf, byte, 2, WR_HEX_SMALL);
        return;
    }
    if (byte == '"' || byte == '\\')
        wr_buf_append_char(buf, '\\');
    wr_buf_append_char(buf, (char)byte);
}

void wr_buf_append_quoted(struct wr_buf *buf, struct wr_span span)
{
    size_t end = buf->length + QUOTED_BYTES;

    wr_buf_append_char(buf, '"');
    for (size_t i = 0; i < span.bytes; i++) {
        if (buf->length >= end) {
            wr_buf_append_string(buf, "...");
            break;
        }
        append_byte_escaped(buf, (unsigned char)span.data[i]);
    }
    wr_buf_append_char(buf, '"');
}

size_t wr_name_bytes(struct wr_span span)
{
    size_t bytes = 0, max = span.bytes < NAME_BYTES ? span.bytes : NAME_BYTES;

    while (bytes < max && (wr_ascii_is_alnum(span.data[bytes]) || span.data[bytes] == '-' || span.data[bytes] == '_'))
        bytes++;
    return bytes;
}

void wr_buf_append_name(struct wr_buf *buf, struct wr_span span)
{
    size_t bytes = wr_name_bytes(span);

    wr_buf_append_char(buf, '"');
    wr_buf_append(buf, span.data, bytes);
    wr_buf_append_string(buf, bytes < span.bytes ? "...\"" : "\"");
}

int wr_buf_take_string(struct wr_buf *buf, char **ret_string, size_t *ret_bytes)
{
    assert(buf->allocator != NULL);
    int error = buf->error;
    if (error == 0 && buf->room != buf->length + 1)
        /* the caller frees length + 1 bytes, so the block must have that size */
        error = reallocate_buf(buf, buf->length + 1);
    if (error != 0)
        return error;
    buf->bytes[buf->length] = '\0';
    *ret_string = buf->bytes;
    *ret_bytes = buf->length;
    wr_buf_init(buf, buf->allocator, buf->max);
    return 0;
}

void wr_buf_release(struct wr_buf *buf)
{
    if (buf->allocator != NULL)
        wr_free(buf->allocator, buf->bytes, buf->room, 1);
    *buf = (struct wr_buf){0};
}
