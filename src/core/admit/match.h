/* SPDX-License-Identifier: MIT */
/* match.h - decides which requests a rule applies to.
 *
 *     fault = wr_request_reading_begin(&request, wanted, exact, &asked);  once per request; a fault rejects it
 *     do
 *         if (wr_match_fits(&match, &asked))                   for each rule
 *             ...                                              if asked.steps is 0, refuse it
 *     while (wr_request_reading_next(&asked));                           for each reading of its path
 *
 * No spelling bypasses a rule: each path that a service may see is one of the readings, or the
 * request is refused. Host and method have one spelling each. The rules of every reading must admit
 * a request. Nearly all requests have only one reading.
 *
 * A request may be long and rules may be many, so all comparisons of one decision share a budget of
 * steps. A request that exhausts it is refused, because a rule that applies to it may not have been
 * found.
 */
#ifndef WR_CORE_ADMIT_MATCH_H
#define WR_CORE_ADMIT_MATCH_H

#include "core/admit/glob.h"
#include "core/admit/host_name.h"
#include "core/admit/path.h"

#include <weir/admit.h>

/* The parts of a request that rules look at. */
#define WR_READS_PATH 1
#define WR_READS_HOST 2
#define WR_READS_METHOD 4
/* bits of `wanted` for the wr_glob_varies of all patterns */
#define WR_READS_LOOSE(loose) ((unsigned)(loose) << 8)
/* Most bytes of a path that must be rewritten; longer ones are malformed. */
#define WR_PATH_MAX 8191
/* Most bytes of all readings of a path; limits the work that a caller can cause. */
#define WR_READ_MAX 65536
#define WR_MATCH_STEPS_MAX 1000000 /* most steps of one decision: about 2 ms */
#define WR_MATCH_LOOKUP_STEPS 64   /* steps to find one header field (of at most 128) */

struct wr_request_reading {
    /* The request in this reading: method, host and path in one spelling, without the query. Must
     * be the first field (see wr_request_reading_of). */
    weir_request request;
    struct wr_target target;
    unsigned varies;
    unsigned loose;           /* the current reading: a set of WR_LOOSE_... */
    weir_request_fault fault; /* why the request could not be read; if set, `request` is unchanged */
    /* Steps left for comparisons. 0: they did not suffice, and the request must be refused. */
    uint32_t steps;
    char path[WR_PATH_MAX + 1];
    char host[WR_HOST_MAX + 1];
};

/* Reads a request, and starts with the reading of its path as spelled. A NULL target or host stays
 * NULL, and no pattern matches it. If the target is a URL, it names the host, and a different Host
 * field is a fault (RFC 9112 3.2.2), because some services use one and some the other. `exact`
 * is the set of WEIR_EXACT_... that the protected services distinguish. The request's texts must
 * outlive the result. Returns WEIR_FAULT_NONE, or a fault of wr_target_read or, if the host is
 * wanted, of wr_host_append. */
weir_request_fault wr_request_reading_begin(const weir_request *request, unsigned wanted, unsigned exact,
                                            struct wr_request_reading *ret_asked);

/* Advances to the next reading. Returns false after the last one; then the first is current. */
bool wr_request_reading_next(struct wr_request_reading *asked);

/* Returns the wr_request_reading that contains `request`. The cast drops const safely: a
 * wr_request_reading is made for one decision, and matching subtracts from its steps. */
static inline struct wr_request_reading *wr_request_reading_of(const weir_request *request)
{
    return (struct wr_request_reading *)(void *)request;
}

/* Takes a request unread, because no rule looks into it or because of a fault. */
void wr_request_reading_keep(const weir_request *request, weir_request_fault fault,
                             struct wr_request_reading *ret_asked);

struct wr_header_pattern {
    const char *name; /* header name in lower case */
    bool any;         /* true: the header only needs to be present */
    struct wr_glob value;
};

/* The patterns of a rule. For each list that is not empty, one pattern must match; of the headers,
 * all must. */
struct wr_match {
    const struct wr_span *methods;
    const struct wr_glob *paths, *hosts;
    const struct wr_header_pattern *headers;
    uint32_t method_count, path_count, host_count, header_count;
};

/* Returns true if the rule applies. A header with several lines needs one that matches. The result
 * is meaningless if asked->steps is 0 afterwards. */
bool wr_match_fits(const struct wr_match *match, struct wr_request_reading *asked);

#endif
