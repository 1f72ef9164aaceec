/* SPDX-License-Identifier: MIT */
/* writer.c - numbers and escapes. */
#include "core/admit/writer.h"

void wr_write_escaped(struct wr_writer *writer, struct wr_span span, char special)
{
    for (size_t i = 0; i < span.bytes; i++) {
        if (span.data[i] == special || span.data[i] == '\\')
            wr_write_char(writer, '\\');
        wr_write_char(writer, span.data[i]);
    }
}

void wr_write_decimal(struct wr_writer *writer, uint64_t number)
{
    char digits[20]; /* of UINT64_MAX */
    size_t first = sizeof digits;

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    wr_write_span(writer, (struct wr_span){digits + first, sizeof digits - first});
}

void wr_write_hex(struct wr_writer *writer, uint32_t number, int digits, const char *alphabet)
{
    while (digits-- > 0)
        wr_write_char(writer, alphabet[number >> (4 * digits) & 15]);
}
