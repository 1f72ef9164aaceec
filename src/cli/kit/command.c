/* SPDX-License-Identifier: MIT */
/* command.c - finds the command that was asked for, or says which there are. */
#include "cli/kit/command.h"

#include <stdbool.h>
#include <string.h>

#include "cli/kit/nearest.h"
#include "cli/kit/output.h"

#define WORDS_MAX 8 /* of a command and its --help */

static const struct wr_command *find(const struct wr_commands *commands, const char *name)
{
    for (size_t i = 0; i < commands->count; i++)
        if (strcmp(commands->list[i].name, name) == 0)
            return &commands->list[i];
    return NULL;
}

static int help(const struct wr_commands *commands)
{
    wr_print("usage: %s COMMAND [OPTION]…\n\n%s\n\n", commands->who, commands->about);
    for (size_t i = 0; i < commands->count; i++)
        wr_print("  %-12s%s\n", commands->list[i].name, commands->list[i].summary);
    wr_print("\n\"%s COMMAND --help\" tells more about one.\n", commands->who);
    return WR_EXIT_OK;
}

static int refuse(const struct wr_commands *commands, const char *name)
{
    struct wr_nearest nearest = {.word = name};
    wr_nearest_offer(&nearest, "help");
    for (size_t i = 0; i < commands->count; i++)
        wr_nearest_offer(&nearest, commands->list[i].name);
    if (nearest.best != NULL)
        wr_complain("unknown command \"%s\"; did you mean \"%s %s\"?", name, commands->who, nearest.best);
    else
        wr_complain("unknown %s \"%s\"; \"%s --help\" lists those there are", name[0] == '-' ? "option" : "command",
                    name, commands->who);
    return WR_EXIT_USAGE;
}

/* "help bench table" is "bench table --help". False if that has too many words to be sound. */
static bool turn_help_round(int argc, char **argv, char **ret_words)
{
    static char help_option[] = "--help";
    if (argc > WORDS_MAX)
        return false;
    memcpy(ret_words, argv + 1, (size_t)(argc - 1) * sizeof *argv);
    ret_words[argc - 1] = help_option;
    return true;
}

int wr_commands_run(const struct wr_commands *commands, int argc, char **argv)
{
    char *words[WORDS_MAX];
    wr_complain_as(commands->who);
    if (argc <= 0) {
        wr_complain("a command is missing; \"%s --help\" lists those there are", commands->who);
        return WR_EXIT_USAGE;
    }
    if (strcmp(argv[0], "help") == 0) {
        if (!turn_help_round(argc, argv, words))
            return refuse(commands, argv[argc - 1]);
        argv = words;
    }
    if (strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0)
        return help(commands);
    const struct wr_command *command = find(commands, argv[0]);
    return command != NULL ? command->run(argc - 1, argv + 1) : refuse(commands, argv[0]);
}
