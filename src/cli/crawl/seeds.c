/* SPDX-License-Identifier: MIT */
/* seeds.c - reads the seeds of a crawl and passes them to the engine. */
#include "cli/crawl/seeds.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/kit/console.h"
#include "cli/kit/given_url.h"
#include "cli/kit/signals.h"
#include "http/net/idna.h"

#define REFUSALS_SHOWN 20
#define SHOWN_MAX 200 /* maximum bytes of a URL in an error message */

static atomic_bool is_unwanted; /* set at the end of the crawl; ends the reading of a list */

static bool reading_is_over(void)
{
    return atomic_load(&is_unwanted) || wr_signals_count() > 0;
}

/* ---- one seed ---- */

/* Returns true if the host is a private address or localhost. No name lookup is needed to refuse
 * such a URL. */
static bool is_private_host(const struct wr_url *url)
{
    struct wr_span host = wr_url_host(url);
    struct wr_address address;
    if (wr_address_parse_peer(host, &address))
        return wr_guard_class(&address) != WR_GUARD_PUBLIC;
    return wr_span_is(host, "localhost");
}

const char *wr_seed_parse(struct wr_span text, bool allows_private, char *memory, struct wr_url *ret_url)
{
    char longer[WR_URL_ROOM];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, longer, sizeof longer);
    if (wr_given_lacks_scheme(text)) {
        wr_buf_append_string(&buf, "https://");
        wr_buf_append_span(&buf, text);
        text = buf.error == 0 ? wr_buf_from(&buf, 0) : text;
    }
    enum wr_url_fault fault = wr_url_parse(text, NULL, wr_idna_libidn2(), memory, WR_URL_ROOM, ret_url);
    if (fault != WR_URL_OK)
        return wr_url_fault_text(fault);
    if (wr_url_has_userinfo(ret_url))
        return "it contains a user name; use --header \"Authorization: …\" instead";
    if (!allows_private && is_private_host(ret_url))
        return "it is on this machine or a private network; --allow-private allows that";
    return NULL;
}

/* ---- before the crawl ---- */

static bool check_given_urls(const struct wr_seeds *seeds)
{
    char memory[WR_URL_ROOM], shown[SHOWN_MAX];
    struct wr_url url;
    for (size_t i = 0; i < seeds->given_count; i++) {
        struct wr_span seed = wr_span_of(seeds->given[i]);
        const char *why = wr_seed_parse(seed, seeds->allows_private, memory, &url);
        if (why != NULL) {
            wr_url_redact_invalid(seed, shown, sizeof shown);
            wr_complain("\"%s\" is not a valid seed URL: %s", shown, why);
            return false;
        }
    }
    return true;
}

static void refuse_seed_line(struct wr_seeds *seeds, struct wr_span text, const char *why)
{
    char shown[SHOWN_MAX];
    seeds->refused++;
    wr_url_redact_invalid(text, shown, sizeof shown);
    if (seeds->refused <= REFUSALS_SHOWN)
        wr_screen_say(seeds->screen, "%s, line %" PRIu64 ": \"%s\" is skipped: %s", seeds->list.name, seeds->list.line,
                      shown, why);
    if (seeds->refused == REFUSALS_SHOWN)
        wr_screen_say(seeds->screen, "%s: further lines that are not URLs are only counted", seeds->list.name);
}

/* Finds the next line that is a valid URL; reports and counts the lines before it. */
static bool next_listed_url(struct wr_seeds *seeds, char *memory, struct wr_url *ret_url)
{
    struct wr_span text;
    while (wr_url_list_next(&seeds->list, &text)) {
        const char *why = wr_seed_parse(text, seeds->allows_private, memory, ret_url);
        if (why == NULL)
            return true;
        refuse_seed_line(seeds, text, why);
    }
    return false;
}

void wr_seeds_complain_unread(const struct wr_seeds *seeds)
{
    wr_complain("job %lld stopped before it had read all its seeds, and %s has none now: give them again (known ones "
                "count once), or continue without the rest: --seeds-file /dev/null",
                (long long)seeds->unread_job, strcmp(seeds->file, "-") == 0 ? "standard input" : seeds->file);
}

bool wr_seeds_open(struct wr_seeds *seeds)
{
    if (!check_given_urls(seeds))
        return false;
    if (seeds->file == NULL)
        return true;
    if (seeds->unread_job > 0 && strcmp(seeds->file, "-") != 0 && access(seeds->file, F_OK) != 0) {
        wr_seeds_complain_unread(seeds);
        return false;
    }
    if (!wr_url_list_open(&seeds->list, seeds->file))
        return false;
    seeds->is_listed = true;
    if (seeds->given_count > 0 || seeds->may_be_empty)
        return true;
    seeds->has_first = next_listed_url(seeds, seeds->first_text, &seeds->first);
    if (seeds->has_first || seeds->list.has_failed)
        return seeds->has_first;
    if (seeds->unread_job > 0)
        wr_seeds_complain_unread(seeds);
    else
        wr_complain("there is no URL in %s; give some, one on each line%s", seeds->list.name,
                    seeds->list.fd == STDIN_FILENO ? ", or as arguments: weir crawl example.org" : "");
    return false;
}

bool wr_seeds_each(struct wr_seeds *seeds, void (*take)(void *context, const struct wr_url *url), void *context)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    for (size_t i = 0; i < seeds->given_count; i++)
        /* The seed was already checked. */
        if (wr_seed_parse(wr_span_of(seeds->given[i]), true, memory, &url) == NULL)
            take(context, &url);
    if (seeds->has_first)
        take(context, &seeds->first);
    while (seeds->is_listed && next_listed_url(seeds, memory, &url))
        take(context, &url);
    return !seeds->is_listed || !seeds->list.has_failed;
}

/* ---- during the crawl ---- */

static bool seed_engine(struct wr_seeds *seeds, const struct wr_url *url)
{
    int error = wr_engine_add_seed(seeds->engine, url);
    if (error != 0 && error != WEIR_E_CLOSED)
        wr_screen_say(seeds->screen, "cannot add the seed %s: %s", url->text,
                      error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
    if (error == WEIR_E_INVAL)
        seeds->refused++;
    return error == 0 || error == WEIR_E_INVAL;
}

static bool seed_given_urls(struct wr_seeds *seeds)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    for (size_t i = 0; i < seeds->given_count; i++) {
        /* The seed was already checked. */
        const char *why = wr_seed_parse(wr_span_of(seeds->given[i]), true, memory, &url);
        if (reading_is_over() || why != NULL || !seed_engine(seeds, &url))
            return false;
    }
    return true;
}

static bool seed_listed_urls(struct wr_seeds *seeds)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (!seeds->is_listed)
        return true;
    seeds->list.is_over = reading_is_over;
    if (seeds->has_first && !seed_engine(seeds, &seeds->first))
        return false;
    while (next_listed_url(seeds, memory, &url))
        if (!seed_engine(seeds, &url))
            return false;
    return !seeds->list.has_failed && !reading_is_over();
}

/* Passes all seeds to the engine. If the list cannot be read to its end the job stays unfinished,
 * so that a resumed crawl reads the list from the beginning. */
static void *run_seeding(void *context)
{
    struct wr_seeds *seeds = context;
    int taken = seeds->has_earlier ? wr_engine_add_recrawl_seeds(seeds->engine) : 0;
    if (taken != 0 && taken != WEIR_E_CLOSED)
        wr_complain("the earlier job could not be read: %s", wr_error_message(taken));
    seeds->is_complete = taken == 0 && seed_given_urls(seeds) && seed_listed_urls(seeds);
    int error = seeds->is_complete ? wr_engine_end_seeds(seeds->engine) : WEIR_E_CLOSED;
    if (error != 0 && error != WEIR_E_CLOSED)
        wr_complain("the seeds could not be added: %s", weir_error_text(error));
    if (error != 0)
        wr_engine_drain(seeds->engine);
    return NULL;
}

bool wr_seeds_start(struct wr_seeds *seeds, struct wr_engine *engine)
{
    seeds->engine = engine;
    int error = pthread_create(&seeds->thread, NULL, run_seeding, seeds);
    seeds->is_running = error == 0;
    if (error != 0)
        wr_complain("cannot start a thread: %s", strerror(error));
    return error == 0;
}

void wr_seeds_close(struct wr_seeds *seeds)
{
    atomic_store(&is_unwanted, true);
    if (seeds->is_running)
        (void)pthread_join(seeds->thread, NULL);
    if (seeds->is_listed)
        (void)wr_url_list_close(&seeds->list);
    seeds->is_running = seeds->is_listed = false;
}
