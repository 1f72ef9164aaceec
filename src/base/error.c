/* SPDX-License-Identifier: MIT */
/* error.c - the words for what went wrong. */
#include "base/error.h"

#define DETAIL_BYTES 200
#define QUOTED_BYTES 48 /* of foreign text, escapes included: leaves room for what is wrong and right */

static _Thread_local const char *detail = "no error";
static _Thread_local char formatted[DETAIL_BYTES];

/* A cursor into `formatted` that cuts what does not fit; always terminated. */
struct writer {
    char *next;
    size_t left; /* bytes, without that of the terminator */
};

const char *weir_error_text(int code)
{
    switch (code) {
    case WEIR_OK:
        return "no error";
#define X(code, value, text) \
    case value:              \
        return text;
        WEIR_ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *weir_error_name(int code)
{
    switch (code) {
    case WEIR_OK:
        return "WEIR_OK";
#define X(code, value, text) \
    case value:              \
        return #code;
        WEIR_ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *weir_error_detail(void)
{
    return detail;
}

int wr_invalid(const char *why)
{
    detail = why;
    return WEIR_E_INVAL;
}

static void write_char(struct writer *writer, char c)
{
    if (writer->left == 0)
        return;
    *writer->next++ = c;
    *writer->next = '\0';
    writer->left--;
}

static void write_string(struct writer *writer, const char *string)
{
    while (*string != '\0')
        write_char(writer, *string++);
}

static void write_number(struct writer *writer, size_t number)
{
    char digits[3 * sizeof number + 1];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    write_string(writer, first);
}

/* One foreign byte, so that nothing in it can steer a terminal or forge a log line. */
static void write_escaped(struct writer *writer, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";

    if (byte >= 0x20 && byte < 0x7f) {
        if (byte == '"' || byte == '\\')
            write_char(writer, '\\');
        write_char(writer, (char)byte);
        return;
    }
    write_string(writer, "\\x");
    write_char(writer, hex[byte >> 4]);
    write_char(writer, hex[byte & 15]);
}

static void write_quoted(struct writer *writer, const char *text, size_t text_bytes)
{
    size_t floor = writer->left > QUOTED_BYTES ? writer->left - QUOTED_BYTES : 0;

    write_char(writer, '"');
    for (size_t i = 0; text != NULL && i < text_bytes; i++) {
        if (writer->left < floor + sizeof "\\x00...\"") {
            write_string(writer, "...");
            break;
        }
        write_escaped(writer, (unsigned char)text[i]);
    }
    write_char(writer, '"');
}

int wr_invalid_text(const char *what, const char *text, size_t text_bytes, const char *wrong, size_t at,
                    const char *right)
{
    struct writer writer = {formatted, sizeof formatted - 1};

    write_string(&writer, what);
    write_char(&writer, ' ');
    write_quoted(&writer, text, text_bytes);
    write_string(&writer, ": ");
    write_string(&writer, wrong);
    if (at != WR_NOWHERE) {
        write_string(&writer, " at character ");
        write_number(&writer, at + 1);
    }
    write_string(&writer, "; ");
    write_string(&writer, right);
    return wr_invalid(formatted);
}
