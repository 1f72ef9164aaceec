/* SPDX-License-Identifier: MIT */
/* command_options.c - parses options by a table. */
#include "cli/kit/command_options.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/nearest.h"
#include "cli/kit/complete.h"
#include "cli/kit/console.h"
#include "cli/kit/options_text.h"
#include "cli/kit/show_settings.h"
#include "cli/kit/sources.h"
#include "core/web/url/url.h"

/* The arguments that are left, and the place of the next operand. */
struct option_reader {
    const struct wr_usage *usage;
    void *settings;
    char **argv;
    int argc, next, operands;
    bool only_operands; /* the argument "--" was read */
};

const struct wr_option *wr_option_find(const struct wr_usage *usage, const char *name, size_t length)
{
    for (size_t i = 0; i < usage->count; i++)
        if (strlen(usage->options[i].name) == length && memcmp(usage->options[i].name, name, length) == 0)
            return &usage->options[i];
    return NULL;
}

static bool complain_unknown(const struct wr_usage *usage, const char *name, size_t length)
{
    char word[64];
    size_t shown = wr_name_bytes((struct wr_span){name, length});
    bool is_cut = shown < length;
    snprintf(word, sizeof word, "%.*s", (int)shown, name);
    struct wr_nearest nearest = {.word = word};
    wr_nearest_offer(&nearest, "help");
    for (size_t i = 0; i < usage->count; i++)
        wr_nearest_offer(&nearest, usage->options[i].name);
    if (nearest.best != NULL)
        wr_complain("unknown option --%s%s; did you mean --%s?", word, is_cut ? "..." : "", nearest.best);
    else
        wr_complain("unknown option --%s%s; \"%s --help\" lists them all", word, is_cut ? "..." : "", usage->who);
    return false;
}

static bool complain_missing(const struct wr_option *option)
{
    char wanted[256];
    wr_option_expected(option, wanted, sizeof wanted);
    wr_complain("--%s needs a value: %s", option->name, wanted);
    return false;
}

/* Parses "--name", "--name=value" or "--name value". `word` is the text after the dashes. */
static bool read_option_arg(struct option_reader *reader, const char *word)
{
    size_t length = strcspn(word, "=");
    const char *text = word[length] == '=' ? word + length + 1 : NULL;
    const struct wr_option *option = wr_option_find(reader->usage, word, length);
    char memory[512];
    struct wr_buf why;
    if (option == NULL)
        return complain_unknown(reader->usage, word, length);
    if (option->kind != WR_OPTION_FLAG && text == NULL) {
        if (reader->next == reader->argc)
            return complain_missing(option);
        text = reader->argv[reader->next++];
    }
    wr_buf_init_fixed(&why, memory, sizeof memory);
    if (wr_option_assign(reader->usage, option, text, (struct wr_value_source){.kind = WR_FROM_FLAG}, reader->settings,
                         &why))
        return true;
    wr_complain("--%s%s", option->name, memory);
    return false;
}

static bool read_arg(struct option_reader *reader)
{
    char *word = reader->argv[reader->next++];
    if (reader->only_operands || word[0] != '-' || word[1] == '\0') {
        reader->argv[reader->operands++] = word;
        return true;
    }
    if (word[1] != '-') {
        wr_complain("unknown option -%c%s; options begin with two dashes, \"%s --help\" lists them",
                    wr_ascii_is_alnum(word[1]) ? word[1] : '?', word[2] != '\0' ? "..." : "", reader->usage->who);
        return false;
    }
    if (word[2] == '\0') {
        reader->only_operands = true;
        return true;
    }
    return read_option_arg(reader, word + 2);
}

static void complain_unexpected(const struct wr_usage *usage, const char *operand)
{
    char shown[512];
    if (strchr(operand, '@') != NULL || strstr(operand, "://") != NULL)
        wr_url_redact_invalid(wr_span_of(operand), shown, sizeof shown);
    else
        snprintf(shown, sizeof shown, "%s", operand);
    if (usage->operands == NULL)
        wr_complain("unexpected \"%s\"; this command takes only options", shown);
    else
        wr_complain("unexpected \"%s\"; expected %s", shown, usage->operands);
}

static bool operands_ok(const struct option_reader *reader)
{
    const struct wr_usage *usage = reader->usage;
    size_t count = (size_t)reader->operands;
    if (count > usage->operands_max)
        complain_unexpected(usage, reader->argv[usage->operands_max]);
    else if (count < usage->operands_min)
        wr_complain("expected %s; \"%s --help\" explains", usage->operands, usage->who);
    else
        return true;
    return false;
}

enum help_request {
    HELP_NONE, /* --help was not given */
    HELP_SHORT,
    HELP_ALL, /* --help all was given */
};

static enum help_request wanted_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return i + 1 < argc && strcmp(argv[i + 1], "all") == 0 ? HELP_ALL : HELP_SHORT;
    return HELP_NONE;
}

bool wr_options_read(const struct wr_usage *usage, int *argc, char **argv, void *settings)
{
    struct option_reader reader = {.usage = usage, .settings = settings, .argv = argv, .argc = *argc};
    while (reader.next < reader.argc)
        if (!read_arg(&reader))
            return false;
    if (!operands_ok(&reader))
        return false;
    *argc = reader.operands;
    return true;
}

bool wr_options_parse(const struct wr_usage *usage, int *argc, char **argv, void *settings, int *ret_status)
{
    wr_complain_as(usage->who);
    *ret_status = WR_EXIT_OK;
    if (wr_completes()) {
        wr_complete_option(usage, *argc, argv);
        return false;
    }
    enum help_request help = wanted_help(*argc, argv);
    if (help != HELP_NONE) {
        wr_options_help(usage, settings, help == HELP_ALL);
        return false;
    }
    *ret_status = WR_EXIT_USAGE;
    if (!wr_options_read(usage, argc, argv, settings) || !wr_sources_load(usage, settings))
        return false;
    if (!wr_shows_settings() || usage->section == NULL)
        return true;
    *ret_status = wr_show_settings(usage, settings) ? WR_EXIT_OK : WR_EXIT_USAGE;
    return false;
}
