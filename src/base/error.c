/* SPDX-License-Identifier: MIT */
/* error.c - error codes as text, and the thread's detail of the last error. */
#include "base/error.h"

#include "base/buf.h"

#include <string.h>

#define DETAIL_BYTES 200

static const char none[] = "no error";
static _Thread_local const char *detail = none;
static _Thread_local const char *plain = none; /* the end of `detail`, after all quoted text */
static _Thread_local char formatted[DETAIL_BYTES];

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

const char *wr_error_message(int code)
{
    return code == WEIR_E_NOMEM || detail == NULL || detail[0] == '\0' ? weir_error_text(code) : detail;
}

const char *wr_error_unquoted(void)
{
    return plain;
}

void wr_error_set(const char *why)
{
    detail = plain = why;
}

/* Makes `formatted` the detail. Only its first `quoting` bytes contain quoted text. */
static void set_formatted_detail(const struct wr_buf *buf, size_t quoting)
{
    detail = formatted;
    plain = formatted + (quoting < buf->length ? quoting : buf->length);
}

static void set_quoted_detail(const char *what, struct wr_span text, const char *between, const char *why)
{
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, formatted, sizeof formatted);
    wr_buf_append_string(&buf, what);
    wr_buf_append_char(&buf, ' ');
    wr_buf_append_quoted(&buf, text);
    wr_buf_append_string(&buf, between);
    size_t quoting = buf.length;
    wr_buf_append_string(&buf, why);
    set_formatted_detail(&buf, quoting);
}

void wr_error_set_text(const char *what, const char *text, size_t text_bytes, const char *why)
{
    set_quoted_detail(what, (struct wr_span){text, text_bytes}, " ", why);
}

void wr_error_set_cause(const char *what, const char *text, const char *cause)
{
    set_quoted_detail(what, wr_span_of(text), ": ", cause);
}

int wr_invalid_in(const char *where)
{
    char text[DETAIL_BYTES];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_string(&buf, where);
    wr_buf_append_string(&buf, ": ");
    size_t quoting = buf.length + (size_t)(plain - detail);
    wr_buf_append_string(&buf, detail);
    memcpy(formatted, text, buf.length + 1); /* `detail` may point into `formatted` */
    set_formatted_detail(&buf, quoting);
    return WEIR_E_INVAL;
}

int wr_invalid_text(const char *what, const char *text, size_t text_bytes, const char *wrong, size_t at,
                    const char *right)
{
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, formatted, sizeof formatted);
    wr_buf_append_string(&buf, what);
    wr_buf_append_char(&buf, ' ');
    wr_buf_append_quoted(&buf, (struct wr_span){text, text == NULL ? 0 : text_bytes});
    wr_buf_append_string(&buf, ": ");
    size_t quoting = buf.length;
    wr_buf_append_string(&buf, wrong);
    if (at != WR_NOWHERE) {
        wr_buf_append_string(&buf, " at character ");
        wr_buf_append_u64(&buf, at + 1);
    }
    wr_buf_append_string(&buf, "; ");
    wr_buf_append_string(&buf, right);
    set_formatted_detail(&buf, quoting);
    return WEIR_E_INVAL;
}
