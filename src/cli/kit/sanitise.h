/* SPDX-License-Identifier: MIT */
/* sanitise.h - prints untrusted text as printable ASCII, so that it cannot harm a terminal, log or
 * page. */
#ifndef WR_CLI_KIT_SANITISE_H
#define WR_CLI_KIT_SANITISE_H

#include "base/json.h"

/* Prints '\' as "\\" and each byte that is not printable ASCII as "\xNN". */
void wr_print_sanitised(struct wr_span text);

/* Prints a JSON string, escaped like wr_append_json_string. */
void wr_print_json_string(struct wr_span text);

#endif
