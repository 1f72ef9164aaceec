/* SPDX-License-Identifier: MIT */
/* state.h - what the parts of weir warm share.
 *
 *     sites ──▶ sitemaps ──▶ pages ──▶ the client ──▶ steps ──▶ lines and report
 *
 *     warm.c      the command                       site.c      robots.txt and sitemaps, one after the other
 *     settings.c  its options                       page.c      which pages, each once
 *     place.c     what an operand means             run.c       what is asked for next; waiting; progress
 *     step.c      what comes next for a page        line.c      what became of each page
 *     sum.c, report.c, report_json.c                what it came to
 *
 * The main thread asks, writes and waits; answers come on the client's thread, which reads sitemaps as they arrive and
 * takes pages a step further. All is under one lock. Nothing waits with it but for the lock itself.
 */
#ifndef WR_CLI_WARM_STATE_H
#define WR_CLI_WARM_STATE_H

#include <pthread.h>
#include <stdio.h>
#include <weir/client.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "cli/warm/settings.h"
#include "cli/warm/step.h"
#include "core/rules/url/url.h"
#include "shell/sitemap/sitemap.h"

#define WR_WARM_BATCH 100          /* pages that are known before the first is asked for (U11) */
#define WR_WARM_SITEMAPS_MAX 10000 /* of a run; further ones are left out */
#define WR_WARM_INDEX_DEPTH_MAX 3  /* indexes in indexes */
#define WR_WARM_TROUBLES_MAX 20    /* sitemaps that failed, in the report; all are counted */

struct wr_warm_site;

struct wr_warm_page {
    struct wr_heap_item item; /* first; while it waits for a probe */
    struct wr_warm_page *next;
    struct wr_warm_site *site;
    struct wr_warm_course course;
    int status; /* of the first answer; 0: none came */
    weir_failure failure;
    uint32_t requests, hops; /* sent in all, hops among them; of the first answer */
    uint64_t bytes;
    char *detail;    /* of the failure; NULL: none */
    char *final_url; /* NULL: the same */
    const char *key; /* canonical, which is what makes it the same page; in this block */
    bool is_at_home; /* at the very origin that was given */
    bool has_ended;  /* all steps are over */
    char url[];
};

/* First in, first out. */
struct wr_warm_queue {
    struct wr_warm_page *first, *last;
    size_t count;
};

struct wr_warm_sitemap {
    struct wr_warm_sitemap *next;
    struct wr_warm_site *site;
    struct wr_sitemap *reader;
    struct wr_buf unread; /* has come, and but for the first `read_bytes` is still to be read */
    size_t read_bytes;
    weir_response *answer; /* it has come, and ends when it has been read; NULL: not yet */
    unsigned depth;        /* of indexes above it */
    bool is_guess;         /* nobody named it */
    bool is_index;         /* it leads to others */
    uint64_t entries;
    struct wr_url parsed; /* of `url` */
    char url[WR_URL_ROOM];
};

struct wr_warm_site {
    struct wr_warm_site *next;
    struct wr_warm *warm;
    struct wr_warm_queue pages; /* to be asked for */
    size_t asked;               /* requests for pages under way */
    struct wr_warm_sitemap *sitemaps, **sitemaps_end;
    struct wr_warm_sitemap *current; /* being read; NULL: none */
    bool wants_robots;               /* its robots.txt is to be asked for sitemaps */
    bool wants_guesses;              /* and if it names none, they are looked for */
    bool wants_front;                /* its front page is asked for before sitemaps */
    bool is_reading;                 /* robots.txt or a sitemap is under way */
    bool has_listed;                 /* a sitemap was read, or pages given */
    bool is_given;                   /* pages were: there is nothing to wait for */
    bool is_unreachable;             /* it does not answer at all: there is no use in guessing */
    size_t place;                    /* of wr_warm_usual_places: the next to be tried */
    struct wr_url home;
    char home_text[WR_URL_ROOM];
};

/* A sitemap that failed. */
struct wr_warm_trouble {
    char *url;
    char why[200];
};

struct wr_warm {
    const struct wr_warm_settings *settings;
    weir_client *client;
    struct wr_hash_key hash_key;
    struct wr_rng rng;
    FILE *lines; /* NULL: none are wanted */
    bool lines_failed;
    int64_t began_at, first_page_at; /* 0: none was asked for yet */
    unsigned window;
    const char *const *omitted; /* "Name:" of each --header, for what is not at a given origin; NULL at its end (V10) */
    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct wr_warm_site *sites, **sites_end;
    struct wr_map pages_known, sitemaps_known;
    struct wr_warm_page **pages; /* all of them, in the order found */
    size_t pages_count, pages_room;
    struct wr_heap probes;           /* pages that wait, by when they are due */
    struct wr_warm_queue again;      /* those to be asked for once more */
    struct wr_warm_queue ended;      /* whose line is to be written */
    size_t under_way;                /* requests of any kind */
    uint64_t finished, hits, broken; /* pages so far, for progress */
    uint64_t sitemaps_read, sitemaps_failed, foreign, left_out, sitemaps_left_out, listed;
    struct wr_warm_trouble troubles[WR_WARM_TROUBLES_MAX];
    size_t troubles_count;
    bool is_full; /* max_pages */
    bool is_over; /* nothing is to be asked for any more */
    bool no_memory;
};

/* ---- pages (page.c) ---- */

/* Adds a page to its site's queue, unless it is known, or there are enough. False: enough, or no memory. */
bool wr_warm_page_add(struct wr_warm *warm, struct wr_warm_site *site, const struct wr_url *url);

void wr_warm_queue_put(struct wr_warm_queue *queue, struct wr_warm_page *page);
struct wr_warm_page *wr_warm_queue_take(struct wr_warm_queue *queue);
void wr_warm_pages_free(struct wr_warm *warm);

/* ---- sites (site.c) ---- */

/* The site of a URL, an old or a new one; NULL without memory. */
struct wr_warm_site *wr_warm_site_of(struct wr_warm *warm, const struct wr_url *url);

/* Adds a sitemap to be read, unless it is known, or there are too many. */
bool wr_warm_sitemap_add(struct wr_warm_site *site, const struct wr_url *url, unsigned depth, bool is_guess);

/* With the lock held: asks for the next sitemap or robots.txt of the site, if it is time for one. */
void wr_warm_site_read(struct wr_warm_site *site);

/* With the lock held: reads some of the sitemap that is coming, if there is one. Returns whether there is more. */
bool wr_warm_site_turn(struct wr_warm_site *site);

/* Whether there is nothing more to be read, now or later. */
bool wr_warm_site_is_read(const struct wr_warm_site *site);

void wr_warm_sites_free(struct wr_warm *warm);

/* ---- running (run.c) ---- */

/* Until all is done, or it was interrupted. */
void wr_warm_work(struct wr_warm *warm);

/* ---- what became of it ---- */

/* Writes the page's line of JSON. */
void wr_warm_line(struct wr_warm *warm, const struct wr_warm_page *page);

static inline bool wr_warm_is_broken(const struct wr_warm_page *page)
{
    return page->has_ended && !page->course.is_sound && page->failure != WEIR_FAILURE_ROBOTS &&
           page->failure != WEIR_FAILURE_CANCELLED;
}

#endif
