/* SPDX-License-Identifier: MIT */
/* lifecycle.h - one robots.txt over time: when to fetch it, and what holds for pages meanwhile.
 *
 *                    2xx, 4xx                 refresh_ns             24 h
 *     UNKNOWN ──────────────────────▶ FRESH ────────────▶ STALE ───────────▶ waits for the next answer
 *        │  ▲ fetched when wanted       ▲  2xx, 304, 4xx    │ fetched when wanted, serves meanwhile
 *        │                              └───────────────────┤
 *        └─────────────▶ FAILING ◀──────────────────────────┘
 *           5xx, 429, no answer;  fetched again after a backoff; an old copy serves for 30 days
 *
 * There is one of these per scheme, host and port (RFC 9309 2.3): rules that a redirect found elsewhere are those of
 * the authority that was asked (2.3.1.2). Events go in, what to do comes out; the caller does it, and keeps the copy
 * (the compiled rules) and its validators. At most one fetch is under way.
 *
 *     action = wr_lifecycle_step(&life, &options, &(struct wr_life_event){.kind = WR_LIFE_WANTED}, now);
 *     if (action.fetch != WR_FETCH_NOT)
 *         tell WR_LIFE_STARTED, send the request, tell how it ended
 *     ruling = wr_lifecycle_rule(&action, robots, wr_url_target(&url), now);
 *
 * What the answers mean (RFC 9309 2.3.1):
 *     2xx              these are the rules; where there are none to be read, there are none
 *     redirect         followed five times; then, or if it leads nowhere, there is no robots.txt
 *     304              the copy is as good as new; only if it was asked for
 *     429 and its like wait, in every mode: to take it for an absent file would be to hammer who said "too many"
 *     other 4xx        there is no robots.txt (401 and 403 too): everything is allowed
 *     all else         failed: 5xx, time-out, DNS, TLS, an answer that was cut, 206, a 304 that nobody asked for
 *
 * While nothing is known because fetching fails, `on_error` decides. What is known goes before it: an old copy serves
 * in every mode, for then it is still the host's last word.
 */
#ifndef WR_CORE_RULES_ROBOTS_LIFECYCLE_H
#define WR_CORE_RULES_ROBOTS_LIFECYCLE_H

#include "core/rules/robots/robots.h"

#include <weir/pace.h>

#define WR_ROBOTS_HOPS 5                              /* redirects that are followed (2.3.1.2) */
#define WR_ROBOTS_RETRY_AFTER_MAX_NS (24 * WEIR_HOUR) /* a longer Retry-After is taken for this */

enum wr_on_error {
    WR_ON_ERROR_RFC9309, /* pages wait, with reason robots, until it can be fetched */
    WR_ON_ERROR_ALLOW,   /* all is allowed, at the host's ordinary pace */
    WR_ON_ERROR_DENY,    /* nothing is */
};

/* 0 means the default. */
struct wr_life_options {
    enum wr_on_error on_error;
    int64_t use_ns;           /* a copy is used for so long without having asked again; default 24 h (2.4) */
    int64_t refresh_min_ns;   /* a shorter max-age is taken for this; default 1 h. From 7/8 of use_ns on it is refreshed
                                 whatever max-age says */
    int64_t serve_ns;         /* while fetching fails, a copy serves for so long; default 30 days (2.3.1.4) */
    weir_retry_options retry; /* base 5 s, max 15 min; each wait is jittered between half and all of it */
};

/* Fills in the defaults. WEIR_E_INVAL. */
int wr_life_options_check(const struct wr_life_options *options, struct wr_life_options *ret_options);

/* All zero: unknown. The caller's to keep, not to change. */
struct wr_lifecycle {
    int64_t copied_at;   /* when the request that the copy came from was sent; if has_copy */
    int64_t refresh_ns;  /* its age from which on it is fetched anew */
    int64_t started_at;  /* of the fetch under way */
    int64_t retry_at;    /* no fetch before, if failures > 0 */
    uint32_t failures;   /* in a row */
    uint8_t hops;        /* redirects of the fetch under way */
    bool fetching;       /* one is on the wire */
    bool conditional;    /* and it has validators */
    bool has_copy;       /* there are rules, or it is known that there are none */
    bool has_rules;      /* the former */
    bool has_validators; /* the copy came with some */
    bool told_to_wait;   /* the last failure was a 429 */
    bool named_time;     /* retry_at is a promise to the server, not a backoff of ours */
};

enum wr_life_event_kind {
    WR_LIFE_WANTED,   /* somebody wants a page */
    WR_LIFE_STARTED,  /* a fetch is under way, of the kind that was asked for */
    WR_LIFE_ANSWERED, /* with `status` */
    WR_LIFE_FAILED,   /* no answer came, or it could not be read */
    WR_LIFE_LOADED,   /* from a store; forgotten if something is known or under way */
    WR_LIFE_DROPPED,  /* the rules of the copy, for want of room: as if it had never come, but for what failed */
};

struct wr_life_event {
    enum wr_life_event_kind kind;
    int status;             /* ANSWERED */
    bool leads;             /* ANSWERED: its Location is a URL that can be fetched */
    bool has_validators;    /* ANSWERED, LOADED: ETag or Last-Modified */
    bool has_rules;         /* LOADED: else it was known that there are none */
    bool lacks_room;        /* FAILED: for want of room of ours. Pages wait, in every mode */
    int64_t max_age_ns;     /* ANSWERED, LOADED: Cache-Control; negative: not said */
    int64_t retry_after_ns; /* ANSWERED: negative: not said */
    int64_t age_ns;         /* LOADED; negative: stored in the future, so it may be of any age */
    double unit;            /* ANSWERED, FAILED: a random number, 0 <= unit < 1; else there is no jitter */
};

enum wr_life_fetch {
    WR_FETCH_NOT,
    WR_FETCH_PLAIN,       /* start a fetch */
    WR_FETCH_CONDITIONAL, /* start one with the copy's validators */
    WR_FETCH_ON,          /* the one under way goes on at its Location */
};

enum wr_life_copy {
    WR_COPY_KEEP,    /* as it was */
    WR_COPY_CONFIRM, /* as it was, and as good as new */
    WR_COPY_READ,    /* the body that came holds the rules; its validators go with them */
    WR_COPY_DROP,    /* there are no rules any more */
};

enum wr_life_holds {
    WR_HOLDS_WAIT,  /* no page may be fetched before `until` */
    WR_HOLDS_RULES, /* the copy's rules decide */
    WR_HOLDS_ALLOW,
    WR_HOLDS_DENY,
};

struct wr_life_action {
    enum wr_life_fetch fetch; /* what to send now */
    enum wr_life_copy copy;   /* what to do with the copy */
    enum wr_life_holds holds; /* for pages, from now on */
    int64_t until;            /* of WAIT: ask again then; WEIR_FOREVER: when the fetch has ended */
};

/* `options` have been checked. An answer, a failure or a start that comes at the wrong time changes nothing. WANTED
 * never changes anything, and may ask for the same fetch again until it is told STARTED. */
struct wr_life_action wr_lifecycle_step(struct wr_lifecycle *life, const struct wr_life_options *options,
                                        const struct wr_life_event *event, int64_t now);

/* What an ANSWERED with this event would do to fetch and copy; neither: it fails. Lets the
 * caller read the body first, and tell FAILED if that does not work. */
struct wr_life_action wr_lifecycle_foresee(const struct wr_lifecycle *life, const struct wr_life_event *event);

enum wr_life_state {
    WR_LIFE_UNKNOWN,
    WR_LIFE_FETCHING, /* for the first time */
    WR_LIFE_FRESH,
    WR_LIFE_STALE, /* to be fetched anew when wanted */
    WR_LIFE_FAILING,
};

enum wr_life_state wr_lifecycle_state(const struct wr_lifecycle *life, int64_t now);

/* Whether nothing is lost that cannot be fetched again: no fetch is under way, and the server named no time that is
 * still to come (L5). A backoff of our own may go: to ask once too often costs no more than to have forgotten rules. */
bool wr_lifecycle_forgettable(const struct wr_lifecycle *life, int64_t now);

/* May this page be fetched now? */
struct wr_ruling {
    weir_decision decision; /* WAIT and DENY have reason robots; wait_ns is WEIR_UNTIL_RELEASE until a fetch ends */
    uint32_t line;          /* of the rule that decided; 0: no rule did */
    bool gave_up;           /* denied because its rules were made to be slow */
};

/* `robots` are the copy's rules, and may be NULL if there are none. */
struct wr_ruling wr_lifecycle_rule(const struct wr_life_action *action, const struct wr_robots *robots,
                                   struct wr_span target, int64_t now);

/* Invariant; for asserts and tests. */
bool wr_lifecycle_ok(const struct wr_lifecycle *life, const struct wr_life_options *options);

#endif
