/* SPDX-License-Identifier: MIT */
/* ascii.h - ASCII character classes that do not depend on the locale.
 *
 * Protocols mean ASCII. The functions of <ctype.h> depend on the locale and are undefined for a
 * negative char.
 */
#ifndef WR_BASE_ASCII_H
#define WR_BASE_ASCII_H

#include <stdbool.h>
#include <stddef.h>

static inline bool wr_ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the small letter of a capital letter, and any other character unchanged. */
static inline char wr_ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool wr_ascii_is_alpha(char c)
{
    char lower = wr_ascii_lower(c);
    return lower >= 'a' && lower <= 'z';
}

static inline bool wr_ascii_is_alnum(char c)
{
    return wr_ascii_is_digit(c) || wr_ascii_is_alpha(c);
}

/* Returns true for the ASCII characters 0x20 to 0x7e: the blank is printable, DEL is not. */
static inline bool wr_ascii_is_printable(char c)
{
    return c >= 0x20 && c <= 0x7e;
}

/* Returns 0 to 15, or -1 if `c` is not a hex digit. */
static inline int wr_ascii_hex_value(char c)
{
    char lower = wr_ascii_lower(c);
    if (wr_ascii_is_digit(c))
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Returns true if the two strings are equal, ignoring the case of ASCII letters. */
static inline bool wr_ascii_same(const char *a, const char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (wr_ascii_lower(a[i]) != wr_ascii_lower(b[i]))
            return false;
    return true;
}

#endif
