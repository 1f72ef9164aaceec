/* SPDX-License-Identifier: MIT */
/* page_post.c - posts the outcome of a page to store and output at once: its end, its URLs and its
 * line.
 *
 * One post has all of them, so all are stored or none. Lines are in the file in the order of posts:
 * one lock is held from finding the place of a line until it is posted.
 */
#include "base/alloc.h"
#include "crawl/engine/engine_state.h"

#include "base/error.h"
#include "http/loop/round.h"
#include "http/loop/watchdog.h"

/* URLs for another loop, which gets them when the store has said which are new. */
struct wr_url_message {
    struct wr_loop_message message;
    struct wr_url_message *next; /* next batch of the same post */
    struct wr_engine *engine;
    struct wr_crawl_loop *to;
    struct wr_url_batch urls;
    bool are_seeds;
};

static void free_url_message(struct wr_loop_message *message)
{
    struct wr_url_message *url_message = (struct wr_url_message *)(void *)message;
    const weir_allocator *allocator = url_message->engine->allocator;
    wr_url_batch_release(&url_message->urls);
    wr_free(allocator, url_message, sizeof *url_message, _Alignof(struct wr_url_message));
}

static void read_url_message(struct wr_crawl_loop *loop, struct wr_loop_message *message)
{
    struct wr_url_message *url_message = (struct wr_url_message *)(void *)message;
    wr_crawl_fetch_post_urls(loop, &url_message->urls, url_message->are_seeds);
    free_url_message(message);
}

static struct wr_url_message *make_url_message(struct wr_engine *engine, struct wr_crawl_loop *to,
                                               struct wr_url_message *next)
{
    struct wr_url_message *url_message =
        wr_alloc(engine->allocator, sizeof *url_message, _Alignof(struct wr_url_message));
    if (url_message == NULL)
        return NULL;
    url_message->message.read = read_url_message;
    url_message->message.drop = free_url_message;
    url_message->engine = engine;
    url_message->to = to;
    url_message->next = next;
    wr_url_batch_init(&url_message->urls, engine->allocator);
    return url_message;
}

static void free_url_messages(struct wr_url_message *url_message)
{
    while (url_message != NULL) {
        struct wr_url_message *next = url_message->next;
        free_url_message(&url_message->message);
        url_message = next;
    }
}

int wr_url_message_send_seeds(struct wr_engine *engine, uint32_t index, struct wr_url_batch *urls)
{
    struct wr_url_message *url_message = make_url_message(engine, &engine->loops[index], NULL);
    if (url_message == NULL)
        return WEIR_E_NOMEM;
    struct wr_url_batch empty = url_message->urls;
    url_message->urls = *urls;
    *urls = empty;
    url_message->are_seeds = true;
    (void)atomic_fetch_add(&engine->seeding, 1);
    wr_loop_message_send(url_message->to, &url_message->message);
    return 0;
}

/* ---- after the commit ---- */

/* Keeps only the URLs that are new. Returns how many exceeded a page limit. */
static uint64_t keep_new_urls(struct wr_url_batch *urls)
{
    size_t kept = 0;
    uint64_t beyond = 0;
    for (size_t i = 0; i < urls->count; i++) {
        beyond += urls->list[i].is_beyond;
        if (urls->list[i].is_new)
            urls->list[kept++] = urls->list[i];
    }
    urls->count = kept;
    return beyond;
}

static void on_urls_stored(void *context, int error, const char *why)
{
    struct wr_url_message *url_message = context;
    struct wr_engine *engine = url_message->engine;
    while (url_message != NULL) {
        struct wr_url_message *next = url_message->next;
        (void)atomic_fetch_add(&engine->beyond, keep_new_urls(&url_message->urls));
        if (error == 0 && url_message->urls.count > 0)
            wr_loop_message_send(url_message->to, &url_message->message);
        else
            free_url_message(&url_message->message);
        url_message = next;
    }
    wr_job_on_stored(engine, error, why);
}

static void on_leased_line_stored(void *context, int error, const char *why)
{
    struct wr_leased_line *line = context;
    struct wr_engine *engine = line->engine;
    struct wr_url_message *url_message = line->url_message;
    (void)pthread_mutex_lock(&engine->output.lock);
    wr_list_remove(&line->link);
    (void)pthread_mutex_unlock(&engine->output.lock);
    wr_free(engine->allocator, line, sizeof *line, _Alignof(struct wr_leased_line));
    if (url_message != NULL)
        on_urls_stored(url_message, error, why);
    else
        wr_job_on_stored(engine, error, why);
}

/* ---- one post ---- */

struct page_post {
    struct wr_crawl_loop *loop;
    struct wr_crawl_fetch *fetch;
    struct wr_url_message *url_message;
    struct wr_leased_line *leased; /* line that may be refused; NULL: none */
    size_t count;                  /* used elements of loop->changes */
};

static bool reserve_changes(struct wr_crawl_loop *loop, size_t count)
{
    const weir_allocator *allocator = loop->engine->allocator;
    if (count <= loop->changes_room)
        return true;
    size_t each = sizeof *loop->changes, room = 2 * count;
    struct wr_store_change *changes = wr_alloc_array(allocator, room, each, _Alignof(struct wr_store_change));
    if (changes == NULL)
        return false;
    wr_free(allocator, loop->changes, loop->changes_room * each, _Alignof(struct wr_store_change));
    loop->changes = changes;
    loop->changes_room = room;
    return true;
}

static struct wr_url_message *url_message_for(struct page_post *post, struct wr_span key)
{
    struct wr_engine *engine = post->loop->engine;
    struct wr_crawl_loop *to = &engine->loops[wr_engine_loop_of(engine, key)];
    for (struct wr_url_message *url_message = post->url_message; url_message != NULL; url_message = url_message->next)
        if (url_message->to == to)
            return url_message;
    struct wr_url_message *url_message = make_url_message(engine, to, post->url_message);
    if (url_message != NULL)
        post->url_message = url_message;
    return url_message;
}

/* Copies URLs that the store is asked about into messages, which are sent when it has answered. */
static bool copy_asked_urls(struct page_post *post)
{
    struct wr_url_batch *urls = &post->fetch->urls;
    for (size_t i = 0; i < urls->count; i++) {
        struct wr_url_batch_entry *found = &urls->list[i];
        if (!found->asks || found->is_stored)
            continue;
        struct wr_url_message *url_message = url_message_for(post, wr_url_batch_key(urls, found));
        struct wr_url_batch_entry copy = *found;
        copy.is_stored = true;
        copy.verdict = WR_ADD_URL_LATER;
        if (url_message == NULL || !wr_url_batch_add_copy(&url_message->urls, urls, found, &copy))
            return false;
    }
    return true;
}

/* Returns where the store's answer about a URL goes. Filled messages do not move any more. */
static struct wr_url_batch_entry *answer_place_of(struct page_post *post, const struct wr_url_batch *urls,
                                                  const struct wr_url_batch_entry *found, size_t taken[WR_LOOPS_MAX])
{
    struct wr_url_message *url_message = url_message_for(post, wr_url_batch_key(urls, found));
    return url_message != NULL ? &url_message->urls.list[taken[url_message->to->index]++] : NULL;
}

/* Returns the parent of a URL. In a batch it is the one that an earlier job knew; 0 for seeds. */
static uint64_t parent_of_url(const struct wr_crawl_fetch *fetch, const struct wr_url_batch_entry *found)
{
    if (fetch->action.kind == WR_PLAN_IDLE || found->is_sitemap)
        return found->parent;
    return found->is_seed && found->hops == 0 ? 0 : fetch->action.fingerprint;
}

static void add_change_time(struct page_post *post, const struct wr_url_batch_entry *found)
{
    post->loop->changes[post->count++] = (struct wr_store_change){.kind = WR_STORE_PAGE_CHANGED,
                                                                  .changed = {.job = post->loop->engine->job,
                                                                              .fingerprint = found->fingerprint,
                                                                              .wall_at = found->changed_wall_at}};
}

static void add_urls(struct page_post *post)
{
    size_t taken[WR_LOOPS_MAX] = {0};
    struct wr_crawl_loop *loop = post->loop;
    const struct wr_url_batch *urls = &post->fetch->urls;
    for (size_t i = 0; i < urls->count; i++) {
        const struct wr_url_batch_entry *found = &urls->list[i];
        if (found->verdict == WR_ADD_URL_KNOWN) {
            add_change_time(post, found);
            continue;
        }
        struct wr_store_change *change = &loop->changes[post->count++];
        if (found->is_stored) {
            *change =
                (struct wr_store_change){.kind = WR_STORE_TASK_ENDED,
                                         .ended = {.job = loop->engine->job,
                                                   .fingerprint = found->fingerprint,
                                                   .failed = true,
                                                   .verdict = wr_span_of(wr_add_url_verdict_name(found->verdict))}};
            continue;
        }
        struct wr_url_batch_entry *answer = found->asks ? answer_place_of(post, urls, found, taken) : NULL;
        *change = (struct wr_store_change){
            .kind = WR_STORE_TASK_FOUND,
            .found = {.job = loop->engine->job,
                      .fingerprint = found->fingerprint,
                      .host = wr_url_batch_key(urls, found),
                      .url = wr_url_batch_url(urls, found),
                      .parent = parent_of_url(post->fetch, found),
                      .depth = found->depth,
                      .hops = found->hops,
                      .bounds = {loop->engine->options.max_pages, loop->engine->options.host_pages},
                      .ret_is_new = answer != NULL ? &answer->is_new : NULL,
                      .ret_is_over_limit = answer != NULL ? &answer->is_beyond : NULL}};
        if (found->changed_wall_at > 0)
            add_change_time(post, found);
    }
}

/* Returns the line for the store, without its newline; empty if the store keeps no lines. */
static struct wr_span line_for_store(const struct wr_crawl_fetch *fetch)
{
    struct wr_span line = wr_buf_from(&fetch->line, 0);
    bool is_kept = fetch->loop->engine->options.keeps_lines && line.bytes > 1 && line.bytes <= WR_STORE_LINE_MAX;
    return is_kept ? (struct wr_span){line.data, line.bytes - 1} : (struct wr_span){NULL, 0};
}

static void add_task_end(struct page_post *post)
{
    const struct wr_crawl_fetch *fetch = post->fetch;
    int64_t job = post->loop->engine->job;
    uint64_t fingerprint = fetch->action.fingerprint;
    struct wr_store_change *change = &post->loop->changes[post->count++];
    if (fetch->is_again)
        *change = (struct wr_store_change){
            .kind = WR_STORE_TASK_RETRY,
            .retry = {.job = job,
                      .fingerprint = fingerprint,
                      .attempts = fetch->fate.attempts,
                      .status = fetch->result.status,
                      .not_before_wall_at = weir_wall_now() + fetch->fate.at - wr_crawl_loop_now(post->loop),
                      .lease = fetch->lease}};
    else
        *change = (struct wr_store_change){
            .kind = WR_STORE_TASK_ENDED,
            .ended = {.job = job,
                      .fingerprint = fingerprint,
                      .failed = wr_page_verdict_is_failure(fetch->verdict),
                      .status = fetch->result.status,
                      .attempts = fetch->fate.attempts,
                      .bytes = fetch->body_bytes,
                      .verdict = wr_span_of(wr_page_verdict_name(fetch->verdict)),
                      .why = wr_buf_from(&fetch->words, 0),
                      .visit = fetch->visit,
                      .line = line_for_store(fetch),
                      .lease = fetch->lease,
                      .ret_is_refused = post->leased != NULL ? &post->leased->is_refused : NULL}};
}

static int post_page_changes(struct page_post *post)
{
    struct wr_engine *engine = post->loop->engine;
    if (post->leased != NULL)
        return wr_store_post(engine->store, post->loop->changes, post->count, on_leased_line_stored, post->leased);
    return post->url_message != NULL
               ? wr_store_post(engine->store, post->loop->changes, post->count, on_urls_stored, post->url_message)
               : wr_store_post(engine->store, post->loop->changes, post->count, wr_job_on_stored, engine);
}

static void add_output_line(struct wr_engine *engine, const struct wr_buf *line)
{
    struct wr_output *output = &engine->output;
    if (output->fd < 0)
        return;
    wr_buf_append(&output->lines, line->bytes, line->length);
    output->end += line->length;
    if (output->lines.error != 0) /* the store counts a line that the output will never have */
        wr_job_end(engine, WR_END_BROKEN, weir_error_text(output->lines.error));
}

/* Posts a page with its line and its record in the archive. */
static int post_with_outputs(struct page_post *post)
{
    struct wr_engine *engine = post->loop->engine;
    struct wr_output *output = &engine->output;
    struct wr_crawl_fetch *fetch = post->fetch;
    struct wr_archive_position place;
    bool has_record = fetch->capture.pieces != NULL && fetch->capture.pieces->name[0] == '\0';
    int error = 0;
    (void)pthread_mutex_lock(&output->lock);
    if (output->fd >= 0) /* a pipe needs this, too: it makes the store write the lines */
        post->loop->changes[post->count++] = (struct wr_store_change){
            .kind = WR_STORE_OUTPUT,
            .output = {engine->job, wr_span_of(output->path), output->end + fetch->line.length}};
    if (has_record)
        error = wr_archive_position(engine, fetch, &place, &post->loop->changes[post->count++]);
    if (post->leased != NULL) {
        post->leased->url_message = post->url_message;
        post->leased->at = output->end;
        post->leased->bytes = fetch->line.length;
        wr_list_push(&output->leased, &post->leased->link);
    }
    if (error == 0) {
        error = post_page_changes(post);
        if (error != 0 && has_record && place.info != NULL)
            wr_archive_piece_free(engine, place.info);
    }
    if (error == 0) {
        add_output_line(engine, &fetch->line);
        wr_archive_append(engine, fetch, has_record ? &place : NULL);
    }
    if (error != 0 && post->leased != NULL)
        wr_list_remove(&post->leased->link);
    (void)pthread_mutex_unlock(&output->lock);
    return error;
}

/* Prepares a line to be blanked if the host's lease is lost before the commit. Returns false if
 * memory is short. */
static bool make_leased_line(struct page_post *post)
{
    struct wr_engine *engine = post->loop->engine;
    const struct wr_crawl_fetch *fetch = post->fetch;
    if (fetch->lease == 0 || fetch->line.length == 0 || engine->output.fd < 0 || fetch->action.kind == WR_PLAN_IDLE)
        return true;
    post->leased = wr_alloc(engine->allocator, sizeof *post->leased, _Alignof(struct wr_leased_line));
    if (post->leased != NULL)
        post->leased->engine = engine;
    return post->leased != NULL;
}

static void free_leased_line(struct page_post *post)
{
    if (post->leased != NULL)
        wr_free(post->loop->engine->allocator, post->leased, sizeof *post->leased, _Alignof(struct wr_leased_line));
}

static int try_post_page(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    struct page_post post = {.loop = loop, .fetch = fetch};
    if (!reserve_changes(loop, 2 * fetch->urls.count + 3) || !copy_asked_urls(&post) || !make_leased_line(&post)) {
        free_url_messages(post.url_message);
        return WEIR_E_NOMEM;
    }
    if (fetch->action.kind != WR_PLAN_IDLE)
        add_task_end(&post);
    add_urls(&post);
    if (post.count == 0)
        return 0; /* the fetch has nothing to post, and no line */
    (void)atomic_fetch_add(&loop->engine->posts, 1);
    bool has_line = fetch->line.length > 0 && loop->engine->output.fd >= 0;
    int error = has_line || fetch->capture.pieces != NULL ? post_with_outputs(&post) : post_page_changes(&post);
    if (error != 0) {
        free_leased_line(&post);
        free_url_messages(post.url_message);
        wr_job_post_done(loop->engine);
    }
    return error;
}

static void forget_task(struct wr_crawl_fetch *fetch)
{
    wr_referrer_drop(fetch->loop, fetch->action.fingerprint);
    wr_recrawl_visit_drop(fetch->loop, fetch->action.fingerprint);
}

static void finish_post(struct wr_crawl_fetch *fetch)
{
    if (fetch->action.kind != WR_PLAN_IDLE && !fetch->is_again)
        forget_task(fetch);
    wr_crawl_fetch_recycle(fetch);
}

void wr_crawl_page_post(struct wr_crawl_fetch *fetch)
{
    WR_DOING("a post");
    struct wr_crawl_loop *loop = fetch->loop;
    wr_url_batch_judge(loop, &fetch->urls);
    /* Pages with pieces do not wait: others may wait for their memory. */
    bool waits = loop->is_stalled && fetch->capture.pieces == NULL;
    int error = waits ? WEIR_E_FULL : try_post_page(fetch);
    if (error == WEIR_E_FULL) {
        loop->is_stalled = true;
        wr_crawl_fetch_move(fetch, WR_CRAWL_FETCH_WAITS_TO_POST);
        return;
    }
    if (error != 0)
        wr_job_end(loop->engine, WR_END_BROKEN, wr_error_message(error));
    finish_post(fetch);
}

static void retry_posts(struct wr_crawl_loop *loop, bool waits)
{
    struct wr_time_slice share = wr_time_slice_begin(WR_TIME_SLICE_NS);
    struct wr_list_link *link = loop->lists[WR_CRAWL_FETCH_WAITS_TO_POST].first;
    while (link != NULL && !loop->is_stalled && wr_time_slice_lasts(&share)) {
        struct wr_crawl_fetch *fetch = WR_LINKED(link, struct wr_crawl_fetch, link);
        link = link->next;
        if (fetch->capture.waits && waits)
            wr_capture_finish(fetch);
        else if (!fetch->capture.waits && !waits)
            wr_crawl_page_post(fetch);
    }
}

/* Retries what waits: first packed pages, because they make room for those to be packed. */
void wr_crawl_page_retry_posts(struct wr_crawl_loop *loop)
{
    loop->is_stalled = false;
    retry_posts(loop, false);
    retry_posts(loop, true);
    if (loop->lists[WR_CRAWL_FETCH_WAITS_TO_POST].first == NULL || loop->is_stalled)
        return;
    loop->is_stalled = true; /* out of time: the rest follows in the next turn, before the plan */
    atomic_store(&loop->has_room, true);
    wr_crawl_loop_wake(loop);
}
