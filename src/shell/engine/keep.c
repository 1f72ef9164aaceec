/* SPDX-License-Identifier: MIT */
/* keep.c - keeps a response: its head and body as they arrive, then packed into pieces. */
#include "base/alloc.h"
#include "shell/engine/bodies.h"
#include "shell/engine/state.h"
#include "shell/loop/away.h"
#include "shell/memory/reserve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes packed on the loop, in some 2 ms; more on another thread. */
#define AT_ONCE ((uint64_t)64 << 10)
#define FULL_NS (10 * WEIR_SECOND) /* delay before a full disk is retried */
#define FRAME 4096                 /* bytes of a record besides head and body */
/* Memory to be left for the stacks of libuv's threads: four of 8 MB. */
#define POOL_BYTES ((size_t)48 << 20)

/* ---- while the response arrives ---- */

void wr_keep_init(struct wr_keep *keep, const struct wr_engine *engine)
{
    wr_buf_init(&keep->request, engine->allocator, WR_NET_HEAD_MAX);
    wr_buf_init(&keep->head, engine->allocator, WR_NET_HEAD_MAX);
    wr_buf_init(&keep->body, engine->allocator, engine->archive.share);
    keep->fd = -1;
}

void wr_keep_release(struct wr_keep *keep, struct wr_engine *engine)
{
    wr_pieces_free(engine, keep->pieces);
    (void)atomic_fetch_sub(&engine->archive.held, keep->held);
    if (keep->fd >= 0)
        (void)close(keep->fd);
    wr_buf_release(&keep->request);
    wr_buf_release(&keep->head);
    wr_buf_release(&keep->body);
}

/* Empties a wr_keep for the next fetch; most fetches keep nothing. */
void wr_keep_clear(struct wr_keep *keep, struct wr_engine *engine)
{
    if (!keep->is_on)
        return;
    wr_keep_release(keep, engine);
    *keep = (struct wr_keep){.is_on = false};
    wr_keep_init(keep, engine);
}

void wr_keep_line(struct wr_keep *keep, struct wr_span line)
{
    if (keep->is_head_whole) /* the head so far was that of an interim response */
        wr_buf_clear(&keep->head);
    wr_buf_append_span(&keep->head, line);
    keep->is_head_whole = line.data[0] == '\n' || (line.bytes == 2 && line.data[0] == '\r');
}

/* Moves the body from memory to an unnamed file. Returns false and sets errno if that fails. */
static bool spill(struct wr_keep *keep, const struct wr_archive *archive)
{
    char path[sizeof archive->path];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, path, sizeof path);
    wr_buf_append_string(&buf, archive->spill_folder);
    wr_buf_append_string(&buf, "/.weir-XXXXXX");
    errno = ENAMETOOLONG;
    keep->fd = buf.error == 0 ? mkostemp(path, O_CLOEXEC) : -1;
    if (keep->fd < 0)
        return false;
    (void)unlink(path);
    if (wr_body_append(keep->fd, keep->body.bytes, keep->body.length)) {
        wr_buf_clear(&keep->body);
        return true;
    }
    return false;
}

static bool add(struct wr_keep *keep, const struct wr_archive *archive, const char *data, size_t bytes)
{
    if (keep->fd < 0 && keep->body.length + bytes > archive->share && !spill(keep, archive))
        return false;
    if (keep->fd >= 0)
        return wr_body_append(keep->fd, data, bytes);
    errno = ENOMEM;
    wr_buf_append(&keep->body, data, bytes);
    return keep->body.error == 0;
}

bool wr_keep_body(struct wr_flight *flight, const char *data, size_t bytes)
{
    struct wr_keep *keep = &flight->keep;
    const struct wr_archive *archive = &flight->loop->engine->archive;
    size_t taken = keep->bytes + bytes > archive->body_max ? (size_t)(archive->body_max - keep->bytes) : bytes;
    if (taken > 0 && !add(keep, archive, data, taken)) {
        keep->trouble = errno;
        return false;
    }
    keep->bytes += taken;
    keep->is_cut |= taken < bytes;
    return true;
}

/* Handles a body that could not be kept. The page is retried: when the disk has room, when
 * descriptors or memory are free, or when the user has repaired the folder and resumes. */
void wr_keep_failed(struct wr_flight *flight)
{
    struct wr_crawl_loop *loop = flight->loop;
    switch (flight->keep.trouble) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        wr_engine_warn_seldom(loop->engine, "waiting: ", "the disk is full, and a body does not fit in memory");
        wr_cap_hold(loop, FULL_NS);
        break;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        wr_engine_warn_scarce(loop->engine, "a body that does not fit in memory cannot be kept");
        wr_cap_hold(loop, WR_PUSH_BACK_NS);
        break;
    default:
        wr_job_over(loop->engine, WR_END_BROKEN, "the folder of what is kept cannot be written to");
    }
}

/* ---- packing ---- */

void wr_piece_free(struct wr_engine *engine, struct wr_piece *piece)
{
    wr_buf_release(&piece->text);
    if (piece->fd >= 0)
        (void)close(piece->fd);
    wr_archive_unclaim(engine, piece->file);
    wr_give(engine->allocator, piece, sizeof *piece, _Alignof(struct wr_piece));
}

void wr_pieces_free(struct wr_engine *engine, struct wr_piece *piece)
{
    while (piece != NULL) {
        struct wr_piece *next = piece->next;
        wr_piece_free(engine, piece);
        piece = next;
    }
}

struct wr_piece *wr_piece_new(struct wr_engine *engine)
{
    struct wr_piece *piece = wr_take(engine->allocator, sizeof *piece, _Alignof(struct wr_piece));
    if (piece == NULL)
        return NULL;
    wr_buf_init(&piece->text, engine->allocator, WR_KEEP_BODY_MAX + WR_KEEP_BODY_MAX / 8);
    piece->fd = -1;
    return piece;
}

/* Returns how the body was cut, as WARC-Truncated names it; NULL if it was not. */
static const char *truncation(const struct wr_flight *flight)
{
    switch (flight->result.end) {
    case WR_NET_DONE:
        return flight->result.is_truncated || flight->keep.is_cut ? "length" : NULL;
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
static bool find_original(struct wr_flight *flight, struct wr_span body, bool is_whole, char ret_url[WR_SEEN_URL_MAX],
                          struct wr_warc_original *ret_original)
{
    struct wr_engine *engine = flight->loop->engine;
    struct wr_seen_key *key = &flight->keep.seen;
    bool is_known = false;
    key->keyed = wr_hash(&engine->hash_key, body.data, body.bytes);
    key->bytes = body.bytes;
    if (!is_whole)
        return false;
    (void)pthread_mutex_lock(&engine->output.lock);
    if (wr_seen_find(engine->archive.seen, key, ret_original)) {
        memcpy(ret_url, ret_original->url.data, ret_original->url.bytes);
        ret_original->url.data = ret_url;
        is_known = true;
    }
    (void)pthread_mutex_unlock(&engine->output.lock);
    flight->keep.is_new = !is_known;
    return is_known;
}

static int make_record(struct wr_flight *flight, struct wr_warc *warc, struct wr_span body)
{
    struct wr_engine *engine = flight->loop->engine;
    struct wr_keep *keep = &flight->keep;
    char url[WR_SEEN_URL_MAX];
    struct wr_warc_original original;
    struct wr_piece *piece = wr_piece_new(engine);
    if (piece == NULL)
        return WEIR_E_NOMEM;
    keep->pieces = piece;
    wr_warc_payload(warc, body, keep->seen.digest);
    struct wr_warc_exchange exchange = {.url = wr_url_part(&flight->url, 0, flight->url.fragment_at),
                                        .wall_at = keep->wall_at,
                                        .address = engine->proxy == NULL ? &flight->result.address : NULL,
                                        .request = wr_buf_from(&keep->request, 0),
                                        .head = wr_buf_from(&keep->head, 0),
                                        .body = body,
                                        .digest = keep->seen.digest,
                                        .truncated = truncation(flight),
                                        .is_http2 = flight->result.version >= 20,
                                        .is_unchanged = flight->result.status == 304};
    if (find_original(flight, body, exchange.truncated == NULL && !exchange.is_unchanged, url, &original))
        exchange.original = &original;
    return wr_warc_append_exchange(warc, &exchange, &piece->text);
}

/* Moves the body into a piece of its own. */
static int make_body(struct wr_flight *flight)
{
    struct wr_engine *engine = flight->loop->engine;
    struct wr_keep *keep = &flight->keep;
    struct wr_piece *piece = wr_piece_new(engine);
    if (piece == NULL)
        return WEIR_E_NOMEM;
    wr_text_set(piece->name, sizeof piece->name, keep->name);
    piece->fd = keep->fd;
    keep->fd = -1;
    struct wr_buf empty = piece->text;
    piece->text = keep->body;
    keep->body = empty;
    if (keep->pieces != NULL)
        keep->pieces->next = piece;
    else
        keep->pieces = piece;
    return 0;
}

static int make(struct wr_flight *flight, struct wr_warc *warc)
{
    struct wr_keep *keep = &flight->keep;
    struct wr_span body = wr_buf_from(&keep->body, 0);
    void *map = MAP_FAILED;
    int error = 0;
    if (keep->fd >= 0 && keep->bytes > 0) {
        map = mmap(NULL, (size_t)keep->bytes, PROT_READ, MAP_PRIVATE, keep->fd, 0);
        body = (struct wr_span){map, (size_t)keep->bytes};
        error = map == MAP_FAILED ? WEIR_E_NOMEM : 0;
    }
    if (error == 0 && flight->loop->engine->archive.prefix != NULL)
        error = make_record(flight, warc, body);
    if (map != MAP_FAILED)
        (void)munmap(map, (size_t)keep->bytes);
    if (error == 0 && keep->name[0] != '\0')
        error = make_body(flight);
    return error;
}

/* ---- after the response ---- */

/* Counts the memory that the pieces really take, then ends the page. A page that could not be kept
 * stays queued in the store: its line would refer to a body that is in no file. */
static void made(struct wr_flight *flight, int error)
{
    struct wr_engine *engine = flight->loop->engine;
    struct wr_keep *keep = &flight->keep;
    size_t before = keep->held;
    keep->held = 0;
    for (const struct wr_piece *piece = keep->pieces; piece != NULL; piece = piece->next)
        keep->held += piece->text.room;
    (void)atomic_fetch_add(&engine->archive.held, keep->held - before);
    if (error == 0) {
        wr_answer_end(flight);
        return;
    }
    wr_job_over(engine, WR_END_BROKEN, weir_error_text(error));
    wr_flight_give_back(flight);
}

static void on_work(uv_work_t *work)
{
    struct wr_flight *flight = work->data;
    struct wr_warc *warc = NULL;
    flight->keep.error = wr_warc_new(flight->loop->engine->allocator, &warc);
    if (flight->keep.error == 0)
        flight->keep.error = make(flight, warc);
    wr_warc_free(warc);
}

static void on_worked(uv_work_t *work, int status)
{
    struct wr_flight *flight = work->data;
    struct wr_crawl_loop *loop = flight->loop;
    made(flight, status != 0 ? WEIR_E_SYSTEM : flight->keep.error);
    wr_crawl_loop_due(loop);
}

/* Counts the memory that packing will need; returns false if there is too little. A page larger
 * than the limit waits until no other has pieces. */
static bool admit(struct wr_flight *flight)
{
    struct wr_archive *archive = &flight->loop->engine->archive;
    struct wr_keep *keep = &flight->keep;
    size_t wanted = keep->head.length + keep->request.length + FRAME + (size_t)keep->bytes;
    size_t before = atomic_load(&archive->held);
    do {
        if (before > 0 && before + wanted > archive->pieces_max)
            return false;
    } while (!atomic_compare_exchange_weak(&archive->held, &before, before + wanted));
    keep->held = wanted;
    return true;
}

/* Admits a page; if that fails, announces that it waits, and tries a second time. The writer frees
 * room before it reads is_refused, so the page is not forgotten. */
static bool admits(struct wr_flight *flight)
{
    if (admit(flight))
        return true;
    atomic_store(&flight->loop->engine->archive.is_refused, true);
    return admit(flight);
}

/* Returns true if libuv's threads can be used. It starts all of them with the first work, and ends
 * the program if one cannot start. */
static bool has_pool(struct wr_archive *archive)
{
    if (!atomic_load(&archive->has_pool) && wr_memory_left() >= POOL_BYTES)
        atomic_store(&archive->has_pool, true);
    return atomic_load(&archive->has_pool);
}

static bool is_kept(const struct wr_flight *flight)
{
    const struct wr_net_result *result = &flight->result;
    return flight->keep.is_on && flight->keep.is_head_whole && result->status > 0 &&
           result->blame != WR_NET_PROXY_HOST && result->end != WR_NET_PROTOCOL;
}

void wr_keep_flight(struct wr_flight *flight)
{
    WR_DOING("keeping a page");
    struct wr_crawl_loop *loop = flight->loop;
    struct wr_archive *archive = &loop->engine->archive;
    struct wr_keep *keep = &flight->keep;
    if (!is_kept(flight)) {
        wr_answer_end(flight);
        return;
    }
    keep->waits = loop->is_stalled || !admits(flight);
    if (keep->waits) {
        loop->is_stalled = true;
        wr_flight_move(flight, WR_FLIGHT_POSTS);
        return;
    }
    wr_flight_move(flight, WR_FLIGHT_FLIES);
    bool is_well = flight->result.status >= 200 && flight->result.status < 300;
    if (archive->bodies.folder != NULL && is_well && truncation(flight) == NULL)
        wr_body_name(&flight->url, wr_flight_head(flight, WR_TEXT_TYPE), keep->name);
    keep->work.data = flight;
    if (keep->bytes <= AT_ONCE || !has_pool(archive) || uv_queue_work(&loop->uv, &keep->work, on_work, on_worked) != 0)
        made(flight, make(flight, loop->warc));
}
