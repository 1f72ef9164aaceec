/* SPDX-License-Identifier: MIT */
/* web.h - facts about the web that need a list: the public suffixes.
 *
 *     weir_pacer_options_init(&options);
 *     options.groups = WEIR_GROUP_DOMAIN;
 *     options.domain_of = weir_registrable_domain;
 *
 * Threads: every function may be called from any thread.
 */
#ifndef WEIR_WEB_H
#define WEIR_WEB_H

#include <stddef.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the length of the registrable domain at the end of `host`: the public suffix and one
 * label more, "example.co.uk" in "www.example.co.uk". Returns 0 for addresses, for names that are
 * a public suffix themselves, and if libpsl was built without the list. `host` is a host name in
 * ASCII and lower case, without a port. `context` is not used (see weir_domain_of of pace.h). */
WEIR_API size_t weir_registrable_domain(void *context, const char *host, size_t host_bytes);

#ifdef __cplusplus
}
#endif
#endif
