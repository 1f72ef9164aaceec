/* SPDX-License-Identifier: MIT */
/* course.c - records how fast each host was asked in the course of a run. */
#include "shell/engine/course.h"

#include <string.h>

#define GLANCE_NS 2000 /* estimated time of a loop to look at one host */
#define LOOK_SHARE 50  /* looks take at most 1/50 of the loops' time */

void wr_course_init(struct wr_course *ret_course)
{
    memset(ret_course, 0, sizeof *ret_course);
    ret_course->step_ns = WEIR_SECOND;
}

/* ---- time steps ---- */

static void join_pairs(struct wr_course *course)
{
    for (size_t i = 0; i < course->count; i++) {
        struct wr_course_host *host = &course->hosts[i];
        for (size_t n = 0; n < WR_COURSE_POINTS; n++)
            host->starts[n] = n < WR_COURSE_POINTS / 2 ? host->starts[2 * n] + host->starts[2 * n + 1] : 0;
        host->from = (host->from + 1) / 2;
    }
    course->points /= 2;
    course->step_ns *= 2;
}

void wr_course_step(struct wr_course *course, int64_t elapsed_ns)
{
    while (elapsed_ns / course->step_ns >= WR_COURSE_POINTS) /* keeps room for the current step */
        join_pairs(course);
    course->points = (uint32_t)(elapsed_ns / course->step_ns);
}

void wr_course_stretch(struct wr_course *course, uint64_t hosts)
{
    while (hosts > (uint64_t)(course->step_ns / LOOK_SHARE / GLANCE_NS))
        join_pairs(course);
}

/* ---- hosts ---- */

static struct wr_course_host *find(const struct wr_course *course, struct wr_span key)
{
    for (size_t i = 0; i < course->count; i++)
        if (wr_span_is(key, course->hosts[i].key))
            return (struct wr_course_host *)&course->hosts[i];
    return NULL;
}

/* Returns a free entry, or that of a host with less than half as many requests. Returns NULL if all
 * entries are taken by busier hosts. */
static struct wr_course_host *make_room(struct wr_course *course, uint64_t requests)
{
    struct wr_course_host *least = &course->hosts[0];
    if (course->count < WR_COURSE_HOSTS)
        return &course->hosts[course->count++];
    for (size_t i = 1; i < course->count; i++)
        least = course->hosts[i].seen < least->seen ? &course->hosts[i] : least;
    return least->seen < requests / 2 ? least : NULL;
}

void wr_course_see(struct wr_course *course, const char *key, uint64_t requests, bool is_whole)
{
    struct wr_course_host *host = find(course, wr_span_of(key));
    size_t key_bytes = strlen(key);
    if (course->points == 0 || key_bytes > WEIR_PACE_KEY_MAX)
        return;
    if (host == NULL) {
        host = make_room(course, requests);
        if (host == NULL)
            return;
        memset(host, 0, sizeof *host);
        memcpy(host->key, key, key_bytes);
        host->from = is_whole ? 0 : course->points;
        host->seen = is_whole ? 0 : requests;
    }
    if (requests < host->seen) {
        host->was_lost = true;
        host->seen = 0;
    }
    host->starts[course->points - 1] += (uint32_t)(requests - host->seen);
    host->seen = requests;
}

static bool has(const struct wr_look *look, const char *key)
{
    for (size_t i = 0; i < look->count; i++)
        if (strcmp(look->hosts[i].key, key) == 0)
            return true;
    return false;
}

void wr_course_take(struct wr_course *course, struct wr_engine *engine, int64_t elapsed_ns)
{
    const struct wr_look_query query = {.sort = WR_SORT_RATE, .most = WR_COURSE_HOSTS};
    struct wr_look_host one;
    struct wr_look *look;
    if (elapsed_ns < (course->points + 1) * course->step_ns)
        return;
    wr_course_step(course, elapsed_ns);
    if (wr_engine_look(engine, &query, &look) != 0)
        return;
    for (size_t i = 0; i < course->count; i++) {
        if (has(look, course->hosts[i].key))
            continue;
        if (wr_engine_look_host(engine, wr_span_of(course->hosts[i].key), &one) == 0)
            wr_course_see(course, one.key, one.requests, false);
        else
            course->hosts[i].was_lost = true;
    }
    course->last_at = elapsed_ns + look->sums.last_ns;
    /* True if earlier looks cannot have left out a host. */
    bool is_whole = look->sums.matched <= WR_COURSE_HOSTS;
    for (size_t i = 0; i < look->count; i++)
        if (look->hosts[i].requests > 0)
            wr_course_see(course, look->hosts[i].key, look->hosts[i].requests, is_whole);
    wr_course_stretch(course, look->sums.matched);
    wr_look_free(look);
}

size_t wr_course_tell(const struct wr_course *course, struct wr_span key, uint64_t requests, int64_t elapsed_ns,
                      int64_t ret_starts[WR_COURSE_POINTS])
{
    const struct wr_course_host *host = find(course, key);
    uint64_t told = 0;
    if (host == NULL && course->points > 0)
        return 0;
    int64_t last = elapsed_ns / course->step_ns;
    last = last < WR_COURSE_POINTS ? last : WR_COURSE_POINTS - 1;
    for (int64_t i = 0; i <= last; i++) {
        bool is_known = host == NULL || (uint32_t)i >= host->from;
        uint32_t starts = is_known && host != NULL ? host->starts[i] : 0;
        ret_starts[i] = is_known ? (int64_t)starts : -1;
        told += starts;
    }
    if (host == NULL || (host->from == 0 && !host->was_lost)) /* adds starts after the last look */
        ret_starts[last] += requests > told ? (int64_t)(requests - told) : 0;
    return (size_t)last + 1;
}
