/* SPDX-License-Identifier: MIT */
/* post.c - posts the outcome of a page to store and output at once: its end, its URLs and its line.
 *
 * One post has all of them, so all are stored or none. Lines are in the file in the order of posts:
 * one lock is held from finding the place of a line until it is posted.
 */
#include "base/alloc.h"
#include "shell/engine/state.h"

#include "base/error.h"
#include "shell/loop/away.h"
#include "shell/loop/round.h"

/* URLs for another loop, which gets them when the store has said which are new. */
struct wr_news {
    struct wr_letter letter;
    struct wr_news *next; /* next batch of the same post */
    struct wr_engine *engine;
    struct wr_crawl_loop *to;
    struct wr_founds founds;
    bool are_seeds;
};

static void free_news(struct wr_letter *letter)
{
    struct wr_news *news = (struct wr_news *)(void *)letter;
    const weir_allocator *allocator = news->engine->allocator;
    wr_founds_release(&news->founds);
    wr_give(allocator, news, sizeof *news, _Alignof(struct wr_news));
}

static void read_news(struct wr_crawl_loop *loop, struct wr_letter *letter)
{
    struct wr_news *news = (struct wr_news *)(void *)letter;
    wr_flight_carry(loop, &news->founds, news->are_seeds);
    free_news(letter);
}

static struct wr_news *make_news(struct wr_engine *engine, struct wr_crawl_loop *to, struct wr_news *next)
{
    struct wr_news *news = wr_take(engine->allocator, sizeof *news, _Alignof(struct wr_news));
    if (news == NULL)
        return NULL;
    news->letter.read = read_news;
    news->letter.drop = free_news;
    news->engine = engine;
    news->to = to;
    news->next = next;
    wr_founds_init(&news->founds, engine->allocator);
    return news;
}

static void free_all_news(struct wr_news *news)
{
    while (news != NULL) {
        struct wr_news *next = news->next;
        free_news(&news->letter);
        news = next;
    }
}

int wr_news_send_seeds(struct wr_engine *engine, uint32_t index, struct wr_founds *founds)
{
    struct wr_news *news = make_news(engine, &engine->loops[index], NULL);
    if (news == NULL)
        return WEIR_E_NOMEM;
    struct wr_founds empty = news->founds;
    news->founds = *founds;
    *founds = empty;
    news->are_seeds = true;
    (void)atomic_fetch_add(&engine->seeding, 1);
    wr_letter_send(news->to, &news->letter);
    return 0;
}

/* ---- after the commit ---- */

/* Keeps only the URLs that are new. Returns how many exceeded a page limit. */
static uint64_t keep_new(struct wr_founds *founds)
{
    size_t kept = 0;
    uint64_t beyond = 0;
    for (size_t i = 0; i < founds->count; i++) {
        beyond += founds->list[i].is_beyond;
        if (founds->list[i].is_new)
            founds->list[kept++] = founds->list[i];
    }
    founds->count = kept;
    return beyond;
}

static void on_asked(void *context, int error, const char *why)
{
    struct wr_news *news = context;
    struct wr_engine *engine = news->engine;
    while (news != NULL) {
        struct wr_news *next = news->next;
        (void)atomic_fetch_add(&engine->beyond, keep_new(&news->founds));
        if (error == 0 && news->founds.count > 0)
            wr_letter_send(news->to, &news->letter);
        else
            free_news(&news->letter);
        news = next;
    }
    wr_on_stored(engine, error, why);
}

static void on_leased(void *context, int error, const char *why)
{
    struct wr_leased_line *line = context;
    struct wr_engine *engine = line->engine;
    struct wr_news *news = line->news;
    (void)pthread_mutex_lock(&engine->output.lock);
    wr_list_take(&line->link);
    (void)pthread_mutex_unlock(&engine->output.lock);
    wr_give(engine->allocator, line, sizeof *line, _Alignof(struct wr_leased_line));
    if (news != NULL)
        on_asked(news, error, why);
    else
        wr_on_stored(engine, error, why);
}

/* ---- one post ---- */

struct post {
    struct wr_crawl_loop *loop;
    struct wr_flight *flight;
    struct wr_news *news;
    struct wr_leased_line *leased; /* line that may be refused; NULL: none */
    size_t count;                  /* used elements of loop->changes */
};

static bool reserve(struct wr_crawl_loop *loop, size_t count)
{
    const weir_allocator *allocator = loop->engine->allocator;
    if (count <= loop->changes_room)
        return true;
    size_t each = sizeof *loop->changes, room = 2 * count;
    struct wr_store_change *changes = wr_take_array(allocator, room, each, _Alignof(struct wr_store_change));
    if (changes == NULL)
        return false;
    wr_give(allocator, loop->changes, loop->changes_room * each, _Alignof(struct wr_store_change));
    loop->changes = changes;
    loop->changes_room = room;
    return true;
}

static struct wr_news *news_for(struct post *post, struct wr_span key)
{
    struct wr_engine *engine = post->loop->engine;
    struct wr_crawl_loop *to = &engine->loops[wr_engine_loop_of(engine, key)];
    for (struct wr_news *news = post->news; news != NULL; news = news->next)
        if (news->to == to)
            return news;
    struct wr_news *news = make_news(engine, to, post->news);
    if (news != NULL)
        post->news = news;
    return news;
}

/* Copies URLs that the store is asked about into messages, which are sent when it has answered. */
static bool copy_asked(struct post *post)
{
    struct wr_founds *founds = &post->flight->founds;
    for (size_t i = 0; i < founds->count; i++) {
        struct wr_found *found = &founds->list[i];
        if (!found->asks || found->is_stored)
            continue;
        struct wr_news *news = news_for(post, wr_found_key(founds, found));
        struct wr_found copy = *found;
        copy.is_stored = true;
        copy.verdict = WR_OFFER_LATER;
        if (news == NULL || !wr_founds_copy(&news->founds, founds, found, &copy))
            return false;
    }
    return true;
}

/* Returns where the store's answer about a URL goes. Filled messages do not move any more. */
static struct wr_found *answer_of(struct post *post, const struct wr_founds *founds, const struct wr_found *found,
                                  size_t taken[WR_LOOPS_MAX])
{
    struct wr_news *news = news_for(post, wr_found_key(founds, found));
    return news != NULL ? &news->founds.list[taken[news->to->index]++] : NULL;
}

/* Returns the parent of a URL. In a batch it is the one that an earlier job knew; 0 for seeds. */
static uint64_t parent_of(const struct wr_flight *flight, const struct wr_found *found)
{
    if (flight->action.kind == WR_PLAN_IDLE || found->is_sitemap)
        return found->parent;
    return found->is_seed && found->hops == 0 ? 0 : flight->action.fingerprint;
}

static void add_changed(struct post *post, const struct wr_found *found)
{
    post->loop->changes[post->count++] = (struct wr_store_change){.kind = WR_STORE_CHANGED,
                                                                  .changed = {.job = post->loop->engine->job,
                                                                              .fingerprint = found->fingerprint,
                                                                              .wall_at = found->changed_wall_at}};
}

static void add_founds(struct post *post)
{
    size_t taken[WR_LOOPS_MAX] = {0};
    struct wr_crawl_loop *loop = post->loop;
    const struct wr_founds *founds = &post->flight->founds;
    for (size_t i = 0; i < founds->count; i++) {
        const struct wr_found *found = &founds->list[i];
        if (found->verdict == WR_OFFER_KNOWN) {
            add_changed(post, found);
            continue;
        }
        struct wr_store_change *change = &loop->changes[post->count++];
        if (found->is_stored) {
            *change = (struct wr_store_change){.kind = WR_STORE_ENDED,
                                               .ended = {.job = loop->engine->job,
                                                         .fingerprint = found->fingerprint,
                                                         .failed = true,
                                                         .verdict = wr_span_of(wr_offer_name(found->verdict))}};
            continue;
        }
        struct wr_found *answer = found->asks ? answer_of(post, founds, found, taken) : NULL;
        *change = (struct wr_store_change){
            .kind = WR_STORE_FOUND,
            .found = {.job = loop->engine->job,
                      .fingerprint = found->fingerprint,
                      .host = wr_found_key(founds, found),
                      .url = wr_found_url(founds, found),
                      .parent = parent_of(post->flight, found),
                      .depth = found->depth,
                      .hops = found->hops,
                      .bounds = {loop->engine->options.max_pages, loop->engine->options.host_pages},
                      .ret_is_new = answer != NULL ? &answer->is_new : NULL,
                      .ret_is_beyond = answer != NULL ? &answer->is_beyond : NULL}};
        if (found->changed_wall_at > 0)
            add_changed(post, found);
    }
}

/* Returns the line for the store, without its newline; empty if the store keeps no lines. */
static struct wr_span kept_line(const struct wr_flight *flight)
{
    struct wr_span line = wr_buf_from(&flight->line, 0);
    bool is_kept = flight->loop->engine->options.keeps_lines && line.bytes > 1 && line.bytes <= WR_STORE_LINE_MAX;
    return is_kept ? (struct wr_span){line.data, line.bytes - 1} : (struct wr_span){NULL, 0};
}

static void add_end(struct post *post)
{
    const struct wr_flight *flight = post->flight;
    int64_t job = post->loop->engine->job;
    uint64_t fingerprint = flight->action.fingerprint;
    struct wr_store_change *change = &post->loop->changes[post->count++];
    if (flight->is_again)
        *change = (struct wr_store_change){
            .kind = WR_STORE_RETRY,
            .retry = {.job = job,
                      .fingerprint = fingerprint,
                      .attempts = flight->fate.attempts,
                      .status = flight->result.status,
                      .not_before_wall_at = weir_wall_now() + flight->fate.at - wr_crawl_loop_now(post->loop),
                      .lease = flight->lease}};
    else
        *change = (struct wr_store_change){
            .kind = WR_STORE_ENDED,
            .ended = {.job = job,
                      .fingerprint = fingerprint,
                      .failed = wr_verdict_is_failure(flight->verdict),
                      .status = flight->result.status,
                      .attempts = flight->fate.attempts,
                      .bytes = flight->body_bytes,
                      .verdict = wr_span_of(wr_verdict_name(flight->verdict)),
                      .why = wr_buf_from(&flight->words, 0),
                      .visit = flight->visit,
                      .line = kept_line(flight),
                      .lease = flight->lease,
                      .ret_is_refused = post->leased != NULL ? &post->leased->is_refused : NULL}};
}

static int post_now(struct post *post)
{
    struct wr_engine *engine = post->loop->engine;
    if (post->leased != NULL)
        return wr_store_post(engine->store, post->loop->changes, post->count, on_leased, post->leased);
    return post->news != NULL ? wr_store_post(engine->store, post->loop->changes, post->count, on_asked, post->news)
                              : wr_store_post(engine->store, post->loop->changes, post->count, wr_on_stored, engine);
}

static void add_line(struct wr_engine *engine, const struct wr_buf *line)
{
    struct wr_output *output = &engine->output;
    if (output->fd < 0)
        return;
    wr_buf_append(&output->lines, line->bytes, line->length);
    output->end += line->length;
    if (output->lines.error != 0) /* the store counts a line that the output will never have */
        wr_job_over(engine, WR_END_BROKEN, weir_error_text(output->lines.error));
}

/* Posts a page with its line and its record in the archive. */
static int post_with_outputs(struct post *post)
{
    struct wr_engine *engine = post->loop->engine;
    struct wr_output *output = &engine->output;
    struct wr_flight *flight = post->flight;
    struct wr_archive_place place;
    bool has_record = flight->keep.pieces != NULL && flight->keep.pieces->name[0] == '\0';
    int error = 0;
    (void)pthread_mutex_lock(&output->lock);
    if (output->fd >= 0) /* a pipe needs this, too: it makes the store write the lines */
        post->loop->changes[post->count++] = (struct wr_store_change){
            .kind = WR_STORE_OUTPUT,
            .output = {engine->job, wr_span_of(output->path), output->end + flight->line.length}};
    if (has_record)
        error = wr_archive_place(engine, flight, &place, &post->loop->changes[post->count++]);
    if (post->leased != NULL) {
        post->leased->news = post->news;
        post->leased->at = output->end;
        post->leased->bytes = flight->line.length;
        wr_list_push(&output->leased, &post->leased->link);
    }
    if (error == 0) {
        error = post_now(post);
        if (error != 0 && has_record && place.info != NULL)
            wr_piece_free(engine, place.info);
    }
    if (error == 0) {
        add_line(engine, &flight->line);
        wr_archive_take(engine, flight, has_record ? &place : NULL);
    }
    if (error != 0 && post->leased != NULL)
        wr_list_take(&post->leased->link);
    (void)pthread_mutex_unlock(&output->lock);
    return error;
}

/* Prepares a line to be blanked if the host's lease is lost before the commit. Returns false if
 * memory is short. */
static bool make_leased(struct post *post)
{
    struct wr_engine *engine = post->loop->engine;
    const struct wr_flight *flight = post->flight;
    if (flight->lease == 0 || flight->line.length == 0 || engine->output.fd < 0 || flight->action.kind == WR_PLAN_IDLE)
        return true;
    post->leased = wr_take(engine->allocator, sizeof *post->leased, _Alignof(struct wr_leased_line));
    if (post->leased != NULL)
        post->leased->engine = engine;
    return post->leased != NULL;
}

static void give_leased(struct post *post)
{
    if (post->leased != NULL)
        wr_give(post->loop->engine->allocator, post->leased, sizeof *post->leased, _Alignof(struct wr_leased_line));
}

static int try_post(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    struct post post = {.loop = loop, .flight = flight};
    if (!reserve(loop, 2 * flight->founds.count + 3) || !copy_asked(&post) || !make_leased(&post)) {
        free_all_news(post.news);
        return WEIR_E_NOMEM;
    }
    if (flight->action.kind != WR_PLAN_IDLE)
        add_end(&post);
    add_founds(&post);
    if (post.count == 0)
        return 0; /* the fetch has nothing to post, and no line */
    (void)atomic_fetch_add(&loop->engine->posts, 1);
    bool has_line = flight->line.length > 0 && loop->engine->output.fd >= 0;
    int error = has_line || flight->keep.pieces != NULL ? post_with_outputs(&post) : post_now(&post);
    if (error != 0) {
        give_leased(&post);
        free_all_news(post.news);
        wr_posts_done(loop->engine);
    }
    return error;
}

static void forget(struct wr_flight *flight)
{
    wr_referrer_drop(flight->loop, flight->action.fingerprint);
    wr_earlier_drop(flight->loop, flight->action.fingerprint);
}

static void finish(struct wr_flight *flight)
{
    if (flight->action.kind != WR_PLAN_IDLE && !flight->is_again)
        forget(flight);
    wr_flight_give_back(flight);
}

void wr_post_flight(struct wr_flight *flight)
{
    WR_DOING("a post");
    struct wr_crawl_loop *loop = flight->loop;
    wr_founds_judge(loop, &flight->founds);
    /* Pages with pieces do not wait: others may wait for their memory. */
    bool waits = loop->is_stalled && flight->keep.pieces == NULL;
    int error = waits ? WEIR_E_FULL : try_post(flight);
    if (error == WEIR_E_FULL) {
        loop->is_stalled = true;
        wr_flight_move(flight, WR_FLIGHT_POSTS);
        return;
    }
    if (error != 0)
        wr_job_over(loop->engine, WR_END_BROKEN, wr_error_words(error));
    finish(flight);
}

static void try_again(struct wr_crawl_loop *loop, bool waits)
{
    struct wr_share share = wr_share_begin(WR_SHARE_NS);
    struct wr_list_link *link = loop->lists[WR_FLIGHT_POSTS].first;
    while (link != NULL && !loop->is_stalled && wr_share_lasts(&share)) {
        struct wr_flight *flight = WR_LINKED(link, struct wr_flight, link);
        link = link->next;
        if (flight->keep.waits && waits)
            wr_keep_flight(flight);
        else if (!flight->keep.waits && !waits)
            wr_post_flight(flight);
    }
}

/* Retries what waits: first packed pages, because they make room for those to be packed. */
void wr_posts_again(struct wr_crawl_loop *loop)
{
    loop->is_stalled = false;
    try_again(loop, false);
    try_again(loop, true);
    if (loop->lists[WR_FLIGHT_POSTS].first == NULL || loop->is_stalled)
        return;
    loop->is_stalled = true; /* out of time: the rest follows in the next turn, before the plan */
    atomic_store(&loop->has_room, true);
    wr_crawl_loop_wake(loop);
}
