/* SPDX-License-Identifier: MIT */
/* postgres.h - a PostgreSQL server for tests: on a Unix socket in a folder of its own, gone with the process. */
#ifndef WEIR_TEST_STORE_POSTGRES_H
#define WEIR_TEST_STORE_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>

/* Starts it, unless it runs; fails the test if it cannot. False: there is none on this machine. */
bool postgres_start(void);

/* The URL of a schema that is made here, and nobody else has; "" as schema: the server's own. */
void postgres_make(char *ret_schema, size_t schema_bytes, char *ret_url, size_t url_bytes);
void postgres_remove(const char *schema);

/* A PgBouncer in front of it, in transaction mode with two connections, and the URL of a database of its own there.
 * False: there is none on this machine. */
bool postgres_bounce(char *ret_url, size_t url_bytes);

/* Some statements by somebody else, in the schema. */
void postgres_run(const char *schema, const char *sql);

/* Until it answers with a row; fails the test after a minute. */
void postgres_await(const char *schema, const char *sql);

#endif
