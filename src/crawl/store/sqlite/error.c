/* SPDX-License-Identifier: MIT */
/* error.c - converts SQLite's results, and lists the backend's functions. */
#include "base/buf.h"
#include "crawl/store/sqlite/sqlite.h"

#include <errno.h>

const struct wr_backend_kind wr_backend_sqlite = {
    .name = "sqlite",
    .noun = "state file",
    .open = wr_sqlite_open,
    .close = wr_sqlite_close,
    .begin = wr_sqlite_begin,
    .apply = wr_sqlite_apply,
    .add_job = wr_sqlite_add_job,
    .flush = wr_sqlite_flush,
    .commit = wr_sqlite_commit,
    .undo = wr_sqlite_undo,
    .settle = wr_sqlite_settle,
    .read = wr_sqlite_read,
};

static bool is_disk_full(sqlite3 *db, int code)
{
    int system = sqlite3_system_errno(db);

    /* SQLite before 3.41 does not record the error of a failed commit */
    system = system != 0 ? system : errno;
    return code == SQLITE_FULL ||
           (code == SQLITE_IOERR_WRITE && (system == ENOSPC || system == EDQUOT || system == EFBIG));
}

static void set_sqlite_reason(struct wr_sqlite *sqlite, const char *what, const char *detail)
{
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, sqlite->backend.why, sizeof sqlite->backend.why);
    wr_buf_append_string(&buf, what);
    wr_buf_append_string(&buf, detail);
}

/* For a failure that SQLite did not report itself, sqlite3_errmsg has no text. */
const char *wr_sqlite_error_text(sqlite3 *db, int code)
{
    return db != NULL && (sqlite3_errcode(db) & 0xff) == (code & 0xff) ? sqlite3_errmsg(db) : sqlite3_errstr(code);
}

int wr_sqlite_error(struct wr_sqlite *sqlite, int code)
{
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE)
        return 0;
    if (is_disk_full(sqlite->db, code)) {
        set_sqlite_reason(sqlite, "the disk is full; free some space, and the crawl continues by itself", "");
        return WEIR_E_FULL;
    }
    switch (code == SQLITE_IOERR_NOMEM ? SQLITE_NOMEM : code & 0xff) {
    case SQLITE_NOMEM:
        set_sqlite_reason(sqlite, "out of memory", "");
        return WEIR_E_NOMEM;
    case SQLITE_BUSY:
        set_sqlite_reason(sqlite, "locked by another process", "");
        return WEIR_E_TIMEOUT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        set_sqlite_reason(sqlite, "is damaged: ", wr_sqlite_error_text(sqlite->db, code));
        return WEIR_E_SYSTEM;
    default:
        set_sqlite_reason(sqlite, "cannot be used any more: ", sqlite3_errmsg(sqlite->db));
        return WEIR_E_SYSTEM;
    }
}

int wr_sqlite_run(sqlite3_stmt *statement)
{
    errno = 0;
    int code = sqlite3_step(statement);
    while (code == SQLITE_ROW)
        code = sqlite3_step(statement);
    int system = errno;
    (void)sqlite3_reset(statement);
    errno = system;
    return code == SQLITE_DONE ? SQLITE_OK : code;
}
