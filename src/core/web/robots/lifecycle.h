/* SPDX-License-Identifier: MIT */
/* lifecycle.h - the state machine of one robots.txt: when to fetch it, and what applies to pages
 * meanwhile.
 *
 *                    2xx, 4xx                 refresh_ns             24 h
 *     UNKNOWN ----------------------> FRESH ------------> STALE ----------> pages wait
 *        |   fetched on demand          ^  2xx, 304, 4xx    | fetched on demand, serves meanwhile
 *        |                              `-------------------+
 *        `-------------> FAILING <--------------------------'
 *           5xx, 429, no response; refetched after a backoff; an old copy serves for 30 days
 *
 * There is one state per scheme, host and port (RFC 9309 2.3): rules found by a redirect belong to
 * the authority that was asked (2.3.1.2). Events go in and actions come out. The caller executes
 * them, and stores the copy (the compiled rules) and its validators. At most one fetch is in
 * progress.
 *
 *     event = (struct wr_robots_event){.kind = WR_ROBOTS_EVENT_WANTED};
 *     action = wr_robots_lifecycle_step(&life, &options, &event, now);
 *     if (action.fetch != WR_ROBOTS_FETCH_NONE)
 *         report WR_ROBOTS_EVENT_STARTED, send the request, report how it ended
 *     ruling = wr_robots_lifecycle_decide(&action, robots, wr_url_target(&url), now);
 *
 * Meaning of the responses (RFC 9309 2.3.1):
 *     2xx              the rules; a body without readable rules means that there are none
 *     redirect         followed five times; one that is not followed means no robots.txt
 *     304              confirms the copy; only valid for a conditional request
 *     429 and similar  pages wait, in every mode: treating the file as absent would hammer a server
 *                      that just refused for too many requests
 *     other 4xx        no robots.txt (also 401 and 403): everything is allowed
 *     all else         failure: 5xx, timeout, DNS, TLS, a cut response, 206, an unrequested 304
 *
 * While fetching fails and no copy is known, `on_error` decides. An old copy has precedence in
 * every mode, because it is the last known will of the host.
 */
#ifndef WR_CORE_WEB_ROBOTS_LIFECYCLE_H
#define WR_CORE_WEB_ROBOTS_LIFECYCLE_H

#include "core/web/robots/robots.h"

#include <weir/pace.h>

#define WR_ROBOTS_HOPS 5                              /* redirects that are followed (2.3.1.2) */
#define WR_ROBOTS_RETRY_AFTER_MAX_NS (24 * WEIR_HOUR) /* longer Retry-After times are cut to this */

enum wr_robots_on_error {
    WR_ROBOTS_ON_ERROR_RFC9309, /* pages wait, with reason robots, until it can be fetched */
    WR_ROBOTS_ON_ERROR_ALLOW,   /* everything is allowed, at the usual pace of the host */
    WR_ROBOTS_ON_ERROR_DENY,    /* no page is allowed */
};

/* Options; 0 means the default. */
struct wr_robots_lifecycle_options {
    enum wr_robots_on_error on_error;
    int64_t use_ns; /* age up to which a copy is used without refetching, ns; default 24 h (2.4) */
    /* Minimum age of a copy before a refetch, even if max-age is shorter, ns; default 1 h. A longer
     * max-age counts as 7/8 of use_ns. */
    int64_t refresh_min_ns;
    /* age up to which a copy serves while fetching fails, ns; default 30 days (2.3.1.4) */
    int64_t serve_ns;
    /* base 5 s, max 15 min; each wait is random between half and all of it */
    weir_retry_options retry;
};

/* Copies the options and fills in the defaults. Returns WEIR_E_INVAL if an option is out of
 * range. */
int wr_robots_lifecycle_options_check(const struct wr_robots_lifecycle_options *options,
                                      struct wr_robots_lifecycle_options *ret_options);

/* The state of one robots.txt. All zero: unknown. The caller stores it and does not change it. */
struct wr_robots_lifecycle {
    int64_t copied_at;   /* when the request for the copy was sent; valid if has_copy */
    int64_t refresh_ns;  /* age of the copy from which on it is refetched, ns */
    int64_t started_at;  /* start of the fetch in progress */
    int64_t retry_at;    /* earliest time of the next fetch, if failures > 0 */
    uint32_t failures;   /* failed fetches in a row */
    uint8_t hops;        /* redirects of the fetch in progress */
    bool fetching;       /* a fetch is in progress */
    bool conditional;    /* the fetch in progress has validators */
    bool has_copy;       /* the rules are known, or it is known that there are none */
    bool has_rules;      /* the copy has rules */
    bool has_validators; /* the copy has validators */
    bool was_refused;    /* the last failure was a 429 or similar */
    bool named_time;     /* retry_at was named by the server (Retry-After) */
};

enum wr_robots_event_kind {
    WR_ROBOTS_EVENT_WANTED,   /* a page is wanted */
    WR_ROBOTS_EVENT_STARTED,  /* the requested fetch has started */
    WR_ROBOTS_EVENT_ANSWERED, /* the fetch ended with `status` */
    WR_ROBOTS_EVENT_FAILED,   /* no response came, or it could not be read */
    WR_ROBOTS_EVENT_LOADED,   /* loaded from a store; ignored if a copy, failure or fetch exists */
    /* the rules were dropped for lack of memory: there is no copy, but past failures still count */
    WR_ROBOTS_EVENT_DROPPED,
};

struct wr_robots_event {
    enum wr_robots_event_kind kind;
    int status;             /* for ANSWERED: HTTP status */
    bool leads;             /* for ANSWERED: its Location is a URL that can be fetched */
    bool has_validators;    /* for ANSWERED, LOADED: there is an ETag or Last-Modified */
    bool has_rules;         /* for LOADED; false: it is known that there are no rules */
    bool lacks_room;        /* for FAILED: weir lacked memory. Pages wait, in every mode */
    int64_t max_age_ns;     /* for ANSWERED, LOADED: max-age, ns; negative: absent */
    int64_t retry_after_ns; /* for ANSWERED: Retry-After, ns; negative: absent */
    /* for LOADED: age of the copy, ns; negative: unknown, as it was stored in the future */
    int64_t age_ns;
    /* for ANSWERED, FAILED: random number, 0 <= unit < 1; otherwise no jitter */
    double unit;
};

enum wr_robots_fetch_action {
    WR_ROBOTS_FETCH_NONE,
    WR_ROBOTS_FETCH_PLAIN,       /* start a fetch */
    WR_ROBOTS_FETCH_CONDITIONAL, /* start a fetch with the validators of the copy */
    WR_ROBOTS_FETCH_REDIRECT,    /* continue the current fetch at its Location */
};

enum wr_robots_copy_action {
    WR_ROBOTS_COPY_KEEP,    /* the copy stays */
    WR_ROBOTS_COPY_CONFIRM, /* the copy stays and is up to date */
    WR_ROBOTS_COPY_READ,    /* the body has the new rules; store its validators, too */
    WR_ROBOTS_COPY_DROP,    /* delete the rules */
};

enum wr_robots_access {
    WR_ROBOTS_ACCESS_WAIT,  /* no page may be fetched before `until` */
    WR_ROBOTS_ACCESS_RULES, /* the rules of the copy decide */
    WR_ROBOTS_ACCESS_ALLOW,
    WR_ROBOTS_ACCESS_DENY,
};

struct wr_robots_action {
    enum wr_robots_fetch_action fetch; /* request to send now */
    enum wr_robots_copy_action copy;   /* the change to make to the copy */
    enum wr_robots_access holds;       /* what applies to pages from now on */
    /* for WAIT: when to step anew; WEIR_FOREVER: when the fetch has ended */
    int64_t until;
};

/* Handles one event. `options` must have been checked. An answer, a failure or a start at the wrong
 * time changes nothing. WANTED never changes the state, and may request the same fetch several
 * times until STARTED. */
struct wr_robots_action wr_robots_lifecycle_step(struct wr_robots_lifecycle *life,
                                                 const struct wr_robots_lifecycle_options *options,
                                                 const struct wr_robots_event *event, int64_t now);

/* Returns what an ANSWERED event would do to fetch and copy; if neither changes, the fetch would
 * fail. The caller can then read the body first, and report FAILED if that does not work. */
struct wr_robots_action wr_robots_lifecycle_preview(const struct wr_robots_lifecycle *life,
                                                    const struct wr_robots_event *event);

enum wr_robots_state {
    WR_ROBOTS_STATE_UNKNOWN,
    WR_ROBOTS_STATE_FETCHING, /* the first fetch is in progress */
    WR_ROBOTS_STATE_FRESH,
    WR_ROBOTS_STATE_STALE, /* the copy is to be refetched on demand */
    WR_ROBOTS_STATE_FAILING,
};

enum wr_robots_state wr_robots_lifecycle_state(const struct wr_robots_lifecycle *life, int64_t now);

/* Returns true if everything lost with this state can be fetched once more: no fetch is in
 * progress, and the server named no future time. A backoff may be lost: one request too many costs
 * no more than lost rules. */
bool wr_robots_lifecycle_may_forget(const struct wr_robots_lifecycle *life, int64_t now);

/* The decision whether a page may be fetched now. */
struct wr_robots_decision {
    /* WAIT and DENY have reason robots; wait_ns is WEIR_UNTIL_RELEASE until a fetch ends */
    weir_decision decision;
    uint32_t line; /* line of the deciding rule; 0: no rule decided */
    bool gave_up;  /* denied because matching exceeded its limit */
};

/* Decides about one page. `robots` are the rules of the copy; NULL if there are none. */
struct wr_robots_decision wr_robots_lifecycle_decide(const struct wr_robots_action *action,
                                                     const struct wr_robots *robots, struct wr_span target,
                                                     int64_t now);

/* Returns true if the invariant holds. For asserts and tests. */
bool wr_robots_lifecycle_ok(const struct wr_robots_lifecycle *life, const struct wr_robots_lifecycle_options *options);

#endif
