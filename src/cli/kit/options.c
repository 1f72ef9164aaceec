/* SPDX-License-Identifier: MIT */
/* options.c - parsing of options by their table. */
#include "cli/kit/options.h"

#include <stdio.h>
#include <string.h>
#include <weir/error.h>

#include "base/nearest.h"
#include "base/parse.h"
#include "cli/kit/complete.h"
#include "cli/kit/options_text.h"
#include "cli/kit/output.h"

/* What is still to be read, and where the next operand goes. */
struct reader {
    const struct wr_usage *usage;
    void *settings;
    char **argv;
    int argc, next, operands;
    bool only_operands; /* "--" was seen */
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
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), name);
    struct wr_nearest nearest = {.word = word};
    wr_nearest_offer(&nearest, "help");
    for (size_t i = 0; i < usage->count; i++)
        wr_nearest_offer(&nearest, usage->options[i].name);
    if (nearest.best != NULL)
        wr_complain("unknown option --%s; did you mean --%s?", word, nearest.best);
    else
        wr_complain("unknown option --%s; \"%s --help\" lists those there are", word, usage->who);
    return false;
}

static bool complain_value(const struct wr_option *option, const char *text)
{
    char wanted[256];
    wr_option_wanted(option, wanted, sizeof wanted);
    if (text == NULL)
        wr_complain("--%s needs a value: %s", option->name, wanted);
    else
        wr_complain("--%s cannot be \"%s\": it must be %s", option->name, text, wanted);
    return false;
}

static bool store_choice(const struct wr_option *option, const char *text, int *ret_index)
{
    for (int i = 0; option->choices[i] != NULL; i++)
        if (strcmp(option->choices[i], text) == 0) {
            *ret_index = i;
            return true;
        }
    return complain_value(option, text);
}

/* What the parser said: it knows where the mistake is. */
static bool complain_detail(const struct wr_option *option)
{
    wr_complain("--%s: %s", option->name, weir_error_detail());
    return false;
}

static bool store_count(const struct wr_option *option, const char *text, uint64_t *ret_count)
{
    return wr_parse_u64(text, strlen(text), option->min, option->max, ret_count) == 0 || complain_detail(option);
}

static bool store_size(const struct wr_option *option, const char *text, uint64_t *ret_bytes)
{
    uint64_t bytes = 0;
    if (wr_parse_bytes(text, strlen(text), &bytes) < 0)
        return complain_detail(option);
    if (bytes < option->min || bytes > option->max)
        return complain_value(option, text);
    *ret_bytes = bytes;
    return true;
}

static bool store_duration(const struct wr_option *option, const char *text, int64_t *ret_duration)
{
    int64_t duration = 0;
    if (wr_parse_duration(text, strlen(text), &duration) < 0)
        return complain_detail(option);
    if ((uint64_t)duration < option->min || (uint64_t)duration > option->max)
        return complain_value(option, text);
    *ret_duration = duration;
    return true;
}

static bool store_item(const struct wr_option *option, const char *text, struct wr_option_list *list)
{
    if (list->count == WR_OPTION_LIST_MAX) {
        wr_complain("--%s is given more than %d times", option->name, WR_OPTION_LIST_MAX);
        return false;
    }
    list->items[list->count++] = text;
    return true;
}

static bool store(const struct wr_option *option, const char *text, void *settings)
{
    void *field = (char *)settings + option->offset;
    switch (option->kind) {
    case WR_OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case WR_OPTION_COUNT:
        return store_count(option, text, field);
    case WR_OPTION_SIZE:
        return store_size(option, text, field);
    case WR_OPTION_DURATION:
        return store_duration(option, text, field);
    case WR_OPTION_CHOICE:
        return store_choice(option, text, field);
    case WR_OPTION_STRING:
        *(const char **)field = text;
        return true;
    case WR_OPTION_LIST:
        return store_item(option, text, field);
    }
    return false;
}

/* "--name", "--name=value" or "--name value"; `word` is what follows the dashes. */
static bool read_option(struct reader *reader, const char *word)
{
    size_t length = strcspn(word, "=");
    const char *text = word[length] == '=' ? word + length + 1 : NULL;
    const struct wr_option *option = wr_option_find(reader->usage, word, length);
    if (option == NULL)
        return complain_unknown(reader->usage, word, length);
    if (option->kind == WR_OPTION_FLAG && text != NULL) {
        wr_complain("--%s takes no value: write just --%s", option->name, option->name);
        return false;
    }
    if (option->kind != WR_OPTION_FLAG && text == NULL) {
        if (reader->next == reader->argc)
            return complain_value(option, NULL);
        text = reader->argv[reader->next++];
    }
    return store(option, text, reader->settings);
}

static bool read_word(struct reader *reader)
{
    char *word = reader->argv[reader->next++];
    if (reader->only_operands || word[0] != '-' || word[1] == '\0') {
        reader->argv[reader->operands++] = word;
        return true;
    }
    if (word[1] != '-') {
        wr_complain("unknown option %s; options begin with two dashes, \"%s --help\" lists them", word,
                    reader->usage->who);
        return false;
    }
    if (word[2] == '\0') {
        reader->only_operands = true;
        return true;
    }
    return read_option(reader, word + 2);
}

static bool operands_ok(const struct reader *reader)
{
    const struct wr_usage *usage = reader->usage;
    size_t count = (size_t)reader->operands;
    if (count > usage->operands_max && usage->operands == NULL)
        wr_complain("unexpected \"%s\"; this command takes only options", reader->argv[0]);
    else if (count > usage->operands_max)
        wr_complain("unexpected \"%s\"; expected %s", reader->argv[usage->operands_max], usage->operands);
    else if (count < usage->operands_min)
        wr_complain("expected %s; \"%s --help\" explains", usage->operands, usage->who);
    else
        return true;
    return false;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

bool wr_options_parse(const struct wr_usage *usage, int *argc, char **argv, void *settings, int *ret_status)
{
    struct reader reader = {.usage = usage, .settings = settings, .argv = argv, .argc = *argc};
    wr_complain_as(usage->who);
    if (wr_completes()) {
        wr_complete_option(usage, *argc, argv);
        *ret_status = WR_EXIT_OK;
        return false;
    }
    if (asks_for_help(*argc, argv)) {
        wr_options_help(usage, settings);
        *ret_status = WR_EXIT_OK;
        return false;
    }
    *ret_status = WR_EXIT_USAGE;
    while (reader.next < reader.argc)
        if (!read_word(&reader))
            return false;
    if (!operands_ok(&reader))
        return false;
    *argc = reader.operands;
    return true;
}
