/* SPDX-License-Identifier: MIT */
/* command.h - tables of commands: "weir" has one, "weir bench" another. */
#ifndef WR_CLI_KIT_COMMAND_H
#define WR_CLI_KIT_COMMAND_H

#include <stddef.h>

struct wr_command {
    const char *name;
    const char *summary; /* one line for --help */
    /* Gets the words after the command's name and returns an exit status (enum wr_exit). */
    int (*run)(int argc, char **argv);
    const char *heading; /* --help prints it above this command; NULL: none begins here */
};

struct wr_commands {
    const char *who;     /* "weir bench" */
    const char *about;   /* one line for --help */
    const char *version; /* of the program; NULL: there is no --version */
    const struct wr_command *list;
    size_t count;
};

/* Runs the command that argv[0] names. Knows help, --help, -h, --version and "--" by itself. Returns an exit status. */
int wr_commands_run(const struct wr_commands *commands, int argc, char **argv);

#endif
