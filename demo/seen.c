/* SPDX-License-Identifier: MIT */
/* seen.c - records the requests that a host received, and its answers. */
#include "demo/seen.h"

#include <stdlib.h>
#include <string.h>

static void keep(struct seen *seen, int64_t now)
{
    if (seen->count == seen->room) {
        size_t room = seen->room == 0 ? 256 : 2 * seen->room;
        int64_t *more = realloc(seen->arrivals, room * sizeof *more);
        if (more == NULL)
            abort(); /* without memory the demo cannot continue */
        seen->arrivals = more;
        seen->room = room;
    }
    seen->arrivals[seen->count++] = now;
}

void seen_arrival(struct seen *seen, const struct host_kind *kind, const char *path, int64_t now)
{
    int64_t delay_ns = kind->crawl_delay_s * WEIR_SECOND;
    bool is_robots = strcmp(path, "/robots.txt") == 0;
    if (now > seen->named_at + GRACE_NS && now < seen->named_until - SLACK_NS)
        seen->named++;
    if (delay_ns > 0 && seen->has_robots && seen->count > 0 &&
        now - seen->arrivals[seen->count - 1] < delay_ns - SLACK_NS)
        seen->delay++;
    if (!is_robots && (!seen->has_robots || !page_is_allowed(path)))
        seen->robots++;
    if (++seen->in_flight > seen->most_in_flight)
        seen->most_in_flight = seen->in_flight;
    keep(seen, now);
}

void seen_answer(struct seen *seen, const char *path, int status, int64_t until_ns, int64_t now)
{
    seen->in_flight--;
    seen->ok += status >= 200 && status < 400;
    seen->rejected += status == 429;
    seen->broken += status == RESET || status >= 500;
    if (strcmp(path, "/robots.txt") == 0 && status == 200)
        seen->has_robots = true;
    if (until_ns >= 0 && now + until_ns > seen->named_until) {
        if (now >= seen->named_until)
            seen->named_at = now;
        seen->named_until = now + until_ns;
    }
}

static int earlier(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static int64_t closest_ns(const struct seen *seen)
{
    int64_t closest = -1;
    for (size_t i = 1; i < seen->count; i++)
        if (closest < 0 || seen->arrivals[i] - seen->arrivals[i - 1] < closest)
            closest = seen->arrivals[i] - seen->arrivals[i - 1];
    return closest;
}

/* Returns the most arrivals within any second. */
static size_t peak(const struct seen *seen)
{
    size_t most = 0;
    for (size_t first = 0, last = 0; last < seen->count; last++) {
        while (seen->arrivals[last] - seen->arrivals[first] >= WEIR_SECOND)
            first++;
        if (last - first + 1 > most)
            most = last - first + 1;
    }
    return most;
}

void seen_print(const struct seen *seen, FILE *file)
{
    /* Requests of several connections may be slightly out of order. */
    if (seen->count > 0)
        qsort(seen->arrivals, seen->count, sizeof *seen->arrivals, earlier);
    int64_t took = seen->count < 2 ? 0 : seen->arrivals[seen->count - 1] - seen->arrivals[0];
    fprintf(file, "\"requests\": %zu, \"ok\": %llu, \"rejected\": %llu, \"broken\": %llu, ", seen->count,
            (unsigned long long)seen->ok, (unsigned long long)seen->rejected, (unsigned long long)seen->broken);
    fprintf(file, "\"seconds\": %.3f, \"closest_ms\": %.3f, \"peak_per_s\": %zu, \"in_flight\": %u, ", wr_seconds(took),
            (double)closest_ns(seen) / 1e6, peak(seen), seen->most_in_flight);
    fprintf(file, "\"huge_bytes\": %llu, ", (unsigned long long)seen->huge_bytes);
    fprintf(file, "\"offences\": {\"named\": %llu, \"delay\": %llu, \"robots\": %llu}", (unsigned long long)seen->named,
            (unsigned long long)seen->delay, (unsigned long long)seen->robots);
}
