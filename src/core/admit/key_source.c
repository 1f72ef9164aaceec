/* SPDX-License-Identifier: MIT */
/* key_source.c - parses the source of a key from text. */
#include "core/admit/key_source.h"

#include "base/error.h"
#include "core/admit/request_headers.h"

#include <string.h>

static bool holds_secret(const char *header)
{
    static const char *const names[] = {"authorization", "proxy-authorization", "cookie", "x-api-key"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(header, names[i]) == 0)
            return true;
    }
    return false;
}

static int parse_header(const char *text, enum wr_key_source source, const char *header, enum wr_key_source *ret_source,
                        const char **ret_header)
{
    if (!wr_header_name_ok(header))
        return wr_invalid_text("key", text, strlen(text), "not the name of a header in lower case", WR_NOWHERE,
                               "write it as header:x-user-id");
    if (source == WR_KEY_FROM_HEADER && holds_secret(header))
        return wr_invalid_text("key", text, strlen(text), "its values are secrets, and keys are shown", WR_NOWHERE,
                               "write token: in place of header:, and only a digest is kept");
    *ret_source = source;
    *ret_header = header;
    return 0;
}

int wr_key_source_parse(const char *text, enum wr_key_source *ret_source, const char **ret_header)
{
    /* Names in the order of enum wr_key_source. */
    static const char *const plain[] = {"global", "ip", "route", "host", "method"};

    if (strncmp(text, "header:", 7) == 0)
        return parse_header(text, WR_KEY_FROM_HEADER, text + 7, ret_source, ret_header);
    if (strncmp(text, "token:", 6) == 0)
        return parse_header(text, WR_KEY_FROM_TOKEN, text + 6, ret_source, ret_header);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (strcmp(text, plain[i]) == 0) {
            *ret_source = (enum wr_key_source)i;
            *ret_header = NULL;
            return 0;
        }
    }
    return wr_invalid_text("key", text, strlen(text), "unknown", WR_NOWHERE,
                           "use ip, global, route, host, method, header:NAME or token:NAME");
}
