/* SPDX-License-Identifier: MIT */
/* host_order.c - chooses which of several database hosts to try first.
 *
 * If libpq cannot connect to a host of a list, or the host is not what target_session_attrs
 * requires, libpq tries the next one. But it would begin with a silent host, or one that hangs up,
 * every time. So each new connection begins one host further on.
 */
#include "crawl/store/postgres/pg.h"

#include <stdlib.h>

#define OPTIONS_MAX 64 /* libpq 15 has 41 options */

static void reverse_bytes(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes / 2; i++) {
        char byte = text[i];
        text[i] = text[bytes - 1 - i];
        text[bytes - 1 - i] = byte;
    }
}

/* Turns "a,b,c" into "b,c,a". */
static void put_first_last(char *list)
{
    size_t bytes = strlen(list), first = strcspn(list, ",");

    if (first == bytes)
        return;
    reverse_bytes(list, bytes);
    reverse_bytes(list, bytes - first - 1);
    reverse_bytes(list + bytes - first, first);
}

static unsigned list_length(const char *list)
{
    unsigned count = 1;

    for (const char *comma = list; (comma = strchr(comma, ',')) != NULL; comma++)
        count++;
    return count;
}

static void rotate_list(char *list, unsigned turns)
{
    for (unsigned i = turns % list_length(list); i > 0; i--)
        put_first_last(list);
}

static bool is_list(const char *keyword)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 || strcmp(keyword, "port") == 0;
}

unsigned wr_pg_host_count(const char *url)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    unsigned most = 1;

    for (const PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++)
        if (option->val != NULL && is_list(option->keyword) && list_length(option->val) > most)
            most = list_length(option->val);
    PQconninfoFree(options);
    return most;
}

PGconn *wr_pg_connect_start(const char *url, unsigned turns, int64_t *ret_patience_ns)
{
    const char *names[OPTIONS_MAX + 3] = {"client_encoding", "fallback_application_name"};
    const char *values[OPTIONS_MAX + 3] = {"UTF8", "weir"};
    int count = 2;
    PQconninfoOption *options = PQconninfoParse(url, NULL);

    *ret_patience_ns = WR_PG_SILENCE_TIMEOUT_NS;
    for (PQconninfoOption *option = options; option != NULL && option->keyword != NULL && count < OPTIONS_MAX;
         option++) {
        if (option->val == NULL || strcmp(option->keyword, "client_encoding") == 0)
            continue;
        if (is_list(option->keyword))
            rotate_list(option->val, turns);
        int seconds = strcmp(option->keyword, "connect_timeout") == 0 ? (int)strtol(option->val, NULL, 10) : 0;
        if (seconds > 0 && seconds < 3600)
            *ret_patience_ns = seconds * WEIR_SECOND;
        names[count] = option->keyword;
        values[count++] = option->val;
    }
    PGconn *conn = options != NULL ? PQconnectStartParams(names, values, 0) : NULL;
    PQconninfoFree(options);
    return conn;
}
