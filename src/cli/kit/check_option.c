/* SPDX-License-Identifier: MIT */
/* check_option.c - checks the texts of options with a syntax of their own. */
#include "cli/kit/check_option.h"

#include <string.h>

#include "base/ascii.h"
#include "base/error.h"
#include "base/parse.h"
#include "core/web/http/field.h"
#include "core/web/http/status.h"
#include "crawl/engine/scope.h"
#include "crawl/store/store.h"
#include "http/net/net.h"

int wr_check_rate(const char *text)
{
    double rate;
    return wr_parse_number(text, strlen(text), 0, 1e9, &rate);
}

int wr_check_contact(const char *text)
{
    bool is_plain = true;
    for (const char *c = text; *c != '\0'; c++)
        is_plain = is_plain && wr_ascii_is_printable(*c) && strchr(" ()<>\"", *c) == NULL;
    if (text[0] == '\0' || (is_plain && (strchr(text, '@') != NULL || strstr(text, "://") != NULL)))
        return 0;
    return wr_invalid_text("contact", text, strlen(text), "unknown", WR_NOWHERE, "use a URL or a mail address");
}

int wr_check_header(const char *text)
{
    struct wr_span name, value;
    if (wr_field_parse(wr_span_of(text), &name, &value) && wr_field_is_sound(name, value))
        return 0;
    return wr_invalid("it is not a line \"Name: value\", as in \"Accept-Language: en\"");
}

int wr_check_statuses(const char *text)
{
    struct wr_statuses statuses;
    wr_statuses_init(&statuses, WR_STATUSES_JOBS);
    return wr_statuses_parse(&statuses, text);
}

int wr_check_proxy(const char *text)
{
    return wr_net_proxy_check(text);
}

int wr_check_file(const char *text)
{
    return strstr(text, "://") == NULL ? 0 : wr_invalid("it is a URL, and must be the name of a file");
}

int wr_check_state(const char *text)
{
    if (wr_store_is_url(text) || wr_check_file(text) == 0)
        return 0;
    return wr_invalid("no such database is known; use postgres://USER@HOST/DATABASE, or the name of a file");
}

int wr_check_pattern(const char *text)
{
    struct wr_scope *scope;
    int error = wr_scope_new(&(struct wr_scope_options){.kind = WR_SCOPE_ANY}, &scope);
    if (error != 0)
        return 0; /* an error of another kind is reported when the pattern is used */
    error = wr_scope_include(scope, text);
    wr_scope_free(scope);
    return error == WEIR_E_INVAL ? error : 0;
}
