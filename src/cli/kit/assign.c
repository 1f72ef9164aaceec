/* SPDX-License-Identifier: MIT */
/* assign.c - converts the text of an option, from a flag, a file or the environment, and stores it
 * in its field. */
#include <string.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/kit/command_options.h"
#include "cli/kit/options_text.h"
#include "cli/kit/pace_flags.h"

/* A field of any option, for a value that is only checked. */
union option_field {
    bool flag;
    uint64_t count;
    int64_t duration;
    int choice;
    const char *string;
    struct wr_option_list list;
    struct wr_sources sources;
    struct wr_pace_texts pace;
};

static bool append_invalid_value(const struct wr_option *option, const char *text, struct wr_buf *why)
{
    char wanted[256];
    wr_option_expected(option, wanted, sizeof wanted);
    wr_buf_append_string(why, option->is_secret ? " is invalid" : " cannot be ");
    if (!option->is_secret)
        wr_buf_append_quoted(why, wr_span_of(text));
    wr_buf_append_string(why, ": it must be ");
    wr_buf_append_string(why, wanted);
    return false;
}

/* Appends the detail of the parser, which knows the position of the error. */
static bool append_parse_error(const struct wr_option *option, struct wr_buf *why)
{
    wr_buf_append_string(why, ": ");
    wr_buf_append_string(why, option->is_secret ? wr_error_unquoted() : weir_error_detail());
    return false;
}

static bool store_flag(const struct wr_option *option, const char *text, bool *ret_flag, struct wr_buf *why)
{
    bool is_false = text != NULL && strcmp(text, "false") == 0;
    if (text != NULL && !is_false && strcmp(text, "true") != 0)
        return append_invalid_value(option, text, why);
    *ret_flag = !is_false;
    return true;
}

static bool store_option_choice(const struct wr_option *option, const char *text, int *ret_index, struct wr_buf *why)
{
    for (int i = 0; option->choices[i] != NULL; i++)
        if (strcmp(option->choices[i], text) == 0) {
            *ret_index = i;
            return true;
        }
    return append_invalid_value(option, text, why);
}

static bool store_option_count(const struct wr_option *option, const char *text, uint64_t *ret_count,
                               struct wr_buf *why)
{
    return wr_parse_u64(text, strlen(text), option->min, option->max, ret_count) == 0 ||
           append_parse_error(option, why);
}

static bool store_option_size(const struct wr_option *option, const char *text, uint64_t *ret_bytes, struct wr_buf *why)
{
    uint64_t bytes = 0;
    if (wr_parse_bytes(text, strlen(text), &bytes) < 0)
        return append_parse_error(option, why);
    if (bytes < option->min || bytes > option->max)
        return append_invalid_value(option, text, why);
    *ret_bytes = bytes;
    return true;
}

static bool store_option_duration(const struct wr_option *option, const char *text, int64_t *ret_duration,
                                  struct wr_buf *why)
{
    int64_t duration = 0;
    if (wr_parse_duration(text, strlen(text), &duration) < 0)
        return append_parse_error(option, why);
    if ((uint64_t)duration < option->min || (uint64_t)duration > option->max)
        return append_invalid_value(option, text, why);
    *ret_duration = duration;
    return true;
}

static bool store_string(const struct wr_option *option, const char *text, const char **ret_text, struct wr_buf *why)
{
    if (option->check != NULL && option->check(text) != 0)
        return append_parse_error(option, why);
    *ret_text = text;
    return true;
}

static bool store_item(const struct wr_option *option, const char *text, struct wr_option_list *list,
                       struct wr_buf *why)
{
    if (list->count == WR_OPTION_LIST_MAX) {
        wr_buf_append_string(why, " is given more than ");
        wr_buf_append_u64(why, WR_OPTION_LIST_MAX);
        wr_buf_append_string(why, " times");
        return false;
    }
    return store_string(option, text, &list->items[list->count], why) && ++list->count > 0;
}

static bool store_option_value(const struct wr_option *option, const char *text, void *field, struct wr_buf *why)
{
    switch (option->kind) {
    case WR_OPTION_FLAG:
        return store_flag(option, text, field, why);
    case WR_OPTION_COUNT:
        return store_option_count(option, text, field, why);
    case WR_OPTION_SIZE:
        return store_option_size(option, text, field, why);
    case WR_OPTION_DURATION:
        return store_option_duration(option, text, field, why);
    case WR_OPTION_CHOICE:
        return store_option_choice(option, text, field, why);
    case WR_OPTION_STRING:
        return store_string(option, text, field, why);
    case WR_OPTION_LIST:
        return store_item(option, text, field, why);
    case WR_OPTION_CONFIG:
        ((struct wr_sources *)field)->path = text;
        return true;
    case WR_OPTION_SET:
        break;
    }
    return false;
}

struct wr_sources *wr_options_sources(const struct wr_usage *usage, void *settings)
{
    for (size_t i = 0; i < usage->count; i++)
        if (usage->options[i].kind == WR_OPTION_CONFIG)
            return (struct wr_sources *)(void *)((char *)settings + usage->options[i].offset);
    return NULL;
}

bool wr_value_source_yields(struct wr_value_source old, struct wr_value_source now)
{
    return now.kind != old.kind ? now.kind > old.kind : old.is_shared || !now.is_shared;
}

bool wr_option_assign(const struct wr_usage *usage, const struct wr_option *option, const char *text,
                      struct wr_value_source origin, void *settings, struct wr_buf *why)
{
    struct wr_sources *sources = settings != NULL ? wr_options_sources(usage, settings) : NULL;
    struct wr_value_source *now = sources != NULL ? &sources->of[option - usage->options] : NULL;
    union option_field unused = {.list.count = 0};
    if (option->kind == WR_OPTION_SET)
        return wr_pace_set(usage, text, settings, why);
    if (settings == NULL || (now != NULL && !wr_value_source_yields(*now, origin)))
        return store_option_value(option, text, &unused, why);
    if (now != NULL)
        *now = origin;
    return store_option_value(option, text, (char *)settings + option->offset, why);
}

bool wr_option_hides(const struct wr_option *option, const char *text)
{
    return option->is_secret &&
           (option->kind == WR_OPTION_LIST || strchr(text, '@') != NULL || strstr(text, "password=") != NULL);
}
