/* SPDX-License-Identifier: MIT */
/* sitemap_date.c - parses dates of sitemaps and feeds. */
#include "base/ascii.h"
#include "base/buf.h"
#include "core/web/http/http_date.h"
#include "http/sitemap/sitemap_reader.h"

#define THIS_CENTURY_S INT64_C(1767225600) /* 2026: gives the century of two-digit years */

/* Parses "2026", "2026-11" and "2026-11-15" (https://www.w3.org/TR/NOTE-datetime). */
static bool parse_day(struct wr_span text, int64_t *ret_ms)
{
    static const char rest[] = "0000-01-01T00:00Z";
    char memory[sizeof rest];
    if (text.bytes != 4 && text.bytes != 7 && text.bytes != 10)
        return false;
    memcpy(memory, rest, sizeof rest);
    memcpy(memory, text.data, text.bytes);
    return wr_iso_date_parse((struct wr_span){memory, sizeof rest - 1}, ret_ms);
}

/* Parses "+0100" or "-0530" to seconds east of Greenwich. */
static bool parse_zone(struct wr_span zone, int64_t *ret_east_s)
{
    int digits[4];
    if (zone.bytes != 5 || (zone.data[0] != '+' && zone.data[0] != '-'))
        return false;
    for (size_t i = 0; i < 4; i++) {
        if (!wr_ascii_is_digit(zone.data[i + 1]))
            return false;
        digits[i] = zone.data[i + 1] - '0';
    }
    int east_s = (digits[0] * 10 + digits[1]) * 3600 + (digits[2] * 10 + digits[3]) * 60;
    *ret_east_s = zone.data[0] == '-' ? -east_s : east_s;
    return true;
}

/* Parses "Sun, 15 Nov 2026 10:30:00 +0100". The parser for HTTP dates knows only GMT. */
static bool parse_mail_date(struct wr_span text, int64_t *ret_ms)
{
    char memory[WR_SITEMAP_DATE_ROOM + 4];
    struct wr_buf buf;
    int64_t seconds, east_s = 0;
    bool has_zone = text.bytes > 6 && parse_zone(wr_span_after(text, text.bytes - 5), &east_s);
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_buf_append(&buf, text.data, has_zone ? text.bytes - 5 : text.bytes);
    wr_buf_append_string(&buf, has_zone ? "GMT" : "");
    if (!wr_http_date_parse(wr_buf_from(&buf, 0), THIS_CENTURY_S, &seconds))
        return false;
    *ret_ms = (seconds - east_s) * 1000;
    return true;
}

int64_t wr_sitemap_date(struct wr_span text, bool *ret_is_day)
{
    int64_t ms = WR_SITEMAP_NO_DATE;
    text = wr_sitemap_trim(text);
    *ret_is_day = text.bytes == sizeof "2026-11-15" - 1;
    if (text.bytes > 0 && !parse_day(text, &ms) && !wr_iso_date_parse(text, &ms))
        (void)parse_mail_date(text, &ms);
    return ms;
}
