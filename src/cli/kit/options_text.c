/* SPDX-License-Identifier: MIT */
/* options_text.c - prints options and their values as text. */
#include "cli/kit/options_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/console.h"

#define COLUMN 26 /* column where the explanations begin */
/* Maximum width of a line: the default moves to a line below if it does not fit. */
#define COLUMNS 100

static void format_duration(int64_t duration_ns, char *ret_text, size_t text_bytes)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_text, text_bytes);
    wr_buf_append_duration(&buf, duration_ns);
}

/* Joins the choices, as in "one|two|three". */
static void join_choices(const struct wr_option *option, const char *between, char *ret_text, size_t text_bytes)
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; option->choices[i] != NULL && used < text_bytes; i++)
        used += (size_t)snprintf(ret_text + used, text_bytes - used, "%s%s", i > 0 ? between : "", option->choices[i]);
}

void wr_option_expected(const struct wr_option *option, char *ret_text, size_t text_bytes)
{
    char low[32], high[32], choices[192];
    switch (option->kind) {
    case WR_OPTION_COUNT:
        snprintf(ret_text, text_bytes, "a whole number from %" PRIu64 " to %" PRIu64, option->min, option->max);
        break;
    case WR_OPTION_SIZE:
        snprintf(ret_text, text_bytes, "a size such as 64k or 1.5M, from %" PRIu64 " to %" PRIu64 " bytes", option->min,
                 option->max);
        break;
    case WR_OPTION_DURATION:
        format_duration((int64_t)option->min, low, sizeof low);
        format_duration((int64_t)option->max, high, sizeof high);
        snprintf(ret_text, text_bytes, "a duration such as 500ms or 2h, from %s to %s", low, high);
        break;
    case WR_OPTION_CHOICE:
        join_choices(option, ", ", choices, sizeof choices);
        snprintf(ret_text, text_bytes, "one of %s", choices);
        break;
    case WR_OPTION_FLAG:
        snprintf(ret_text, text_bytes, "true or false");
        break;
    case WR_OPTION_STRING:
    case WR_OPTION_LIST:
    case WR_OPTION_CONFIG:
    case WR_OPTION_SET:
        snprintf(ret_text, text_bytes, "%s", option->value != NULL ? option->value : "");
        break;
    }
}

/* Appends a size with its unit: 16777216 is 16M. */
static void append_size(struct wr_buf *buf, uint64_t bytes)
{
    static const char units[] = "kMGT";
    size_t unit = 0;
    for (; bytes > 0 && bytes % 1024 == 0 && unit < sizeof units - 1; unit++)
        bytes /= 1024;
    wr_buf_append_u64(buf, bytes);
    if (unit > 0)
        wr_buf_append_char(buf, units[unit - 1]);
}

void wr_option_append(struct wr_buf *buf, const struct wr_option *option, const void *settings)
{
    const void *field = (const char *)settings + option->offset;
    switch (option->kind) {
    case WR_OPTION_FLAG:
        wr_buf_append_string(buf, *(const bool *)field ? "true" : "false");
        break;
    case WR_OPTION_COUNT:
        wr_buf_append_u64(buf, *(const uint64_t *)field);
        break;
    case WR_OPTION_SIZE:
        append_size(buf, *(const uint64_t *)field);
        break;
    case WR_OPTION_DURATION:
        wr_buf_append_duration(buf, *(const int64_t *)field);
        break;
    case WR_OPTION_CHOICE:
        wr_buf_append_string(buf, option->choices[*(const int *)field]);
        break;
    case WR_OPTION_STRING:
        if (*(const char *const *)field != NULL)
            wr_buf_append_string(buf, *(const char *const *)field);
        break;
    case WR_OPTION_LIST:
    case WR_OPTION_CONFIG:
    case WR_OPTION_SET:
        break;
    }
}

/* Formats the default value; "" if there is nothing to show. */
static void format_default(const struct wr_option *option, const void *settings, char *ret_text, size_t text_bytes)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_text, text_bytes);
    wr_buf_append_string(&buf, " (default ");
    size_t empty = buf.length;
    if (option->kind != WR_OPTION_FLAG)
        wr_option_append(&buf, option, settings);
    if (buf.length == empty)
        wr_buf_clear(&buf);
    else
        wr_buf_append_char(&buf, ')');
    ret_text[buf.length] = '\0';
}

static void print_option(const char *left, const char *help, const char *default_text)
{
    if (strlen(left) + 3 > COLUMN)
        wr_print("  %s\n%*s%s", left, COLUMN, "", help);
    else
        wr_print("  %-*s%s", COLUMN - 2, left, help);
    if (default_text[0] != '\0' && COLUMN + strlen(help) + strlen(default_text) > COLUMNS)
        wr_print("\n%*s%s\n", COLUMN, "", default_text + 1);
    else
        wr_print("%s\n", default_text);
}

/* Turns "(0: no limit)" of the help text into "(default 0: no limit)" if 0 is the default. Returns
 * false if the help text does not explain 0. */
static bool explain_zero(const char *help, const char *default_text, char *ret_help, size_t help_bytes)
{
    static const char zero[] = "(0: ";
    const char *at = strcmp(default_text, " (default 0)") == 0 ? strstr(help, zero) : NULL;
    if (at == NULL)
        return false;
    snprintf(ret_help, help_bytes, "%.*s(default 0: %s", (int)(at - help), help, at + sizeof zero - 1);
    return true;
}

static void print_option_line(const struct wr_option *option, const void *settings)
{
    char left[256], value[192] = "", default_text[96], help[192];
    if (option->kind == WR_OPTION_CHOICE)
        join_choices(option, "|", value, sizeof value);
    else if (option->value != NULL)
        snprintf(value, sizeof value, "%s", option->value);
    snprintf(left, sizeof left, "--%s%s%s", option->name, value[0] != '\0' ? " " : "", value);
    format_default(option, settings, default_text, sizeof default_text);
    if (explain_zero(option->help, default_text, help, sizeof help))
        print_option(left, help, "");
    else
        print_option(left, option->help, default_text);
}

static size_t count_basic(const struct wr_usage *usage)
{
    size_t count = 0;
    for (size_t i = 0; i < usage->count; i++)
        count += usage->options[i].is_basic;
    return count;
}

void wr_options_help(const struct wr_usage *usage, const void *settings, bool lists_all)
{
    bool is_short = !lists_all && count_basic(usage) > 0;
    wr_print("usage: %s [OPTION]…%s%s\n\n%s\n", usage->who, usage->operands != NULL ? " " : "",
             usage->operands != NULL ? usage->operands : "", usage->about);
    for (size_t i = 0; i < usage->count; i++) {
        const struct wr_option *option = &usage->options[i];
        if (is_short && !option->is_basic)
            continue;
        if (!is_short && option->heading != NULL)
            wr_print("%s%s:\n", i > 0 ? "\n" : "", option->heading);
        print_option_line(option, settings);
    }
    if (!is_short && usage->count > 0 && usage->options[0].heading != NULL)
        wr_print("\nHelp:\n");
    print_option("-h, --help", is_short ? "Show this text; --help all: show all options" : "Show this text", "");
}
