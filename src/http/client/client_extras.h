/* SPDX-License-Identifier: MIT */
/* client_extras.h - functions of the client that the program uses beyond weir/client.h. */
#ifndef WR_HTTP_CLIENT_CLIENT_EXTRAS_H
#define WR_HTTP_CLIENT_CLIENT_EXTRAS_H

#include "base/span.h"

#include <weir/client.h>

/* Iterates over all fields of a response's head in order, including repeated names. Start with
 * *cursor 0; returns false at the end. The spans are valid as long as the response. */
bool wr_response_next_field(const weir_response *response, size_t *cursor, struct wr_span *ret_name,
                            struct wr_span *ret_value);

/* Tells the client the response to a robots.txt that the caller has just fetched itself. If it
 * determines the rules, the client does not fetch it. Call it before any other request to the
 * origin. `url` is any URL of the origin. */
void wr_client_set_robots(weir_client *client, const char *url, const weir_response *response);

#endif
