/* SPDX-License-Identifier: MIT */
/* settings.h - the rules as written in weir.yaml. contrib/weir.yaml shows every setting.
 *
 * The file has two keys for this: `rules`, a list, and `admission`, settings for all of them. A
 * program that reads other sections too puts them into a schema of its own:
 *
 *     {"rules", WR_CONFIG_LIST(struct file, book.rules, book.rule_count, &wr_rulebook_rule), ...},
 *     {"admission", WR_CONFIG_MAPPING(struct file, book, &wr_rulebook_admission), ...},
 *
 * wr_rulebook_schema describes a file with only these two.
 */
#ifndef WR_SHELL_RULEBOOK_SETTINGS_H
#define WR_SHELL_RULEBOOK_SETTINGS_H

#include "shell/config/config.h"

#include <weir/admit.h>

#define WR_BOOK_RULES_MAX 100
#define WR_BOOK_PATTERNS_MAX 8  /* maximum number of paths, hosts or headers of a rule */
#define WR_BOOK_PATTERN_MAX 255 /* bytes of a pattern */
#define WR_BOOK_METHODS_MAX 9
#define WR_BOOK_LIMITS_MAX 4 /* limits of one rule or plan */
#define WR_BOOK_PLANS_MAX 8
#define WR_BOOK_KEYS_MAX 32 /* keys in one list */
#define WR_BOOK_NETWORKS_MAX 256
#define WR_BOOK_WORD_MAX 127 /* bytes of a listed key, a header's name, ... */

typedef char wr_book_word[WR_BOOK_WORD_MAX + 1];
typedef char wr_book_pattern[WR_BOOK_PATTERN_MAX + 1];

struct wr_book_header {
    wr_book_word name;
    wr_book_pattern value; /* glob pattern for the header's value; empty: any value */
};

/* The requests that a rule applies to. In each list that is not empty, at least one item must
 * match. */
struct wr_book_match {
    wr_book_word methods[WR_BOOK_METHODS_MAX];
    wr_book_pattern paths[WR_BOOK_PATTERNS_MAX];
    wr_book_pattern hosts[WR_BOOK_PATTERNS_MAX];
    struct wr_book_header headers[WR_BOOK_PATTERNS_MAX]; /* headers, of which all must match */
    uint32_t method_count, path_count, host_count, header_count;
};

/* Other limits for some keys of a rule. */
struct wr_book_plan {
    wr_book_word name;
    wr_book_word limits[WR_BOOK_LIMITS_MAX];
    wr_book_word keys[WR_BOOK_KEYS_MAX];
    uint32_t limit_count, key_count;
};

enum wr_book_missing {
    WR_MISSING_SHARE,
    WR_MISSING_REFUSE
};

/* How a rule's limit is shared with other processes. */
struct wr_book_share {
    wr_book_word overshoot; /* permitted excess, as "1%"; "0%": exact; empty: not shared */
    enum wr_book_outage {
        WR_OUTAGE_SHARE,
        WR_OUTAGE_OPEN,
        WR_OUTAGE_CLOSED
    } on_outage;
};

/* The store of shared limits. */
struct wr_book_store {
    wr_book_pattern url; /* URL of the store; empty: there is no store */
    uint32_t nodes;
    int64_t timeout_ns;
    wr_book_word prefix; /* prefix of its keys; empty: "weir" */
};

struct wr_book_rule {
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_book_match match;
    wr_book_word key[WEIR_KEY_PARTS_MAX]; /* "ip", "header:x-user-id", ...; several form one key */
    wr_book_word limits[WR_BOOK_LIMITS_MAX];
    uint32_t key_count, limit_count;
    /* treatment of requests whose key is absent or unusable */
    enum wr_book_missing missing, malformed;
    uint32_t cost, cost_max;
    wr_book_word cost_header;
    wr_book_word plan_header;
    struct wr_book_plan plans[WR_BOOK_PLANS_MAX];
    wr_book_word allow_keys[WR_BOOK_KEYS_MAX], deny_keys[WR_BOOK_KEYS_MAX];
    uint32_t plan_count, allow_count, deny_count;
    bool shadow;
    struct wr_book_share share;
    uint64_t max_keys; /* limit of keys; 0: that of `admission` */
};

/* Path differences that the services ignore (any) or distinguish (exact). */
struct wr_book_paths {
    enum wr_book_either {
        WR_PATHS_ANY,
        WR_PATHS_EXACT
        /* for params, "any" is written "ignore" and "exact" is written "keep" */
    } letters, slashes, params;
};

enum wr_book_matching {
    WR_MATCH_FIRST,
    WR_MATCH_ALL
};
enum wr_book_on_error {
    WR_ON_ERROR_CLOSED,
    WR_ON_ERROR_OPEN
};

/* Several megabytes because of its fixed lists: do not put it on the stack. */
struct wr_rulebook_settings {
    struct wr_book_rule rules[WR_BOOK_RULES_MAX];
    uint32_t rule_count;
    enum wr_book_matching matching;
    struct wr_book_paths paths;
    enum wr_book_on_error on_error;
    /* Identification of the client. */
    wr_book_word trusted[WR_BOOK_NETWORKS_MAX]; /* networks of proxies, and "unix" */
    uint32_t trusted_count;
    wr_book_word forwarded_header;
    uint32_t v4_prefix, v6_prefix;
    wr_book_word allow[WR_BOOK_NETWORKS_MAX], deny[WR_BOOK_NETWORKS_MAX];
    uint32_t allow_count, deny_count;
    wr_book_word secret; /* secret for token: keys; empty: drawn when the rulebook is created */
    uint64_t max_keys;   /* limit of keys per rule and per plan */
    int64_t forget_ns;   /* time after which idle keys with their full limit are removed */
    uint32_t holds_max;  /* limit of reservations, including permits in flight */
    int64_t lease_ns;    /* lease of a reservation, unless its request sets one */
    struct wr_book_store store;
};

/* Sets the defaults. */
void wr_rulebook_settings_init(struct wr_rulebook_settings *ret_settings);

extern const struct wr_config_field wr_rulebook_rule;       /* an item of `rules` */
extern const struct wr_config_schema wr_rulebook_admission; /* the mapping `admission` */
/* a file with `rules` and `admission` */
extern const struct wr_config_schema wr_rulebook_schema;

#endif
