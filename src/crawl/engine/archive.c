/* SPDX-License-Identifier: MIT */
/* archive.c - writes the files of a WARC archive in sequence; a resume cuts them back to what was
 * committed. */
#include "crawl/engine/archive.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/parse.h"
#include "crawl/engine/bodies.h"
#include "crawl/engine/engine_state.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/version.h>

#define ENDING ".warc.gz"
#define DIGITS 5
#define PART_OF_MAX 64
#define FIRST_MAX 4096 /* bytes of a file that are searched for its first record */
#define SHARE_LEAST ((size_t)16 << 10)

/* ---- file names ---- */

/* Writes the path of a file, such as "crawl-00012.warc.gz", to archive->path and returns it. */
static const char *archive_file_path(struct wr_archive *archive, uint32_t number)
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

/* Parses the number in the path of an archive file. Returns false if the path is not one of this
 * archive. */
static bool parse_file_number(const struct wr_archive *archive, struct wr_span path, uint32_t *ret_number)
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

static bool archive_file_exists(struct wr_archive *archive, uint32_t number)
{
    struct stat status;
    return lstat(archive_file_path(archive, number), &status) == 0;
}

/* ---- files that the store knows ---- */

struct archive_file_search {
    const struct wr_archive *archive;
    bool is_found;
    uint32_t number; /* highest file number so far */
    uint64_t bytes;
};

static void note_archive_file(void *context, const struct wr_store_row *row)
{
    struct archive_file_search *finding = context;
    uint32_t number;
    if (!parse_file_number(finding->archive, row->output.path, &number) ||
        (finding->is_found && number < finding->number))
        return;
    finding->is_found = true;
    finding->number = number;
    finding->bytes = row->output.bytes;
}

static int find_archive_files(struct wr_engine *engine, int64_t job, struct archive_file_search *finding)
{
    return wr_store_read(
        engine->store,
        &(struct wr_store_query){
            .what = WR_STORE_OUTPUTS, .job = job, .is_hasty = true, .row = note_archive_file, .context = finding});
}

/* ---- owners of files ---- */

/* Formats the owner of an archive file as its first record names it: the job and the mark of the
 * state file. */
static struct wr_span format_archive_owner(const struct wr_engine *engine, char *memory, size_t bytes)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, bytes);
    wr_buf_append_string(&buf, "job ");
    wr_buf_append_u64(&buf, (uint64_t)engine->job);
    wr_buf_append_string(&buf, " of ");
    wr_buf_append_string(&buf, engine->archive.mark);
    return wr_buf_from(&buf, 0);
}

/* Returns true if the file may be removed: no process has locked it, and it is empty or belongs to
 * this job. */
static bool is_removable_file(const struct wr_engine *engine, int fd)
{
    char first[FIRST_MAX], whose[PART_OF_MAX];
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return false;
    ssize_t bytes = read(fd, first, sizeof first);
    return bytes == 0 || (bytes > 0 && wr_warc_is_part_of((struct wr_span){first, (size_t)bytes},
                                                          format_archive_owner(engine, whose, sizeof whose)));
}

/* Removes this job's files from `number` on: they were begun after the last commit, and their pages
 * are fetched again. */
static void remove_uncommitted_files(struct wr_engine *engine, uint32_t number)
{
    for (; archive_file_exists(&engine->archive, number); number++) {
        int fd = open(engine->archive.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && is_removable_file(engine, fd))
            (void)unlink(engine->archive.path);
        if (fd >= 0)
            (void)close(fd);
    }
}

/* ---- opening ---- */

static void close_archive_file(struct wr_engine *engine, struct wr_output *file)
{
    if (file == NULL)
        return;
    wr_output_close(file);
    wr_free(engine->allocator, file, sizeof *file, _Alignof(struct wr_output));
}

/* Closes a file that was claimed and not written to, and removes it if it was created here. */
void wr_archive_unclaim(struct wr_engine *engine, struct wr_output *file)
{
    if (file != NULL)
        wr_output_remove_new(file);
    close_archive_file(engine, file);
}

/* Claims the first file from *number on that is missing, or empty and not locked. The process that
 * holds its lock owns a file. */
static int claim_archive_file(struct wr_engine *engine, uint32_t *number, struct wr_output **ret_file)
{
    struct wr_output *file = wr_alloc(engine->allocator, sizeof *file, _Alignof(struct wr_output));
    if (file == NULL)
        return WEIR_E_NOMEM;
    for (;; ++*number) {
        int error = wr_output_open(file, archive_file_path(&engine->archive, *number), engine->allocator);
        if (error == 0)
            error = wr_output_begin(file, false, false, 0);
        if (error == 0 && file->is_file) {
            *ret_file = file;
            return 0;
        }
        wr_output_close(file);
        if (!archive_file_exists(&engine->archive, *number)) {
            wr_free(engine->allocator, file, sizeof *file, _Alignof(struct wr_output));
            return error != 0 ? error : WEIR_E_SYSTEM;
        }
    }
}

/* Syncs the archive's folder, so that the names of new files survive a crash. */
static int sync_archive_folder(const struct wr_archive *archive)
{
    const char *folder = archive->spill_folder[0] != '\0' ? archive->spill_folder : "/";
    if (wr_folder_sync(AT_FDCWD, folder))
        return 0;
    wr_error_set_text("the archive's folder", folder, strlen(folder), "cannot be synced");
    return WEIR_E_SYSTEM;
}

/* Opens the current file. Cuts it back to `length` if `has_length` is set; else it must be new. */
static int open_archive_file(struct wr_engine *engine, bool has_length, uint64_t length)
{
    struct wr_archive *archive = &engine->archive;
    archive->begin = archive->end = length; /* the committed part includes the first record */
    archive->file = wr_alloc(engine->allocator, sizeof *archive->file, _Alignof(struct wr_output));
    if (archive->file == NULL)
        return WEIR_E_NOMEM;
    int error = wr_output_open(archive->file, archive_file_path(archive, archive->number), engine->allocator);
    return error == 0 ? wr_output_begin(archive->file, false, has_length, length) : error;
}

static int open_first_file(struct wr_engine *engine, const struct wr_engine_options *given)
{
    struct wr_archive *archive = &engine->archive;
    struct archive_file_search finding = {.archive = archive};
    int error = given->resume_job != 0 ? find_archive_files(engine, given->resume_job, &finding) : 0;
    if (error != 0)
        return error;
    archive->number = finding.number;
    if (given->resume_job != 0)
        remove_uncommitted_files(engine, finding.is_found ? finding.number + 1 : 0);
    if (finding.is_found)
        return open_archive_file(engine, true, finding.bytes);
    /* A job that was killed before its archive was stored resumes with the first free file. */
    error = given->appends || given->resume_job != 0 ? claim_archive_file(engine, &archive->number, &archive->file)
                                                     : open_archive_file(engine, false, 0);
    return error == 0 ? sync_archive_folder(archive) : error;
}

static int open_archive(struct wr_engine *engine, const struct wr_engine_options *given)
{
    struct wr_archive *archive = &engine->archive;
    archive->prefix = wr_output_path(given->warc_path);
    size_t bytes = archive->prefix != NULL ? strlen(archive->prefix) : 0;
    if (bytes == 0 || bytes + 32 > sizeof archive->path) {
        wr_error_set_text("the archive", given->warc_path, strlen(given->warc_path),
                          "cannot be created: its folder does not exist");
        return WEIR_E_SYSTEM;
    }
    if (bytes >= sizeof ENDING && strcmp(archive->prefix + bytes - (sizeof ENDING - 1), ENDING) == 0)
        archive->prefix[bytes - (sizeof ENDING - 1)] = '\0';
    archive->size_max = given->warc_size != 0 ? given->warc_size : WR_ARCHIVE_SIZE;
    archive->spill_folder = strndup(archive->prefix, (size_t)(strrchr(archive->prefix, '/') - archive->prefix));
    if (archive->spill_folder == NULL)
        return WEIR_E_NOMEM;
    int error = wr_payload_table_new(engine->allocator, &archive->seen);
    return error == 0 ? open_first_file(engine, given) : error;
}

/* Sets the mark that identifies the state file: 8 bytes of the SHA-256 of its secret, in hex. */
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
    size_t each = WR_CAPTURE_MEMORY_TOTAL / engine->options.concurrency;
    int error = 0;
    archive->pieces_max = given->pieces_max != 0 ? given->pieces_max : WR_ARCHIVE_PIECES_MAX;
    archive->body_max = given->kept_max != 0 ? given->kept_max : WR_CAPTURE_BODY_MAX;
    archive->is_on = given->warc_path != NULL || given->body_folder != NULL;
    archive->share = each > WR_CAPTURE_MEMORY_MAX ? WR_CAPTURE_MEMORY_MAX : each < SHARE_LEAST ? SHARE_LEAST : each;
    set_mark(engine);
    if (given->warc_path != NULL)
        error = open_archive(engine, given);
    if (error == 0 && given->body_folder != NULL)
        error = wr_bodies_open(engine, given->body_folder);
    if (error == 0 && archive->is_on)
        error = wr_warc_new(engine->allocator, &archive->warc);
    return error;
}

/* ---- position of a record ---- */

static struct wr_archive_piece *make_info_record(struct wr_engine *engine, uint32_t number)
{
    struct wr_archive *archive = &engine->archive;
    char whose[PART_OF_MAX];
    struct wr_archive_piece *piece = wr_archive_piece_new(engine);
    if (piece == NULL)
        return NULL;
    const struct wr_warc_info info = {.name = wr_span_of(strrchr(archive_file_path(archive, number), '/') + 1),
                                      .wall_at = weir_wall_now(),
                                      .software = wr_span_of("weir/" WEIR_VERSION),
                                      .agent = wr_span_of(engine->agent),
                                      .part_of = format_archive_owner(engine, whose, sizeof whose),
                                      .obeys_robots = !engine->options.ignores_robots};
    if (wr_warc_append_info(archive->warc, &info, &piece->text) == 0)
        return piece;
    wr_archive_piece_free(engine, piece);
    return NULL;
}

static void queue_piece(struct wr_archive *archive, struct wr_archive_piece *piece)
{
    if (archive->last != NULL)
        archive->last->next = piece;
    else
        archive->first = piece;
    archive->last = piece;
}

static struct wr_store_change output_change(struct wr_engine *engine, uint32_t number, uint64_t end)
{
    return (struct wr_store_change){
        .kind = WR_STORE_OUTPUT, .output = {engine->job, wr_span_of(archive_file_path(&engine->archive, number)), end}};
}

/* Queues the first record of a new file and stores the file's length, before pages are kept. */
int wr_archive_begin(struct wr_engine *engine)
{
    struct wr_archive *archive = &engine->archive;
    if (archive->prefix == NULL)
        return 0;
    if (archive->end == 0) {
        struct wr_archive_piece *info = make_info_record(engine, archive->number);
        if (info == NULL)
            return WEIR_E_NOMEM;
        (void)atomic_fetch_add(&archive->held, info->text.room);
        archive->begin = archive->end = info->text.length;
        queue_piece(archive, info);
    }
    const struct wr_store_change change = output_change(engine, archive->number, archive->end);
    return wr_store_post_now(engine->store, &change, 1);
}

/* Begins a new file, because the current one is full. Returns WEIR_E_FULL if the store's thread has
 * not switched to the current file yet; it wakes the loops when it has. */
static int begin_next_file(struct wr_engine *engine, size_t bytes, struct wr_archive_position *ret_place)
{
    struct wr_archive *archive = &engine->archive;
    if (archive->is_switching_file) {
        atomic_store(&archive->is_refused, true);
        return WEIR_E_FULL;
    }
    if (archive->next == NULL) {
        archive->next_number = archive->number + 1;
        if (claim_archive_file(engine, &archive->next_number, &archive->next) != 0)
            return 0; /* no file could be claimed: exceed the size limit instead */
    }
    struct wr_archive_piece *info = make_info_record(engine, archive->next_number);
    if (info == NULL)
        return WEIR_E_NOMEM;
    *ret_place = (struct wr_archive_position){archive->next_number, info->text.length, info->text.length + bytes, info};
    return 0;
}

int wr_archive_position(struct wr_engine *engine, const struct wr_crawl_fetch *fetch,
                        struct wr_archive_position *ret_place, struct wr_store_change *ret_change)
{
    struct wr_archive *archive = &engine->archive;
    size_t bytes = fetch->capture.pieces->text.length;
    *ret_place = (struct wr_archive_position){archive->number, archive->begin, archive->end + bytes, NULL};
    if (archive->end > archive->begin && archive->end + bytes > archive->size_max) {
        int error = begin_next_file(engine, bytes, ret_place);
        if (error != 0)
            return error;
    }
    *ret_change = output_change(engine, ret_place->number, ret_place->end);
    return 0;
}

void wr_archive_append(struct wr_engine *engine, struct wr_crawl_fetch *fetch, const struct wr_archive_position *place)
{
    struct wr_archive *archive = &engine->archive;
    struct wr_capture *capture = &fetch->capture;
    if (place != NULL) {
        archive->number = place->number;
        archive->begin = place->begin;
        archive->end = place->end;
        if (place->info != NULL) {
            (void)atomic_fetch_add(&archive->held, place->info->text.room);
            place->info->file = archive->next;
            archive->next = NULL;
            archive->is_switching_file = true;
            queue_piece(archive, place->info);
        }
        if (capture->is_new) /* known from now on, so that revisit records follow the original */
            wr_payload_table_put(
                archive->seen, &capture->seen,
                &(struct wr_warc_original){wr_url_part(&fetch->url, 0, fetch->url.fragment_at), capture->wall_at});
    }
    while (capture->pieces != NULL) {
        struct wr_archive_piece *piece = capture->pieces;
        capture->pieces = piece->next;
        piece->next = NULL;
        queue_piece(archive, piece);
    }
    capture->held = 0; /* the pieces stay counted in archive->held until they are written */
}

/* ---- writing, on the store's thread ---- */

/* Switches to the file that the piece begins, if it does. Syncs and closes the last one. */
static int switch_to_piece_file(struct wr_engine *engine, struct wr_archive_piece *piece)
{
    struct wr_archive *archive = &engine->archive;
    if (piece->file == NULL)
        return 0;
    if (fdatasync(archive->file->fd) != 0 || sync_archive_folder(archive) != 0)
        return WEIR_E_SYSTEM;
    close_archive_file(engine, archive->file);
    archive->file = piece->file;
    piece->file = NULL;
    (void)pthread_mutex_lock(&engine->output.lock);
    archive->is_switching_file = false;
    (void)pthread_mutex_unlock(&engine->output.lock);
    return 0;
}

static int write_record(struct wr_engine *engine, struct wr_archive_piece *piece)
{
    struct wr_archive *archive = &engine->archive;
    size_t written = 0;
    int error = switch_to_piece_file(engine, piece);
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
        struct wr_archive_piece *piece = archive->writing;
        int error = piece->name[0] != '\0' ? wr_body_write(&archive->bodies, piece) : write_record(engine, piece);
        if (error != 0)
            return error;
        archive->written = 0;
        archive->writing = piece->next;
        (void)atomic_fetch_sub(&archive->held, piece->text.room);
        wr_archive_piece_free(engine, piece);
    }
    return 0;
}

/* Writes the pieces that the last call left, then all that were posted since, because the store may
 * commit those as well. Then syncs. */
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
        wr_engine_retry_posts(engine);
    return error;
}

/* ---- the end ---- */

void wr_archive_close(struct wr_engine *engine)
{
    struct wr_archive *archive = &engine->archive;
    wr_archive_pieces_free(engine, archive->first);
    wr_archive_pieces_free(engine, archive->writing);
    wr_payload_table_free(archive->seen);
    wr_warc_free(archive->warc);
    wr_archive_unclaim(engine, archive->next);
    close_archive_file(engine, archive->file);
    wr_bodies_close(&archive->bodies);
    free(archive->prefix);
    free(archive->spill_folder);
}
