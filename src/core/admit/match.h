/* SPDX-License-Identifier: MIT */
/* match.h - which requests a rule is for.
 *
 *     wr_asked_read(&request, WR_ASKED_PATH | WR_ASKED_HOST, &asked)       once for each request
 *     if (wr_match_fits(&match, &asked.request))                          for each rule
 *
 * A request is read into one spelling first, so that no other spelling of a path or host escapes a rule.
 */
#ifndef WR_CORE_ADMIT_MATCH_H
#define WR_CORE_ADMIT_MATCH_H

#include "core/admit/glob.h"

#include <weir/admit.h>

#define WR_ASKED_PATH 1
#define WR_ASKED_HOST 2
#define WR_PATH_MAX 8191 /* bytes; longer ones are malformed */
#define WR_HOST_MAX 255  /* RFC 1035 */

struct wr_asked {
    weir_request request; /* the path in its target, the host in small letters and without port */
    char path[WR_PATH_MAX + 1];
    char host[WR_HOST_MAX + 1];
};

/* Reads what `wanted` names; the rest stays as it is. What is not there stays so: no pattern fits it. Keeps the
 * request's texts. WEIR_FAULT_NONE, _LONG, _BYTES. */
weir_fault wr_asked_read(const weir_request *request, unsigned wanted, struct wr_asked *ret_asked);

struct wr_header_pattern {
    const char *name; /* in lower case */
    bool any;         /* that it is there is enough */
    struct wr_glob value;
};

/* Each list that is not empty must have one that fits; of the headers, all must. */
struct wr_match {
    const struct wr_span *methods;
    const struct wr_glob *paths, *hosts;
    const struct wr_header_pattern *headers;
    uint32_t method_count, path_count, host_count, header_count;
};

/* Of a header in several lines, one must fit. */
bool wr_match_fits(const struct wr_match *match, const weir_request *request);

#endif
