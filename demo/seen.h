/* SPDX-License-Identifier: MIT */
/* seen.h - records the requests that a host received, and counts those that broke its limits.
 *
 * An offence is a request that a polite client would not have sent:
 *     named      in a time that a response named: Retry-After, or until a used-up quota resets
 *     delay      sooner after the request before than the Crawl-delay
 *     robots     a page before robots.txt was fetched, or one that it forbids
 * Requests that were on their way when the response left do not count: GRACE_NS allows for them.
 * SLACK_NS allows for the two sockets and the scheduler between the client's clock and this one:
 * requests that are early by less do not count either.
 */
#ifndef WEIR_DEMO_SEEN_H
#define WEIR_DEMO_SEEN_H

#include "demo/hosts.h"

#include <stdio.h>

#define GRACE_NS (250 * WEIR_MILLISECOND)
#define SLACK_NS (100 * WEIR_MILLISECOND)

struct seen {
    int64_t *arrivals; /* instants of all requests, in order */
    size_t count, room;
    /* Latest time that a response named, and the instant of that response. */
    int64_t named_at, named_until;
    bool has_robots; /* robots.txt was delivered */
    uint32_t in_flight, most_in_flight;
    uint64_t ok, rejected, broken, named, delay, robots, huge_bytes;
};

void seen_arrival(struct seen *seen, const struct host_kind *kind, const char *path, int64_t now);

/* Records a response. `until_ns` is the time that it names, from now; negative: none. */
void seen_answer(struct seen *seen, const char *path, int status, int64_t until_ns, int64_t now);

/* Prints the record as a JSON object, without a newline. */
void seen_print(const struct seen *seen, FILE *file);

#endif
