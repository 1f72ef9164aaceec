/* SPDX-License-Identifier: MIT */
/* postgres.h - a PostgreSQL server for tests, on a Unix socket in a temporary folder; it ends with
 * the process. */
#ifndef WEIR_TEST_STORE_POSTGRES_H
#define WEIR_TEST_STORE_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>

/* Starts the server unless it runs. Returns false if PostgreSQL is not installed; fails the test if
 * it does not start. */
bool postgres_start(void);

/* Creates a schema for one test and returns its name and a URL for it. The schema "" is the
 * server's default one. */
void postgres_make(char *ret_schema, size_t schema_bytes, char *ret_url, size_t url_bytes);
void postgres_remove(const char *schema);

/* Starts a PgBouncer in front of the server, in transaction mode with two connections, and returns
 * the URL of a database behind it. Returns false if PgBouncer is not installed. */
bool postgres_bounce(char *ret_url, size_t url_bytes);

/* Runs SQL statements in the schema over another connection. */
void postgres_run(const char *schema, const char *sql);

/* Repeats the query until it returns a row; fails the test after a minute. */
void postgres_await(const char *schema, const char *sql);

#endif
