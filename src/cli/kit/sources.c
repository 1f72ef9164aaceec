/* SPDX-License-Identifier: MIT */
/* sources.c - reads settings from a file and from the environment. */
#include "cli/kit/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/nearest.h"
#include "cli/kit/console.h"
#include "cli/kit/options_text.h"
#include "cli/kit/pace_flags.h"
#include "limiter/memory/memory.h"

#define NAME_MAX_BYTES 64 /* maximum length of an option name, also of an unknown one */
#define SECTIONS_MAX 16

/* State of reading, with the key whose value comes next. */
struct settings_load {
    const struct wr_usage *usage; /* the command that runs */
    void *settings;               /* settings to fill in; NULL: check only */
    const struct wr_config_field *field;
    const struct wr_usage *section; /* command whose section is read; NULL: the section pace */
    const struct wr_option *option; /* current option of `section` */
    size_t pace;                    /* index of the current name of pace */
    bool seen[WR_OPTIONS_MAX];      /* keys of the section that were already read */
};

/* ---- texts that stay valid ---- */

struct kept_text {
    struct kept_text *next;
    char text[];
};

static struct kept_text *all;

/* Copies a text. Settings point to the copy until the program ends. */
static const char *keep_settings_text(struct wr_span text)
{
    struct kept_text *kept = malloc(sizeof *kept + text.bytes + 1);
    if (kept == NULL)
        return NULL;
    memcpy(kept->text, text.data, text.bytes);
    kept->text[text.bytes] = '\0';
    kept->next = all;
    all = kept;
    return kept->text;
}

/* Frees the texts that were kept after `last`. */
static void drop_kept_texts(const struct kept_text *last)
{
    while (all != last) {
        struct kept_text *next = all->next;
        free(all);
        all = next;
    }
}

/* ---- keys ---- */

static bool is_setting(const struct wr_option *option)
{
    return option->kind != WR_OPTION_CONFIG && option->kind != WR_OPTION_SET;
}

/* Returns the command that reads a section of the file; NULL if there is no such section. */
static const struct wr_usage *find_section(const struct settings_load *load, const char *name)
{
    if (load->usage->section != NULL && strcmp(load->usage->section, name) == 0)
        return load->usage;
    for (size_t i = 0; wr_sections[i] != NULL; i++)
        if (strcmp(wr_sections[i]->section, name) == 0)
            return wr_sections[i];
    return NULL;
}

/* Finds the key in the section or in pace. Returns false if it is unknown. */
static bool find_setting_key(struct settings_load *load, struct wr_span name)
{
    if (load->section == NULL)
        return wr_pace_find(name, &load->pace);
    load->option = wr_option_find(load->section, name.data, name.bytes);
    return load->option != NULL && is_setting(load->option);
}

static struct wr_nearest find_nearest(const struct settings_load *load, const char *word)
{
    struct wr_nearest nearest = {.word = word};
    for (size_t i = 0; load->section != NULL && i < load->section->count; i++)
        if (is_setting(&load->section->options[i]))
            wr_nearest_offer(&nearest, load->section->options[i].name);
    for (size_t i = 0; load->section == NULL && wr_pace_name(i) != NULL; i++)
        wr_nearest_offer(&nearest, wr_pace_name(i));
    return nearest;
}

/* Appends a suggestion: "; did you mean ...?" */
static void append_nearest(struct wr_buf *why, struct wr_nearest nearest)
{
    wr_buf_append_string(why, nearest.best != NULL ? "; did you mean " : "; \"man weir.yaml\" lists them all");
    if (nearest.best == NULL)
        return;
    wr_buf_append_string(why, nearest.best);
    wr_buf_append_char(why, '?');
}

static const char *current_setting_name(const struct settings_load *load)
{
    return load->section == NULL ? wr_pace_name(load->pace) : load->option->name;
}

static bool assign_setting(struct settings_load *load, const char *text, struct wr_value_source origin,
                           struct wr_buf *why)
{
    void *settings = load->section == NULL || load->section == load->usage ? load->settings : NULL;
    if (load->section == NULL)
        return wr_pace_assign(load->usage, load->pace, text, origin, settings, why);
    return wr_option_assign(load->section, load->option, text, origin, settings, why);
}

/* ---- the file ---- */

static void begin_section(struct settings_load *load, const struct wr_config_field *field)
{
    load->field = field;
    load->section = find_section(load, field->name);
    memset(load->seen, 0, sizeof load->seen);
}

/* Reports an unknown key. The key is shown only if it resembles a known one: otherwise it may be a
 * secret in a wrong line or after a missing blank. */
static int append_unknown_key(const struct settings_load *load, const char *section, struct wr_span key,
                              struct wr_buf *why)
{
    char word[NAME_MAX_BYTES] = "";
    memcpy(word, key.data, wr_name_bytes(key));
    struct wr_nearest nearest = find_nearest(load, word);
    bool is_section = wr_span_is(key, "rules") || wr_span_is(key, "admission");
    wr_buf_append_string(why, "unknown key ");
    if (nearest.best != NULL || is_section)
        wr_buf_append_name(why, key);
    wr_buf_append_string(why, nearest.best != NULL || is_section ? " in " : "in ");
    wr_buf_append_string(why, section);
    if (is_section)
        wr_buf_append_string(why, "; it is a section of its own: begin its line without blanks");
    else
        append_nearest(why, nearest);
    return WEIR_E_INVAL;
}

static int take_setting_key(void *settings, const struct wr_config_field *field, const struct wr_config_word *key,
                            struct wr_buf *why)
{
    struct settings_load *load = settings;
    if (load->field != field)
        begin_section(load, field);
    if (!find_setting_key(load, key->text))
        return append_unknown_key(load, field->name, key->text, why);
    bool *seen = &load->seen[load->section == NULL ? load->pace : (size_t)(load->option - load->section->options)];
    if (*seen) {
        wr_buf_append_string(why, current_setting_name(load));
        wr_buf_append_string(why, " is given twice; remove one of them");
        return WEIR_E_INVAL;
    }
    *seen = true;
    return 0;
}

static void append_wanted(struct wr_buf *why, const struct settings_load *load)
{
    char wanted[256];
    if (load->section == NULL) {
        wr_buf_append_string(why, wr_pace_expected(load->pace));
        return;
    }
    wr_option_expected(load->option, wanted, sizeof wanted);
    wr_buf_append_string(why, wanted);
}

static int append_refused_value(const struct settings_load *load, const char *is, struct wr_buf *why)
{
    wr_buf_append_string(why, current_setting_name(load));
    wr_buf_append_string(why, is);
    append_wanted(why, load);
    return WEIR_E_INVAL;
}

/* Checks what the option cannot see in a plain text: missing values, mappings, lists, quotes and
 * control characters. */
static int check_config_value(const struct settings_load *load, const struct wr_config_word *word, struct wr_buf *why)
{
    bool is_list = load->section != NULL && load->option->kind == WR_OPTION_LIST;
    bool is_bare =
        load->section != NULL && (load->option->kind == WR_OPTION_FLAG || load->option->kind == WR_OPTION_COUNT);
    if (word->part == WR_CONFIG_NULL)
        return append_refused_value(load, " has no value; leave it out, or write ", why);
    if (word->part == WR_CONFIG_MAPPING_BEGINS)
        return append_refused_value(load, " is a mapping; it must be ", why);
    if (word->part == WR_CONFIG_LIST_BEGINS)
        return is_list ? 0 : append_refused_value(load, " is a list; it must be ", why);
    if (word->is_quoted && is_bare)
        return append_refused_value(load, " is a text in quotes; it must be ", why);
    if (wr_span_is_clean(word->text))
        return 0;
    wr_buf_append_string(why, current_setting_name(load));
    wr_buf_append_string(why, " has control characters; it must be a text without them");
    return WEIR_E_INVAL;
}

static int take_setting_value(void *settings, const struct wr_config_word *word, struct wr_buf *why)
{
    struct settings_load *load = settings;
    int error = check_config_value(load, word, why);
    if (error != 0 || word->part == WR_CONFIG_LIST_BEGINS)
        return error;
    const char *text = keep_settings_text(word->text);
    if (text == NULL)
        return WEIR_E_NOMEM;
    wr_buf_append_string(why, current_setting_name(load));
    return assign_setting(load, text, (struct wr_value_source){WR_FROM_FILE, load->section == NULL, word->line}, why)
               ? 0
               : WEIR_E_INVAL;
}

static const struct wr_config_taker taker = {take_setting_key, take_setting_value};

/* Lists the valid sections: that of the command, those of other commands, pace, and sections that
 * other code reads. */
static size_t list_sections(const struct wr_usage *usage, struct wr_config_field *ret_fields)
{
    static const char *const others[] = {"rules", "admission"};
    size_t count = 0;
    bool is_listed = usage->section == NULL;
    for (size_t i = 0; wr_sections[i] != NULL; i++) {
        ret_fields[count++] = (struct wr_config_field){.name = wr_sections[i]->section, WR_CONFIG_PAIRS(&taker)};
        is_listed = is_listed || wr_sections[i] == usage;
    }
    if (!is_listed)
        ret_fields[count++] = (struct wr_config_field){.name = usage->section, WR_CONFIG_PAIRS(&taker)};
    ret_fields[count++] = (struct wr_config_field){.name = "pace", WR_CONFIG_PAIRS(&taker)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ret_fields[count++] = (struct wr_config_field){.name = others[i], WR_CONFIG_OTHERS};
    return count;
}

static int read_settings_file(struct settings_load *load, const char *path, char *ret_why, size_t why_bytes)
{
    struct wr_config_field fields[SECTIONS_MAX];
    struct wr_config_schema schema = {
        .name = "the file", .bytes = sizeof *load, .fields = fields, .may_be_empty = true};
    schema.count = list_sections(load->usage, fields);
    return wr_config_read(&schema, path, wr_allocator_or_system(NULL), load, ret_why, why_bytes);
}

/* ---- the environment ---- */

/* Returns the option name of a variable: "MAX_PAGES" is max-pages. */
static struct wr_span option_name_of_variable(const char *name, size_t bytes, char word[NAME_MAX_BYTES])
{
    size_t length = bytes < NAME_MAX_BYTES ? bytes : NAME_MAX_BYTES - 1;
    for (size_t i = 0; i < length; i++)
        word[i] = name[i] == '_' ? '-' : wr_ascii_lower(name[i]);
    word[length] = '\0';
    return (struct wr_span){word, length};
}

static const char *flag_text_of(const struct settings_load *load, const char *text)
{
    bool is_flag = load->section != NULL && load->option->kind == WR_OPTION_FLAG;
    if (is_flag && strcmp(text, "1") == 0)
        return "true";
    return is_flag && strcmp(text, "0") == 0 ? "false" : text;
}

/* Stores the value of a variable. A list has one item per line. */
static bool assign_lines(struct settings_load *load, const char *text, struct wr_buf *why)
{
    const struct wr_value_source origin = {WR_FROM_ENVIRONMENT, load->section == NULL, 0};
    if (load->section == NULL || load->option->kind != WR_OPTION_LIST)
        return assign_setting(load, flag_text_of(load, text), origin, why);
    for (size_t length = strcspn(text, "\n"); *text != '\0'; length = strcspn(text, "\n")) {
        const char *line = length > 0 ? keep_settings_text((struct wr_span){text, length}) : "";
        if (line == NULL)
            wr_buf_append_string(why, ": out of memory");
        if (line == NULL || (length > 0 && !assign_setting(load, line, origin, why)))
            return false;
        text += length + (text[length] == '\n');
    }
    return true;
}

/* Stores a variable NAME=TEXT; the option's name begins at index `at`. Returns false after printing
 * an error. */
static bool take_variable(struct settings_load *load, const char *variable, size_t at)
{
    char word[NAME_MAX_BYTES], memory[WR_CONFIG_WHY_BYTES] = "";
    size_t bytes = strcspn(variable, "=");
    struct wr_buf why;
    wr_buf_init_fixed(&why, memory, sizeof memory);
    if (variable[bytes] == '\0' || variable[bytes + 1] == '\0')
        return true; /* an empty variable counts as not set */
    bool is_known = find_setting_key(load, option_name_of_variable(variable + at, bytes - at, word));
    if (is_known && assign_lines(load, variable + bytes + 1, &why))
        return true;
    if (!is_known) {
        wr_buf_append_string(&why, " is unknown");
        append_nearest(&why, find_nearest(load, word));
    }
    wr_complain("the environment's %.*s%s", (int)bytes, variable, memory);
    return false;
}

/* Reads all variables with the prefix of a section, such as WEIR_CRAWL_. */
static bool take_variables(struct settings_load *load, const char *section)
{
    extern char **environ;
    char prefix[NAME_MAX_BYTES] = "WEIR_";
    size_t length = strlen(prefix);
    for (; *section != '\0' && length < sizeof prefix - 2; section++)
        /* Section names consist of small letters. */
        prefix[length++] = (char)(*section - 'a' + 'A');
    prefix[length++] = '_';
    for (size_t i = 0; environ != NULL && environ[i] != NULL; i++)
        if (strncmp(environ[i], prefix, length) == 0 && !take_variable(load, environ[i], length))
            return false;
    return true;
}

/* ---- file and environment ---- */

/* Returns the settings file to read; NULL if none or "" is named. */
static const char *settings_file_path(const struct wr_sources *sources)
{
    const char *path = sources->path != NULL ? sources->path : getenv("WEIR_CONFIG");
    return path != NULL && path[0] != '\0' ? path : NULL;
}

bool wr_sources_load(const struct wr_usage *usage, void *settings)
{
    struct wr_sources *sources = usage->section != NULL ? wr_options_sources(usage, settings) : NULL;
    struct settings_load load = {.usage = usage, .settings = settings, .section = usage};
    char why[WR_CONFIG_WHY_BYTES];
    if (sources == NULL)
        return true;
    if (!take_variables(&load, usage->section))
        return false;
    load.section = NULL;
    if (wr_usage_has_pace(usage) && !take_variables(&load, "pace"))
        return false;
    sources->file = settings_file_path(sources);
    if (sources->file == NULL || read_settings_file(&load, sources->file, why, sizeof why) == 0)
        return true;
    wr_complain("%s", why);
    return false;
}

/* ---- settings as arguments ---- */

static bool is_set_for_command(struct wr_value_source origin)
{
    return origin.kind == WR_FROM_FILE || origin.kind == WR_FROM_ENVIRONMENT;
}

/* Appends one argument with a terminating NUL. */
static void append_arg(struct wr_buf *buf, const struct wr_option *option, const void *settings, const char *item)
{
    wr_buf_append_string(buf, "--");
    wr_buf_append_string(buf, option->name);
    wr_buf_append_char(buf, '=');
    if (item != NULL)
        wr_buf_append_string(buf, item);
    else
        wr_option_append(buf, option, settings);
    wr_buf_append_char(buf, '\0');
}

static void append_pace_args(struct wr_buf *buf, const struct wr_pace_texts *texts)
{
    for (size_t i = 0; wr_pace_name(i) != NULL; i++)
        if (is_set_for_command(texts->of[i])) {
            wr_buf_append_string(buf, "--set=pace.");
            wr_buf_append_string(buf, wr_pace_name(i));
            wr_buf_append_char(buf, '=');
            wr_buf_append_string(buf, texts->text[i]);
            wr_buf_append_char(buf, '\0');
        }
}

static void append_args(struct wr_buf *buf, const struct wr_usage *usage, void *settings)
{
    const struct wr_sources *sources = wr_options_sources(usage, settings);
    for (size_t i = 0; i < usage->count; i++) {
        const struct wr_option *option = &usage->options[i];
        const void *field = (const char *)settings + option->offset;
        const struct wr_option_list *list = field;
        if (option->kind == WR_OPTION_SET)
            append_pace_args(buf, field);
        if (!is_set_for_command(sources->of[i]))
            continue;
        if (option->kind != WR_OPTION_LIST)
            append_arg(buf, option, settings, NULL);
        for (size_t item = 0; option->kind == WR_OPTION_LIST && item < list->count; item++)
            append_arg(buf, option, settings, list->items[item]);
    }
}

char **wr_sources_args(const struct wr_usage *usage, void *settings, int *ret_count)
{
    struct wr_buf buf;
    size_t count = 0;
    wr_buf_init(&buf, wr_allocator_or_system(NULL), SIZE_MAX / 4);
    append_args(&buf, usage, settings);
    for (size_t i = 0; i < buf.length; i++)
        count += buf.bytes[i] == '\0';
    char **words = buf.error == 0 ? malloc((count + 1) * sizeof *words + buf.length) : NULL;
    if (words != NULL) {
        char *text = (char *)(words + count + 1);
        if (buf.length > 0)
            memcpy(text, buf.bytes, buf.length);
        for (size_t i = 0; i < count; i++, text += strlen(text) + 1)
            words[i] = text;
        words[count] = NULL;
        *ret_count = (int)count;
    }
    wr_buf_release(&buf);
    return words;
}

/* ---- check ---- */

/* Settings of a command that has only a pace. */
struct pace_only_settings {
    struct wr_sources sources;
    struct wr_pace_flags pace;
};

static int check_pace(const char *path, char *ret_why, size_t why_bytes)
{
    static const struct wr_option options[] = {WR_PACE_OPTIONS(struct pace_only_settings, pace),
                                               WR_CONFIG_OPTION(struct pace_only_settings, sources, NULL)};
    static const struct wr_usage usage = {.options = options, .count = sizeof options / sizeof options[0]};
    struct pace_only_settings pacing = {.sources = {.path = path}};
    struct settings_load load = {.usage = &usage, .settings = &pacing};
    weir_pace_options pace;
    int error = read_settings_file(&load, path, ret_why, why_bytes);
    if (error == 0 && wr_pace_options_from_flags(&pacing.pace, &pace) != 0) {
        snprintf(ret_why, why_bytes, "%s: %s", path, weir_error_detail());
        error = WEIR_E_INVAL;
    }
    return error;
}

int wr_sources_check(const char *path, char *ret_why, size_t why_bytes)
{
    const struct kept_text *last = all;
    int error = check_pace(path, ret_why, why_bytes);
    /* Each command merges pace with options of its own. */
    for (size_t i = 0; error == 0 && wr_sections[i] != NULL; i++) {
        struct settings_load load = {.usage = wr_sections[i]};
        error = read_settings_file(&load, path, ret_why, why_bytes);
    }
    drop_kept_texts(last); /* no settings point to these texts */
    return error;
}
