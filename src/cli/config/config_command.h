/* SPDX-License-Identifier: MIT */
/* config_command.h - weir config: prints the settings in force and checks settings files. */
#ifndef WR_CLI_CONFIG_CONFIG_COMMAND_H
#define WR_CLI_CONFIG_CONFIG_COMMAND_H

int wr_config_run(int argc, char **argv);

#endif
