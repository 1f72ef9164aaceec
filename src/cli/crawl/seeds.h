/* SPDX-License-Identifier: MIT */
/* seeds.h - reads the seeds of a crawl from the command line and from a list.
 *
 * Seeds on the command line are checked before the crawl starts. A list may be long or still
 * growing: a thread reads it while the crawl runs, and reports, counts and skips lines that are not
 * valid URLs. If the list is the only source, it must have a valid URL before the crawl starts.
 */
#ifndef WR_CLI_CRAWL_SEEDS_H
#define WR_CLI_CRAWL_SEEDS_H

#include <stdatomic.h>

#include "cli/crawl/screen.h"
#include "cli/kit/url_list.h"

struct wr_seeds {
    struct wr_screen *screen;
    /* Accept private addresses and localhost; the engine checks the addresses of other names. */
    bool allows_private;
    char *const *given; /* seeds on the command lines of all runs */
    size_t given_count;
    bool has_earlier;   /* seeds of an earlier job come first */
    const char *file;   /* list of seeds; NULL: none; "-": standard input */
    int64_t unread_job; /* job whose seeds an earlier run did not read completely; 0: none */
    bool may_be_empty;  /* the list may be empty, because earlier runs had seeds */
    struct wr_url_list list;
    bool is_listed; /* the list is open */
    bool has_first; /* `first` holds the first URL of the list */
    char first_text[WR_URL_ROOM];
    struct wr_url first;
    uint64_t refused; /* number of rejected lines; owned by the thread while it runs */
    pthread_t thread;
    bool is_running;
    bool is_complete; /* all seeds were passed to the engine */
    struct wr_engine *engine;
};

/* Parses a seed; "example.org" means https://example.org/. Returns NULL, or the reason why it is
 * not a valid seed. */
const char *wr_seed_parse(struct wr_span text, bool allows_private, char *memory, struct wr_url *ret_url);

/* Checks the seeds on the command line and opens the list. Without other seeds it also finds the
 * first URL of the list. Returns false after printing an error. */
bool wr_seeds_open(struct wr_seeds *seeds);

/* Reports that an earlier run did not read all seeds of the job, and what to do. */
void wr_seeds_complain_unread(const struct wr_seeds *seeds);

/* Calls `take` for each seed in this thread. Returns false after printing an error. */
bool wr_seeds_each(struct wr_seeds *seeds, void (*take)(void *context, const struct wr_url *url), void *context);

/* Starts a thread that passes the seeds to the engine. Returns false after printing an error. */
bool wr_seeds_start(struct wr_seeds *seeds, struct wr_engine *engine);

/* Stops reading and waits for the thread. */
void wr_seeds_close(struct wr_seeds *seeds);

#endif
