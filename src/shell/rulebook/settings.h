/* SPDX-License-Identifier: MIT */
/* settings.h - the rules as they are written in weir.yaml. contrib/weir.yaml shows all of it.
 *
 * Two keys of the file: `rules`, a list, and `admission`, what holds for all of them. Whoever reads the whole file puts
 * them into its own schema:
 *
 *     {"rules", WR_CONFIG_LIST(struct file, book.rules, book.rule_count, &wr_rulebook_rule), .what = "…"},
 *     {"admission", WR_CONFIG_MAPPING(struct file, book, &wr_rulebook_admission), .what = "…"},
 *
 * and wr_rulebook_schema is a file of just these two.
 */
#ifndef WR_SHELL_RULEBOOK_SETTINGS_H
#define WR_SHELL_RULEBOOK_SETTINGS_H

#include "shell/config/config.h"

#include <weir/admit.h>

#define WR_BOOK_RULES_MAX 100
#define WR_BOOK_PATTERNS_MAX 8  /* paths, hosts or headers of one rule */
#define WR_BOOK_PATTERN_MAX 255 /* bytes */
#define WR_BOOK_METHODS_MAX 9
#define WR_BOOK_LIMITS_MAX 4 /* in one stack */
#define WR_BOOK_PLANS_MAX 8
#define WR_BOOK_KEYS_MAX 32 /* in one list of keys */
#define WR_BOOK_NETWORKS_MAX 256
#define WR_BOOK_WORD_MAX 127 /* bytes of a key that is written out, of a header's name, … */

typedef char wr_book_word[WR_BOOK_WORD_MAX + 1];
typedef char wr_book_pattern[WR_BOOK_PATTERN_MAX + 1];

struct wr_book_header {
    wr_book_word name;
    wr_book_pattern value; /* a pattern; empty: that it is there is enough */
};

/* What a rule is for. Each list that is not empty must have one that fits. */
struct wr_book_match {
    wr_book_word methods[WR_BOOK_METHODS_MAX];
    wr_book_pattern paths[WR_BOOK_PATTERNS_MAX];
    wr_book_pattern hosts[WR_BOOK_PATTERNS_MAX];
    struct wr_book_header headers[WR_BOOK_PATTERNS_MAX]; /* all of these must fit */
    uint32_t method_count, path_count, host_count, header_count;
};

/* Other limits for some callers. */
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

/* Of a limit that other processes share. */
struct wr_book_share {
    wr_book_word overshoot; /* "1%"; "0%": exact; empty: it is this process's own */
    enum wr_book_outage {
        WR_OUTAGE_SHARE,
        WR_OUTAGE_OPEN,
        WR_OUTAGE_CLOSED
    } on_outage;
};

/* Where shared limits are kept. */
struct wr_book_store {
    wr_book_pattern url; /* empty: there is none */
    uint32_t nodes;
    int64_t timeout_ns;
    wr_book_word prefix; /* of its keys; empty: "weir" */
};

struct wr_book_rule {
    char name[WEIR_RULE_NAME_MAX + 1];
    struct wr_book_match match;
    wr_book_word key[WEIR_KEY_PARTS_MAX]; /* "ip", "header:x-user-id", …; several together are one key */
    wr_book_word limits[WR_BOOK_LIMITS_MAX];
    uint32_t key_count, limit_count;
    enum wr_book_missing missing, malformed; /* what becomes of requests without key, or with one that cannot be used */
    uint32_t cost, cost_max;
    wr_book_word cost_header;
    wr_book_word plan_header;
    struct wr_book_plan plans[WR_BOOK_PLANS_MAX];
    wr_book_word allow_keys[WR_BOOK_KEYS_MAX], deny_keys[WR_BOOK_KEYS_MAX];
    uint32_t plan_count, allow_count, deny_count;
    bool shadow;
    struct wr_book_share share;
    uint64_t max_keys; /* 0: as `admission` says */
};

/* How the services read a path. */
struct wr_book_paths {
    enum wr_book_either {
        WR_PATHS_ANY,
        WR_PATHS_EXACT
    } letters, slashes, params; /* "any" is "ignore" for params, "exact" is "keep" */
};

enum wr_book_matching {
    WR_MATCH_FIRST,
    WR_MATCH_ALL
};
enum wr_book_on_error {
    WR_ON_ERROR_CLOSED,
    WR_ON_ERROR_OPEN
};

/* Much of it is room for lists: it is megabytes, so not for the stack. */
struct wr_rulebook_settings {
    struct wr_book_rule rules[WR_BOOK_RULES_MAX];
    uint32_t rule_count;
    enum wr_book_matching matching;
    struct wr_book_paths paths;
    enum wr_book_on_error on_error;
    /* Who is asking. */
    wr_book_word trusted[WR_BOOK_NETWORKS_MAX]; /* networks, and "unix" */
    uint32_t trusted_count;
    wr_book_word forwarded_header;
    uint32_t v4_prefix, v6_prefix;
    wr_book_word allow[WR_BOOK_NETWORKS_MAX], deny[WR_BOOK_NETWORKS_MAX];
    uint32_t allow_count, deny_count;
    wr_book_word secret; /* for keys that are tokens; empty: drawn when the book is made */
    uint64_t max_keys;   /* of a rule, and of each plan */
    int64_t forget_ns;   /* keys that were idle for so long and are whole again */
    uint32_t holds_max;  /* reservations, and permits in flight */
    int64_t lease_ns;    /* after which they end by themselves */
    struct wr_book_store store;
};

/* The defaults. */
void wr_rulebook_settings_init(struct wr_rulebook_settings *ret_settings);

extern const struct wr_config_field wr_rulebook_rule;       /* an item of `rules` */
extern const struct wr_config_schema wr_rulebook_admission; /* `admission` */
extern const struct wr_config_schema wr_rulebook_schema;    /* a file of both */

#endif
