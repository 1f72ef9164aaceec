/* SPDX-License-Identifier: MIT */
/* domain.c - finds the registrable domain of a host name in the public suffix list (libpsl). */
#include "base/ascii.h"

#include <libpsl.h>
#include <stdbool.h>
#include <string.h>
#include <weir/web.h>

#define NAME_MAX_BYTES 253 /* maximum length of a DNS name */

/* Returns true if a name may be a DNS name: ASCII, and no IP address (which ends with a number). */
static bool is_dns_name(const char *name, size_t bytes)
{
    size_t last = bytes;
    if (bytes > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)name[i] <= ' ' || (unsigned char)name[i] > '~' || name[i] == ':' || name[i] == '[')
            return false;
        last = name[i] == '.' ? i + 1 : last;
    }
    return last < bytes && !wr_ascii_is_digit(name[last]);
}

size_t weir_registrable_domain(void *context, const char *host, size_t host_bytes)
{
    char name[NAME_MAX_BYTES + 1];
    (void)context;
    if (!is_dns_name(host, host_bytes))
        return 0;
    memcpy(name, host, host_bytes);
    name[host_bytes] = '\0';
    const char *domain = psl_registrable_domain(psl_builtin(), name);
    return domain != NULL ? host_bytes - (size_t)(domain - name) : 0;
}
