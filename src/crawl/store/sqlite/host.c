/* SPDX-License-Identifier: MIT */
/* host.c - finds the rows of hosts, and counts the tasks of each job on them.
 *
 * Nearly all hosts are in a cache. A transaction counts there, and writes a host's count once, when
 * it ends.
 */
#include "crawl/store/sqlite/sqlite.h"

/* Reads the number in the first column; 0 if there is no row. */
static int read_host_number(struct wr_sqlite *sqlite, enum wr_sqlite_statement which, int64_t *ret_number)
{
    sqlite3_stmt *statement = sqlite->statements[which];
    int code = sqlite3_step(statement);

    *ret_number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return wr_sqlite_error(sqlite, code);
}

static int find_or_insert_host(struct wr_sqlite *sqlite, struct wr_span key, int64_t *ret_id)
{
    wr_sqlite_bind_text(sqlite->statements[WR_SQL_HOST_ID], 1, key);
    int error = read_host_number(sqlite, WR_SQL_HOST_ID, ret_id);
    if (error != 0 || *ret_id != 0)
        return error;
    wr_sqlite_bind_text(sqlite->statements[WR_SQL_HOST_ADD], 1, key);
    error = wr_sqlite_write(sqlite, WR_SQL_HOST_ADD);
    if (error == 0)
        *ret_id = sqlite3_last_insert_rowid(sqlite->db);
    return error;
}

/* Writes the counts of `count` slots with the statement `which`, which takes as many. */
static int write_counts(struct wr_sqlite *sqlite, enum wr_sqlite_statement which,
                        struct wr_sqlite_host_slot *const *slots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t numbers[] = {slots[i]->job, slots[i]->id, slots[i]->accepted};
        wr_sqlite_bind_numbers(sqlite->statements[which], 1 + 3 * (int)i, numbers, 3);
        slots[i]->accepted = 0;
    }
    return wr_sqlite_write(sqlite, which);
}

static int write_count(struct wr_sqlite *sqlite, struct wr_sqlite_host_slot *slot)
{
    return slot->accepted == 0 ? 0 : write_counts(sqlite, WR_SQL_ACCEPTED, &slot, 1);
}

/* Returns the only slot where the host can be. Assumes that 64-bit hashes differ. */
static struct wr_sqlite_host_slot *host_slot_of(struct wr_sqlite *sqlite, struct wr_span key, uint64_t *ret_hash)
{
    *ret_hash = wr_hash(&sqlite->backend.hash_key, key.data, key.bytes);
    return &sqlite->hosts[*ret_hash & (WR_SQLITE_HOST_CACHE - 1)];
}

int wr_sqlite_host_get(struct wr_sqlite *sqlite, struct wr_span key, struct wr_sqlite_host_slot **ret_slot)
{
    uint64_t hash;
    int64_t id = 0;
    struct wr_sqlite_host_slot *slot = host_slot_of(sqlite, key, &hash);

    if (slot->id == 0 || slot->hash != hash) {
        int error = write_count(sqlite, slot);
        if (error == 0)
            error = find_or_insert_host(sqlite, key, &id);
        if (error != 0)
            return error;
        *slot = (struct wr_sqlite_host_slot){.hash = hash, .id = id};
    }
    *ret_slot = slot;
    return 0;
}

int wr_sqlite_host_write_counts(struct wr_sqlite *sqlite)
{
    struct wr_sqlite_host_slot *slots[WR_SQLITE_ACCEPTED_MANY];
    size_t count = 0;
    int error = 0;

    for (size_t i = 0; i < sqlite->counted_count && error == 0; i++) {
        slots[count] = &sqlite->hosts[sqlite->counted[i]];
        count += slots[count]->accepted > 0;
        if (count == WR_SQLITE_ACCEPTED_MANY) {
            error = write_counts(sqlite, WR_SQL_ACCEPTED_MANY, slots, count);
            count = 0;
        }
    }
    for (size_t i = 0; i < count && error == 0; i++)
        error = write_count(sqlite, slots[i]);
    sqlite->counted_count = 0;
    return error;
}

int wr_sqlite_host_count_task(struct wr_sqlite *sqlite, struct wr_sqlite_host_slot *slot, int64_t job)
{
    int error = slot->job != job ? write_count(sqlite, slot) : 0;

    if (error == 0 && sqlite->counted_count == WR_SQLITE_HOSTS_COUNTED)
        error = wr_sqlite_host_write_counts(sqlite);
    if (error != 0)
        return error;
    if (slot->accepted == 0)
        sqlite->counted[sqlite->counted_count++] = (uint32_t)(slot - sqlite->hosts);
    slot->job = job;
    slot->accepted++;
    return 0;
}

void wr_sqlite_host_clear_cache(struct wr_sqlite *sqlite)
{
    memset(sqlite->hosts, 0, sizeof sqlite->hosts);
    sqlite->counted_count = 0;
}

int wr_sqlite_host_task_count(struct wr_sqlite *sqlite, int64_t job, struct wr_span key, uint64_t *ret_accepted)
{
    sqlite3_stmt *statement = sqlite->statements[WR_SQL_READ_ACCEPTED];
    uint64_t hash;
    int64_t tasks;
    const struct wr_sqlite_host_slot *slot = host_slot_of(sqlite, key, &hash);

    (void)sqlite3_bind_int64(statement, 1, job);
    wr_sqlite_bind_text(statement, 2, key);
    int error = read_host_number(sqlite, WR_SQL_READ_ACCEPTED, &tasks);
    if (error != 0)
        return error;
    if (tasks < 0) /* another program changed the file */
        tasks = 0;
    bool counts = slot->id != 0 && slot->hash == hash && slot->job == job;
    *ret_accepted = (uint64_t)tasks + (uint64_t)(counts ? slot->accepted : 0);
    return 0;
}
