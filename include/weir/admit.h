/* SPDX-License-Identifier: MIT */
/* admit.h - admits the callers of your own service.
 *
 * A weir_admission admits callers by rules. A rule is a name, a weir_key_rule (which part of a
 * request identifies the caller: its address, a user header, the route, ...) and a repository that
 * keeps one limiter per key, usually a weir_table. All rules must grant a request; a refusal
 * charges nothing.
 *
 *     weir_key_store users = weir_table_key_store(table);
 *     weir_key_rule_init(&key, WEIR_KEY_IP);
 *     weir_rule_init(&rule, "per-ip", &key, &users);
 *     weir_admission_new(&rule, 1, NULL, &counter);
 *     weir_request_init(&request, "GET", "/login?next=/", "203.0.113.7");
 *     if (weir_admission_try(counter, &request, &admission) == 0 && admission.allowed)
 *         serve();
 *
 * Which function?
 *     try              decides without waiting; the admission has the reason, and when to try again
 *     acquire          blocks until the request is admitted
 *     release          the request has ended (matters only to limits on requests in flight)
 *     settle, cancel   correct the cost of the request, or take it back
 *     ..._key          the same for a key that you already have
 *
 * Order: rules are asked in turn, and the first refusal ends the decision. Put narrow rules first
 * (this caller) and wide rules last (all callers), so that a caller over its own limit cannot use
 * up what others share.
 *
 * Requests are untrusted input. Addresses, hosts and credentials are parsed strictly and have one
 * spelling, so that no other spelling is a second key. A path is read in each way in which a
 * service may read it. A request without a usable key is refused or gets one shared key, as the
 * weir_key_rule says. It is never admitted without a check.
 *
 * The counter copies only the structures themselves: the objects to which rules and keys point must
 * outlive it.
 *
 * Threads: every weir_admission function except new and free may be called from any thread. A
 * weir_admission_result belongs to one request. Decisions allocate nothing (the repository may, for
 * a new key). All other functions here are pure.
 */
#ifndef WEIR_ADMIT_H
#define WEIR_ADMIT_H

#include <weir/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- requests -------------------------------------------------------------------------------- */

/* Returns value number `index` (0, 1, ...) of the header `name`, or NULL if there are fewer values.
 * `name` is in lower case; names match in any case. The value must not change during the call of
 * weir that asks for it. */
typedef const char *weir_header_of(void *context, const char *name, size_t index, size_t *ret_bytes);

/* The data of a request. Strings are not terminated; an unknown string is NULL with 0 bytes. */
typedef struct weir_request {
    size_t size;        /* size of this structure */
    const char *method; /* "GET" */
    size_t method_bytes;
    const char *host; /* value of Host; if the target is a URL, it must have the same host */
    size_t host_bytes;
    const char *target; /* "/path?query", or the whole URL; empty means "/" */
    size_t target_bytes;
    const char *peer; /* other end of the connection: "203.0.113.7", "[2001:db8::1]:443", "unix:" */
    size_t peer_bytes;
    weir_header_of *header; /* NULL: no headers */
    void *header_context;
    uint32_t cost; /* cost in permits, if your program knows it; 0: the cost of the rule */
} weir_request;

/* Creates a request from terminated strings, each of which may be NULL. */
WEIR_API void weir_request_init(weir_request *ret_request, const char *method, const char *target, const char *peer);

/* An array of headers: request.header = weir_header_list_find; request.header_context = &list; */
typedef struct weir_header {
    const char *name, *value;
} weir_header;

typedef struct weir_header_list {
    const weir_header *headers;
    size_t count;
} weir_header_list;

WEIR_API const char *weir_header_list_find(void *list, const char *name, size_t index, size_t *ret_bytes);

/* ---- networks -------------------------------------------------------------------------------- */

/* A range of addresses. IPv4 is stored as ::ffff:a.b.c.d, so that both spellings are equal. */
typedef struct weir_network {
    uint8_t address[16];
    uint8_t prefix; /* 0 to 128 */
} weir_network;

/* Parses "10.0.0.0/8", "2001:db8::/32", or one address. Bits beyond the prefix must be 0.
 * WEIR_E_INVAL. */
WEIR_API int weir_network_parse(const char *text, weir_network *ret_network);

/* ---- keys ------------------------------------------------------------------------------------ */

typedef enum weir_key_kind {
    WEIR_KEY_GLOBAL, /* "__global__": one key for all callers */
    WEIR_KEY_IP,     /* caller's address or network: "203.0.113.7", "2001:db8:1:2::/64" */
    /* The value of a header, which your proxy must set, because callers could choose it. Of
     * Authorization and Proxy-Authorization it is the token, without its scheme. */
    WEIR_KEY_USER,
    WEIR_KEY_ROUTE,     /* path, without its query */
    WEIR_KEY_CUSTOM,    /* result of your own function */
    WEIR_KEY_COMPOSITE, /* several of these together */
} weir_key_kind;

/* Which address of a request to trust as the caller's. */
typedef enum weir_hops {
    /* The peer, unless it is one of the `trusted` proxies. Then the right-most address in the
     * header that is not a trusted proxy, because proxies append to it. Addresses further left,
     * which callers can write, are ignored. A part that is not an address ends the search. */
    WEIR_HOPS_TRUSTED,
    /* The first address in the header, or else in X-Real-IP. ANY CALLER CAN FORGE IT: use it only
     * behind a proxy that replaces these headers. */
    WEIR_HOPS_FIRST,
} weir_hops;

/* Why a request has no usable key or cost, or cannot be read: a short name, and a description. */
#define WEIR_FAULTS(X)                                                                                          \
    X(WEIR_FAULT_NONE, "none", "nothing is wrong")                                                              \
    X(WEIR_FAULT_MISSING, "missing", "a required field is missing or empty")                                    \
    X(WEIR_FAULT_LONG, "too_long", "the key, path or host is too long")                                         \
    X(WEIR_FAULT_BYTES, "bad_bytes", "it has a control character, backslash, '#' or byte that must be escaped") \
    X(WEIR_FAULT_REPEATED, "repeated", "a field is repeated, or a list has too many lines")                     \
    X(WEIR_FAULT_ADDRESS, "no_address", "the caller's address is invalid")                                      \
    X(WEIR_FAULT_COST, "bad_cost", "the cost is not a number from 1 to cost_max")                               \
    X(WEIR_FAULT_TARGET, "bad_target", "the target is neither a path nor an http URL, or begins with \"//\"")   \
    X(WEIR_FAULT_DOTS, "dot_parts", "the path has a part \".\" or \"..\"")                                      \
    X(WEIR_FAULT_ESCAPE, "bad_escape", "the path has an invalid escape, or one that services read differently") \
    X(WEIR_FAULT_HOST, "bad_host", "the Host is not a host name, or differs from that of the target")           \
    X(WEIR_FAULT_CREDENTIALS, "bad_credentials", "Authorization is not a scheme and one token")                 \
    X(WEIR_FAULT_WORK, "too_much_work", "comparing it with the rules takes too many steps: it is too long")

typedef enum weir_request_fault {
#define X(fault, name, text) fault,
    WEIR_FAULTS(X)
#undef X
} weir_request_fault;

/* Returns the name of a fault: "missing", "too_long", ...; "none" for an unknown number. */
WEIR_API const char *weir_request_fault_name(weir_request_fault fault);

/* Returns the description of a fault, in one line without a full stop. */
WEIR_API const char *weir_request_fault_text(weir_request_fault fault);

/* The spellings of a path that your services treat as different. By default none: all spellings of
 * a path are one route, and a counter reads a path in each way in which a service may read it. */
typedef enum weir_exact {
    WEIR_EXACT_CASE = 1,    /* "/Login" and "/login" */
    WEIR_EXACT_SLASHES = 2, /* "/a/b/", "/a//b" and "/a/b" */
    WEIR_EXACT_PARAMS = 4,  /* "/login;a=1" and "/login" */
} weir_exact;

#define WEIR_EXACT_ALL (WEIR_EXACT_CASE | WEIR_EXACT_SLASHES | WEIR_EXACT_PARAMS)

/* Writes the key and returns its length in bytes; 0: no key; more than buffer_bytes: too long. */
typedef size_t weir_key_custom(void *context, const weir_request *request, char *buffer, size_t buffer_bytes);

#define WEIR_KEY_PARTS_MAX 8
#define WEIR_HEADER_LINES_MAX 64 /* most lines of a list of forwarding addresses */

/* Which part of a request is its key. Fill with weir_key_rule_init, then change what you need. */
typedef struct weir_key_rule {
    size_t size; /* size of this structure */
    weir_key_kind kind;
    /* In lower case. USER: default "x-user-id"; IP: default "x-forwarded-for". */
    const char *header;
    /* Key of requests without one. Default: USER "anonymous", IP "unknown", else NULL: refused. */
    const char *fallback;
    bool share_malformed; /* true: requests with other faults get it, too; default: refused */
    /* For tokens, which must not appear in logs and snapshots: the key is '#' and 32 hex digits,
     * made with this secret from the value of any length. Default NULL: the value itself. */
    const char *secret;
    /* Only for IP. */
    weir_hops hops;
    const weir_network *trusted; /* your proxies; default: none */
    size_t trusted_count;
    bool trust_unix;   /* a peer without an address (Unix socket) is trusted; default false */
    uint8_t v4_prefix; /* 1 to 32, default 32 */
    uint8_t v6_prefix; /* 1 to 128, default 64, the usual network of one household or machine */
    bool with_method;  /* ROUTE: "GET /path"; "OTHER" if unknown to RFC 9110; default false */
    unsigned exact;    /* ROUTE: set of weir_exact; default 0 */
    char separator;    /* COMPOSITE: printable ASCII except '\' and space; default ':' */
    /* COMPOSITE: 2 to WEIR_KEY_PARTS_MAX keys, none of them composite. */
    const struct weir_key_rule *const *parts;
    size_t parts_count;
    weir_key_custom *custom; /* CUSTOM: your function */
    void *custom_context;
} weir_key_rule;

WEIR_API void weir_key_rule_init(weir_key_rule *ret_key, weir_key_kind kind);

/* Writes a request's key to `buffer`, without a terminator. WEIR_KEY_MAX bytes are enough for any
 * key. Returns 0; WEIR_E_ABSENT if there is no key: *ret_fault has the reason; WEIR_E_SPACE;
 * WEIR_E_INVAL. *ret_fault (may be NULL) is set whenever the request was read.
 *
 * Routes: all spellings of a path that some service treats as equal are one key. It is in lower
 * case, without parameters, "//" and a '/' at the end, and "%2F" is "/", except as `exact` says.
 * Spellings that services read differently and no client needs are faults: parts "." and "..",
 * backslashes, control characters, escapes of letters, targets that are not a path.
 *
 * Composites: the parts are joined by the separator. A separator or '\' in a part gets a '\' before
 * it, so that different parts never make the same key: "a:b" and "c" are "a\:b:c". */
WEIR_API int weir_key_extract(const weir_key_rule *key, const weir_request *request, char *buffer, size_t buffer_bytes,
                              size_t *ret_bytes, weir_request_fault *ret_fault);

/* ---- rules ----------------------------------------------------------------------------------- */

#define WEIR_RULES_MAX 1000   /* most rules in a counter */
#define WEIR_RULINGS_MAX 8    /* most rules that apply to one request */
#define WEIR_RULE_NAME_MAX 64 /* most bytes of a rule's name */

/* The functions of rules and keys get requests as the counter reads them: the method in capitals if
 * RFC 9110 knows it, the path without the query as the target, the host in lower case and without
 * port. If services read a path differently ("/Login/", "/login;a=1", "//x/login"), the counter
 * calls them once for each reading, so that comparing the target with "/login" is enough.
 * header_context is yours: it may lead to other data. */

/* Returns whether a rule applies to this request. */
typedef bool weir_rule_applies(void *context, const weir_request *request);

/* Returns the plan of a request: 0 is the rule's own repository, 1 the first of its `plans`, and so
 * on; a larger number means 0. `request` is NULL in the ..._key functions. */
typedef uint32_t weir_rule_plan(void *context, const weir_request *request, const char *key, size_t key_bytes);

/* One rule of a counter. Fill with weir_rule_init, then change what you need. */
typedef struct weir_rule {
    size_t size; /* size of this structure */
    /* 1 to WEIR_RULE_NAME_MAX of printable ASCII, unique in a counter. Callers see it. */
    const char *name;
    const weir_key_rule *key;         /* NULL: only for the ..._key functions */
    const weir_key_store *repository; /* copied; rules with the same repository share its keys */
    bool owns_store;                  /* the repository is freed with the counter; default false */
    uint32_t permits;                 /* cost of a request; default 1 */
    const char *cost_header;          /* header with the cost of the request; default NULL: none */
    uint32_t cost_max;                /* highest cost that this header may have; default 1 */
    bool shadow;                      /* counts, charges, reports, never refuses; default false */
    bool open_on_error;               /* admits requests if the repository fails; default false */
    weir_rule_applies *applies;       /* default NULL: the rule applies to all requests */
    void *applies_context;
    /* Plans for callers with other limits. Permits are given back to the plan that granted them. */
    const weir_key_store *plans; /* repositories; the counter never frees them; default none */
    size_t plan_count;
    weir_rule_plan *plan_of; /* default NULL: plan 0 for all callers */
    void *plan_context;
} weir_rule;

WEIR_API void weir_rule_init(weir_rule *ret_rule, const char *name, const weir_key_rule *key,
                             const weir_key_store *repository);

/* ---- admissions ------------------------------------------------------------------------------ */

typedef enum weir_ruling_outcome {
    WEIR_OUTCOME_GRANTED,   /* granted and charged */
    WEIR_OUTCOME_REFUSED,   /* refused; `decision` has the wait */
    WEIR_OUTCOME_MALFORMED, /* no usable key or cost; `fault` has the reason */
    WEIR_OUTCOME_FAILED,    /* the repository failed with `error` */
} weir_ruling_outcome;

/* The answer of one rule to one request. */
typedef struct weir_ruling {
    const char *name; /* name of the rule */
    uint32_t rule;    /* index of the rule */
    weir_ruling_outcome outcome;
    bool shadow;              /* true: never refuses, whatever the outcome */
    weir_request_fault fault; /* set with MALFORMED */
    int error;                /* WEIR_E_... with FAILED, and if an `acquire` failed */
    weir_decision decision;   /* set with GRANTED and REFUSED */
    weir_quota quota;         /* quota after this request; limit 0: unknown */
    uint32_t permits;         /* permits taken and not given back yet */
    uint32_t key_at;          /* the key is key_bytes at admission.keys + key_at */
    uint32_t key_bytes;
    bool reserved;        /* true: the receipt is valid */
    weir_receipt receipt; /* for settle and cancel */
    uint32_t plan;        /* plan that decided */
} weir_ruling;

/* The answer to a request. It is large, because it has room for keys: pass it by pointer. You may
 * discard it, unless it is needed for release, settle or cancel. */
typedef struct weir_admission_result {
    bool allowed;
    uint32_t count; /* number of rulings; after a refusal the last one refused */
    /* Seconds until the next try, rounded up, at least 1; 0 if allowed, or if no later try can
     * succeed. */
    int64_t retry_after_s;
    weir_ruling rulings[WEIR_RULINGS_MAX];
    char keys[WEIR_RULINGS_MAX * WEIR_KEY_MAX]; /* only the parts of the rulings are written */
} weir_admission_result;

/* Returns the ruling that refused, or for an allowed request the one with the smallest share left.
 * NULL if no rule applied (or no quota is known). Rules in shadow do not count. */
WEIR_API const weir_ruling *weir_admission_result_decisive(const weir_admission_result *admission);

/* Returns the HTTP status: 200; 429; 400 for a malformed key or cost; 503 if a repository
 * failed. */
WEIR_API int weir_admission_result_status(const weir_admission_result *admission);

/* ---- response headers ------------------------------------------------------------------------ */

/* RateLimit and RateLimit-Policy are those of draft-ietf-httpapi-ratelimit-headers-10. They list
 * every rule with a known quota that is not in shadow. X-RateLimit-* describe the decisive rule,
 * and X-RateLimit-Reset is a Unix time. All times are rounded up. The time of the rule that refused
 * is the wait before the next try, and the time of the others is the wait until their quota is full
 * again. Policies are for whole seconds: a rule of 2 in 200 ms is written as q=10;w=1.
 *
 * Each rule is one member of the lists, however many limits its table has. If the table has several
 * (10/s and 1000/h, say), the member describes the limit with the smallest share left, so that the
 * policy may change between responses. If callers read these fields, create one rule per window,
 * each with a table of its own. */
typedef enum weir_field {
    WEIR_FIELD_RETRY_AFTER = 1,
    WEIR_FIELD_RATELIMIT = 2,
    WEIR_FIELD_RATELIMIT_POLICY = 4,
    WEIR_FIELD_X_LIMIT = 8,
    WEIR_FIELD_X_REMAINING = 16,
    WEIR_FIELD_X_RESET = 32,
} weir_field;

#define WEIR_FIELDS_RATELIMIT (WEIR_FIELD_RATELIMIT | WEIR_FIELD_RATELIMIT_POLICY)
#define WEIR_FIELDS_X (WEIR_FIELD_X_LIMIT | WEIR_FIELD_X_REMAINING | WEIR_FIELD_X_RESET)
#define WEIR_FIELDS_ALL (WEIR_FIELD_RETRY_AFTER | WEIR_FIELDS_RATELIMIT | WEIR_FIELDS_X)
#define WEIR_FIELDS_BYTES_MAX 4096 /* enough for any admission */

/* Returns the name of one field: "Retry-After", ...; NULL for any other number. */
WEIR_API const char *weir_field_name(weir_field field);

/* Writes the value of one field, terminated; an empty text if the field does not apply. `wall_ns`
 * is the time of day (weir_wall_now), for X-RateLimit-Reset only. WEIR_E_SPACE (the content of the
 * buffer is undefined), WEIR_E_INVAL. */
WEIR_API int weir_field_format(const weir_admission_result *admission, weir_field field, int64_t wall_ns, char *buffer,
                               size_t buffer_bytes, size_t *ret_bytes);

/* Writes all fields of the set that apply, as lines "Name: value\r\n", terminated. The errors are
 * those of weir_field_format. */
WEIR_API int weir_fields_format(const weir_admission_result *admission, unsigned fields, int64_t wall_ns, char *buffer,
                                size_t buffer_bytes, size_t *ret_bytes);

/* ---- the counter ----------------------------------------------------------------------------- */

typedef struct weir_admission weir_admission;

/* Called for every ruling that is not GRANTED, also in shadow, in the thread of the call and before
 * the call returns. `request` is NULL in the ..._key functions. It may call weir. */
typedef void weir_rejected(void *context, const weir_request *request, const weir_admission_result *admission,
                           const weir_ruling *ruling);

/* Fill with weir_admission_options_init, then change what you need. */
typedef struct weir_admission_options {
    size_t size; /* size of this structure */
    /* true: do not ask for the permits left: faster, but no RateLimit fields; default false. */
    bool without_quota;
    /* true: ask only the first of the rules that apply and are not in shadow. If a path has several
     * readings, the first rule of each reading is asked. Default false: ask all. */
    bool first_match;
    unsigned exact; /* set of weir_exact; default 0: none */
    weir_rejected *rejected;
    void *rejected_context;
    const weir_clock *clock;         /* clock of timeouts; default: weir_clock_fast() */
    const weir_allocator *allocator; /* default: the system's allocator */
} weir_admission_options;

WEIR_API void weir_admission_options_init(weir_admission_options *ret_options);

/* Creates a counter with `count` rules (1 to WEIR_RULES_MAX). With several rules, each repository
 * must have reserve and settle. `options` may be NULL. WEIR_E_INVAL, WEIR_E_NOMEM: the caller keeps
 * all repositories. */
WEIR_API int weir_admission_new(const weir_rule *rules, size_t count, const weir_admission_options *options,
                                weir_admission **ret_counter);

/* Frees the counter and the repositories that it owns. No call may be using it: to end waiting
 * calls, close the tables or cancel first. NULL is allowed. */
WEIR_API void weir_admission_free(weir_admission *counter);

/* Asks all rules that apply; never blocks (unless your own repository does). Returns 0 with the
 * answer, also after a refusal, or WEIR_E_INVAL (also if more than WEIR_RULINGS_MAX rules apply).
 * If a repository fails, its rule decides whether the request is refused. */
WEIR_API int weir_admission_try(weir_admission *counter, const weir_request *request,
                                weir_admission_result *ret_admission);

/* Waits until all rules grant, for at most `timeout_ns` (WEIR_FOREVER: no timeout). Returns 0 only
 * if the request is admitted. Otherwise WEIR_E_TIMEOUT, WEIR_E_CANCELLED, WEIR_E_CLOSED,
 * WEIR_E_FULL, WEIR_E_NEVER or the repository's own error; WEIR_E_INVAL also if the request is
 * malformed. The admission is filled unless an argument was wrong. Rules are waited for in order; a
 * rule keeps the permits that it granted while the next is waited for. After a failure all permits
 * are given back. */
WEIR_API int weir_admission_acquire(weir_admission *counter, const weir_request *request, int64_t timeout_ns,
                                    weir_cancel *cancel, weir_admission_result *ret_admission);

/* These use one rule and a key of any 1 to WEIR_KEY_MAX bytes. `permits` 0: the cost of the
 * rule. */
WEIR_API int weir_admission_try_key(weir_admission *counter, uint32_t rule, const char *key, size_t key_bytes,
                                    uint32_t permits, weir_admission_result *ret_admission);
WEIR_API int weir_admission_acquire_key(weir_admission *counter, uint32_t rule, const char *key, size_t key_bytes,
                                        uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                                        weir_admission_result *ret_admission);
WEIR_API int weir_admission_release_key(weir_admission *counter, uint32_t rule, const char *key, size_t key_bytes,
                                        uint32_t permits);

/* Ends the permits in flight of a request that has ended. Does nothing in a second call, or for a
 * request that was refused. Returns 0 or a repository's first error (all repositories are
 * called). */
WEIR_API int weir_admission_release(weir_admission *counter, weir_admission_result *admission);

/* Reports that the request really cost `used` permits of this ruling's rule, as weir_limiter_settle
 * does, once. WEIR_E_INVAL if the ruling has no receipt: it did not grant, or its repository cannot
 * reserve or settle. */
WEIR_API int weir_admission_settle(weir_admission *counter, weir_admission_result *admission, uint32_t ruling,
                                   uint32_t used);

/* Takes back a request that was not served: gives back all permits that were not settled, and ends
 * its permits in flight. Otherwise as weir_admission_release. */
WEIR_API int weir_admission_cancel(weir_admission *counter, weir_admission_result *admission);

/* Requests by outcome, since the counter was created. */
typedef struct weir_rule_stats {
    uint64_t granted, refused, malformed, failed;
} weir_rule_stats;

WEIR_API int weir_admission_stats_get(const weir_admission *counter, uint32_t rule, weir_rule_stats *ret_stats);

#ifdef __cplusplus
}
#endif
#endif
