/* SPDX-License-Identifier: MIT */
/* secret.c - hides secrets on the command line. */
#include "cli/kit/secret.h"

#include <stdlib.h>
#include <string.h>

static void overwrite_text(char *from, const char *to)
{
    while (from < to)
        *from++ = 'x';
}

/* Overwrites the user, if there is no password: it may be a token. Otherwise overwrites the text
 * from the first ':' after "://" to the last '@' before a query. libpq requires an '@' in a
 * password to be escaped, but users do not know that. */
static void overwrite_user(char *authority)
{
    char *end = authority + strcspn(authority, ":@/?#");
    if (*end == '@')
        overwrite_text(authority, end);
    char *colon = strpbrk(authority, ":?"), *at = NULL;
    for (char *next = colon; next != NULL && *colon == ':' && (next = strchr(next, '@')) != NULL; next++)
        if (at == NULL || memchr(at, '?', (size_t)(next - at)) == NULL)
            at = next;
    if (at != NULL)
        overwrite_text(colon + 1, at);
}

static void overwrite_query(char *url)
{
    static const char name[] = "password=";
    for (char *at = url; (at = strstr(at, name)) != NULL;) {
        at += sizeof name - 1;
        overwrite_text(at, at + strcspn(at, "&#"));
    }
}

/* Returns the value of --header: the rest of this argument, or this argument if the one before is
 * --header. Returns NULL if it is neither. */
static char *find_field(char *word, const char *before)
{
    static const char option[] = "--header=";
    if (strncmp(word, option, sizeof option - 1) == 0)
        return word + sizeof option - 1;
    return before != NULL && strcmp(before, "--header") == 0 ? word : NULL;
}

void wr_secrets_hide(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        char *word = argv[i], *authority = strstr(word, "://");
        char *field = find_field(word, i > 0 ? argv[i - 1] : NULL);
        char *copy = authority != NULL || field != NULL ? strdup(word) : NULL;
        if (copy == NULL)
            continue;
        if (field != NULL) {
            overwrite_text(field, field + strlen(field));
        } else {
            overwrite_user(authority + 3);
            overwrite_query(authority);
        }
        argv[i] = copy;
    }
}
