/* SPDX-License-Identifier: MIT */
/* response.h - all the fields of an answer's head, of which weir_response_header tells the first of a name. */
#ifndef WR_SHELL_CLIENT_RESPONSE_H
#define WR_SHELL_CLIENT_RESPONSE_H

#include "base/span.h"

#include <weir/client.h>

/* Walks over them in their order: start with *cursor 0, and end at false. Good as long as the response. */
bool wr_response_next(const weir_response *response, size_t *cursor, struct wr_span *ret_name,
                      struct wr_span *ret_value);

#endif
