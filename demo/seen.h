/* SPDX-License-Identifier: MIT */
/* seen.h - what a host saw of its visitors, and whether they kept to what it had said.
 *
 * An offence is a request that no polite client would have sent:
 *     named      inside a time that an answer had named: Retry-After, or a quota used up until its reset
 *     delay      sooner after the one before than the Crawl-delay
 *     robots     a page before robots.txt was had, or one that it forbids
 * What was on its way when the answer left is none: so much is let pass (GRACE_NS). And between the client's clock and
 * this one lie two sockets and the scheduler: what comes earlier by less than SLACK_NS is none either.
 */
#ifndef WEIR_DEMO_SEEN_H
#define WEIR_DEMO_SEEN_H

#include "demo/hosts.h"

#include <stdio.h>

#define GRACE_NS (250 * WEIR_MILLISECOND)
#define SLACK_NS (100 * WEIR_MILLISECOND)

struct seen {
    int64_t *arrivals; /* of all requests, in their order */
    size_t count, room;
    int64_t named_at, named_until; /* the latest time that was named, and when it was */
    bool has_robots;               /* robots.txt was given, or it was said that there is none */
    uint32_t in_flight, most_in_flight;
    uint64_t ok, rejected, broken, named, delay, robots, huge_bytes;
};

void seen_arrival(struct seen *seen, const struct host_kind *kind, const char *path, int64_t now);

/* An answer leaves; until_ns: the time that it names, from now on; negative: none. */
void seen_answer(struct seen *seen, const char *path, int status, int64_t until_ns, int64_t now);

/* As a JSON object, without a newline. */
void seen_print(const struct seen *seen, FILE *file);

#endif
