/* SPDX-License-Identifier: MIT */
/* warm_state.h - data shared by the parts of weir warm.
 *
 *     sites --> sitemaps --> pages --> client --> steps --> lines and report
 *
 *     warm.c                                    the command
 *     warm_settings.c                           the options
 *     warm_operand.c                            kinds of operands
 *     step.c                                    next step of a page
 *     sum.c, warm_report.c, warm_report_json.c  the report
 *     warm_site.c                               robots.txt and sitemaps
 *     warm_page.c                               the pages, each once
 *     warm_run.c                                requests, waiting and progress
 *     warm_line.c                               JSON line of a page
 *
 * The main thread starts requests, parses sitemaps, writes output and waits. Responses arrive on
 * the client's thread, which stores the bytes of sitemaps and decides the next step of pages. One
 * lock protects all of this; no code blocks while it holds the lock.
 */
#ifndef WR_CLI_WARM_WARM_STATE_H
#define WR_CLI_WARM_WARM_STATE_H

#include <pthread.h>
#include <stdio.h>
#include <weir/client.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "cli/warm/step.h"
#include "cli/warm/warm_settings.h"
#include "core/web/url/url.h"
#include "http/sitemap/sitemap.h"

#define WR_WARM_BATCH 100          /* number of known pages at which the first request starts */
#define WR_WARM_SITEMAPS_MAX 10000 /* maximum sitemaps per run; further ones are skipped */
#define WR_WARM_INDEX_DEPTH_MAX 3  /* maximum depth of indexes in indexes */
/* Maximum failed sitemaps listed in the report; all are counted. */
#define WR_WARM_FAILURES_MAX 20

struct wr_warm_site;

struct wr_warm_page {
    struct wr_heap_item item; /* must be the first member; used while the page waits for a probe */
    struct wr_warm_page *next;
    struct wr_warm_site *site;
    struct wr_warm_page_steps course;
    int status; /* status of the first response; 0: no response */
    weir_failure failure;
    /* All requests including redirects, and redirects of the first response. */
    uint32_t requests, hops;
    uint64_t bytes;
    char *detail;    /* text of the failure; NULL: none */
    char *final_url; /* URL after redirects; NULL: same as `url` */
    const char *key; /* canonical URL that identifies the page; stored behind `url` */
    bool is_at_home; /* the page is at an origin that the user gave */
    bool has_ended;  /* all steps of the page are done */
    char url[];
};

/* A queue of pages, first in, first out. */
struct wr_warm_queue {
    struct wr_warm_page *first, *last;
    size_t count;
};

struct wr_warm_sitemap {
    struct wr_warm_sitemap *next;
    struct wr_warm_site *site;
    struct wr_sitemap *reader;
    /* Received bytes; those after the first `read_bytes` are not parsed yet. */
    struct wr_buf unread;
    size_t read_bytes;
    /* Response; the sitemap ends when all bytes are parsed; NULL: not received yet. */
    weir_response *answer;
    unsigned depth; /* number of indexes above it */
    bool is_guess;  /* a usual path that was guessed, not named anywhere */
    bool is_index;  /* the sitemap is an index of other sitemaps */
    uint64_t entries;
    struct wr_url parsed; /* parsed form of `url` */
    char url[WR_URL_ROOM];
};

struct wr_warm_site {
    struct wr_warm_site *next;
    struct wr_warm *warm;
    struct wr_warm_queue pages; /* pages that were not requested yet */
    size_t asked;               /* number of page requests in flight */
    struct wr_warm_sitemap *sitemaps, **sitemaps_end;
    struct wr_warm_sitemap *current; /* sitemap that is being read; NULL: none */
    bool wants_robots;               /* read robots.txt to find sitemaps */
    bool wants_guesses;              /* try usual paths if robots.txt names no sitemap */
    bool wants_front;                /* request the front page before sitemaps */
    bool is_reading;                 /* a request for robots.txt or a sitemap is in flight */
    bool has_listed;                 /* at least one sitemap of the site was read */
    bool is_given;                   /* pages may be requested without waiting for a batch */
    bool is_unreachable;             /* does not answer at all: usual paths are not tried */
    size_t place;                    /* index of the next path in wr_warm_usual_sitemaps */
    struct wr_url home;
    char home_text[WR_URL_ROOM];
};

/* A sitemap that failed, for the report. */
struct wr_warm_sitemap_failure {
    char *url;
    char why[200];
};

struct wr_warm {
    const struct wr_warm_settings *settings;
    weir_client *client;
    struct wr_hash_key hash_key;
    struct wr_rng rng;
    FILE *lines; /* output of --out; NULL: not given */
    bool lines_failed;
    /* Start of the run and of its first page request, ns; 0: not yet. */
    int64_t began_at, first_page_at;
    unsigned window;
    /* Each --header as "Name:", which removes the header from requests to other origins. Ends with
     * NULL. */
    const char *const *omitted;
    /* The lock protects the fields below. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct wr_warm_site *sites, **sites_end;
    struct wr_map pages_known, sitemaps_known;
    struct wr_warm_page **pages; /* all pages, in the order in which they were found */
    size_t pages_count, pages_room;
    struct wr_heap probes;           /* pages that wait for a probe, by its due time */
    struct wr_warm_queue again;      /* pages whose final GET is due */
    struct wr_warm_queue ended;      /* pages that have ended and whose line is not written yet */
    size_t under_way;                /* number of requests in flight, of any kind */
    uint64_t finished, hits, broken; /* numbers of pages so far, for the progress */
    uint64_t sitemaps_read, sitemaps_failed, foreign, left_out, sitemaps_left_out, listed;
    struct wr_warm_sitemap_failure troubles[WR_WARM_FAILURES_MAX];
    size_t troubles_count;
    bool is_full; /* max_pages was reached */
    bool is_over; /* no more requests are started */
    bool no_memory;
};

/* ---- pages (warm_page.c) ---- */

/* Adds a page to the queue of its site unless it is known. Returns false if max_pages is reached or
 * memory ran out. */
bool wr_warm_page_add(struct wr_warm *warm, struct wr_warm_site *site, const struct wr_url *url);

void wr_warm_queue_put(struct wr_warm_queue *queue, struct wr_warm_page *page);
struct wr_warm_page *wr_warm_queue_take(struct wr_warm_queue *queue);
void wr_warm_pages_free(struct wr_warm *warm);

/* ---- sites (warm_site.c) ---- */

/* Returns the site of a URL, and creates it if necessary; NULL if out of memory. */
struct wr_warm_site *wr_warm_site_of(struct wr_warm *warm, const struct wr_url *url);

/* Adds a sitemap to read, unless it is known or there are too many. Returns false if out of
 * memory. */
bool wr_warm_sitemap_add(struct wr_warm_site *site, const struct wr_url *url, unsigned depth, bool is_guess);

/* Requests the next sitemap or robots.txt of the site, unless one is in flight. The lock is
 * held. */
void wr_warm_site_request_next(struct wr_warm_site *site);

/* Parses a part of the site's current sitemap. Returns true if there is more to parse. The lock is
 * held. */
bool wr_warm_site_parse_some(struct wr_warm_site *site);

/* Returns true if nothing of the site is left to read. */
bool wr_warm_site_is_read(const struct wr_warm_site *site);

void wr_warm_sites_free(struct wr_warm *warm);

/* ---- running (warm_run.c) ---- */

/* Runs until all pages have ended, or until an interrupt or an error. */
void wr_warm_fetch_pages(struct wr_warm *warm);

/* ---- results ---- */

/* Writes the JSON line of a page. */
void wr_warm_write_line(struct wr_warm *warm, const struct wr_warm_page *page);

static inline bool wr_warm_is_broken(const struct wr_warm_page *page)
{
    return page->has_ended && !page->course.is_sound && page->failure != WEIR_FAILURE_ROBOTS &&
           page->failure != WEIR_FAILURE_CANCELLED;
}

#endif
