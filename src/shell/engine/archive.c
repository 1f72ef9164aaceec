/* SPDX-License-Identifier: MIT */
/* archive.c - the archive's files: filled one after the other, cut back when a job is gone on with. */
#include "shell/engine/archive.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/parse.h"
#include "shell/engine/bodies.h"
#include "shell/engine/state.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/version.h>

#define ENDING ".warc.gz"
#define DIGITS 5
#define SHARE_LEAST ((size_t)16 << 10)

/* ---- names ---- */

/* "…-00012.warc.gz", in archive->path. */
static const char *path_of(struct wr_archive *archive, uint32_t number)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, archive->path, sizeof archive->path);
    wr_buf_append_string(&buf, archive->prefix);
    wr_buf_append_char(&buf, '-');
    for (uint64_t above = 10000; above > number && above > 1; above /= 10)
        wr_buf_append_char(&buf, '0');
    wr_buf_append_u64(&buf, number);
    wr_buf_append_string(&buf, ENDING);
    return archive->path;
}

/* The number in such a name; false: it is none of ours. */
static bool number_of(const struct wr_archive *archive, struct wr_span path, uint32_t *ret_number)
{
    size_t before = strlen(archive->prefix) + 1, after = sizeof ENDING - 1;
    uint64_t number;
    if (path.bytes < before + DIGITS + after || memcmp(path.data, archive->prefix, before - 1) != 0 ||
        path.data[before - 1] != '-' || memcmp(path.data + path.bytes - after, ENDING, after) != 0 ||
        wr_parse_u64(path.data + before, path.bytes - before - after, 0, UINT32_MAX, &number) != 0)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool exists(struct wr_archive *archive, uint32_t number)
{
    struct stat status;
    return lstat(path_of(archive, number), &status) == 0;
}

/* ---- what the store knows of them ---- */

struct finding {
    const struct wr_archive *archive;
    bool is_any;     /* of whichever job; else of one */
    uint32_t wanted; /* only this number, if it is any */
    bool is_found;
    uint32_t number; /* the highest */
    uint64_t bytes;
    int64_t last_job;
};

static void on_output(void *context, const struct wr_store_row *row)
{
    struct finding *finding = context;
    uint32_t number;
    if (!number_of(finding->archive, row->output.path, &number) || (finding->is_any && number != finding->wanted) ||
        (finding->is_found && number < finding->number))
        return;
    finding->is_found = true;
    finding->number = number;
    finding->bytes = row->output.bytes;
}

static void on_job(void *context, const struct wr_store_row *row)
{
    ((struct finding *)context)->last_job = row->job.id;
}

static int find_of(struct wr_engine *engine, int64_t job, struct finding *finding)
{
    return wr_store_read(
        engine->store,
        &(struct wr_store_query){.what = WR_STORE_OUTPUTS, .job = job, .row = on_output, .context = finding});
}

static bool is_known(struct wr_engine *engine, uint32_t number)
{
    struct finding finding = {.archive = &engine->archive, .is_any = true, .wanted = number};
    int error = wr_store_read(
        engine->store,
        &(struct wr_store_query){.what = WR_STORE_JOBS, .after = WR_STORE_FRONT, .row = on_job, .context = &finding});
    for (int64_t job = 1; error == 0 && job <= finding.last_job && !finding.is_found; job++)
        error = find_of(engine, job, &finding);
    return error != 0 || finding.is_found;
}

/* Files that were begun after the last commit: what is in them is fetched again. */
static void remove_late(struct wr_engine *engine, uint32_t number)
{
    for (number++; exists(&engine->archive, number); number++)
        if (!is_known(engine, number))
            (void)unlink(path_of(&engine->archive, number));
}

/* ---- opening ---- */

static int open_file(struct wr_engine *engine, bool has_length, uint64_t length)
{
    struct wr_archive *archive = &engine->archive;
    archive->file_number = archive->number;
    archive->end = length;
    return wr_output_open(archive->file, path_of(archive, archive->number), false, has_length, length,
                          engine->allocator);
}

static int open_first(struct wr_engine *engine, const struct wr_engine_options *given)
{
    struct wr_archive *archive = &engine->archive;
    struct finding finding = {.archive = archive};
    if (given->resume_job != 0) {
        int error = find_of(engine, given->resume_job, &finding);
        if (error != 0)
            return error;
    }
    if (finding.is_found) {
        archive->number = finding.number;
        remove_late(engine, finding.number);
        archive->begin = finding.bytes; /* it has its first record */
        return open_file(engine, true, finding.bytes);
    }
    while (given->appends && exists(archive, archive->number))
        archive->number++;
    return open_file(engine, false, 0);
}

static int open_archive(struct wr_engine *engine, const struct wr_engine_options *given)
{
    struct wr_archive *archive = &engine->archive;
    archive->prefix = wr_output_path(given->warc_path);
    size_t bytes = archive->prefix != NULL ? strlen(archive->prefix) : 0;
    if (bytes == 0 || bytes + 32 > sizeof archive->path) {
        wr_error_note_text("the archive", given->warc_path, strlen(given->warc_path),
                           "cannot be made: there is no such folder");
        return WEIR_E_SYSTEM;
    }
    if (bytes >= sizeof ENDING && strcmp(archive->prefix + bytes - (sizeof ENDING - 1), ENDING) == 0)
        archive->prefix[bytes - (sizeof ENDING - 1)] = '\0';
    archive->size_max = given->warc_size != 0 ? given->warc_size : WR_ARCHIVE_SIZE;
    archive->spill_folder = strndup(archive->prefix, (size_t)(strrchr(archive->prefix, '/') - archive->prefix));
    archive->file = wr_take(engine->allocator, sizeof *archive->file, _Alignof(struct wr_output));
    if (archive->file == NULL || archive->spill_folder == NULL)
        return WEIR_E_NOMEM;
    archive->file->fd = -1;
    int error = wr_seen_new(engine->allocator, &archive->seen);
    return error == 0 ? open_first(engine, given) : error;
}

/* What tells this state file from others, and does not tell its secret. */
static void set_mark(struct wr_engine *engine)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct wr_buf buf;
    (void)EVP_Digest(engine->hash_key.secret, sizeof engine->hash_key.secret, digest, NULL, EVP_sha256(), NULL);
    wr_buf_init_fixed(&buf, engine->archive.mark, sizeof engine->archive.mark);
    for (size_t i = 0; i < sizeof engine->archive.mark / 2; i++)
        wr_buf_append_hex(&buf, digest[i], 2, WR_HEX_SMALL);
}

int wr_archive_open(struct wr_engine *engine, const struct wr_engine_options *given)
{
    struct wr_archive *archive = &engine->archive;
    size_t each = WR_KEEP_TOTAL / engine->options.concurrency;
    int error = 0;
    archive->pieces_max = given->pieces_max != 0 ? given->pieces_max : WR_PIECES_MAX;
    archive->is_on = given->warc_path != NULL || given->body_folder != NULL;
    archive->share = each > WR_KEEP_SHARE ? WR_KEEP_SHARE : each < SHARE_LEAST ? SHARE_LEAST : each;
    set_mark(engine);
    if (given->warc_path != NULL)
        error = open_archive(engine, given);
    if (error == 0 && given->body_folder != NULL)
        error = wr_bodies_open(engine, given->body_folder);
    if (error == 0 && archive->is_on)
        error = wr_warc_new(engine->allocator, &archive->warc);
    return error;
}

/* ---- where a record goes ---- */

static struct wr_piece *make_info(struct wr_engine *engine, uint32_t number)
{
    struct wr_archive *archive = &engine->archive;
    char part_of[32];
    struct wr_buf buf;
    struct wr_piece *piece = wr_piece_new(engine);
    if (piece == NULL)
        return NULL;
    wr_buf_init_fixed(&buf, part_of, sizeof part_of);
    wr_buf_append_string(&buf, "job ");
    wr_buf_append_u64(&buf, (uint64_t)engine->job);
    const struct wr_warc_info info = {.name = wr_span_of(strrchr(path_of(archive, number), '/') + 1),
                                      .wall_at = weir_wall_now(),
                                      .software = wr_span_of("weir/" WEIR_VERSION),
                                      .agent = wr_span_of(engine->agent),
                                      .part_of = wr_buf_from(&buf, 0),
                                      .obeys_robots = !engine->options.ignores_robots};
    piece->number = number;
    if (wr_warc_append_info(archive->warc, &info, &piece->text) == 0)
        return piece;
    wr_piece_free(engine, piece);
    return NULL;
}

static void push(struct wr_archive *archive, struct wr_piece *piece)
{
    if (archive->last != NULL)
        archive->last->next = piece;
    else
        archive->first = piece;
    archive->last = piece;
}

static struct wr_store_change output_change(struct wr_engine *engine, uint32_t number, uint64_t end)
{
    return (struct wr_store_change){.kind = WR_STORE_OUTPUT,
                                    .output = {engine->job, wr_span_of(path_of(&engine->archive, number)), end}};
}

/* Before anything is kept: the file, and what it says of itself. */
int wr_archive_begin(struct wr_engine *engine)
{
    struct wr_archive *archive = &engine->archive;
    if (archive->prefix == NULL)
        return 0;
    if (archive->end == 0) {
        struct wr_piece *info = make_info(engine, archive->number);
        if (info == NULL)
            return WEIR_E_NOMEM;
        (void)atomic_fetch_add(&archive->held, info->text.room);
        archive->begin = archive->end = info->text.length;
        push(archive, info);
    }
    const struct wr_store_change change = output_change(engine, archive->number, archive->end);
    return wr_store_post(engine->store, &change, 1, NULL, NULL);
}

int wr_archive_place(struct wr_engine *engine, const struct wr_flight *flight, struct wr_archive_place *ret_place,
                     struct wr_store_change *ret_change)
{
    struct wr_archive *archive = &engine->archive;
    size_t bytes = flight->keep.pieces->text.length;
    *ret_place = (struct wr_archive_place){archive->number, archive->begin, archive->end + bytes, NULL};
    if (archive->end > archive->begin && archive->end + bytes > archive->size_max) {
        struct wr_piece *info = make_info(engine, archive->number + 1);
        if (info == NULL)
            return WEIR_E_NOMEM;
        *ret_place = (struct wr_archive_place){archive->number + 1, info->text.length, info->text.length + bytes, info};
    }
    *ret_change = output_change(engine, ret_place->number, ret_place->end);
    return 0;
}

void wr_archive_take(struct wr_engine *engine, struct wr_flight *flight, const struct wr_archive_place *place)
{
    struct wr_archive *archive = &engine->archive;
    struct wr_keep *keep = &flight->keep;
    if (place != NULL) {
        archive->number = place->number;
        archive->begin = place->begin;
        archive->end = place->end;
        keep->pieces->number = place->number;
        if (place->info != NULL) {
            (void)atomic_fetch_add(&archive->held, place->info->text.room);
            push(archive, place->info);
        }
        if (keep->is_new) /* from now on: what is a revisit of it comes after it */
            wr_seen_put(
                archive->seen, &keep->seen,
                &(struct wr_warc_original){wr_url_part(&flight->url, 0, flight->url.fragment_at), keep->wall_at});
    }
    while (keep->pieces != NULL) {
        struct wr_piece *piece = keep->pieces;
        keep->pieces = piece->next;
        piece->next = NULL;
        push(archive, piece);
    }
    keep->held = 0; /* it is counted until it is written */
}

/* ---- writing, on the store's thread ---- */

/* So that a file that was made is there, and not only what is in it. */
static int sync_folder(const struct wr_archive *archive)
{
    int fd = open(archive->spill_folder[0] != '\0' ? archive->spill_folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd < 0 || fsync(fd) != 0 ? WEIR_E_SYSTEM : 0;
    if (fd >= 0)
        (void)close(fd);
    return error;
}

static int turn_to(struct wr_engine *engine, uint32_t number)
{
    struct wr_archive *archive = &engine->archive;
    struct wr_output *file = archive->file;
    char path[sizeof archive->path];
    if (archive->file_number == number && file->fd >= 0)
        return 0;
    if (file->fd >= 0 && fdatasync(file->fd) != 0)
        return WEIR_E_SYSTEM;
    if (file->fd >= 0)
        wr_output_close(file);
    (void)pthread_mutex_lock(&engine->output.lock); /* of the scratch */
    wr_text_set(path, sizeof path, path_of(archive, number));
    (void)pthread_mutex_unlock(&engine->output.lock);
    archive->file_number = number;
    int error = wr_output_open(file, path, false, false, 0, engine->allocator);
    return error == 0 ? sync_folder(archive) : error;
}

static int write_record(struct wr_engine *engine, struct wr_piece *piece)
{
    struct wr_archive *archive = &engine->archive;
    size_t written = 0;
    int error = turn_to(engine, piece->number);
    if (error != 0)
        return error;
    error = wr_output_write(archive->file, piece->text.bytes + archive->written, piece->text.length - archive->written,
                            &written);
    archive->written += written;
    return error;
}

static int write_pieces(struct wr_engine *engine)
{
    struct wr_archive *archive = &engine->archive;
    while (archive->writing != NULL) {
        struct wr_piece *piece = archive->writing;
        int error = piece->name[0] != '\0' ? wr_body_write(&archive->bodies, piece) : write_record(engine, piece);
        if (error != 0)
            return error;
        archive->written = 0;
        archive->writing = piece->next;
        (void)atomic_fetch_sub(&archive->held, piece->text.room);
        wr_piece_free(engine, piece);
    }
    return 0;
}

/* What is left from the last time, and then all that was posted since: the store may commit it as well. */
int wr_archive_sync(struct wr_engine *engine)
{
    struct wr_archive *archive = &engine->archive;
    if (!archive->is_on)
        return 0;
    int error = write_pieces(engine);
    if (error == 0) {
        (void)pthread_mutex_lock(&engine->output.lock);
        archive->writing = archive->first;
        archive->first = archive->last = NULL;
        (void)pthread_mutex_unlock(&engine->output.lock);
        error = write_pieces(engine);
    }
    if (error == 0 && archive->file != NULL && archive->file->fd >= 0 && fdatasync(archive->file->fd) != 0)
        error = WEIR_E_SYSTEM;
    if (error == 0)
        error = wr_bodies_sync(&archive->bodies);
    if (atomic_exchange(&archive->is_refused, false))
        wr_engine_has_room(engine);
    return error;
}

/* ---- the end ---- */

void wr_archive_close(struct wr_engine *engine)
{
    struct wr_archive *archive = &engine->archive;
    wr_pieces_free(engine, archive->first);
    wr_pieces_free(engine, archive->writing);
    wr_seen_free(archive->seen);
    wr_warc_free(archive->warc);
    if (archive->file != NULL)
        wr_output_close(archive->file);
    wr_give(engine->allocator, archive->file, sizeof *archive->file, _Alignof(struct wr_output));
    wr_bodies_close(&archive->bodies);
    free(archive->prefix);
    free(archive->spill_folder);
}
