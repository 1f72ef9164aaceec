/* SPDX-License-Identifier: MIT */
/* foreign.h - text of strangers, shown so that it can harm no terminal, log or page: in printable ASCII only. */
#ifndef WR_CLI_KIT_FOREIGN_H
#define WR_CLI_KIT_FOREIGN_H

#include "base/json.h"

/* '\' as "\\", bytes that are not printable ASCII as "\xNN". */
void wr_print_foreign(struct wr_span text);

/* As wr_append_json_string. */
void wr_print_json_string(struct wr_span text);

#endif
