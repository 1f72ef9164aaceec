/* SPDX-License-Identifier: MIT */
/* admit.h - who is asking, and may they?
 *
 * Admission for the callers of your own service. They come to a weir_counter, which holds rules. A rule is a name, a
 * weir_key (what of a request says who is asking: its address, a user header, the route, …) and a repository that keeps
 * one limiter per key, usually a weir_table. All rules must grant a request; a refusal charges nothing.
 *
 *     weir_repository users = weir_table_repository(table);
 *     weir_key_init(&key, WEIR_KEY_IP);
 *     weir_rule_init(&rule, "per-ip", &key, &users);
 *     weir_counter_new(&rule, 1, NULL, &counter);
 *     weir_request_init(&request, "GET", "/login?next=/", "203.0.113.7");
 *     if (weir_counter_try(counter, &request, &admission) == 0 && admission.allowed)
 *         serve();
 *
 * Which verb?
 *     try              now or not at all; the admission says why not, and when to come again
 *     acquire          block until it may go
 *     release          the request has ended (matters to limits on requests in flight only)
 *     settle, cancel   correct what it cost, or take it back
 *     …_key            the same for a key that you have already
 *
 * Order: rules are asked in turn, and the first that refuses ends it. Put what is narrow first (this caller) and what
 * is wide last (everybody), so that a caller over its own limit cannot use up what others share.
 *
 * Strangers choose what is in a request. Addresses, hosts and credentials are read strictly and written in one way, so
 * that no spelling is a second key; a path is read in each way that a service may read it. A request without a usable
 * key is refused, or given one shared key, as the weir_key says; never waved through.
 *
 * Nothing is copied but the structs themselves: what rules and keys point to must outlive the counter.
 *
 * Threads: every weir_counter function but new and free may be called from any thread. A weir_admission belongs to one
 * request. Deciding allocates nothing (the repository may, for a new key). All else here is pure.
 */
#ifndef WEIR_ADMIT_H
#define WEIR_ADMIT_H

#include <weir/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- requests ------------------------------------------------------------------------------------------ */

/* The `index`-th (0, 1, …) value of the header `name` (given in lower case; names are equal in any case), or NULL if
 * there are not so many. The value must stay as it is during the call that asks. */
typedef const char *weir_header_of(void *context, const char *name, size_t index, size_t *ret_bytes);

/* What is known of a request. Texts are not terminated; what is not known is NULL with 0 bytes. */
typedef struct weir_request {
    size_t size;        /* of this struct */
    const char *method; /* "GET" */
    size_t method_bytes;
    const char *host; /* as in Host; a target that is a URL must have the same */
    size_t host_bytes;
    const char *target; /* "/path?query", or the whole URL; an empty one is "/" */
    size_t target_bytes;
    const char *peer; /* who is at the other end of the connection: "203.0.113.7", "[2001:db8::1]:443", "unix:" */
    size_t peer_bytes;
    weir_header_of *header; /* NULL: no headers */
    void *header_context;
    uint32_t cost; /* permits that your program says it costs; 0: what the rule says */
} weir_request;

/* From terminated texts, each of which may be NULL. */
WEIR_API void weir_request_init(weir_request *ret_request, const char *method, const char *target, const char *peer);

/* Headers in an array: `request.header = weir_header_list_find; request.header_context = &list;`. */
typedef struct weir_header {
    const char *name, *value;
} weir_header;

typedef struct weir_header_list {
    const weir_header *headers;
    size_t count;
} weir_header_list;

WEIR_API const char *weir_header_list_find(void *list, const char *name, size_t index, size_t *ret_bytes);

/* ---- networks ------------------------------------------------------------------------------------------ */

/* A range of addresses. IPv4 is kept as ::ffff:a.b.c.d, so both spellings are one. */
typedef struct weir_network {
    uint8_t address[16];
    uint8_t prefix; /* 0 … 128 */
} weir_network;

/* "10.0.0.0/8", "2001:db8::/32", or one address. Bits beyond the prefix must be 0. WEIR_E_INVAL. */
WEIR_API int weir_network_parse(const char *text, weir_network *ret_network);

/* ---- keys ---------------------------------------------------------------------------------------------- */

typedef enum weir_key_kind {
    WEIR_KEY_GLOBAL,    /* "__global__": everybody together */
    WEIR_KEY_IP,        /* the caller's address or network: "203.0.113.7", "2001:db8:1:2::/64" */
    WEIR_KEY_USER,      /* a header's value; set by a proxy of yours, or callers choose who they are. Of Authorization
                           and Proxy-Authorization the token, without its scheme */
    WEIR_KEY_ROUTE,     /* the path, without its query */
    WEIR_KEY_CUSTOM,    /* what your function says */
    WEIR_KEY_COMPOSITE, /* several of these together */
} weir_key_kind;

/* Whom to believe about the caller's address. */
typedef enum weir_hops {
    /* The peer, unless it is one of the `trusted` proxies. Then, from the right, the first address in the header that
     * is not a trusted proxy (they append to it). What callers write further left is never looked at; a part that is no
     * address ends the walk. */
    WEIR_HOPS_TRUSTED,
    /* The first address in the header, else in X-Real-IP. ANY CALLER CAN FORGE IT: only behind a proxy that replaces
     * these headers. */
    WEIR_HOPS_FIRST,
} weir_hops;

/* Why a request has no usable key or cost, or cannot be read: a short name, and a line that says what is wrong. */
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

typedef enum weir_fault {
#define X(fault, name, text) fault,
    WEIR_FAULTS(X)
#undef X
} weir_fault;

/* "missing", "too_long", …; "none" for a number that is no fault. */
WEIR_API const char *weir_fault_name(weir_fault fault);

/* What is wrong, in one line without a full stop. */
WEIR_API const char *weir_fault_text(weir_fault fault);

/* What your services tell apart in a path. By default none of these: all spellings of a path are one route, and a
 * counter reads a path in each way that a service may read it. */
typedef enum weir_exact {
    WEIR_EXACT_CASE = 1,    /* "/Login" and "/login" */
    WEIR_EXACT_SLASHES = 2, /* "/a/b/", "/a//b" and "/a/b" */
    WEIR_EXACT_PARAMS = 4,  /* "/login;a=1" and "/login" */
} weir_exact;

#define WEIR_EXACT_ALL (WEIR_EXACT_CASE | WEIR_EXACT_SLASHES | WEIR_EXACT_PARAMS)

/* Writes the key and returns its bytes; 0: there is none; more than buffer_bytes: it is too long. */
typedef size_t weir_key_custom(void *context, const weir_request *request, char *buffer, size_t buffer_bytes);

#define WEIR_KEY_PARTS_MAX 8
#define WEIR_HEADER_LINES_MAX 64 /* lines over which a list of forwarding addresses may be spread */

/* What of a request is its key. Fill with weir_key_init, then change what you need. */
typedef struct weir_key {
    size_t size; /* of this struct */
    weir_key_kind kind;
    const char *header;   /* USER: default "x-user-id"; IP: default "x-forwarded-for". In lower case */
    const char *fallback; /* the key of requests that have none; default for USER "anonymous", for IP "unknown", else
                             NULL: they are refused */
    bool share_malformed; /* requests with any other fault get the fallback too; default: they are refused */
    const char *secret;   /* the key is '#' and 32 hex digits made with this secret out of the value (of any length):
                             for tokens, which must not show in logs and snapshots; default NULL: the value itself */
    /* IP */
    weir_hops hops;
    const weir_network *trusted; /* your proxies; default: none */
    size_t trusted_count;
    bool trust_unix;   /* a peer without address (a Unix socket) is a trusted proxy; default false */
    uint8_t v4_prefix; /* 1 … 32, default 32 */
    uint8_t v6_prefix; /* 1 … 128, default 64: one household or machine has that many */
    bool with_method;  /* ROUTE: "GET /path"; methods that RFC 9110 does not know are "OTHER"; default false */
    unsigned exact;    /* ROUTE: weir_exact; default 0 */
    char separator;    /* COMPOSITE: any printable ASCII but '\' and blank; default ':' */
    const struct weir_key *const *parts; /* COMPOSITE: 2 … WEIR_KEY_PARTS_MAX, none of them composite */
    size_t parts_count;
    weir_key_custom *custom; /* CUSTOM */
    void *custom_context;
} weir_key;

WEIR_API void weir_key_init(weir_key *ret_key, weir_key_kind kind);

/* Writes a request's key to `buffer`, without a terminator; WEIR_KEY_MAX bytes are enough for any. 0; WEIR_E_ABSENT:
 * there is none, and *ret_fault (may be NULL) says why; WEIR_E_SPACE, WEIR_E_INVAL. *ret_fault is set whenever the
 * request was looked at.
 *
 * Routes: all spellings that some service takes for one path are one key: it is in lower case, without parameters, "//"
 * and a '/' at the end, and "%2F" is "/", but for what `exact` says. What services disagree about and no client needs
 * is a fault: parts "." and "..", backslashes, control characters, escapes of letters, targets that are no path.
 * Composites: parts are joined by the separator; where it, or '\', is in a part, a '\' goes before it, so that
 * different parts never make the same key: "a:b" and "c" are "a\:b:c". */
WEIR_API int weir_key_extract(const weir_key *key, const weir_request *request, char *buffer, size_t buffer_bytes,
                              size_t *ret_bytes, weir_fault *ret_fault);

/* ---- rules --------------------------------------------------------------------------------------------- */

#define WEIR_RULES_MAX 1000   /* in a counter */
#define WEIR_RULINGS_MAX 8    /* rules that apply to one request */
#define WEIR_RULE_NAME_MAX 64 /* bytes */

/* Functions of rules and keys get requests as a counter reads them: the method in capitals if RFC 9110 knows it, the
 * path without the query as the target, the host in lower case and without port. Where services differ about a path
 * ("/Login/", "/login;a=1", "//x/login") the counter asks once for each way of reading it, so that comparing the
 * target with "/login" is enough. header_context is yours: it may lead to what else you need. */

/* Whether a rule has a say in this request. */
typedef bool weir_rule_applies(void *context, const weir_request *request);

/* Which plan a request is on: 0 is the rule's own repository, 1 the first of its `plans`, …; anything beyond means 0.
 * `request` is NULL in the …_key functions. */
typedef uint32_t weir_rule_plan(void *context, const weir_request *request, const char *key, size_t key_bytes);

/* Fill with weir_rule_init, then change what you need. */
typedef struct weir_rule {
    size_t size;         /* of this struct */
    const char *name;    /* 1 … WEIR_RULE_NAME_MAX of printable ASCII; no two rules share one. Callers see it */
    const weir_key *key; /* NULL: only for the …_key functions */
    const weir_repository *repository; /* copied. Rules that share one share its keys */
    bool owns_repository;              /* weir_counter_free frees it; default false */
    uint32_t permits;                  /* per request; default 1 */
    const char *cost_header;           /* a header that says how many instead; default NULL: none does */
    uint32_t cost_max;                 /* the most that header may say; default 1 */
    bool shadow;                       /* counts, charges and reports, but never refuses; default false */
    bool open_on_error;                /* if the repository fails, let the request go; default false: refuse it */
    weir_rule_applies *applies;        /* default NULL: to all requests */
    void *applies_context;
    /* Callers with other limits. They keep their plan for as long as they hold what it granted. */
    const weir_repository *plans; /* as many as plan_count; never freed by the counter; default none */
    size_t plan_count;
    weir_rule_plan *plan_of; /* default NULL: all are on plan 0 */
    void *plan_context;
} weir_rule;

WEIR_API void weir_rule_init(weir_rule *ret_rule, const char *name, const weir_key *key,
                             const weir_repository *repository);

/* ---- admissions ---------------------------------------------------------------------------------------- */

typedef enum weir_ruling_outcome {
    WEIR_OUTCOME_GRANTED,   /* and charged */
    WEIR_OUTCOME_REFUSED,   /* `decision` says for how long */
    WEIR_OUTCOME_MALFORMED, /* `fault` says why */
    WEIR_OUTCOME_FAILED,    /* the repository failed: `error` says how */
} weir_ruling_outcome;

/* What one rule says of one request. */
typedef struct weir_ruling {
    const char *name; /* the rule's */
    uint32_t rule;    /* its index */
    weir_ruling_outcome outcome;
    bool shadow;            /* never refuses, whatever the outcome */
    weir_fault fault;       /* with MALFORMED */
    int error;              /* with FAILED, and what ended an `acquire`: WEIR_E_… */
    weir_decision decision; /* with GRANTED and REFUSED */
    weir_quota quota;       /* after this request; limit 0: not known */
    uint32_t permits;       /* taken and not given back yet */
    uint32_t key_at;        /* the key is key_bytes from admission.keys + key_at on */
    uint32_t key_bytes;
    bool reserved;        /* the receipt is good */
    weir_receipt receipt; /* for settle and cancel */
    uint32_t plan;        /* which it was decided by */
} weir_ruling;

/* The answer. It is large for the sake of its keys: pass it by pointer. You may forget it, unless it is needed for
 * release, settle or cancel. */
typedef struct weir_admission {
    bool allowed;
    uint32_t count;        /* rulings; after a refusal the last one refused */
    int64_t retry_after_s; /* rounded up, at least 1; 0 if allowed, or if coming again will not help */
    weir_ruling rulings[WEIR_RULINGS_MAX];
    char keys[WEIR_RULINGS_MAX * WEIR_KEY_MAX]; /* only the rulings' parts are ever written */
} weir_admission;

/* The ruling that refused, or of an allowed request the one with the smallest share left. NULL if no rule applied (or
 * no quota is known). Rules in shadow do not count. */
WEIR_API const weir_ruling *weir_admission_decisive(const weir_admission *admission);

/* The HTTP status that fits: 200; 429; 400 for a malformed key or cost; 503 if a repository failed. */
WEIR_API int weir_admission_status(const weir_admission *admission);

/* ---- response headers ---------------------------------------------------------------------------------- */

/* RateLimit and RateLimit-Policy are those of draft-ietf-httpapi-ratelimit-headers-10. They list every rule whose quota
 * is known and that is not in shadow; X-RateLimit-* is about the decisive one. X-RateLimit-Reset is a Unix time. All
 * times are rounded up. The rule that refused says when to come again, the others when they are whole again. A policy
 * is over whole seconds: a rule that gives 2 in 200 ms is told as q=10;w=1.
 *
 * One admission rule is one member, however many limits its table has. Of a table with several (10/s and 1000/h, say)
 * it tells the one with the smallest share left, so that the policy may change from one answer to the next. Where
 * callers read these fields, make one admission rule per window, each with a table of its own. */
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
#define WEIR_FIELDS_BYTES_MAX 4096 /* is enough for any admission */

/* "Retry-After", …; NULL for what is not one field. */
WEIR_API const char *weir_field_name(weir_field field);

/* The value of one field, terminated; nothing (0 bytes) where it does not apply. `wall_ns` is the time of day
 * (weir_wall_now), for X-RateLimit-Reset only. WEIR_E_SPACE (the buffer's content is undefined), WEIR_E_INVAL. */
WEIR_API int weir_field_format(const weir_admission *admission, weir_field field, int64_t wall_ns, char *buffer,
                               size_t buffer_bytes, size_t *ret_bytes);

/* All fields of the set that apply, as lines "Name: value\r\n", terminated. Errors as above. */
WEIR_API int weir_fields_format(const weir_admission *admission, unsigned fields, int64_t wall_ns, char *buffer,
                                size_t buffer_bytes, size_t *ret_bytes);

/* ---- the counter --------------------------------------------------------------------------------------- */

typedef struct weir_counter weir_counter;

/* Called for every ruling that is not GRANTED, also in shadow, in the thread that asks, before it gets its answer.
 * `request` is NULL in the …_key functions. It may call weir. */
typedef void weir_rejected(void *context, const weir_request *request, const weir_admission *admission,
                           const weir_ruling *ruling);

/* Fill with weir_counter_options_init, then change what you need. */
typedef struct weir_counter_options {
    size_t size;        /* of this struct */
    bool without_quota; /* do not ask repositories what is left: quicker, but no RateLimit fields; default false */
    bool first_match;   /* of the rules that apply and are not in shadow, only the first is asked; default false: all.
                           Of a path that is read in several ways, the first of each */
    unsigned exact;     /* weir_exact; default 0 */
    weir_rejected *rejected;
    void *rejected_context;
    const weir_clock *clock;         /* for time-outs over several rules; default: weir_clock_fast() */
    const weir_allocator *allocator; /* default: the system's */
} weir_counter_options;

WEIR_API void weir_counter_options_init(weir_counter_options *ret_options);

/* Makes a counter of `count` rules (1 … WEIR_RULES_MAX). With several, each repository must offer reserve and settle.
 * `options` may be NULL. WEIR_E_INVAL, WEIR_E_NOMEM: no repository has been taken over. */
WEIR_API int weir_counter_new(const weir_rule *rules, size_t count, const weir_counter_options *options,
                              weir_counter **ret_counter);

/* Frees the repositories it owns too. No call may be using it: close the tables or cancel first, to end those that
 * wait. NULL is fine. */
WEIR_API void weir_counter_free(weir_counter *counter);

/* Asks all rules that apply; never blocks (unless a repository of your own does). 0 with the answer, or WEIR_E_INVAL
 * (also if more than WEIR_RULINGS_MAX apply).
 * Where a rule's repository fails, the rule says whether that refuses the request. */
WEIR_API int weir_counter_try(weir_counter *counter, const weir_request *request, weir_admission *ret_admission);

/* The same, but waits until all rules grant, for at most `timeout_ns` (WEIR_FOREVER: as long as it takes). 0 when
 * admitted, and only then; WEIR_E_TIMEOUT, WEIR_E_CANCELLED, WEIR_E_CLOSED, WEIR_E_FULL, WEIR_E_NEVER or the
 * repository's own error; WEIR_E_INVAL also if the request is malformed. The admission is filled unless arguments were
 * wrong. Rules are waited for in their order, and what one has granted it holds while the next is waited for. If that
 * fails, all is given back. */
WEIR_API int weir_counter_acquire(weir_counter *counter, const weir_request *request, int64_t timeout_ns,
                                  weir_cancel *cancel, weir_admission *ret_admission);

/* For one rule and a key of 1 … WEIR_KEY_MAX bytes, any bytes. `permits` 0: what the rule says. */
WEIR_API int weir_counter_try_key(weir_counter *counter, uint32_t rule, const char *key, size_t key_bytes,
                                  uint32_t permits, weir_admission *ret_admission);
WEIR_API int weir_counter_acquire_key(weir_counter *counter, uint32_t rule, const char *key, size_t key_bytes,
                                      uint32_t permits, int64_t timeout_ns, weir_cancel *cancel,
                                      weir_admission *ret_admission);
WEIR_API int weir_counter_release_key(weir_counter *counter, uint32_t rule, const char *key, size_t key_bytes,
                                      uint32_t permits);

/* The request has ended: ends its permits in flight. Again is a no-op, and so is it for what was refused. Returns 0 or
 * the first error of a repository (the others have been told all the same). */
WEIR_API int weir_counter_release(weir_counter *counter, weir_admission *admission);

/* The request really cost `used` permits of this ruling's rule: as weir_limiter_settle, once. WEIR_E_INVAL if the
 * ruling has no receipt: it did not grant, or its repository cannot reserve or settle. */
WEIR_API int weir_counter_settle(weir_counter *counter, weir_admission *admission, uint32_t ruling, uint32_t used);

/* The request was not served after all: gives back what all rules have taken and was not settled, and ends its permits
 * in flight. As release otherwise. */
WEIR_API int weir_counter_cancel(weir_counter *counter, weir_admission *admission);

/* Requests by outcome, since the rule's counter was made. */
typedef struct weir_rule_stats {
    uint64_t granted, refused, malformed, failed;
} weir_rule_stats;

WEIR_API int weir_counter_stats_get(const weir_counter *counter, uint32_t rule, weir_rule_stats *ret_stats);

#ifdef __cplusplus
}
#endif
#endif
