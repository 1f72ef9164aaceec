/* SPDX-License-Identifier: MIT */
/* origin.c - Computes the response of an origin to a request. */
#include "sim/origin.h"

#include <math.h>
#include <stdalign.h>

#define SERVICE_MAX_NS (30 * WEIR_DAY)

/* ---- the station: servers and a queue, first come first served ------------------------------- */

static int station_init(struct wr_sim_origin *site)
{
    struct wr_station *station = &site->station;
    *station = (struct wr_station){.servers = site->origin->station.servers, .queue = site->origin->station.queue};
    if (station->servers == 0)
        return 0;
    size_t count = (size_t)station->servers + station->queue;
    station->free_at = wr_alloc_array(site->allocator, count, sizeof *station->free_at, alignof(int64_t));
    if (station->free_at == NULL)
        return WEIR_E_NOMEM;
    station->begins = station->free_at + station->servers;
    return 0;
}

static void station_release(struct wr_sim_origin *site)
{
    struct wr_station *station = &site->station;
    size_t count = (size_t)station->servers + station->queue;
    wr_free(site->allocator, station->free_at, count * sizeof *station->free_at, alignof(int64_t));
    station->free_at = NULL;
}

static int64_t *first_free(const struct wr_station *station)
{
    int64_t *first = station->free_at;
    for (uint32_t i = 1; i < station->servers; i++)
        if (station->free_at[i] < *first)
            first = &station->free_at[i];
    return first;
}

/* Removes requests from the queue whose service has begun. They begin in the order of arrival. */
static void drop_begun_services(struct wr_station *station, int64_t now)
{
    while (station->waiting > 0 && station->begins[station->first] <= now) {
        station->first = station->first + 1 == station->queue ? 0 : station->first + 1;
        station->waiting--;
    }
}

static void queue_service(struct wr_station *station, int64_t begins_at)
{
    uint64_t place = (uint64_t)station->first + station->waiting++;
    station->begins[place < station->queue ? place : place - station->queue] = begins_at;
}

/* ---- service --------------------------------------------------------------------------------- */

/* Draws a service time. It is at least 1 ns, because pacers divide by it. It is limited to more
 * than any run, because sigma may be 3. */
static int64_t service_ns(struct wr_sim_origin *site, int64_t now)
{
    const struct wr_origin *origin = site->origin;
    double mean = (double)origin->service.mean_ns;
    double ns = origin->service.law == WR_LAW_UNIFORM
                    ? mean / 3 + wr_chance_unit(&site->service) * mean * 4 / 3
                    : site->service_scale_ns * exp(origin->service.sigma * wr_chance_normal(&site->service));
    if (wr_chance_happens(&site->service, origin->service.tail))
        ns *= WR_TAIL_FACTOR;
    if (site->vary.kind != WR_VARY_NONE && origin->limiter.kind == WR_LIMITER_NONE)
        ns /= wr_vary_factor(&site->vary, wr_seconds(now));
    return (int64_t)fmin(fmax(ns, 1), (double)SERVICE_MAX_NS);
}

/* Returns the end of the service, or -1 if the queue is full. */
static int64_t serve_request(struct wr_sim_origin *site, int64_t now)
{
    struct wr_station *station = &site->station;
    if (station->servers == 0)
        return now + service_ns(site, now);
    int64_t *server = first_free(station);
    int64_t begins_at = now;
    drop_begun_services(station, now);
    if (*server > now) {
        if (station->waiting >= station->queue)
            return -1;
        begins_at = *server;
        queue_service(station, begins_at);
    }
    *server = begins_at + service_ns(site, begins_at);
    return *server;
}

/* ---- the origin ------------------------------------------------------------------------------ */

int wr_sim_origin_init(struct wr_sim_origin *ret_site, const struct wr_origin *origin, int64_t duration_ns,
                       uint64_t seed, const weir_allocator *allocator)
{
    struct wr_sim_origin site = {.origin = origin, .allocator = allocator};
    double sigma = origin->service.sigma;

    site.service_scale_ns = (double)origin->service.mean_ns * exp(-sigma * sigma / 2);
    wr_chance_init(&site.service, seed, WR_STREAM_SERVICE);
    wr_chance_init(&site.faults, seed, WR_STREAM_FAULTS);
    wr_chance_init(&site.others, seed, WR_STREAM_OTHERS);
    int error = wr_vary_init(&site.vary, origin, duration_ns, seed, allocator);
    if (error < 0)
        return error;
    error = wr_origin_limiter_init(&site);
    if (error == 0)
        error = station_init(&site);
    if (error < 0) {
        wr_sim_origin_release(&site);
        return error;
    }
    *ret_site = site;
    return 0;
}

void wr_sim_origin_release(struct wr_sim_origin *site)
{
    station_release(site);
    wr_origin_limiter_release(site);
    wr_vary_release(&site->vary);
}

static void refuse_sim_request(struct wr_sim_reply *reply, enum wr_sim_reply_cause cause, int64_t now)
{
    reply->cause = cause;
    reply->status = 503;
    reply->done_at = now + WR_REJECT_NS;
}

/* Serves a request that the limiter admitted, unless the queue is full. */
static void admit_to_station(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *reply)
{
    int64_t done_at = serve_request(site, now);
    if (done_at < 0) {
        refuse_sim_request(reply, WR_REPLY_TOO_MUCH, now);
        if (site->origin->reject.retry_after)
            reply->retry_after_ns = WEIR_SECOND;
        done_at = reply->done_at;
    } else {
        done_at += wr_origin_limiter_delay_ns(site, now);
        reply->done_at = done_at;
        if (wr_chance_happens(&site->faults, site->origin->errors.p500))
            reply->status = 500;
        else if (wr_chance_happens(&site->faults, site->origin->errors.p503))
            reply->status = 503;
        if (reply->status != 200)
            reply->cause = WR_REPLY_BROKEN;
    }
    wr_origin_limiter_note_end(site, done_at);
}

/* Adds the fields about the quota to a response; a success may have them too. */
static void state_quota(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *reply)
{
    struct wr_sim_reply said = *reply;
    if (reply->status == 0)
        return;
    wr_origin_limiter_headers(site, now, &said);
    if (site->origin->reject.always && reply->status == 200)
        reply->retry_after_ns = said.quota_reset_ns;
    if (site->origin->reject.headers) {
        reply->quota_limit = said.quota_limit;
        reply->quota_remaining = said.quota_remaining;
        reply->quota_reset_ns = said.quota_reset_ns;
    }
}

void wr_sim_origin_arrive(struct wr_sim_origin *site, int64_t now, struct wr_sim_reply *ret_reply)
{
    *ret_reply = (struct wr_sim_reply){
        .cause = WR_REPLY_GOOD,
        .status = 200,
        .retry_after_ns = -1,
        .quota_limit = -1,
        .quota_remaining = -1,
        .quota_reset_ns = -1,
    };
    if (now >= site->origin->outage.from_ns && now < site->origin->outage.to_ns) {
        refuse_sim_request(ret_reply, WR_REPLY_OUTAGE, now);
        return;
    }
    if (wr_origin_limiter_ask(site, now, ret_reply))
        admit_to_station(site, now, ret_reply);
    state_quota(site, now, ret_reply);
}
