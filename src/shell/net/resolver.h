/* SPDX-License-Identifier: MIT */
/* resolver.h - from names to addresses, by a bounded pool of threads.
 *
 *     query->on_answer = …;
 *     error = wr_resolver_ask(resolver, name, query, &is_ready);      ready: query->answer is there already
 *     wr_resolver_withdraw(resolver, query);                          from then on it is not called
 *
 * The system's lookup blocks for as long as it likes, so it runs on threads, of which there are at most `threads`. Each
 * name is looked up once at a time, however many ask. A lookup that has lasted for `slow_ns` is slow, and so are the
 * next ones under the same domain; those known to be slow get half of the pool at most, so they do not hold up others
 * (E1). Whoever asks decides how long to wait: it withdraws.
 *
 *     asked ──> quick names ──┐  threads - threads/2 young lookups
 *          └──> slow names  ──┴─ threads/2 slow ones
 *
 * Answers are kept for a fixed time (the system does not tell theirs), the least used leave first. What is absent is
 * kept too, for less. Of an answer only the first addresses of each family are kept.
 *
 * Threads: any, for everything.
 */
#ifndef WR_SHELL_NET_RESOLVER_H
#define WR_SHELL_NET_RESOLVER_H

#include "base/address.h"

#include <weir/time.h>

#define WR_NAME_MAX 254            /* bytes: a host name with the dot at its end */
#define WR_ANSWER_RECORDS_MAX 1000 /* of an answer, that are looked at */
#define WR_ANSWER_FAMILY_MAX 4     /* addresses of one family that are kept */
#define WR_ANSWER_MAX (2 * WR_ANSWER_FAMILY_MAX)

enum wr_answer_kind {
    WR_ANSWER_FOUND,
    WR_ANSWER_ABSENT, /* there is no such name, or it has no address */
    WR_ANSWER_FAILED, /* nobody could tell; may be known later */
    WR_ANSWER_SCARCE, /* there was no memory to ask; not kept */
};

struct wr_answer {
    uint8_t kind; /* enum wr_answer_kind */
    uint8_t count;
    struct wr_address list[WR_ANSWER_MAX]; /* best first */
};

/* A URL's host without brackets: a name to look up, or an address. */
void wr_host_copy(struct wr_span host, char ret_host[WR_NAME_MAX + 1]);

/* False for what is no address of IP. */
struct sockaddr;
bool wr_address_of_socket(const struct sockaddr *from, struct wr_address *ret_address);

/* Adds an address if there is room for one more of its family. */
void wr_answer_add(struct wr_answer *answer, const struct wr_address *address);

/* Looks a name up, however long that takes. On a thread of the pool, several at once. */
typedef void wr_lookup(void *context, const char *name, struct wr_answer *ret_answer);

/* getaddrinfo(3). */
void wr_lookup_system(void *context, const char *name, struct wr_answer *ret_answer);

/* Fields that are 0 have their defaults. */
struct wr_resolver_options {
    const weir_allocator *allocator; /* the threads' own memory is the system's */
    const weir_clock *clock;
    uint32_t threads;     /* 32; at least 2, at most 1024 */
    uint32_t names_max;   /* known, waited for or looked up: 16384 */
    int64_t found_ns;     /* how long answers are kept: 5 minutes */
    int64_t absent_ns;    /* 30 s */
    int64_t failed_ns;    /* 5 s */
    int64_t slow_ns;      /* 1 s */
    wr_lookup *lookup;    /* wr_lookup_system */
    void *lookup_context; /* must stay until the last lookup has ended, even after _free */
};

struct wr_resolver;
struct wr_name;

/* Lies with whoever asks, and stays put until answered or withdrawn. */
struct wr_query {
    struct wr_answer answer;
    /* Called once when the answer has come: on any thread, with the resolver locked. Must be brief and not call it. */
    void (*on_answer)(struct wr_query *query);
    struct wr_query *next, **back; /* the resolver's */
    struct wr_name *name;          /* the resolver's: NULL when nothing is asked */
};

/* WEIR_E_INVAL, WEIR_E_NOMEM, WEIR_E_SYSTEM. */
int wr_resolver_new(const struct wr_resolver_options *options, struct wr_resolver **ret_resolver);

/* The answer is in query->answer (*ret_is_ready), or comes by query->on_answer. WEIR_E_INVAL: the name is longer than
 * WR_NAME_MAX or has a NUL. WEIR_E_FULL, WEIR_E_NOMEM, WEIR_E_SYSTEM (no thread could be started). */
int wr_resolver_ask(struct wr_resolver *resolver, struct wr_span name, struct wr_query *query, bool *ret_is_ready);

/* When it returns, on_answer has returned or will not be called. Does nothing if nothing is asked. */
void wr_resolver_withdraw(struct wr_resolver *resolver, struct wr_query *query);

/* How many lookups run now, and how many names wait for one. */
struct wr_resolver_stats {
    uint32_t threads, running, waiting, names;
    uint64_t lookups; /* begun so far */
};
void wr_resolver_stats(struct wr_resolver *resolver, struct wr_resolver_stats *ret_stats);

/* Nothing may be asked any more. Does not wait for lookups that run, which may take minutes: their threads end by
 * themselves. NULL is fine. */
void wr_resolver_free(struct wr_resolver *resolver);

#endif
