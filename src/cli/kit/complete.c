/* SPDX-License-Identifier: MIT */
/* complete.c - prints the completions of a command line for a shell. */
#include "cli/kit/complete.h"

#include <stdio.h>
#include <string.h>

#include "cli/kit/console.h"
#include "cli/kit/pace_flags.h"

static bool completes;

void wr_complete_begin(void)
{
    completes = true;
}

bool wr_completes(void)
{
    return completes;
}

/* Prints `before` and `text`, joined, as a completion if they begin with `word`. */
static void print_completion(const char *word, const char *before, const char *text, const char *about)
{
    size_t shared = strlen(before) < strlen(word) ? strlen(before) : strlen(word);

    if (strncmp(word, before, shared) == 0 && strncmp(word + shared, text, strlen(word + shared)) == 0)
        wr_print("%s%s\t%s\n", before, text, about);
}

void wr_complete_command(const struct wr_commands *commands, const char *word)
{
    for (size_t i = 0; i < commands->count; i++)
        print_completion(word, "", commands->list[i].name, commands->list[i].summary);
    print_completion(word, "", "help", "Show the help of a command");
    if (word[0] != '-')
        return;
    print_completion(word, "--", "help", "List the commands");
    if (commands->version != NULL)
        print_completion(word, "--", "version", "Print the version");
}

/* Asks the shell for file or folder names, depending on the placeholder of the value in --help,
 * such as FILE or DIR. */
static void offer_names(const char *kind)
{
    if (strstr(kind, "FILE") != NULL || strstr(kind, "STATE") != NULL)
        wr_print(":files\n");
    else if (strstr(kind, "DIR") != NULL)
        wr_print(":folders\n");
}

static void complete_set(const char *word, const char *before)
{
    char name[64];
    for (size_t i = 0; wr_pace_name(i) != NULL; i++) {
        snprintf(name, sizeof name, "pace.%s=", wr_pace_name(i));
        print_completion(word, before, name, wr_pace_help(i));
    }
}

/* Prints the completions of a value. `before` is "--name=" if option and value are one argument,
 * otherwise "". */
static void complete_value(const struct wr_option *option, const char *word, const char *before)
{
    for (size_t i = 0; option->kind == WR_OPTION_CHOICE && option->choices[i] != NULL; i++)
        print_completion(word, before, option->choices[i], "");
    if (option->kind == WR_OPTION_SET)
        complete_set(word, before);
    else if (option->value != NULL)
        offer_names(option->value);
}

/* Returns the option whose value the last argument is; NULL if it is not a value. */
static const struct wr_option *option_of_last_value(const struct wr_usage *usage, int argc, char **argv)
{
    const struct wr_option *option = NULL;

    for (int i = 0; i < argc - 1; i++) {
        bool is_value = option != NULL;
        option = NULL;
        if (!is_value && strcmp(argv[i], "--") == 0)
            return NULL;
        if (!is_value && strncmp(argv[i], "--", 2) == 0)
            option = wr_option_find(usage, argv[i] + 2, strlen(argv[i] + 2));
        if (option != NULL && option->kind == WR_OPTION_FLAG)
            option = NULL;
    }
    return option;
}

static void complete_name(const struct wr_usage *usage, const char *word)
{
    for (size_t i = 0; i < usage->count; i++)
        print_completion(word, "--", usage->options[i].name, usage->options[i].help);
    print_completion(word, "--", "help", "Show the help of this command");
}

void wr_complete_option(const struct wr_usage *usage, int argc, char **argv)
{
    const char *word = argv[argc - 1];
    const struct wr_option *option = option_of_last_value(usage, argc, argv);
    size_t length = strcspn(word, "=");
    char before[64];

    if (option != NULL) {
        complete_value(option, word, "");
    } else if (strncmp(word, "--", 2) == 0 && word[length] == '=' && length + 1 < sizeof before) {
        memcpy(before, word, length + 1);
        before[length + 1] = '\0';
        option = wr_option_find(usage, word + 2, length - 2);
        if (option != NULL)
            complete_value(option, word, before);
    } else if (word[0] == '-') {
        complete_name(usage, word);
    } else if (usage->operands != NULL) {
        offer_names(usage->operands);
    }
}
