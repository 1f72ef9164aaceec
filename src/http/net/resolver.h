/* SPDX-License-Identifier: MIT */
/* resolver.h - resolves names to addresses with a bounded pool of threads.
 *
 *     query->on_answer = …;
 *     error = wr_resolver_resolve(resolver, name, query, &is_ready);    ready: query->answer is set
 *     wr_resolver_cancel(resolver, query);                        no on_answer afterwards
 *
 * The system's lookup may block for any time, so it runs on at most `threads` threads. Each name
 * has one lookup at a time, regardless of the number of queries. A lookup that has lasted for
 * `slow_ns` is slow, and so are the next ones under the same domain. Names known to be slow get at
 * most half of the pool, so they do not delay others. The caller decides how long to wait: it
 * withdraws its query.
 *
 *     asked ──> quick names ──┐  threads - threads/2 young lookups
 *          └──> slow names  ──┴─ threads/2 slow ones
 *
 * Answers are cached for a fixed time, because the system does not report their TTL. The least
 * recently used are evicted first. Absent names are cached as well, for less time. An answer keeps
 * only the first addresses of each family.
 *
 * Threads: any thread may call any function.
 */
#ifndef WR_HTTP_NET_RESOLVER_H
#define WR_HTTP_NET_RESOLVER_H

#include "base/address.h"

#include <weir/time.h>

#define WR_NAME_MAX 254         /* bytes: a host name with its final dot */
#define WR_DNS_RECORDS_MAX 1000 /* most records examined in an answer */
#define WR_DNS_FAMILY_MAX 4     /* most addresses kept of one family */
#define WR_DNS_ADDRESSES_MAX (2 * WR_DNS_FAMILY_MAX)

enum wr_dns_answer_kind {
    WR_DNS_FOUND,
    WR_DNS_ABSENT, /* the name does not exist or has no address */
    WR_DNS_FAILED, /* the lookup failed; a later one may succeed */
    WR_DNS_SCARCE, /* no memory for a lookup; not cached */
};

struct wr_dns_answer {
    uint8_t kind; /* enum wr_dns_answer_kind */
    uint8_t count;
    struct wr_address list[WR_DNS_ADDRESSES_MAX]; /* preferred address first */
};

/* Copies a URL's host without brackets: a name to look up, or an address. */
void wr_host_copy(struct wr_span host, char ret_host[WR_NAME_MAX + 1]);

/* Converts a socket address. Returns false if it is neither IPv4 nor IPv6. */
struct sockaddr;
bool wr_address_of_socket(const struct sockaddr *from, struct wr_address *ret_address);

/* Adds an address, unless there are already WR_DNS_FAMILY_MAX of its family. */
void wr_dns_answer_add(struct wr_dns_answer *answer, const struct wr_address *address);

/* Looks a name up, for any time. Called on threads of the pool, several at once. */
typedef void wr_lookup(void *context, const char *name, struct wr_dns_answer *ret_answer);

/* Looks a name up with getaddrinfo(3). */
void wr_lookup_system(void *context, const char *name, struct wr_dns_answer *ret_answer);

/* Options. A field that is 0 has the default in its comment. */
struct wr_resolver_options {
    const weir_allocator *allocator; /* memory, except that of the threads, which is the system's */
    const weir_clock *clock;
    uint32_t threads;     /* most threads of the pool; default 32; 2 … 1024 */
    uint32_t names_max;   /* most names cached, waiting or looked up; default 16384 */
    int64_t found_ns;     /* cache time of addresses; default 5 minutes */
    int64_t absent_ns;    /* cache time of absent names; default 30 s */
    int64_t failed_ns;    /* cache time of failures; default 5 s */
    int64_t slow_ns;      /* a lookup that takes longer is slow; default 1 s */
    wr_lookup *lookup;    /* function that looks a name up; default wr_lookup_system */
    void *lookup_context; /* must be valid until the last lookup ends, even after _free */
};

struct wr_resolver;
struct wr_dns_name;

/* One query. Owned by the caller; must not move until it is answered or withdrawn. */
struct wr_dns_query {
    struct wr_dns_answer answer;
    /* Called once with the answer, on any thread, with the resolver locked. Must return quickly and
     * not call the resolver. */
    void (*on_answer)(struct wr_dns_query *query);
    struct wr_dns_query *next, **back; /* used by the resolver */
    struct wr_dns_name *name;          /* used by the resolver; NULL: the query is not asked */
};

/* Creates a resolver. Returns WEIR_E_INVAL, WEIR_E_NOMEM or WEIR_E_SYSTEM on failure. */
int wr_resolver_new(const struct wr_resolver_options *options, struct wr_resolver **ret_resolver);

/* Asks for a name. The answer is in query->answer (*ret_is_ready), or on_answer reports it later.
 * Returns WEIR_E_INVAL if the name is longer than WR_NAME_MAX or has a NUL, WEIR_E_FULL,
 * WEIR_E_NOMEM, or WEIR_E_SYSTEM if no thread could be started. */
int wr_resolver_resolve(struct wr_resolver *resolver, struct wr_span name, struct wr_dns_query *query,
                        bool *ret_is_ready);

/* Withdraws a query. When it returns, on_answer has returned or will not be called. No effect if
 * the query is not asked. */
void wr_resolver_cancel(struct wr_resolver *resolver, struct wr_dns_query *query);

/* Numbers of running lookups and of names that wait for one. */
struct wr_resolver_stats {
    uint32_t threads, running, waiting, names;
    uint64_t lookups; /* total of lookups started */
};
void wr_resolver_stats(struct wr_resolver *resolver, struct wr_resolver_stats *ret_stats);

/* Frees the resolver; no other call may follow. Does not wait for running lookups, which may take
 * minutes: their threads end by themselves. NULL is allowed. */
void wr_resolver_free(struct wr_resolver *resolver);

#endif
