/* SPDX-License-Identifier: MIT */
/* ca_file.h - checks the file of --ca-file. */
#ifndef WR_CLI_KIT_CA_FILE_H
#define WR_CLI_KIT_CA_FILE_H

#include <stdbool.h>

/* Returns true if `path` is NULL or a regular file with a certificate in PEM, otherwise prints an
 * error and returns false. Without this check every https request would fail, and a pipe would
 * block the event loop that opens it. */
bool wr_ca_file_ok(const char *path);

#endif
