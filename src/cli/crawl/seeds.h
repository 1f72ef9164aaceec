/* SPDX-License-Identifier: MIT */
/* seeds.h - where a crawl begins: URLs of the command line and of a list.
 *
 * Those of the command line are checked before anything begins. A list may be long, or still be written: a thread
 * reads it while the crawl runs, and a line that is no URL is told, counted and left out. But that there is one at all
 * is made sure of first.
 */
#ifndef WR_CLI_CRAWL_SEEDS_H
#define WR_CLI_CRAWL_SEEDS_H

#include <stdatomic.h>

#include "cli/crawl/screen.h"
#include "cli/kit/list.h"

struct wr_seeds {
    struct wr_screen *screen;
    bool allows_private; /* addresses and localhost; of names the engine finds out */
    char *const *given;  /* of the command lines */
    size_t given_count;
    bool has_earlier;   /* those of an earlier job come first */
    const char *file;   /* NULL: none; "-": standard input */
    int64_t unread_job; /* these are the seeds that this one had not read to their end; 0: no */
    bool may_be_empty;  /* there are seeds from before */
    struct wr_list list;
    bool is_listed; /* the list is open */
    bool has_first; /* of the list: */
    char first_text[WR_URL_ROOM];
    struct wr_url first;
    uint64_t refused; /* lines; the thread's while it runs */
    pthread_t thread;
    bool is_running;
    bool is_complete; /* all were given to the engine */
    struct wr_engine *engine;
};

/* "example.org" is https://example.org/. NULL, or what is wrong with it. */
const char *wr_seed_parse(struct wr_span text, bool allows_private, char *memory, struct wr_url *ret_url);

/* Checks what is given, opens the list and finds its first URL if nothing else is given. False after a complaint. */
bool wr_seeds_open(struct wr_seeds *seeds);

/* Complains that the seeds of a job were not all read, and says what to do. */
void wr_seeds_ask_again(const struct wr_seeds *seeds);

/* Takes each of them here and now. False after a complaint. */
bool wr_seeds_each(struct wr_seeds *seeds, void (*take)(void *context, const struct wr_url *url), void *context);

/* Starts a thread that gives them to the engine. False after a complaint. */
bool wr_seeds_start(struct wr_seeds *seeds, struct wr_engine *engine);

/* Waits for the thread, which does not read on. */
void wr_seeds_close(struct wr_seeds *seeds);

#endif
