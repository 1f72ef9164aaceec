/* SPDX-License-Identifier: MIT */
/* method.c - normalises and compares request methods. */
#include "core/admit/method.h"

#include "base/ascii.h"

static bool is_method_named(struct wr_span method, const char *word)
{
    return method.bytes == strlen(word) && wr_ascii_same(method.data, word, method.bytes);
}

const char *wr_method_known(struct wr_span method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (is_method_named(method, known[i]))
            return known[i];
    }
    return NULL;
}

static bool is_token_char(char c)
{
    return wr_ascii_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool wr_method_is_token(struct wr_span method)
{
    for (size_t i = 0; i < method.bytes; i++)
        if (!is_token_char(method.data[i]))
            return false;
    return true;
}

bool wr_method_fits(struct wr_span wanted, struct wr_span method)
{
    if (wanted.bytes == method.bytes && wr_ascii_same(wanted.data, method.data, method.bytes))
        return true;
    return wr_span_is(wanted, "GET") && is_method_named(method, "HEAD");
}

void wr_method_append(struct wr_buf *buf, struct wr_span method)
{
    const char *known = wr_method_known(method);

    wr_buf_append_string(buf, known != NULL ? known : "OTHER");
}
