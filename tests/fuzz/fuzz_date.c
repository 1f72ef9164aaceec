/* SPDX-License-Identifier: MIT */
/* fuzz_date.c - fuzzes dates: every accepted date is in the years 0 to 9999, and is the same after
 * it is written in another form and parsed again. */
#include "core/web/http/http_date.h"

#include "fuzz/fuzz.h"

#include <time.h>

#define NOW_S INT64_C(1794700800) /* 2026-11-15 */

/* Writes the date with the C library, which src/core may not use, and parses it again. */
static void check_again(int64_t s, const char *form)
{
    char text[64];
    struct tm tm;
    time_t time = (time_t)s;
    int64_t again;

    if (time != s)
        /* A 32-bit time_t ends in 2038. */
        return;
    fuzz_check(gmtime_r(&time, &tm) != NULL && strftime(text, sizeof text, form, &tm) > 0);
    fuzz_check(wr_http_date_parse(wr_span_of(text), NOW_S, &again) && again == s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wr_span text = {(const char *)data, bytes};
    int64_t s, ms;

    if (wr_http_date_parse(text, NOW_S, &s)) {
        fuzz_check(s >= INT64_C(-62167219200) && s <= INT64_C(253402300800));
        /* From the year 1000 on strftime writes four digits. */
        if (s >= INT64_C(-30610224000) && s < INT64_C(253402300800)) {
            check_again(s, "%a, %d %b %Y %H:%M:%S GMT");
            check_again(s, "%a %b %e %H:%M:%S %Y");
        }
    }
    if (wr_iso_date_parse(text, &ms))
        fuzz_check(ms >= INT64_C(-62167305600000) && ms <= INT64_C(253402387200000));
    return 0;
}
