/* SPDX-License-Identifier: MIT */
/* key_file.c - saves and restores keys across restarts, and reservations across handovers.
 *
 *     weir-keys 2 1789000000000000000 ...  time of writing (limiter/clock/moment.h)
 *     r login                              a rule; the keys below are in its table
 *     p pro                                one of its plans
 *     k 616c696365 17                      a key (core/admit/usage_record.h); c instead of k: changed
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
#include "limiter/clock/clock.h"
#include "limiter/clock/moment.h"
#include "limiter/table/usage.h"
#include "serve/rules/rules_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE_HEAD "weir-keys 2 "
#define KEY_FILE_HEAD_V1 "weir-keys 1 "
#define WRITE_BYTES ((size_t)1 << 16) /* bytes gathered before a write */
#define KEY_LINE_BYTES (WR_USAGE_RECORD_BYTES_MAX + 2)

static int refuse_key_file(int error, const char *path, const char *wrong, char *ret_why, size_t why_bytes)
{
    struct wr_buf why;

    wr_buf_init_fixed(&why, ret_why, why_bytes);
    wr_buf_append_string(&why, path);
    wr_buf_append_string(&why, ": ");
    wr_buf_append_string(&why, wrong);
    return error;
}

static int refuse_key_file_errno(const char *path, int failure, char *ret_why, size_t why_bytes)
{
    char words[128];

    return refuse_key_file(WEIR_E_SYSTEM, path, strerror_r(failure, words, sizeof words), ret_why, why_bytes);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The part of the state to write. */
struct key_file_part {
    int64_t since; /* only keys changed since this time; ALL_KEYS: all keys with used limits */
    bool with_holds;
    bool is_copy; /* the file is read soon and then deleted: no need to sync it */
};

#define ALL_KEYS INT64_MIN

struct key_file_writer {
    int fd;
    struct key_file_part part;
    int failure; /* errno of the first failure; 0 if there was none */
    weir_table *table;
    int64_t now; /* time used for all keys, and the same moment as the time in the head */
    uint64_t count;
    struct wr_buf text; /* text not written yet */
};

static void flush_text(struct key_file_writer *writer)
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
static bool append_key(void *context, struct wr_shard *shard, struct wr_entry *entry)
{
    struct key_file_writer *writer = context;
    struct wr_limit_usage usages[WEIR_STACK_MAX];

    bool is_all = writer->part.since == ALL_KEYS;
    if (!is_all && !wr_entry_used_since(writer->table, entry, writer->part.since))
        return true;
    if (!wr_entry_usage(writer->table, shard, entry, writer->now, usages) && is_all)
        return true;
    struct wr_span key = {wr_entry_key(entry, &writer->table->layout), entry->key_bytes};
    wr_usage_record_append(&writer->text, is_all ? 'k' : 'c', key, usages,
                           wr_entry_stack(writer->table, shard, entry)->count);
    wr_buf_append_char(&writer->text, '\n');
    writer->count++;
    return writer->text.length + KEY_LINE_BYTES < WRITE_BYTES;
}

static void append_table(struct key_file_writer *writer, weir_table *table, const char *kind, const char *name)
{
    struct wr_walk walk = {0};

    wr_buf_append_string(&writer->text, kind);
    wr_buf_append_string(&writer->text, name);
    wr_buf_append_char(&writer->text, '\n');
    flush_text(writer);
    writer->table = table;
    while (writer->failure == 0 && wr_table_walk(table, &walk, append_key, writer))
        flush_text(writer);
    flush_text(writer);
}

static void append_reservations(struct wr_rules *book, const struct wr_rules_snapshot *snapshot,
                                struct key_file_writer *writer)
{
    size_t before = 0;

    for (uint32_t slot = 0; wr_reservation_append(book, snapshot, slot, writer->now, &writer->text); slot++) {
        writer->count += writer->text.length > before;
        if (writer->text.length + WR_RESERVATION_BYTES_MAX > WRITE_BYTES)
            flush_text(writer);
        before = writer->text.length;
    }
}

static void append_key_file(struct wr_rules *book, const struct wr_rules_snapshot *snapshot,
                            struct key_file_writer *writer)
{
    struct wr_moment moment;

    writer->now = wr_clock_now(book->clock);
    book->moment_now(&moment);
    wr_buf_append_string(&writer->text, KEY_FILE_HEAD);
    wr_moment_append(&writer->text, &moment);
    wr_buf_append_char(&writer->text, '\n');
    for (uint32_t i = 0; i < snapshot->count; i++) {
        const struct wr_compiled_rule *rule = &snapshot->rules[i];
        append_table(writer, rule->rule_tables[0]->table, "r ", rule->rule_stats->name);
        for (uint32_t j = 0; j < rule->written->plan_count; j++)
            append_table(writer, rule->rule_tables[1 + j]->table, "p ", rule->written->plans[j].name);
    }
    if (writer->part.with_holds)
        append_reservations(book, snapshot, writer);
    wr_buf_append_string(&writer->text, "end ");
    wr_buf_append_u64(&writer->text, writer->count);
    wr_buf_append_char(&writer->text, '\n');
    flush_text(writer);
}

/* Syncs the folder, so that the new name is on the disk as well. */
static void sync_key_folder(const char *path)
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
static int write_key_file(struct wr_rules *book, const struct wr_rules_snapshot *snapshot, struct key_file_part part,
                          const char *path, const char *new_path, struct wr_buf text)
{
    struct key_file_writer writer = {.text = text, .part = part};

    writer.fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (writer.fd < 0)
        return errno;
    append_key_file(book, snapshot, &writer);
    if (writer.failure == 0 && !part.is_copy && fsync(writer.fd) != 0)
        writer.failure = errno;
    if (close(writer.fd) != 0 && writer.failure == 0)
        writer.failure = errno;
    if (writer.failure == 0 && rename(new_path, path) != 0)
        writer.failure = errno;
    if (writer.failure != 0)
        (void)unlink(new_path);
    else if (!part.is_copy)
        sync_key_folder(path);
    return writer.failure;
}

static int save_part(struct wr_rules *book, struct key_file_part part, const char *path, char *ret_why,
                     size_t why_bytes)
{
    char new_path[PATH_MAX];
    struct wr_buf name, text;
    char *piece = wr_alloc(book->allocator, WRITE_BYTES + 1, 1);

    if (piece == NULL)
        return refuse_key_file(WEIR_E_NOMEM, path, "out of memory", ret_why, why_bytes);
    wr_buf_init_fixed(&text, piece, WRITE_BYTES + 1);
    wr_buf_init_fixed(&name, new_path, sizeof new_path);
    wr_buf_append_string(&name, path);
    wr_buf_append_string(&name, ".new");
    struct wr_rules_snapshot *snapshot = wr_rules_snapshot_get(book);
    (void)pthread_mutex_lock(&book->saving); /* concurrent saves would write to the same file */
    int failure = name.error != 0 ? ENAMETOOLONG : write_key_file(book, snapshot, part, path, new_path, text);
    (void)pthread_mutex_unlock(&book->saving);
    wr_rules_snapshot_unref(snapshot);
    wr_free(book->allocator, piece, WRITE_BYTES + 1, 1);
    return failure == 0 ? 0 : refuse_key_file_errno(path, failure, ret_why, why_bytes);
}

int wr_rules_check_state_path(const char *path, char *ret_why, size_t why_bytes)
{
    char folder[PATH_MAX];
    struct stat node;
    size_t bytes = strlen(path);

    if (bytes >= sizeof folder)
        return refuse_key_file(WEIR_E_SYSTEM, path, "the name is too long", ret_why, why_bytes);
    memcpy(folder, path, bytes + 1);
    bool is_there = stat(path, &node) == 0;
    if (is_there && S_ISDIR(node.st_mode))
        return refuse_key_file(WEIR_E_SYSTEM, path, "it is a folder; name a file in it", ret_why, why_bytes);
    if (is_there && !S_ISREG(node.st_mode))
        return refuse_key_file(WEIR_E_SYSTEM, path, "it is not a regular file; name another", ret_why, why_bytes);
    /* a read-only disk may become writable again */
    if (access(dirname(folder), W_OK | X_OK) == 0 || errno == EROFS)
        return 0;
    return refuse_key_file(WEIR_E_SYSTEM, path,
                           errno == ENOENT ? "its folder does not exist; create it, or name another file"
                                           : "its folder is not writable; change its permissions, or name another file",
                           ret_why, why_bytes);
}

int wr_rules_save_keys(struct wr_rules *book, const char *path, char *ret_why, size_t why_bytes)
{
    return save_part(book, (struct key_file_part){.since = ALL_KEYS}, path, ret_why, why_bytes);
}

int wr_rules_copy(struct wr_rules *book, struct wr_rules_copy *copy, bool is_last, const char *path, char *ret_why,
                  size_t why_bytes)
{
    struct key_file_part part = {copy->has_begun ? copy->at : ALL_KEYS, .with_holds = is_last, .is_copy = true};

    atomic_store(&book->is_copied, true);
    copy->has_begun = true;
    /* read before any key is examined, so that no change is missed */
    copy->at = wr_clock_now(book->clock);
    return save_part(book, part, path, ret_why, why_bytes);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct key_file_reader {
    int fd;
    char text[4 * KEY_LINE_BYTES]; /* input; from text + at on not parsed yet */
    size_t at, bytes;
    struct wr_rules *book;
    struct wr_rules_snapshot *snapshot;
    bool applies; /* second pass, in which the lines take effect */
    struct wr_moment now;
    int64_t ago_ns;
    /* rule of the current lines; NULL: it does not exist any more */
    const struct wr_compiled_rule *rule;
    uint32_t plan;
    /* table for the current keys; NULL: it does not exist any more */
    const struct wr_rule_table *rule_table;
    uint64_t count, restored;
    bool ended;
    uint64_t hold; /* number of the current reservation; 0 if there is none */
    int64_t lease_ns;
    weir_admission_result taken; /* permits taken for the current reservation */
    struct wr_usage_record record;
};

static bool skip_prefix(struct wr_span line, const char *begin, struct wr_span *ret_rest)
{
    size_t bytes = strlen(begin);

    if (line.bytes < bytes || memcmp(line.data, begin, bytes) != 0)
        return false;
    *ret_rest = wr_span_after(line, bytes);
    return true;
}

static bool read_key_head(struct key_file_reader *reader, struct wr_span line)
{
    struct wr_span rest;
    struct wr_moment then;

    if ((!skip_prefix(line, KEY_FILE_HEAD, &rest) && !skip_prefix(line, KEY_FILE_HEAD_V1, &rest)) ||
        !wr_moment_parse(rest, &then))
        return false;
    int64_t ago_ns = wr_moment_between(&then, &reader->now);
    reader->ago_ns = ago_ns < WEIR_DURATION_MAX ? ago_ns : WEIR_DURATION_MAX;
    return true;
}

static void find_current_rule(struct key_file_reader *reader, struct wr_span name)
{
    reader->rule = NULL;
    reader->rule_table = NULL;
    reader->plan = WR_RULE_PLAN_OWN;
    for (uint32_t i = 0; i < reader->snapshot->count; i++) {
        if (wr_span_is(name, reader->snapshot->rules[i].rule_stats->name))
            reader->rule = &reader->snapshot->rules[i];
    }
    if (reader->rule != NULL)
        reader->rule_table = reader->rule->rule_tables[0];
}

static void find_current_plan(struct key_file_reader *reader, struct wr_span name)
{
    reader->rule_table = NULL;
    for (uint32_t i = 0; reader->rule != NULL && i < reader->rule->written->plan_count; i++) {
        if (!wr_span_is(name, reader->rule->written->plans[i].name))
            continue;
        reader->rule_table = reader->rule->rule_tables[1 + i];
        reader->plan = WR_RULE_PLAN_FIRST + i;
    }
}

static int restore_key(struct key_file_reader *reader, struct wr_span key)
{
    reader->count++;
    if (!reader->applies || reader->rule_table == NULL)
        return 0;
    enum wr_restore_mode how = reader->record.kind == 'c' ? WR_RESTORE_ALL : WR_RESTORE_IF_MISSING;
    int error = wr_table_restore_usage(reader->rule_table->table, key, reader->record.usages, reader->record.count,
                                       reader->ago_ns, how);
    reader->restored += error == 0;
    /* other errors: the rule has changed, or its table is full */
    return error == WEIR_E_NOMEM ? error : 0;
}

/* Adds permits of the current rule to the current reservation. */
static void add_taken_permits(struct key_file_reader *reader, struct wr_span key, const weir_receipt *receipt)
{
    weir_admission_result *taken = &reader->taken;
    uint32_t key_at = 0;

    for (uint32_t i = 0; i < taken->count; i++)
        key_at += taken->rulings[i].key_bytes;
    memcpy(taken->keys + key_at, key.data, key.bytes);
    taken->rulings[taken->count++] = (weir_ruling){
        .name = reader->rule->rule_stats->name,
        .rule = (uint32_t)(reader->rule - reader->snapshot->rules),
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
static int resume_permits(const struct wr_rule_table *rule_table, struct wr_span key, uint32_t permits, int64_t ago_ns,
                          weir_receipt *ret_receipt)
{
    if (rule_table->budget == NULL)
        return wr_table_restore_permits(rule_table->table, key, permits, ago_ns, ret_receipt);
    *ret_receipt = (weir_receipt){.permits = permits};
    return wr_shared_limit_resume(rule_table->budget, key.data, key.bytes, permits);
}

static int read_taken_permits(struct key_file_reader *reader, struct wr_span key)
{
    const struct wr_limit_usage *past = &reader->record.usages[0];
    weir_receipt receipt;

    if (reader->hold == 0 || reader->record.count != 1 || past->used == 0)
        return WEIR_E_INVAL;
    if (!reader->applies || reader->rule_table == NULL || reader->taken.count == WEIR_RULINGS_MAX)
        return 0;
    int64_t ago_ns =
        past->back_ns < WEIR_DURATION_MAX - reader->ago_ns ? past->back_ns + reader->ago_ns : WEIR_DURATION_MAX;
    int error = resume_permits(reader->rule_table, key, past->used, ago_ns, &receipt);
    if (error == 0)
        add_taken_permits(reader, key, &receipt);
    return error == WEIR_E_NOMEM ? error : 0;
}

static int read_record(struct key_file_reader *reader, struct wr_span line)
{
    if (!wr_usage_record_parse(line, &reader->record))
        return WEIR_E_INVAL;
    struct wr_span key = {reader->record.key, reader->record.key_bytes};
    return reader->record.kind == 't' ? read_taken_permits(reader, key) : restore_key(reader, key);
}

/* Ends the lines of a reservation. If there is no room for it, releases its permits. */
static void end_reservation_lines(struct key_file_reader *reader)
{
    weir_admission_result *taken = &reader->taken;
    int64_t left_ns = reader->lease_ns > reader->ago_ns ? reader->lease_ns - reader->ago_ns : 0;

    if (reader->applies && reader->hold != 0 &&
        !wr_reservation_restore(reader->book, reader->snapshot, reader->hold, left_ns, taken))
        (void)weir_admission_release(reader->snapshot->counter, taken);
    reader->hold = 0;
    wr_admission_start(taken);
}

static int read_reservation(struct key_file_reader *reader, struct wr_span words)
{
    size_t blank = wr_span_find(words, ' ');
    uint64_t number, lease_ns;

    end_reservation_lines(reader);
    if (blank == words.bytes || !wr_scan_u64(words.data, blank, 1, (UINT64_C(1) << 53) - 1, &number) ||
        !wr_scan_u64(words.data + blank + 1, words.bytes - blank - 1, 0, (uint64_t)WEIR_DURATION_MAX, &lease_ns))
        return WEIR_E_INVAL;
    reader->count++;
    reader->hold = number;
    reader->lease_ns = (int64_t)lease_ns;
    return 0;
}

static int read_key_line(struct key_file_reader *reader, struct wr_span line)
{
    struct wr_span rest;
    uint64_t count;

    if (reader->ended)
        return WEIR_E_INVAL;
    if (skip_prefix(line, "r ", &rest)) {
        find_current_rule(reader, rest);
    } else if (skip_prefix(line, "p ", &rest)) {
        find_current_plan(reader, rest);
    } else if (skip_prefix(line, "h ", &rest)) {
        return read_reservation(reader, rest);
    } else if (skip_prefix(line, "end ", &rest)) {
        end_reservation_lines(reader);
        reader->ended = true;
        return wr_scan_u64(rest.data, rest.bytes, reader->count, reader->count, &count) ? 0 : WEIR_E_INVAL;
    } else {
        return read_record(reader, line);
    }
    return 0;
}

/* Reads the next line, without its newline. Returns 1; 0 at the end of the file; WEIR_E_INVAL if
 * the line is not terminated, is too long or cannot be read. */
static int next_key_line(struct key_file_reader *reader, struct wr_span *ret_line)
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
static int read_key_lines(struct key_file_reader *reader)
{
    struct wr_span line;
    int error = 0, got = 0;

    if (lseek(reader->fd, 0, SEEK_SET) != 0)
        return WEIR_E_INVAL; /* the file is a pipe, which cannot be read twice */
    reader->at = reader->bytes = 0;
    reader->count = 0;
    reader->ended = false;
    reader->hold = 0;
    wr_admission_start(&reader->taken);
    for (bool is_first = true; error == 0 && (got = next_key_line(reader, &line)) > 0; is_first = false) {
        if (is_first)
            error = read_key_head(reader, line) ? 0 : WEIR_E_INVAL;
        else
            error = read_key_line(reader, line);
    }
    if (error == 0 && (got < 0 || !reader->ended))
        return WEIR_E_INVAL;
    return error;
}

int wr_rules_load_keys(struct wr_rules *book, const char *path, char *ret_why, size_t why_bytes)
{
    struct key_file_reader reader = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), .book = book};

    if (reader.fd < 0)
        return errno == ENOENT ? 0 : refuse_key_file_errno(path, errno, ret_why, why_bytes);
    book->moment_now(&reader.now);
    struct wr_rules_snapshot *snapshot = wr_rules_snapshot_get(book);
    reader.snapshot = snapshot;
    int error = read_key_lines(&reader);
    if (error == 0) {
        reader.applies = true;
        error = read_key_lines(&reader);
    }
    wr_rules_snapshot_unref(snapshot);
    (void)close(reader.fd);
    atomic_fetch_add(&book->restored, reader.restored);
    if (error == WEIR_E_NOMEM)
        return refuse_key_file(error, path, "out of memory", ret_why, why_bytes);
    return error == 0
               ? 0
               : refuse_key_file(
                     error, path,
                     "not a complete file of keys, or of another version of weir; remove it, and all keys start empty",
                     ret_why, why_bytes);
}
