/* SPDX-License-Identifier: MIT */
/* sql.h - changes a state file with SQL, without weir. */
#ifndef WEIR_TEST_SQL_H
#define WEIR_TEST_SQL_H

#include "lib/test.h"

#include <sqlite3.h>

static inline void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#endif
