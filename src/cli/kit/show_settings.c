/* SPDX-License-Identifier: MIT */
/* show_settings.c - prints the settings in force and their sources. */
#include "cli/kit/show_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "cli/kit/console.h"
#include "cli/kit/options_text.h"
#include "cli/kit/pace_flags.h"
#include "cli/kit/sanitise.h"
#include "limiter/memory/memory.h"

#define COLUMN 40 /* column where the source of a setting is printed */

static struct {
    bool is_on, is_json;
    bool has_pace; /* the section pace was already printed */
    size_t sections, settings;
} show;

void wr_show_settings_begin(bool is_json)
{
    show.is_on = true;
    show.is_json = is_json;
}

bool wr_shows_settings(void)
{
    return show.is_on;
}

/* A setting to print. */
struct shown_setting {
    const char *name;
    const char *value; /* placeholder of the value in --help */
    struct wr_value_source origin;
    const char *file;
    struct wr_buf text;
    bool is_set, is_hidden;
    bool is_bare; /* the text is valid in JSON and YAML without quotes */
};

/* ---- values ---- */

/* Returns true if YAML reads the text without quotes as the same string. */
static bool is_plain(struct wr_span text)
{
    if (text.data == NULL || text.bytes == 0 || text.data[0] == '-' || wr_span_is(text, "null") ||
        wr_span_is(text, "true") || wr_span_is(text, "false"))
        return false;
    for (size_t i = 0; i < text.bytes; i++)
        if (!wr_ascii_is_alnum(text.data[i]) && strchr("._/-", text.data[i]) == NULL)
            return false;
    return true;
}

/* Returns true if the text is valid in JSON and YAML without quotes: a number, true or false. */
static bool is_bare(struct wr_span text)
{
    size_t digits = 0, points = 0;
    if (text.data == NULL)
        return false;
    for (size_t i = 0; i < text.bytes; i++) {
        digits += wr_ascii_is_digit(text.data[i]);
        points += text.data[i] == '.' && i > 0 && i + 1 < text.bytes;
    }
    bool is_number = digits > 0 && digits + points == text.bytes && points <= 1;
    bool is_padded = text.bytes > 1 && text.data[0] == '0' && text.data[1] != '.';
    return (is_number && !is_padded) || wr_span_is(text, "true") || wr_span_is(text, "false");
}

static void append_string(struct wr_buf *buf, struct wr_span text)
{
    if (!show.is_json && is_plain(text))
        wr_buf_append_span(buf, text);
    else
        wr_append_json_string(buf, text);
}

static void append_json_list(struct wr_buf *buf, const struct wr_option_list *list)
{
    wr_buf_append_char(buf, '[');
    for (size_t i = 0; i < list->count; i++) {
        wr_buf_append_string(buf, i > 0 ? ", " : "");
        wr_append_json_string(buf, wr_span_of(list->items[i]));
    }
    wr_buf_append_char(buf, ']');
}

static void read_setting(const struct wr_option *option, const void *settings, struct shown_setting *line)
{
    const void *field = (const char *)settings + option->offset;
    const char *string = option->kind == WR_OPTION_STRING ? *(const char *const *)field : NULL;
    line->is_set = true;
    line->is_bare = option->kind == WR_OPTION_FLAG || option->kind == WR_OPTION_COUNT || option->kind == WR_OPTION_LIST;
    if (option->kind == WR_OPTION_STRING)
        line->is_set = string != NULL;
    if (option->kind == WR_OPTION_LIST)
        line->is_set = ((const struct wr_option_list *)field)->count > 0;
    line->is_hidden = line->is_set && wr_option_hides(option, string != NULL ? string : "");
    if (option->kind == WR_OPTION_LIST)
        append_json_list(&line->text, field);
    else
        wr_option_append(&line->text, option, settings);
}

/* ---- lines ---- */

static void print_setting_json(struct shown_setting *line)
{
    static const char *const kinds[] = {"default", "file", "environment", "flag"};
    struct wr_span text = wr_buf_from(&line->text, 0);
    wr_print("%s\n    \"%s\": {\"value\": ", show.settings++ > 0 ? "," : "", line->name);
    if (line->is_hidden)
        wr_print("\"(hidden)\"");
    else if (!line->is_set)
        wr_print("null");
    else if (line->is_bare)
        wr_print("%.*s", (int)text.bytes, text.data);
    else
        wr_print_json_string(text);
    wr_print(", \"from\": \"%s\"", kinds[line->origin.kind]);
    if (line->origin.kind == WR_FROM_FILE) {
        wr_print(", \"file\": ");
        wr_print_json_string(wr_span_of(line->file));
        wr_print(", \"line\": %" PRIu32, line->origin.line);
    }
    wr_print("}");
}

static void print_origin(const struct shown_setting *line)
{
    switch (line->origin.kind) {
    case WR_FROM_DEFAULT:
        wr_print("# default\n");
        break;
    case WR_FROM_FILE:
        wr_print("# ");
        wr_print_sanitised(wr_span_of(line->file));
        wr_print(":%" PRIu32 "\n", line->origin.line);
        break;
    case WR_FROM_ENVIRONMENT:
        wr_print("# environment\n");
        break;
    case WR_FROM_FLAG:
        wr_print("# flag\n");
        break;
    }
}

static void print_setting_yaml(struct shown_setting *line)
{
    struct wr_buf buf;
    wr_buf_init(&buf, wr_allocator_or_system(NULL), 1 << 20);
    wr_buf_append_string(&buf, line->is_set && !line->is_hidden ? "  " : "  # ");
    wr_buf_append_string(&buf, line->name);
    wr_buf_append_string(&buf, ": ");
    if (line->is_hidden)
        wr_buf_append_string(&buf, "(hidden)");
    else if (!line->is_set)
        wr_buf_append_string(&buf, line->value);
    else if (line->is_bare)
        wr_buf_append_span(&buf, wr_buf_from(&line->text, 0));
    else
        append_string(&buf, wr_buf_from(&line->text, 0));
    wr_print("%-*.*s ", COLUMN, (int)buf.length, buf.bytes);
    wr_buf_release(&buf);
    if (line->is_set)
        print_origin(line);
    else
        wr_print("# not set\n");
}

static void print_setting(struct shown_setting *line)
{
    if (show.is_json)
        print_setting_json(line);
    else
        print_setting_yaml(line);
    wr_buf_release(&line->text);
}

/* ---- sections ---- */

static void open_section(const char *name)
{
    show.settings = 0;
    if (show.is_json)
        wr_print("%s\n  \"%s\": {", show.sections > 0 ? "," : "{", name);
    else
        wr_print("%s%s:\n", show.sections > 0 ? "\n" : "", name);
    show.sections++;
}

static void close_section(void)
{
    if (show.is_json)
        wr_print("\n  }");
}

static struct shown_setting init_shown_setting(const char *name, struct wr_value_source origin,
                                               const struct wr_sources *sources)
{
    struct shown_setting line = {.name = name, .value = "", .origin = origin, .file = sources->file};
    wr_buf_init(&line.text, wr_allocator_or_system(NULL), 1 << 20);
    return line;
}

/* Prints the settings of pace that have no option of their own. */
static void show_pace(const struct wr_usage *usage, void *settings, const weir_pace_options *pace)
{
    const struct wr_sources *sources = wr_options_sources(usage, settings);
    const struct wr_pace_texts *named = &wr_pace_flags_of(usage, settings)->named;
    open_section("pace");
    for (size_t i = 0; wr_pace_name(i) != NULL; i++) {
        const char *flag = wr_pace_flag(i);
        if (wr_option_find(usage, flag, strlen(flag)) != NULL)
            continue;
        struct shown_setting line = init_shown_setting(wr_pace_name(i), named->of[i], sources);
        wr_pace_append(&line.text, named, pace, i);
        line.is_set = line.text.length > 0;
        line.is_bare = is_bare(wr_buf_from(&line.text, 0));
        print_setting(&line);
    }
    close_section();
}

static void show_section(const struct wr_usage *usage, void *settings)
{
    const struct wr_sources *sources = wr_options_sources(usage, settings);
    open_section(usage->section);
    for (size_t i = 0; i < usage->count; i++) {
        const struct wr_option *option = &usage->options[i];
        if (option->kind == WR_OPTION_CONFIG || option->kind == WR_OPTION_SET)
            continue;
        struct shown_setting line = init_shown_setting(option->name, sources->of[i], sources);
        line.value = option->value != NULL ? option->value : "";
        read_setting(option, settings, &line);
        print_setting(&line);
    }
    close_section();
}

bool wr_show_settings(const struct wr_usage *usage, void *settings)
{
    struct wr_pace_flags *flags = wr_pace_flags_of(usage, settings);
    weir_pace_options pace;
    if (flags != NULL && !wr_pace_make(flags, true, &pace))
        return false;
    if (flags != NULL && !show.has_pace)
        show_pace(usage, settings, &pace);
    show.has_pace = show.has_pace || flags != NULL;
    show_section(usage, settings);
    return true;
}

void wr_show_settings_end(void)
{
    if (show.is_json && show.sections > 0)
        wr_print("\n}\n");
}
