/* SPDX-License-Identifier: MIT */
/* rules_settings.h - the rules as written in weir.yaml. contrib/weir.yaml shows every setting.
 *
 * The file has two keys for this: `rules`, a list, and `admission`, settings for all of them. A
 * program that reads other sections too puts them into a schema of its own:
 *
 *     {"rules", WR_CONFIG_LIST(struct file, book.rules, book.rule_count, &wr_rules_rule_field), ...},
 *     {"admission", WR_CONFIG_MAPPING(struct file, book, &wr_rules_admission_schema), ...},
 *
 * wr_rules_schema describes a file with only these two.
 */
#ifndef WR_SERVE_RULES_RULES_SETTINGS_H
#define WR_SERVE_RULES_RULES_SETTINGS_H

#include "config/config.h"

#include <weir/admit.h>

#define WR_RULES_MAX 100
#define WR_RULE_PATTERNS_MAX 8  /* maximum number of paths, hosts or headers of a rule */
#define WR_RULE_PATTERN_MAX 255 /* bytes of a pattern */
#define WR_RULE_METHODS_MAX 9
#define WR_RULE_LIMITS_MAX 4 /* limits of one rule or plan */
#define WR_RULE_PLANS_MAX 8
#define WR_RULE_KEYS_MAX 32 /* keys in one list */
#define WR_RULES_NETWORKS_MAX 256
#define WR_RULE_WORD_MAX 127 /* bytes of a listed key, a header's name, ... */

typedef char wr_rule_word[WR_RULE_WORD_MAX + 1];
typedef char wr_rule_pattern[WR_RULE_PATTERN_MAX + 1];

struct wr_rule_header {
    wr_rule_word name;
    wr_rule_pattern value; /* glob pattern for the header's value; empty: any value */
};

/* The requests that a rule applies to. In each list that is not empty, at least one item must
 * match. */
struct wr_rule_match {
    wr_rule_word methods[WR_RULE_METHODS_MAX];
    wr_rule_pattern paths[WR_RULE_PATTERNS_MAX];
    wr_rule_pattern hosts[WR_RULE_PATTERNS_MAX];
    struct wr_rule_header headers[WR_RULE_PATTERNS_MAX]; /* headers, of which all must match */
    uint32_t method_count, path_count, host_count, header_count;
};

/* Other limits for some keys of a rule. */
struct wr_rule_plan {
    wr_rule_word name;
    wr_rule_word limits[WR_RULE_LIMITS_MAX];
    wr_rule_word keys[WR_RULE_KEYS_MAX];
    uint32_t limit_count, key_count;
};

enum wr_rule_missing_key {
    WR_MISSING_SHARE,
    WR_MISSING_REFUSE
};

/* How a rule's limit is shared with other processes. */
struct wr_rule_share {
    wr_rule_word overshoot; /* permitted excess, as "1%"; "0%": exact; empty: not shared */
    enum wr_rule_on_outage {
        WR_OUTAGE_SHARE,
        WR_OUTAGE_OPEN,
        WR_OUTAGE_CLOSED
    } on_outage;
};

/* The store of shared limits. */
struct wr_rules_store {
    wr_rule_pattern url; /* URL of the store; empty: there is no store */
    uint32_t nodes;
    int64_t timeout_ns;
    wr_rule_word prefix; /* prefix of its keys; empty: "weir" */
};

struct wr_rule_settings {
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_rule_match match;
    wr_rule_word key[WEIR_KEY_PARTS_MAX]; /* "ip", "header:x-user-id", ...; several form one key */
    wr_rule_word limits[WR_RULE_LIMITS_MAX];
    uint32_t key_count, limit_count;
    /* treatment of requests whose key is absent or unusable */
    enum wr_rule_missing_key missing, malformed;
    uint32_t cost, cost_max;
    wr_rule_word cost_header;
    wr_rule_word plan_header;
    struct wr_rule_plan plans[WR_RULE_PLANS_MAX];
    wr_rule_word allow_keys[WR_RULE_KEYS_MAX], deny_keys[WR_RULE_KEYS_MAX];
    uint32_t plan_count, allow_count, deny_count;
    bool shadow;
    struct wr_rule_share share;
    uint64_t max_keys; /* limit of keys; 0: that of `admission` */
};

/* Path differences that the services ignore (any) or distinguish (exact). */
struct wr_rules_paths {
    enum wr_path_comparison {
        WR_PATHS_ANY,
        WR_PATHS_EXACT
        /* for params, "any" is written "ignore" and "exact" is written "keep" */
    } letters, slashes, params;
};

enum wr_rules_matching {
    WR_MATCH_FIRST,
    WR_MATCH_ALL
};
enum wr_rules_on_error {
    WR_ON_ERROR_CLOSED,
    WR_ON_ERROR_OPEN
};

/* Several megabytes because of its fixed lists: do not put it on the stack. */
struct wr_rules_settings {
    struct wr_rule_settings rules[WR_RULES_MAX];
    uint32_t rule_count;
    enum wr_rules_matching matching;
    struct wr_rules_paths paths;
    enum wr_rules_on_error on_error;
    /* Identification of the client. */
    wr_rule_word trusted[WR_RULES_NETWORKS_MAX]; /* networks of proxies, and "unix" */
    uint32_t trusted_count;
    wr_rule_word forwarded_header;
    uint32_t v4_prefix, v6_prefix;
    wr_rule_word allow[WR_RULES_NETWORKS_MAX], deny[WR_RULES_NETWORKS_MAX];
    uint32_t allow_count, deny_count;
    wr_rule_word secret; /* secret for token: keys; empty: drawn when the rulebook is created */
    uint64_t max_keys;   /* limit of keys per rule and per plan */
    int64_t forget_ns;   /* time after which idle keys with their full limit are removed */
    uint32_t holds_max;  /* limit of reservations, including permits in flight */
    int64_t lease_ns;    /* lease of a reservation, unless its request sets one */
    struct wr_rules_store store;
};

/* Sets the defaults. */
void wr_rules_settings_init(struct wr_rules_settings *ret_settings);

extern const struct wr_config_field wr_rules_rule_field;        /* an item of `rules` */
extern const struct wr_config_schema wr_rules_admission_schema; /* the mapping `admission` */
/* a file with `rules` and `admission` */
extern const struct wr_config_schema wr_rules_schema;

#endif
