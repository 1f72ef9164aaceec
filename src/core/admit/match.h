/* SPDX-License-Identifier: MIT */
/* match.h - which requests a rule is for.
 *
 *     fault = wr_asked_read(&request, wanted, exact, &asked);             once for each request; a fault refuses it
 *     do
 *         if (wr_match_fits(&match, &asked))                              for each rule
 *             …                                                           if asked.steps is 0, refuse the request
 *     while (wr_asked_next(&asked));                                      for each way of reading its path
 *
 * No spelling escapes a rule: whatever a service takes the path for is one of the readings, or the request is refused;
 * host and method have one spelling each. A request must be let in by the rules of every reading. Nearly all requests
 * have one.
 *
 * A request may be long, and the rules many: all comparisons of one decision share a budget of steps. A request that
 * uses it up is refused, because rules that would apply to it may not have been found.
 */
#ifndef WR_CORE_ADMIT_MATCH_H
#define WR_CORE_ADMIT_MATCH_H

#include "core/admit/glob.h"
#include "core/admit/host.h"
#include "core/admit/path.h"

#include <weir/admit.h>

/* What rules look at. */
#define WR_ASKED_PATH 1
#define WR_ASKED_HOST 2
#define WR_ASKED_METHOD 4
#define WR_ASKED_LOOSE(loose) ((unsigned)(loose) << 8) /* wr_glob_varies of all patterns */
#define WR_PATH_MAX 8191           /* bytes of a path that must be rewritten; longer ones are malformed */
#define WR_READ_MAX 65536          /* bytes of all readings of a path: what a caller can cost us */
#define WR_MATCH_STEPS_MAX 1000000 /* of one decision: some 2 ms */
#define WR_MATCH_LOOKUP_STEPS 64   /* of one look for a field among all (128 at most) */

struct wr_asked {
    weir_request request; /* first, see wr_asked_of; as this reading has it: method, host and path in one spelling,
                             without the query */
    struct wr_target target;
    unsigned varies;
    unsigned loose;   /* this reading: a set of WR_LOOSE_… */
    weir_fault fault; /* why it could not be read: then the request is as it was */
    uint32_t steps;   /* that comparisons may still take; 0: they did not suffice, and the request is to be refused */
    char path[WR_PATH_MAX + 1];
    char host[WR_HOST_MAX + 1];
};

/* The reading as it is written. What is not known stays so (a NULL target or host): no pattern fits it. A target that
 * is a URL names the host, and another Host beside it is a fault (RFC 9112 3.2.2: some services believe one, some the
 * other). `exact`: WEIR_EXACT_…, what services are known to tell apart. Keeps the request's texts. WEIR_FAULT_NONE, or
 * what wr_target_read and, if it is wanted, wr_host_append say. */
weir_fault wr_asked_read(const weir_request *request, unsigned wanted, unsigned exact, struct wr_asked *ret_asked);

/* The next reading; false: that was the last, and the first is back. */
bool wr_asked_next(struct wr_asked *asked);

/* What a function that is given the request of a reading belongs to. It is never const: it is made for a decision, and
 * matching takes steps off it. */
static inline struct wr_asked *wr_asked_of(const weir_request *request)
{
    return (struct wr_asked *)(void *)request;
}

/* Takes a request as it is: for rules that look at none of it, or because of a fault. */
void wr_asked_keep(const weir_request *request, weir_fault fault, struct wr_asked *ret_asked);

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

/* Of a header in several lines, one must fit. Means nothing if asked->steps is 0 afterwards. */
bool wr_match_fits(const struct wr_match *match, struct wr_asked *asked);

#endif
