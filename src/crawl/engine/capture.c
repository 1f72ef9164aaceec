/* SPDX-License-Identifier: MIT */
/* capture.c - keeps a response: its head and body as they arrive, then packed into pieces. */
#include "base/alloc.h"
#include "crawl/engine/bodies.h"
#include "crawl/engine/engine_state.h"
#include "http/loop/watchdog.h"
#include "limiter/memory/reserve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes packed on the loop, in some 2 ms; more on another thread. */
#define PACK_ON_LOOP_MAX ((uint64_t)64 << 10)
#define FULL_NS (10 * WEIR_SECOND) /* delay before a full disk is retried */
#define RECORD_FRAME_BYTES 4096    /* bytes of a record besides head and body */
/* Memory to be left for the stacks of libuv's threads: four of 8 MB. */
#define POOL_BYTES ((size_t)48 << 20)

/* ---- while the response arrives ---- */

void wr_capture_init(struct wr_capture *capture, const struct wr_engine *engine)
{
    wr_buf_init(&capture->request, engine->allocator, WR_NET_HEAD_MAX);
    wr_buf_init(&capture->head, engine->allocator, WR_NET_HEAD_MAX);
    wr_buf_init(&capture->body, engine->allocator, engine->archive.share);
    capture->fd = -1;
}

void wr_capture_release(struct wr_capture *capture, struct wr_engine *engine)
{
    wr_archive_pieces_free(engine, capture->pieces);
    (void)atomic_fetch_sub(&engine->archive.held, capture->held);
    if (capture->fd >= 0)
        (void)close(capture->fd);
    wr_buf_release(&capture->request);
    wr_buf_release(&capture->head);
    wr_buf_release(&capture->body);
}

/* Empties a wr_capture for the next fetch; most fetches keep nothing. */
void wr_capture_clear(struct wr_capture *capture, struct wr_engine *engine)
{
    if (!capture->is_on)
        return;
    wr_capture_release(capture, engine);
    *capture = (struct wr_capture){.is_on = false};
    wr_capture_init(capture, engine);
}

void wr_capture_head_line(struct wr_capture *capture, struct wr_span line)
{
    if (capture->is_head_whole) /* the head so far was that of an interim response */
        wr_buf_clear(&capture->head);
    wr_buf_append_span(&capture->head, line);
    capture->is_head_whole = line.data[0] == '\n' || (line.bytes == 2 && line.data[0] == '\r');
}

/* Moves the body from memory to an unnamed file. Returns false and sets errno if that fails. */
static bool spill_body(struct wr_capture *capture, const struct wr_archive *archive)
{
    char path[sizeof archive->path];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, path, sizeof path);
    wr_buf_append_string(&buf, archive->spill_folder);
    wr_buf_append_string(&buf, "/.weir-XXXXXX");
    errno = ENAMETOOLONG;
    capture->fd = buf.error == 0 ? mkostemp(path, O_CLOEXEC) : -1;
    if (capture->fd < 0)
        return false;
    (void)unlink(path);
    if (wr_body_append(capture->fd, capture->body.bytes, capture->body.length)) {
        wr_buf_clear(&capture->body);
        return true;
    }
    return false;
}

static bool append_captured_body(struct wr_capture *capture, const struct wr_archive *archive, const char *data,
                                 size_t bytes)
{
    if (capture->fd < 0 && capture->body.length + bytes > archive->share && !spill_body(capture, archive))
        return false;
    if (capture->fd >= 0)
        return wr_body_append(capture->fd, data, bytes);
    errno = ENOMEM;
    wr_buf_append(&capture->body, data, bytes);
    return capture->body.error == 0;
}

bool wr_capture_body(struct wr_crawl_fetch *fetch, const char *data, size_t bytes)
{
    struct wr_capture *capture = &fetch->capture;
    const struct wr_archive *archive = &fetch->loop->engine->archive;
    size_t taken = capture->bytes + bytes > archive->body_max ? (size_t)(archive->body_max - capture->bytes) : bytes;
    if (taken > 0 && !append_captured_body(capture, archive, data, taken)) {
        capture->trouble = errno;
        return false;
    }
    capture->bytes += taken;
    capture->is_cut |= taken < bytes;
    return true;
}

/* Handles a body that could not be kept. The page is retried: when the disk has room, when
 * descriptors or memory are free, or when the user has repaired the folder and resumes. */
void wr_capture_failed(struct wr_crawl_fetch *fetch)
{
    struct wr_crawl_loop *loop = fetch->loop;
    switch (fetch->capture.trouble) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        wr_engine_warn_seldom(loop->engine, "waiting: ", "the disk is full, and a body does not fit in memory");
        wr_global_limits_hold(loop, FULL_NS);
        break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        wr_engine_warn_scarcity(loop->engine, "a body that does not fit in memory cannot be stored in a file");
        wr_global_limits_hold(loop, WR_RETRY_UNSENT_MIN_NS);
        break;
    default:
        wr_job_end(loop->engine, WR_END_BROKEN, "the folder for large bodies cannot be written to");
    }
}

/* ---- packing ---- */

void wr_archive_piece_free(struct wr_engine *engine, struct wr_archive_piece *piece)
{
    wr_buf_release(&piece->text);
    if (piece->fd >= 0)
        (void)close(piece->fd);
    wr_archive_unclaim(engine, piece->file);
    wr_free(engine->allocator, piece, sizeof *piece, _Alignof(struct wr_archive_piece));
}

void wr_archive_pieces_free(struct wr_engine *engine, struct wr_archive_piece *piece)
{
    while (piece != NULL) {
        struct wr_archive_piece *next = piece->next;
        wr_archive_piece_free(engine, piece);
        piece = next;
    }
}

struct wr_archive_piece *wr_archive_piece_new(struct wr_engine *engine)
{
    struct wr_archive_piece *piece = wr_alloc(engine->allocator, sizeof *piece, _Alignof(struct wr_archive_piece));
    if (piece == NULL)
        return NULL;
    wr_buf_init(&piece->text, engine->allocator, WR_CAPTURE_BODY_MAX + WR_CAPTURE_BODY_MAX / 8);
    piece->fd = -1;
    return piece;
}

/* Returns how the body was cut, as WARC-Truncated names it; NULL if it was not. */
static const char *truncation_word(const struct wr_crawl_fetch *fetch)
{
    switch (fetch->result.end) {
    case WR_NET_DONE:
        return fetch->result.is_truncated || fetch->capture.is_cut ? "length" : NULL;
    case WR_NET_TOTAL_TIMEOUT:
    case WR_NET_TOO_SLOW:
        return "time";
    case WR_NET_BROKEN:
        return "disconnect";
    default:
        return "unspecified";
    }
}

/* Returns true if the archive already has the same payload. A body that was cut never counts as the
 * same. */
static bool find_original(struct wr_crawl_fetch *fetch, struct wr_span body, bool is_whole,
                          char ret_url[WR_PAYLOAD_URL_MAX], struct wr_warc_original *ret_original)
{
    struct wr_engine *engine = fetch->loop->engine;
    struct wr_payload_key *key = &fetch->capture.seen;
    bool is_known = false;
    key->keyed = wr_hash(&engine->hash_key, body.data, body.bytes);
    key->bytes = body.bytes;
    if (!is_whole)
        return false;
    (void)pthread_mutex_lock(&engine->output.lock);
    if (wr_payload_table_find(engine->archive.seen, key, ret_original)) {
        memcpy(ret_url, ret_original->url.data, ret_original->url.bytes);
        ret_original->url.data = ret_url;
        is_known = true;
    }
    (void)pthread_mutex_unlock(&engine->output.lock);
    fetch->capture.is_new = !is_known;
    return is_known;
}

static int make_response_record(struct wr_crawl_fetch *fetch, struct wr_warc *warc, struct wr_span body)
{
    struct wr_engine *engine = fetch->loop->engine;
    struct wr_capture *capture = &fetch->capture;
    char url[WR_PAYLOAD_URL_MAX];
    struct wr_warc_original original;
    struct wr_archive_piece *piece = wr_archive_piece_new(engine);
    if (piece == NULL)
        return WEIR_E_NOMEM;
    capture->pieces = piece;
    wr_warc_payload_digest(warc, body, capture->seen.digest);
    struct wr_warc_exchange exchange = {.url = wr_url_part(&fetch->url, 0, fetch->url.fragment_at),
                                        .wall_at = capture->wall_at,
                                        .address = engine->proxy == NULL ? &fetch->result.address : NULL,
                                        .request = wr_buf_from(&capture->request, 0),
                                        .head = wr_buf_from(&capture->head, 0),
                                        .body = body,
                                        .digest = capture->seen.digest,
                                        .truncated = truncation_word(fetch),
                                        .is_http2 = fetch->result.version >= 20,
                                        .is_unchanged = fetch->result.status == 304};
    if (find_original(fetch, body, exchange.truncated == NULL && !exchange.is_unchanged, url, &original))
        exchange.original = &original;
    return wr_warc_append_exchange(warc, &exchange, &piece->text);
}

/* Moves the body into a piece of its own. */
static int make_body_piece(struct wr_crawl_fetch *fetch)
{
    struct wr_engine *engine = fetch->loop->engine;
    struct wr_capture *capture = &fetch->capture;
    struct wr_archive_piece *piece = wr_archive_piece_new(engine);
    if (piece == NULL)
        return WEIR_E_NOMEM;
    wr_text_copy(piece->name, sizeof piece->name, capture->name);
    piece->fd = capture->fd;
    capture->fd = -1;
    struct wr_buf empty = piece->text;
    piece->text = capture->body;
    capture->body = empty;
    if (capture->pieces != NULL)
        capture->pieces->next = piece;
    else
        capture->pieces = piece;
    return 0;
}

static int make_pieces(struct wr_crawl_fetch *fetch, struct wr_warc *warc)
{
    struct wr_capture *capture = &fetch->capture;
    struct wr_span body = wr_buf_from(&capture->body, 0);
    void *map = MAP_FAILED;
    int error = 0;
    if (capture->fd >= 0 && capture->bytes > 0) {
        map = mmap(NULL, (size_t)capture->bytes, PROT_READ, MAP_PRIVATE, capture->fd, 0);
        body = (struct wr_span){map, (size_t)capture->bytes};
        error = map == MAP_FAILED ? WEIR_E_NOMEM : 0;
    }
    if (error == 0 && fetch->loop->engine->archive.prefix != NULL)
        error = make_response_record(fetch, warc, body);
    if (map != MAP_FAILED)
        (void)munmap(map, (size_t)capture->bytes);
    if (error == 0 && capture->name[0] != '\0')
        error = make_body_piece(fetch);
    return error;
}

/* ---- after the response ---- */

/* Counts the memory that the pieces really take, then ends the page. A page that could not be kept
 * stays queued in the store: its line would refer to a body that is in no file. */
static void on_pieces_made(struct wr_crawl_fetch *fetch, int error)
{
    struct wr_engine *engine = fetch->loop->engine;
    struct wr_capture *capture = &fetch->capture;
    size_t before = capture->held;
    capture->held = 0;
    for (const struct wr_archive_piece *piece = capture->pieces; piece != NULL; piece = piece->next)
        capture->held += piece->text.room;
    (void)atomic_fetch_add(&engine->archive.held, capture->held - before);
    if (error == 0) {
        wr_crawl_page_end(fetch);
        return;
    }
    wr_job_end(engine, WR_END_BROKEN, weir_error_text(error));
    wr_crawl_fetch_recycle(fetch);
}

static void pack_on_thread(uv_work_t *work)
{
    struct wr_crawl_fetch *fetch = work->data;
    struct wr_warc *warc = NULL;
    fetch->capture.error = wr_warc_new(fetch->loop->engine->allocator, &warc);
    if (fetch->capture.error == 0)
        fetch->capture.error = make_pieces(fetch, warc);
    wr_warc_free(warc);
}

static void on_packed(uv_work_t *work, int status)
{
    struct wr_crawl_fetch *fetch = work->data;
    struct wr_crawl_loop *loop = fetch->loop;
    on_pieces_made(fetch, status != 0 ? WEIR_E_SYSTEM : fetch->capture.error);
    wr_crawl_loop_run_due(loop);
}

/* Counts the memory that packing will need; returns false if there is too little. A page larger
 * than the limit waits until no other has pieces. */
static bool try_reserve_pieces(struct wr_crawl_fetch *fetch)
{
    struct wr_archive *archive = &fetch->loop->engine->archive;
    struct wr_capture *capture = &fetch->capture;
    size_t wanted = capture->head.length + capture->request.length + RECORD_FRAME_BYTES + (size_t)capture->bytes;
    size_t before = atomic_load(&archive->held);
    do {
        if (before > 0 && before + wanted > archive->pieces_max)
            return false;
    } while (!atomic_compare_exchange_weak(&archive->held, &before, before + wanted));
    capture->held = wanted;
    return true;
}

/* Admits a page; if that fails, announces that it waits, and tries a second time. The writer frees
 * room before it reads is_refused, so the page is not forgotten. */
static bool reserve_pieces(struct wr_crawl_fetch *fetch)
{
    if (try_reserve_pieces(fetch))
        return true;
    atomic_store(&fetch->loop->engine->archive.is_refused, true);
    return try_reserve_pieces(fetch);
}

/* Returns true if libuv's threads can be used. It starts all of them with the first work, and ends
 * the program if one cannot start. */
static bool has_thread_pool(struct wr_archive *archive)
{
    if (!atomic_load(&archive->has_pool) && wr_memory_left() >= POOL_BYTES)
        atomic_store(&archive->has_pool, true);
    return atomic_load(&archive->has_pool);
}

static bool is_captured(const struct wr_crawl_fetch *fetch)
{
    const struct wr_net_result *result = &fetch->result;
    return fetch->capture.is_on && fetch->capture.is_head_whole && result->status > 0 &&
           result->blame != WR_NET_BLAME_PROXY && result->end != WR_NET_PROTOCOL;
}

void wr_capture_finish(struct wr_crawl_fetch *fetch)
{
    WR_DOING("keeping a page");
    struct wr_crawl_loop *loop = fetch->loop;
    struct wr_archive *archive = &loop->engine->archive;
    struct wr_capture *capture = &fetch->capture;
    if (!is_captured(fetch)) {
        wr_crawl_page_end(fetch);
        return;
    }
    capture->waits = loop->is_stalled || !reserve_pieces(fetch);
    if (capture->waits) {
        loop->is_stalled = true;
        wr_crawl_fetch_move(fetch, WR_CRAWL_FETCH_WAITS_TO_POST);
        return;
    }
    wr_crawl_fetch_move(fetch, WR_CRAWL_FETCH_IN_FLIGHT);
    bool is_well = fetch->result.status >= 200 && fetch->result.status < 300;
    if (archive->bodies.folder != NULL && is_well && truncation_word(fetch) == NULL)
        wr_body_name(&fetch->url, wr_crawl_fetch_header(fetch, WR_RESPONSE_CONTENT_TYPE), capture->name);
    capture->work.data = fetch;
    if (capture->bytes <= PACK_ON_LOOP_MAX || !has_thread_pool(archive) ||
        uv_queue_work(&loop->uv, &capture->work, pack_on_thread, on_packed) != 0)
        on_pieces_made(fetch, make_pieces(fetch, loop->warc));
}
