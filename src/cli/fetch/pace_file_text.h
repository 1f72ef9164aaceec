/* SPDX-License-Identifier: MIT */
/* pace_file_text.h - converts hosts to and from the text of a state file.
 *
 *   weir state 1
 *   example.org <tab> ten numbers, see pace_file_text.c
 *   ...
 *   end 1 b8e0f3...      number of hosts, and a checksum of the lines above
 */
#ifndef WR_CLI_FETCH_PACE_FILE_TEXT_H
#define WR_CLI_FETCH_PACE_FILE_TEXT_H

#include <weir/pace.h>

#include "base/buf.h"

struct wr_pace_file_host {
    weir_pace_memory memory;
    size_t key_bytes;
    char key[];
};

/* Returns false for keys with blanks or control characters, which are not host names. */
bool wr_pace_file_key_ok(const char *key, size_t key_bytes);

void wr_pace_file_begin_text(struct wr_buf *buf);
void wr_pace_file_append_host(struct wr_buf *buf, const struct wr_pace_file_host *host);
void wr_pace_file_end_text(struct wr_buf *buf, size_t hosts);

/* Parses the text and calls `take` for each host. Returns NULL, or the error; then *ret_line is its
 * line, 0 for the whole text. */
const char *wr_pace_file_read(struct wr_span text,
                              bool (*take)(void *context, struct wr_span key, const weir_pace_memory *memory),
                              void *context, size_t *ret_line);

#endif
