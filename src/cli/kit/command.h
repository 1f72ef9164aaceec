/* SPDX-License-Identifier: MIT */
/* command.h - runs a command from a table: "weir" has a table, "weir bench" has another. */
#ifndef WR_CLI_KIT_COMMAND_H
#define WR_CLI_KIT_COMMAND_H

#include <stddef.h>

struct wr_command {
    const char *name;
    const char *summary; /* summary for --help, one line */
    /* Runs the command with the arguments after its name. Returns an exit status of enum
     * wr_exit. */
    int (*run)(int argc, char **argv);
    const char *heading; /* heading that --help prints above this command; NULL: none */
};

struct wr_commands {
    const char *who;     /* the program and its commands, such as "weir bench" */
    const char *about;   /* description for --help, one line */
    const char *version; /* version of the program; NULL: no --version */
    const struct wr_command *list;
    size_t count;
};

/* Runs the command that argv[0] names. Handles help, --help, -h, --version and "--" itself. Returns
 * an exit status. */
int wr_commands_run(const struct wr_commands *commands, int argc, char **argv);

#endif
