/* SPDX-License-Identifier: MIT */
/* given_url.c - parses a URL from the command line. */
#include "cli/kit/given_url.h"

#include "base/ascii.h"
#include "cli/kit/console.h"
#include "http/net/idna.h"

#define SHOWN_MAX 128

bool wr_given_lacks_scheme(struct wr_span text)
{
    if (text.bytes > 0 && text.data[0] == '[')
        return true;
    size_t colon = wr_span_find(text, ':'), slash = wr_span_find(text, '/');
    return colon == text.bytes || slash < colon || (colon + 1 < text.bytes && wr_ascii_is_digit(text.data[colon + 1]));
}

bool wr_given_url(const char *what, const char *input, const struct wr_url *base, char memory[WR_URL_ROOM],
                  struct wr_url *ret_url)
{
    char text[SHOWN_MAX];
    struct wr_buf buf;
    enum wr_url_fault fault = wr_url_parse(wr_span_of(input), base, wr_idna_libidn2(), memory, WR_URL_ROOM, ret_url);

    if (fault == WR_URL_OK)
        return true;
    /* Without the password, because error messages end in logs. */
    wr_url_redact_invalid(wr_span_of(input), memory, WR_URL_ROOM);
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_quoted(&buf, wr_span_of(memory));
    wr_complain("%s%s: %s", what, text, wr_url_fault_text(fault));
    return false;
}
