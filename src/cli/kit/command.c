/* SPDX-License-Identifier: MIT */
/* command.c - finds the command that the user named, or lists the commands. */
#include "cli/kit/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "cli/kit/complete.h"
#include "cli/kit/console.h"

#define WORDS_MAX 8 /* maximum number of arguments after "help" */

static const struct wr_command *find_command(const struct wr_commands *commands, const char *name)
{
    for (size_t i = 0; i < commands->count; i++)
        if (strcmp(commands->list[i].name, name) == 0)
            return &commands->list[i];
    return NULL;
}

static int print_command_list(const struct wr_commands *commands)
{
    wr_print("usage: %s COMMAND [OPTION]…\n\n%s\n\n", commands->who, commands->about);
    for (size_t i = 0; i < commands->count; i++) {
        const struct wr_command *command = &commands->list[i];
        if (command->heading != NULL)
            wr_print("%s%s:\n", i > 0 ? "\n" : "", command->heading);
        wr_print("  %-12s%s\n", command->name, command->summary);
    }
    wr_print("  %-12s%s\n", "help", "Show the help of a command");
    wr_print("\n\"%s COMMAND --help\" shows the options of a command.\n", commands->who);
    return WR_EXIT_OK;
}

static int print_version(const struct wr_commands *commands, int argc, char **argv)
{
    if (argc > 1) {
        wr_complain("unexpected \"%s\"; --version takes no argument", argv[1]);
        return WR_EXIT_USAGE;
    }
    wr_print("%s %s\n", commands->who, commands->version);
    return WR_EXIT_OK;
}

static int refuse_command(const struct wr_commands *commands, const char *name)
{
    struct wr_nearest nearest = {.word = name};
    wr_nearest_offer(&nearest, "help");
    for (size_t i = 0; i < commands->count; i++)
        wr_nearest_offer(&nearest, commands->list[i].name);
    if (nearest.best != NULL)
        wr_complain("unknown command \"%s\"; did you mean \"%s %s\"?", name, commands->who, nearest.best);
    else
        wr_complain("unknown command \"%s\"; \"%s --help\" lists them all", name, commands->who);
    return WR_EXIT_USAGE;
}

static int refuse_option(const struct wr_commands *commands, const char *name)
{
    char word[64];
    size_t dashes = strspn(name, "-"), bytes = wr_name_bytes(wr_span_of(name + dashes));
    if (dashes == 1 && bytes > 1)
        bytes = 1; /* a short option with a value, as in -Hvalue */
    snprintf(word, sizeof word, "%.*s", (int)bytes, name + dashes);
    struct wr_nearest nearest = {.word = word};
    wr_nearest_offer(&nearest, "help");
    if (commands->version != NULL)
        wr_nearest_offer(&nearest, "version");
    const char *before = dashes < 2 ? "-" : "--", *after = name[dashes + bytes] != '\0' ? "..." : "";
    if (nearest.best != NULL)
        wr_complain("unknown option %s%s%s; did you mean --%s?", before, word, after, nearest.best);
    else
        wr_complain("unknown option %s%s%s; a command comes first, \"%s --help\" lists them", before, word, after,
                    commands->who);
    return WR_EXIT_USAGE;
}

static int run_command(const struct wr_commands *commands, int argc, char **argv)
{
    if (argc <= 0) {
        wr_complain("a command is missing; \"%s --help\" lists them all", commands->who);
        return WR_EXIT_USAGE;
    }
    const struct wr_command *command = find_command(commands, argv[0]);
    return command != NULL ? command->run(argc - 1, argv + 1) : refuse_command(commands, argv[0]);
}

/* Turns "help bench table" into "bench table --help". Returns false if there are too many words for
 * a valid command. */
static bool reorder_help_args(int argc, char **argv, char **ret_words)
{
    static char help_option[] = "--help";
    if (argc > WORDS_MAX)
        return false;
    memcpy(ret_words, argv + 1, (size_t)(argc - 1) * sizeof *argv);
    ret_words[argc - 1] = help_option;
    return true;
}

/* Completes the last argument. */
static int complete_last_arg(const struct wr_commands *commands, int argc, char **argv)
{
    int skipped = argc > 1 && strcmp(argv[0], "help") == 0;
    const struct wr_command *command = argc - skipped > 1 ? find_command(commands, argv[skipped]) : NULL;

    if (argc - skipped == 1)
        wr_complete_command(commands, argv[skipped]);
    return command != NULL ? command->run(argc - skipped - 1, argv + skipped + 1) : WR_EXIT_OK;
}

int wr_commands_run(const struct wr_commands *commands, int argc, char **argv)
{
    char *words[WORDS_MAX];
    wr_complain_as(commands->who);
    if (wr_completes())
        return complete_last_arg(commands, argc, argv);
    if (argc > 0 && strcmp(argv[0], "--") == 0)
        return run_command(commands, argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "help") == 0) {
        if (!reorder_help_args(argc, argv, words))
            return refuse_command(commands, argv[argc - 1]);
        argv = words;
    }
    if (argc <= 0 || argv[0][0] != '-')
        return run_command(commands, argc, argv);
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
        return print_command_list(commands);
    if (commands->version != NULL && strcmp(argv[0], "--version") == 0)
        return print_version(commands, argc, argv);
    return refuse_option(commands, argv[0]);
}
