/* SPDX-License-Identifier: MIT */
/* secret.c - passwords on the command line. */
#include "cli/kit/secret.h"

#include <stdlib.h>
#include <string.h>

static void blot(char *from, const char *to)
{
    while (from < to)
        *from++ = 'x';
}

/* Between the first ':' behind "://" and the last '@' before any query; libpq wants an '@' in it escaped, people do not
 * know. */
static void blot_user(char *authority)
{
    char *colon = strpbrk(authority, ":?"), *at = NULL;
    for (char *next = colon; next != NULL && *colon == ':' && (next = strchr(next, '@')) != NULL; next++)
        if (at == NULL || memchr(at, '?', (size_t)(next - at)) == NULL)
            at = next;
    if (at != NULL)
        blot(colon + 1, at);
}

static void blot_query(char *url)
{
    static const char name[] = "password=";
    for (char *at = url; (at = strstr(at, name)) != NULL;) {
        at += sizeof name - 1;
        blot(at, at + strcspn(at, "&#"));
    }
}

void wr_secrets_hide(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        char *word = argv[i], *authority = strstr(word, "://");
        char *copy = authority != NULL ? strdup(word) : NULL;
        if (copy == NULL)
            continue;
        blot_user(authority + 3);
        blot_query(authority);
        argv[i] = copy;
    }
}
