/* SPDX-License-Identifier: MIT */
/* ascii.h - classes of characters, whatever the locale.
 *
 * <ctype.h> asks the locale and may not be given a negative char; protocols mean ASCII.
 */
#ifndef WR_BASE_ASCII_H
#define WR_BASE_ASCII_H

#include <stdbool.h>
#include <stddef.h>

static inline bool wr_ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The small letter of a capital; all else as it is. */
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

/* With the blank, without DEL. */
static inline bool wr_ascii_is_printable(char c)
{
    return c >= 0x20 && c <= 0x7e;
}

/* 0 … 15, or -1 if it is no hex digit. */
static inline int wr_ascii_hex_value(char c)
{
    char lower = wr_ascii_lower(c);
    if (wr_ascii_is_digit(c))
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Whether they differ at most in the case of letters. */
static inline bool wr_ascii_same(const char *a, const char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (wr_ascii_lower(a[i]) != wr_ascii_lower(b[i]))
            return false;
    return true;
}

#endif
