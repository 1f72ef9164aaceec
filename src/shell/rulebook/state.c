/* SPDX-License-Identifier: MIT */
/* state.c - saves and restores keys across restarts, and reservations across handovers.
 *
 *     weir-keys 2 1789000000000000000 ...  time of writing (shell/clock/moment.h)
 *     r login                              a rule; the keys below are in its table
 *     p pro                                one of its plans
 *     k 616c696365 17                      a key (core/admit/record.h); c instead of k: changed
 *     h 4503599627469650 59000000000       a reservation: number, remaining lease in ns
 *     r upload                             rule of the reservation
 *     t 616c696365 1                       its key, and permits held
 *     end 2                                number of keys and reservations
 *
 * The file is written beside the old one and replaces it. A file without its last line is refused.
 * It is read twice: the first pass only validates it.
 *
 * The time since writing comes from the wall clock only if the machine was restarted in between. If
 * the wall clock went back, the time counts as zero; keys then wait longer, by at most the period
 * of their limit. Files of version 1 have only the wall clock's time, and can still be read.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/parse.h"
#include "shell/clock/clock.h"
#include "shell/clock/moment.h"
#include "shell/rulebook/book.h"
#include "shell/table/past.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "weir-keys 2 "
#define HEAD_BEFORE "weir-keys 1 "
#define PIECE_BYTES ((size_t)1 << 16) /* bytes gathered before a write */
#define LINE_BYTES (WR_RECORD_BYTES_MAX + 2)

static int refuse(int error, const char *path, const char *wrong, char *ret_why, size_t why_bytes)
{
    struct wr_buf why;

    wr_buf_init_fixed(&why, ret_why, why_bytes);
    wr_buf_append_string(&why, path);
    wr_buf_append_string(&why, ": ");
    wr_buf_append_string(&why, wrong);
    return error;
}

static int refuse_errno(const char *path, int failure, char *ret_why, size_t why_bytes)
{
    char words[128];

    return refuse(WEIR_E_SYSTEM, path, strerror_r(failure, words, sizeof words), ret_why, why_bytes);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The part of the state to write. */
struct part {
    int64_t since; /* only keys changed since this time; ALL_KEYS: all keys with used limits */
    bool with_holds;
    bool is_copy; /* the file is read soon and then deleted: no need to sync it */
};

#define ALL_KEYS INT64_MIN

struct writer {
    int fd;
    struct part part;
    int failure; /* errno of the first failure; 0 if there was none */
    weir_table *table;
    int64_t now; /* time used for all keys, and the same moment as the time in the head */
    uint64_t count;
    struct wr_buf text; /* text not written yet */
};

static void flush(struct writer *writer)
{
    size_t at = 0;

    while (writer->failure == 0 && at < writer->text.length) {
        ssize_t wrote = write(writer->fd, writer->text.bytes + at, writer->text.length - at);
        if (wrote < 0 && errno != EINTR)
            writer->failure = errno;
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    wr_buf_clear(&writer->text);
}

/* Appends one key. Called with the shard's lock held, so it does not write to the file. Returns
 * false if the buffer is full. */
static bool add_key(void *context, struct wr_shard *shard, struct wr_entry *entry)
{
    struct writer *writer = context;
    struct wr_past pasts[WEIR_STACK_MAX];

    bool is_all = writer->part.since == ALL_KEYS;
    if (!is_all && !wr_entry_used_since(writer->table, entry, writer->part.since))
        return true;
    if (!wr_entry_past(writer->table, shard, entry, writer->now, pasts) && is_all)
        return true;
    struct wr_span key = {wr_entry_key(entry, &writer->table->layout), entry->key_bytes};
    wr_record_append(&writer->text, is_all ? 'k' : 'c', key, pasts, wr_entry_stack(writer->table, shard, entry)->count);
    wr_buf_append_char(&writer->text, '\n');
    writer->count++;
    return writer->text.length + LINE_BYTES < PIECE_BYTES;
}

static void add_table(struct writer *writer, weir_table *table, const char *kind, const char *name)
{
    struct wr_walk walk = {0};

    wr_buf_append_string(&writer->text, kind);
    wr_buf_append_string(&writer->text, name);
    wr_buf_append_char(&writer->text, '\n');
    flush(writer);
    writer->table = table;
    while (writer->failure == 0 && wr_table_walk(table, &walk, add_key, writer))
        flush(writer);
    flush(writer);
}

static void add_holds(struct wr_rulebook *book, const struct wr_edition *edition, struct writer *writer)
{
    size_t before = 0;

    for (uint32_t slot = 0; wr_hold_append(book, edition, slot, writer->now, &writer->text); slot++) {
        writer->count += writer->text.length > before;
        if (writer->text.length + WR_HOLD_BYTES_MAX > PIECE_BYTES)
            flush(writer);
        before = writer->text.length;
    }
}

static void write_all(struct wr_rulebook *book, const struct wr_edition *edition, struct writer *writer)
{
    struct wr_moment moment;

    writer->now = wr_clock_now(book->clock);
    book->moment_now(&moment);
    wr_buf_append_string(&writer->text, HEAD);
    wr_moment_append(&writer->text, &moment);
    wr_buf_append_char(&writer->text, '\n');
    for (uint32_t i = 0; i < edition->count; i++) {
        const struct wr_edition_rule *rule = &edition->rules[i];
        add_table(writer, rule->drawers[0]->table, "r ", rule->shelf->name);
        for (uint32_t j = 0; j < rule->written->plan_count; j++)
            add_table(writer, rule->drawers[1 + j]->table, "p ", rule->written->plans[j].name);
    }
    if (writer->part.with_holds)
        add_holds(book, edition, writer);
    wr_buf_append_string(&writer->text, "end ");
    wr_buf_append_u64(&writer->text, writer->count);
    wr_buf_append_char(&writer->text, '\n');
    flush(writer);
}

/* Syncs the folder, so that the new name is on the disk as well. */
static void sync_folder(const char *path)
{
    char copy[PATH_MAX];
    size_t bytes = strlen(path);

    if (bytes >= sizeof copy)
        return;
    memcpy(copy, path, bytes + 1);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    (void)close(fd);
}

/* Writes the file and renames it. Returns 0, or an errno; then the old file is unchanged. */
static int write_file(struct wr_rulebook *book, const struct wr_edition *edition, struct part part, const char *path,
                      const char *new_path, struct wr_buf text)
{
    struct writer writer = {.text = text, .part = part};

    writer.fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (writer.fd < 0)
        return errno;
    write_all(book, edition, &writer);
    if (writer.failure == 0 && !part.is_copy && fsync(writer.fd) != 0)
        writer.failure = errno;
    if (close(writer.fd) != 0 && writer.failure == 0)
        writer.failure = errno;
    if (writer.failure == 0 && rename(new_path, path) != 0)
        writer.failure = errno;
    if (writer.failure != 0)
        (void)unlink(new_path);
    else if (!part.is_copy)
        sync_folder(path);
    return writer.failure;
}

static int save(struct wr_rulebook *book, struct part part, const char *path, char *ret_why, size_t why_bytes)
{
    char new_path[PATH_MAX];
    struct wr_buf name, text;
    char *piece = wr_take(book->allocator, PIECE_BYTES + 1, 1);

    if (piece == NULL)
        return refuse(WEIR_E_NOMEM, path, "out of memory", ret_why, why_bytes);
    wr_buf_init_fixed(&text, piece, PIECE_BYTES + 1);
    wr_buf_init_fixed(&name, new_path, sizeof new_path);
    wr_buf_append_string(&name, path);
    wr_buf_append_string(&name, ".new");
    struct wr_edition *edition = wr_book_borrow(book);
    (void)pthread_mutex_lock(&book->saving); /* concurrent saves would write to the same file */
    int failure = name.error != 0 ? ENAMETOOLONG : write_file(book, edition, part, path, new_path, text);
    (void)pthread_mutex_unlock(&book->saving);
    wr_edition_drop(edition);
    wr_give(book->allocator, piece, PIECE_BYTES + 1, 1);
    return failure == 0 ? 0 : refuse_errno(path, failure, ret_why, why_bytes);
}

int wr_rulebook_state_check(const char *path, char *ret_why, size_t why_bytes)
{
    char folder[PATH_MAX];
    struct stat node;
    size_t bytes = strlen(path);

    if (bytes >= sizeof folder)
        return refuse(WEIR_E_SYSTEM, path, "the name is too long", ret_why, why_bytes);
    memcpy(folder, path, bytes + 1);
    bool is_there = stat(path, &node) == 0;
    if (is_there && S_ISDIR(node.st_mode))
        return refuse(WEIR_E_SYSTEM, path, "it is a folder; name a file in it", ret_why, why_bytes);
    if (is_there && !S_ISREG(node.st_mode))
        return refuse(WEIR_E_SYSTEM, path, "it is not a regular file; name another", ret_why, why_bytes);
    /* a read-only disk may become writable again */
    if (access(dirname(folder), W_OK | X_OK) == 0 || errno == EROFS)
        return 0;
    return refuse(WEIR_E_SYSTEM, path,
                  errno == ENOENT ? "there is no such folder; make it, or name another file"
                                  : "its folder may not be written; change its permissions, or name another file",
                  ret_why, why_bytes);
}

int wr_rulebook_save(struct wr_rulebook *book, const char *path, char *ret_why, size_t why_bytes)
{
    return save(book, (struct part){.since = ALL_KEYS}, path, ret_why, why_bytes);
}

int wr_rulebook_copy(struct wr_rulebook *book, struct wr_rulebook_copy *copy, bool is_last, const char *path,
                     char *ret_why, size_t why_bytes)
{
    struct part part = {copy->has_begun ? copy->at : ALL_KEYS, .with_holds = is_last, .is_copy = true};

    atomic_store(&book->is_copied, true);
    copy->has_begun = true;
    /* read before any key is examined, so that no change is missed */
    copy->at = wr_clock_now(book->clock);
    return save(book, part, path, ret_why, why_bytes);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    int fd;
    char text[4 * LINE_BYTES]; /* input; from text + at on not parsed yet */
    size_t at, bytes;
    struct wr_rulebook *book;
    struct wr_edition *edition;
    bool applies; /* second pass, in which the lines take effect */
    struct wr_moment now;
    int64_t ago_ns;
    /* rule of the current lines; NULL: it does not exist any more */
    const struct wr_edition_rule *rule;
    uint32_t plan;
    /* table for the current keys; NULL: it does not exist any more */
    const struct wr_drawer *drawer;
    uint64_t count, restored;
    bool ended;
    uint64_t hold; /* number of the current reservation; 0 if there is none */
    int64_t lease_ns;
    weir_admission taken; /* permits taken for the current reservation */
    struct wr_record record;
};

static bool after(struct wr_span line, const char *begin, struct wr_span *ret_rest)
{
    size_t bytes = strlen(begin);

    if (line.bytes < bytes || memcmp(line.data, begin, bytes) != 0)
        return false;
    *ret_rest = wr_span_after(line, bytes);
    return true;
}

static bool read_head(struct reader *reader, struct wr_span line)
{
    struct wr_span rest;
    struct wr_moment then;

    if ((!after(line, HEAD, &rest) && !after(line, HEAD_BEFORE, &rest)) || !wr_moment_parse(rest, &then))
        return false;
    int64_t ago_ns = wr_moment_between(&then, &reader->now);
    reader->ago_ns = ago_ns < WEIR_DURATION_MAX ? ago_ns : WEIR_DURATION_MAX;
    return true;
}

static void find_rule(struct reader *reader, struct wr_span name)
{
    reader->rule = NULL;
    reader->drawer = NULL;
    reader->plan = WR_PLAN_OWN;
    for (uint32_t i = 0; i < reader->edition->count; i++) {
        if (wr_span_is(name, reader->edition->rules[i].shelf->name))
            reader->rule = &reader->edition->rules[i];
    }
    if (reader->rule != NULL)
        reader->drawer = reader->rule->drawers[0];
}

static void find_plan(struct reader *reader, struct wr_span name)
{
    reader->drawer = NULL;
    for (uint32_t i = 0; reader->rule != NULL && i < reader->rule->written->plan_count; i++) {
        if (!wr_span_is(name, reader->rule->written->plans[i].name))
            continue;
        reader->drawer = reader->rule->drawers[1 + i];
        reader->plan = WR_PLAN_FIRST + i;
    }
}

static int read_key(struct reader *reader, struct wr_span key)
{
    reader->count++;
    if (!reader->applies || reader->drawer == NULL)
        return 0;
    enum wr_recall how = reader->record.kind == 'c' ? WR_RECALL_ALL : WR_RECALL_MISSING;
    int error =
        wr_table_recall(reader->drawer->table, key, reader->record.pasts, reader->record.count, reader->ago_ns, how);
    reader->restored += error == 0;
    /* other errors: the rule has changed, or its table is full */
    return error == WEIR_E_NOMEM ? error : 0;
}

/* Adds permits of the current rule to the current reservation. */
static void add_taken(struct reader *reader, struct wr_span key, const weir_receipt *receipt)
{
    weir_admission *taken = &reader->taken;
    uint32_t key_at = 0;

    for (uint32_t i = 0; i < taken->count; i++)
        key_at += taken->rulings[i].key_bytes;
    memcpy(taken->keys + key_at, key.data, key.bytes);
    taken->rulings[taken->count++] = (weir_ruling){
        .name = reader->rule->shelf->name,
        .rule = (uint32_t)(reader->rule - reader->edition->rules),
        .plan = reader->plan,
        .permits = receipt->permits,
        .key_at = key_at,
        .key_bytes = (uint32_t)key.bytes,
        .reserved = true,
        .receipt = *receipt,
    };
}

/* Takes over permits of another daemon. For a shared rule the store has charged them already, and
 * is informed that this process now has them in flight. */
static int resume(const struct wr_drawer *drawer, struct wr_span key, uint32_t permits, int64_t ago_ns,
                  weir_receipt *ret_receipt)
{
    if (drawer->budget == NULL)
        return wr_table_resume(drawer->table, key, permits, ago_ns, ret_receipt);
    *ret_receipt = (weir_receipt){.permits = permits};
    return wr_budget_resume(drawer->budget, key.data, key.bytes, permits);
}

static int read_taken(struct reader *reader, struct wr_span key)
{
    const struct wr_past *past = &reader->record.pasts[0];
    weir_receipt receipt;

    if (reader->hold == 0 || reader->record.count != 1 || past->used == 0)
        return WEIR_E_INVAL;
    if (!reader->applies || reader->drawer == NULL || reader->taken.count == WEIR_RULINGS_MAX)
        return 0;
    int64_t ago_ns =
        past->back_ns < WEIR_DURATION_MAX - reader->ago_ns ? past->back_ns + reader->ago_ns : WEIR_DURATION_MAX;
    int error = resume(reader->drawer, key, past->used, ago_ns, &receipt);
    if (error == 0)
        add_taken(reader, key, &receipt);
    return error == WEIR_E_NOMEM ? error : 0;
}

static int read_record(struct reader *reader, struct wr_span line)
{
    if (!wr_record_parse(line, &reader->record))
        return WEIR_E_INVAL;
    struct wr_span key = {reader->record.key, reader->record.key_bytes};
    return reader->record.kind == 't' ? read_taken(reader, key) : read_key(reader, key);
}

/* Ends the lines of a reservation. If there is no room for it, releases its permits. */
static void end_hold(struct reader *reader)
{
    weir_admission *taken = &reader->taken;
    int64_t left_ns = reader->lease_ns > reader->ago_ns ? reader->lease_ns - reader->ago_ns : 0;

    if (reader->applies && reader->hold != 0 &&
        !wr_hold_put(reader->book, reader->edition, reader->hold, left_ns, taken))
        (void)weir_counter_release(reader->edition->counter, taken);
    reader->hold = 0;
    wr_counter_start(taken);
}

static int read_hold(struct reader *reader, struct wr_span words)
{
    size_t blank = wr_span_find(words, ' ');
    uint64_t number, lease_ns;

    end_hold(reader);
    if (blank == words.bytes || !wr_scan_u64(words.data, blank, 1, (UINT64_C(1) << 53) - 1, &number) ||
        !wr_scan_u64(words.data + blank + 1, words.bytes - blank - 1, 0, (uint64_t)WEIR_DURATION_MAX, &lease_ns))
        return WEIR_E_INVAL;
    reader->count++;
    reader->hold = number;
    reader->lease_ns = (int64_t)lease_ns;
    return 0;
}

static int read_line(struct reader *reader, struct wr_span line)
{
    struct wr_span rest;
    uint64_t count;

    if (reader->ended)
        return WEIR_E_INVAL;
    if (after(line, "r ", &rest)) {
        find_rule(reader, rest);
    } else if (after(line, "p ", &rest)) {
        find_plan(reader, rest);
    } else if (after(line, "h ", &rest)) {
        return read_hold(reader, rest);
    } else if (after(line, "end ", &rest)) {
        end_hold(reader);
        reader->ended = true;
        return wr_scan_u64(rest.data, rest.bytes, reader->count, reader->count, &count) ? 0 : WEIR_E_INVAL;
    } else {
        return read_record(reader, line);
    }
    return 0;
}

/* Reads the next line, without its newline. Returns 1; 0 at the end of the file; WEIR_E_INVAL if
 * the line is not terminated, is too long or cannot be read. */
static int next_line(struct reader *reader, struct wr_span *ret_line)
{
    for (;;) {
        struct wr_span rest = {reader->text + reader->at, reader->bytes - reader->at};
        size_t end = wr_span_find(rest, '\n');
        if (end < rest.bytes) {
            *ret_line = (struct wr_span){rest.data, end};
            reader->at += end + 1;
            return 1;
        }
        memmove(reader->text, rest.data, rest.bytes);
        reader->at = 0;
        reader->bytes = rest.bytes;
        ssize_t got = read(reader->fd, reader->text + reader->bytes, sizeof reader->text - reader->bytes);
        if (got <= 0)
            return got == 0 && rest.bytes == 0 ? 0 : WEIR_E_INVAL;
        reader->bytes += (size_t)got;
    }
}

/* Reads all lines, in one pass. Returns WEIR_E_INVAL or WEIR_E_NOMEM on failure. */
static int read_lines(struct reader *reader)
{
    struct wr_span line;
    int error = 0, got = 0;

    if (lseek(reader->fd, 0, SEEK_SET) != 0)
        return WEIR_E_INVAL; /* the file is a pipe, which cannot be read twice */
    reader->at = reader->bytes = 0;
    reader->count = 0;
    reader->ended = false;
    reader->hold = 0;
    wr_counter_start(&reader->taken);
    for (bool is_first = true; error == 0 && (got = next_line(reader, &line)) > 0; is_first = false) {
        if (is_first)
            error = read_head(reader, line) ? 0 : WEIR_E_INVAL;
        else
            error = read_line(reader, line);
    }
    if (error == 0 && (got < 0 || !reader->ended))
        return WEIR_E_INVAL;
    return error;
}

int wr_rulebook_load(struct wr_rulebook *book, const char *path, char *ret_why, size_t why_bytes)
{
    struct reader reader = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), .book = book};

    if (reader.fd < 0)
        return errno == ENOENT ? 0 : refuse_errno(path, errno, ret_why, why_bytes);
    book->moment_now(&reader.now);
    struct wr_edition *edition = wr_book_borrow(book);
    reader.edition = edition;
    int error = read_lines(&reader);
    if (error == 0) {
        reader.applies = true;
        error = read_lines(&reader);
    }
    wr_edition_drop(edition);
    (void)close(reader.fd);
    atomic_fetch_add(&book->restored, reader.restored);
    if (error == WEIR_E_NOMEM)
        return refuse(error, path, "out of memory", ret_why, why_bytes);
    return error == 0
               ? 0
               : refuse(error, path,
                        "not a whole file of keys, or not of this version of weir; remove it, and all keys begin anew",
                        ret_why, why_bytes);
}
