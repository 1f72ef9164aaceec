/* SPDX-License-Identifier: MIT */
/* inside.h - what the program may have of a client beyond weir/client.h. */
#ifndef WR_SHELL_CLIENT_INSIDE_H
#define WR_SHELL_CLIENT_INSIDE_H

#include "base/span.h"

#include <weir/client.h>

/* Walks over all fields of an answer's head, of which weir_response_header tells the first of a name, in their order:
 * start with *cursor 0, and end at false. Good as long as the response. */
bool wr_response_next(const weir_response *response, size_t *cursor, struct wr_span *ret_name,
                      struct wr_span *ret_value);

/* Somebody has fetched the robots.txt of an origin himself, just now, and this was the answer: if it tells what the
 * rules are, the client need not ask again. Before anything else is asked for there. `url` is any URL of the origin. */
void wr_client_tell_robots(weir_client *client, const char *url, const weir_response *response);

#endif
