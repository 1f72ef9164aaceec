/* SPDX-License-Identifier: MIT */
/* warm_site.c - finds the pages of a site: robots.txt names sitemaps, or usual paths are tried. One
 * sitemap is read at a time.
 *
 * A sitemap is untrusted input. It may list pages of the site for which it was found. An index may
 * list sitemaps of that site or of its own host; only robots.txt may name sitemaps elsewhere. As
 * for each link, the client decides whether an address may be connected to. A known sitemap is not
 * read a second time, so an index that lists itself ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/warm/warm_operand.h"
#include "cli/warm/warm_state.h"
#include "core/web/robots/robots.h"
#include "http/client/client_extras.h"
#include "http/net/idna.h"
#include "limiter/memory/memory.h"

/* Bytes of text parsed per turn, because other threads wait for the lock. */
#define AT_ONCE ((size_t)64 << 10)

/* ---- sites ---- */

struct wr_warm_site *wr_warm_site_of(struct wr_warm *warm, const struct wr_url *url)
{
    for (struct wr_warm_site *site = warm->sites; site != NULL; site = site->next)
        if (wr_url_same_origin(&site->home, url))
            return site;
    struct wr_warm_site *site = calloc(1, sizeof *site);
    if (site == NULL)
        return NULL;
    if (wr_url_parse(wr_span_of("/"), url, NULL, site->home_text, sizeof site->home_text, &site->home) != WR_URL_OK) {
        free(site);
        return NULL;
    }
    site->warm = warm;
    site->sitemaps_end = &site->sitemaps;
    *warm->sites_end = site;
    warm->sites_end = &site->next;
    return site;
}

bool wr_warm_sitemap_add(struct wr_warm_site *site, const struct wr_url *url, unsigned depth, bool is_guess)
{
    struct wr_warm *warm = site->warm;
    if (wr_map_get(&warm->sitemaps_known, url->text, url->fragment_at) != NULL)
        return true;
    if (warm->sitemaps_known.count >= WR_WARM_SITEMAPS_MAX || depth > WR_WARM_INDEX_DEPTH_MAX) {
        warm->sitemaps_left_out++;
        return true;
    }
    struct wr_warm_sitemap *sitemap = calloc(1, sizeof *sitemap);
    if (sitemap == NULL)
        return false;
    memcpy(sitemap->url, url->text, url->fragment_at);
    sitemap->parsed = *url;
    sitemap->parsed.text = sitemap->url;
    sitemap->parsed.bytes = url->fragment_at;
    sitemap->site = site;
    sitemap->depth = depth;
    sitemap->is_guess = is_guess;
    if (wr_map_put(&warm->sitemaps_known, sitemap->url, url->fragment_at, sitemap, NULL) != 0) {
        free(sitemap);
        return false;
    }
    *site->sitemaps_end = sitemap;
    site->sitemaps_end = &sitemap->next;
    return true;
}

/* Frees sites and sitemaps. Sitemaps that were read exist until here, because their URLs are the
 * keys of `sitemaps_known`. */
void wr_warm_sites_free(struct wr_warm *warm)
{
    const struct wr_map_slot *slot;
    struct wr_warm_site *next;
    for (size_t cursor = 0; (slot = wr_map_next(&warm->sitemaps_known, &cursor)) != NULL;) {
        struct wr_warm_sitemap *sitemap = slot->value;
        wr_sitemap_free(sitemap->reader);
        wr_buf_release(&sitemap->unread);
        free(sitemap);
    }
    wr_map_release(&warm->sitemaps_known);
    for (struct wr_warm_site *site = warm->sites; site != NULL; site = next) {
        next = site->next;
        free(site);
    }
    for (size_t i = 0; i < warm->troubles_count; i++)
        free(warm->troubles[i].url);
}

/* ---- entries ---- */

/* Parses the URL of an entry. Returns false if it is not a valid URL. */
static bool parse_sitemap_entry(const struct wr_warm_sitemap *sitemap, struct wr_span text, char *memory,
                                struct wr_url *ret_url)
{
    return wr_url_parse(text, &sitemap->parsed, wr_idna_libidn2(), memory, WR_URL_ROOM, ret_url) == WR_URL_OK &&
           !wr_url_has_userinfo(ret_url);
}

static bool on_warm_sitemap_entry(void *context, const struct wr_sitemap_entry *entry)
{
    struct wr_warm_sitemap *sitemap = context;
    struct wr_warm_site *site = sitemap->site;
    struct wr_warm *warm = site->warm;
    char memory[WR_URL_ROOM];
    struct wr_url url;
    sitemap->entries++;
    warm->listed += !entry->is_index;
    if (!parse_sitemap_entry(sitemap, entry->url, memory, &url)) {
        *(entry->is_index ? &warm->sitemaps_left_out : &warm->left_out) += 1;
        return true;
    }
    if (entry->is_index) {
        if (wr_warm_is_same_site(&site->home, &url) || wr_warm_is_same_site(&sitemap->parsed, &url))
            return wr_warm_sitemap_add(site, &url, sitemap->depth + 1, false);
        warm->sitemaps_left_out++;
        return true;
    }
    if (wr_warm_is_same_site(&site->home, &url))
        return wr_warm_page_add(warm, site, &url);
    warm->foreign++;
    return true;
}

/* ---- a sitemap ---- */

static bool is_no_answer(const weir_response *response)
{
    return response->status == 0 && response->failure != WEIR_FAILURE_ROBOTS;
}

static void note_sitemap_failure(struct wr_warm *warm, const char *url, const char *why)
{
    warm->sitemaps_failed++;
    if (warm->troubles_count == WR_WARM_FAILURES_MAX)
        return;
    struct wr_warm_sitemap_failure *trouble = &warm->troubles[warm->troubles_count];
    trouble->url = strdup(url);
    snprintf(trouble->why, sizeof trouble->why, "%s", why);
    if (trouble->url != NULL)
        warm->troubles_count++;
}

/* Accepts only 2xx: an error page may look like a list of URLs. */
static bool is_sitemap_status(void *context, int status)
{
    (void)context;
    return status >= 200 && status <= 299;
}

/* Stores received bytes for the main thread. The client's thread must not spend its time on
 * parsing. */
static bool on_sitemap_bytes(void *context, const char *bytes, size_t count)
{
    struct wr_warm_sitemap *sitemap = context;
    struct wr_warm *warm = sitemap->site->warm;
    (void)pthread_mutex_lock(&warm->lock);
    bool goes_on = !warm->is_over && wr_sitemap_wants_more(sitemap->reader);
    if (goes_on)
        wr_buf_append(&sitemap->unread, bytes, count);
    warm->no_memory |= sitemap->unread.error != 0;
    (void)pthread_cond_signal(&warm->changed);
    (void)pthread_mutex_unlock(&warm->lock);
    return goes_on;
}

/* Returns why a sitemap failed; NULL if it was read. */
static const char *sitemap_fault(const struct wr_warm_sitemap *sitemap, const weir_response *response, char *memory,
                                 size_t room)
{
    enum wr_sitemap_end end = wr_sitemap_finish(sitemap->reader);
    if (response->failure != WEIR_FAILURE_NONE)
        snprintf(memory, room, "%s", response->detail);
    else if (!is_sitemap_status(NULL, response->status))
        snprintf(memory, room, "the answer is %d", response->status);
    else if (end == WR_SITEMAP_COMPLETE || end == WR_SITEMAP_STOPPED)
        return NULL;
    else
        snprintf(memory, room, "%s", wr_sitemap_end_text(end));
    return memory;
}

static void on_sitemap_response(void *context, weir_response *response)
{
    struct wr_warm_sitemap *sitemap = context;
    struct wr_warm *warm = sitemap->site->warm;
    (void)pthread_mutex_lock(&warm->lock);
    sitemap->answer = response;
    (void)pthread_cond_signal(&warm->changed);
    (void)pthread_mutex_unlock(&warm->lock);
}

static void end_sitemap(struct wr_warm_sitemap *sitemap)
{
    struct wr_warm_site *site = sitemap->site;
    struct wr_warm *warm = site->warm;
    weir_response *response = sitemap->answer;
    char memory[200];
    const char *fault = sitemap_fault(sitemap, response, memory, sizeof memory);
    warm->left_out += wr_sitemap_counts(sitemap->reader)->left_out;
    wr_sitemap_free(sitemap->reader);
    wr_buf_release(&sitemap->unread);
    sitemap->reader = NULL;
    sitemap->answer = NULL;
    site->is_unreachable |= is_no_answer(response);
    if (fault == NULL || sitemap->entries > 0) {
        site->has_listed = true;
        warm->sitemaps_read++;
    }
    if (fault != NULL && !(sitemap->is_guess && sitemap->entries == 0) && !warm->is_over)
        note_sitemap_failure(warm, sitemap->url, fault);
    site->current = NULL;
    site->is_reading = false;
    warm->under_way--;
    weir_response_free(response);
}

/* Parses a part of the received bytes, because a few KB may expand to megabytes of entries. Returns
 * true if there is more to parse. */
bool wr_warm_site_parse_some(struct wr_warm_site *site)
{
    struct wr_warm_sitemap *sitemap = site->current;
    if (sitemap == NULL)
        return false;
    struct wr_span rest = wr_buf_from(&sitemap->unread, sitemap->read_bytes);
    if (rest.bytes > 0 && !site->warm->is_over)
        sitemap->read_bytes += wr_sitemap_push_limited(sitemap->reader, rest.data, rest.bytes, AT_ONCE);
    bool is_read = sitemap->read_bytes == sitemap->unread.length || !wr_sitemap_wants_more(sitemap->reader);
    if (is_read) {
        wr_buf_clear(&sitemap->unread);
        sitemap->read_bytes = 0;
    }
    if ((is_read || site->warm->is_over) && sitemap->answer != NULL)
        end_sitemap(sitemap);
    return !is_read;
}

static int request_sitemap(struct wr_warm_sitemap *sitemap)
{
    struct wr_warm *warm = sitemap->site->warm;
    weir_fetch_options how;
    struct wr_sitemap_options reading = {.found = on_warm_sitemap_entry, .context = sitemap};
    int error = wr_sitemap_new(&reading, &sitemap->reader);
    if (error != 0)
        return error;
    wr_buf_init(&sitemap->unread, wr_allocator_or_system(NULL), (size_t)WR_SITEMAP_BYTES_MAX + 1);
    weir_fetch_options_init(&how);
    how.max_body_bytes = WR_SITEMAP_BYTES_MAX + 1;
    how.headers = wr_url_same_origin(&sitemap->site->home, &sitemap->parsed) ? NULL : warm->omitted;
    how.on_body = on_sitemap_bytes;
    how.on_status = is_sitemap_status;
    how.context = sitemap;
    how.attempts = sitemap->is_guess || warm->settings->pace.attempts == 1 ? 1 : 0;
    return weir_client_fetch_async(warm->client, sitemap->url, &how, on_sitemap_response, sitemap, NULL);
}

/* ---- robots.txt ---- */

/* Adds the sitemaps that robots.txt names. They may be on any host, because the site declares them
 * its own. */
static void add_robots_sitemaps(struct wr_warm_site *site, const weir_response *response)
{
    struct wr_robots_options how = {.agent = wr_span_of("weir"), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    struct wr_span text = {response->body, response->body_bytes};
    char memory[WR_URL_ROOM];
    struct wr_robots *robots;
    struct wr_url url;
    if (wr_robots_parse(text, &how, wr_allocator_or_system(NULL), &robots) != 0)
        return;
    for (uint32_t i = 0; i < wr_robots_facts(robots)->sitemaps; i++) {
        enum wr_url_fault fault =
            wr_url_parse(wr_robots_sitemap(robots, i), &site->home, wr_idna_libidn2(), memory, sizeof memory, &url);
        if (fault == WR_URL_OK && !wr_url_has_userinfo(&url))
            (void)wr_warm_sitemap_add(site, &url, 0, false);
        else
            site->warm->sitemaps_left_out++;
    }
    wr_robots_free(robots);
}

static void on_site_robots(void *context, weir_response *response)
{
    struct wr_warm_site *site = context;
    struct wr_warm *warm = site->warm;
    wr_client_set_robots(warm->client, site->home.text, response);
    (void)pthread_mutex_lock(&warm->lock);
    if (response->failure == WEIR_FAILURE_NONE && response->status >= 200 && response->status <= 299)
        add_robots_sitemaps(site, response);
    site->is_unreachable = is_no_answer(response);
    site->is_reading = false;
    warm->under_way--;
    (void)pthread_cond_signal(&warm->changed);
    (void)pthread_mutex_unlock(&warm->lock);
    weir_response_free(response);
}

static int request_site_robots(struct wr_warm_site *site)
{
    char memory[WR_URL_ROOM];
    struct wr_buf url;
    weir_fetch_options how;
    wr_buf_init_fixed(&url, memory, sizeof memory);
    wr_url_append_robots(&url, &site->home);
    weir_fetch_options_init(&how);
    how.headers = site->warm->omitted;
    how.ignore_robots = true; /* robots.txt itself may always be fetched */
    how.max_body_bytes = WR_ROBOTS_MAX + 1;
    site->wants_robots = false;
    return weir_client_fetch_async(site->warm->client, memory, &how, on_site_robots, site, NULL);
}

/* ---- next request ---- */

bool wr_warm_site_is_read(const struct wr_warm_site *site)
{
    bool may_guess = site->wants_guesses && !site->has_listed && !site->is_unreachable &&
                     wr_warm_usual_sitemaps[site->place] != NULL;
    return site->warm->is_full || (!site->is_reading && !site->wants_robots && site->sitemaps == NULL && !may_guess);
}

static void add_usual_sitemap(struct wr_warm_site *site)
{
    char memory[WR_URL_ROOM];
    struct wr_url url;
    if (wr_url_parse(wr_span_of(wr_warm_usual_sitemaps[site->place++]), &site->home, NULL, memory, sizeof memory,
                     &url) == WR_URL_OK)
        (void)wr_warm_sitemap_add(site, &url, 0, true);
}

static struct wr_warm_sitemap *take_sitemap(struct wr_warm_site *site)
{
    struct wr_warm_sitemap *sitemap = site->sitemaps;
    if (sitemap == NULL)
        return NULL;
    site->sitemaps = sitemap->next;
    if (site->sitemaps == NULL)
        site->sitemaps_end = &site->sitemaps;
    return sitemap;
}

void wr_warm_site_request_next(struct wr_warm_site *site)
{
    struct wr_warm *warm = site->warm;
    int error = 0;
    if (site->is_reading || wr_warm_site_is_read(site))
        return;
    if (site->wants_robots) {
        error = request_site_robots(site);
    } else {
        if (site->sitemaps == NULL)
            add_usual_sitemap(site);
        struct wr_warm_sitemap *sitemap = take_sitemap(site);
        if (sitemap == NULL) /* the guessed sitemap was known already */
            return;
        site->current = sitemap; /* set before the request, whose response may arrive at once */
        error = request_sitemap(sitemap);
        if (error != 0)
            site->current = NULL;
    }
    if (error == 0) {
        site->is_reading = true;
        warm->under_way++;
    } else if (error != WEIR_E_CLOSED) {
        note_sitemap_failure(warm, site->home.text,
                             error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
    }
}
