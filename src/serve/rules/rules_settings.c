/* SPDX-License-Identifier: MIT */
/* rules_settings.c - the schema of the rules in weir.yaml: the keys of each section, and checks of
 * their values. */
#include "serve/rules/rules_settings.h"

#include "base/ascii.h"
#include "base/error.h"
#include "core/admit/glob.h"
#include "core/admit/key_source.h"
#include "core/admit/request_headers.h"

#include <string.h>

#define FIELD_COUNT(array) (sizeof(array) / sizeof(array)[0])
#define KEYS_DEFAULT 1000000
#define HOLDS_MAX (1u << 21) /* largest slot number that fits into a reservation's number */

/* ---- checks of texts, which report the position of an error ---- */

static int check_limit(const char *text)
{
    weir_limit limit;
    return weir_limit_parse(text, &limit);
}

static int check_key(const char *text)
{
    enum wr_key_source source;
    const char *header;
    return wr_key_source_parse(text, &source, &header);
}

/* Requires capitals: methods of requests are converted to capitals before they are compared. */
static int check_method_name(const char *text)
{
    for (size_t at = 0; text[at] != '\0'; at++)
        if (wr_ascii_lower(text[at]) == text[at] && text[at] != '-')
            return wr_invalid_text("method", text, strlen(text), "not in capitals", at, "write it such as GET");
    return 0;
}

static int check_path_pattern(const char *text)
{
    struct wr_glob pattern;
    return wr_glob_parse_path(text, &pattern);
}

static int check_host_pattern(const char *text)
{
    struct wr_glob pattern;
    return wr_glob_parse_host(text, &pattern);
}

static int check_header_value(const char *text)
{
    struct wr_glob pattern;
    return wr_glob_parse_value(text, &pattern);
}

static int check_header_name(const char *text)
{
    return wr_header_name_ok(text) ? 0
                                   : wr_invalid_text("header", text, strlen(text), "not a name in lower case",
                                                     WR_NOWHERE, "write it as x-user-id");
}

static int check_network(const char *text)
{
    weir_network network;
    return weir_network_parse(text, &network);
}

static int check_trusted(const char *text)
{
    return strcmp(text, "unix") == 0 ? 0 : check_network(text);
}

#define TEXT_ITEM(type, its_check)                                             \
    {                                                                          \
        .kind = WR_CONFIG_IS_TEXT, .bytes = sizeof(type), .check = (its_check) \
    }
/* Marked as secret: for a rule with key token:NAME, listed keys are callers' tokens. */
static const struct wr_config_field listed_item = {
    .kind = WR_CONFIG_IS_TEXT, .bytes = sizeof(wr_rule_word), .is_secret = true};
static const struct wr_config_field limit_item = TEXT_ITEM(wr_rule_word, check_limit);
static const struct wr_config_field key_item = TEXT_ITEM(wr_rule_word, check_key);
static const struct wr_config_field method_item = TEXT_ITEM(wr_rule_word, check_method_name);
static const struct wr_config_field path_item = TEXT_ITEM(wr_rule_pattern, check_path_pattern);
static const struct wr_config_field host_item = TEXT_ITEM(wr_rule_pattern, check_host_pattern);
static const struct wr_config_field network_item = TEXT_ITEM(wr_rule_word, check_network);
static const struct wr_config_field trusted_item = TEXT_ITEM(wr_rule_word, check_trusted);

/* ---- matching requests ---- */

static const struct wr_config_field header_fields[] = {
    {"name", WR_CONFIG_TEXT(struct wr_rule_header, name), .required = true, .check = check_header_name,
     .what = "name of the header, in lower case"},
    {"value", WR_CONFIG_TEXT(struct wr_rule_header, value), .check = check_header_value, .is_secret = true,
     .what = "required value; * stands for anything"},
};
static const struct wr_config_schema header_schema = {.name = "a header",
                                                      .bytes = sizeof(struct wr_rule_header),
                                                      .fields = header_fields,
                                                      .count = FIELD_COUNT(header_fields)};
static const struct wr_config_field header_item = {
    .kind = WR_CONFIG_IS_MAPPING, .bytes = sizeof(struct wr_rule_header), .schema = &header_schema};

static const struct wr_config_field match_fields[] = {
    {"method", WR_CONFIG_LIST(struct wr_rule_match, methods, method_count, &method_item), .what = "such as GET"},
    {"path", WR_CONFIG_LIST(struct wr_rule_match, paths, path_count, &path_item),
     .what = "such as /login, /api/**, /users/*/posts or **.css"},
    {"host", WR_CONFIG_LIST(struct wr_rule_match, hosts, host_count, &host_item),
     .what = "such as example.org or *.example.org"},
    {"header", WR_CONFIG_LIST(struct wr_rule_match, headers, header_count, &header_item),
     .what = "headers that a request must have, all of them"},
};
static const struct wr_config_schema match_schema = {
    .name = "match", .bytes = sizeof(struct wr_rule_match), .fields = match_fields, .count = FIELD_COUNT(match_fields)};

/* ---- plans ---- */

static const struct wr_config_field plan_fields[] = {
    {"name", WR_CONFIG_TEXT(struct wr_rule_plan, name), .required = true,
     .what = "value of plan_header that selects the plan"},
    {"limit", WR_CONFIG_LIST(struct wr_rule_plan, limits, limit_count, &limit_item), .required = true,
     .what = "limits in place of the rule's"},
    {"keys", WR_CONFIG_LIST(struct wr_rule_plan, keys, key_count, &listed_item), .what = "keys on this plan"},
};
static const struct wr_config_schema plan_schema = {
    .name = "a plan", .bytes = sizeof(struct wr_rule_plan), .fields = plan_fields, .count = FIELD_COUNT(plan_fields)};
static const struct wr_config_field plan_item = {
    .kind = WR_CONFIG_IS_MAPPING, .bytes = sizeof(struct wr_rule_plan), .schema = &plan_schema};

/* ---- shared limits ---- */

static const char *const outages[] = {"share", "open", "closed", NULL};

static const struct wr_config_field share_fields[] = {
    {"overshoot", WR_CONFIG_TEXT(struct wr_rule_share, overshoot), .required = true,
     .what = "part of the limit, such as 1%, by which all nodes together may exceed it; 0%: ask for each request"},
    {"on_outage", WR_CONFIG_CHOICE(struct wr_rule_share, on_outage), .choices = outages,
     .what = "without the store: grant this node's share of the limit, grant all, or refuse all"},
};
static const struct wr_config_schema share_schema = {
    .name = "share", .bytes = sizeof(struct wr_rule_share), .fields = share_fields, .count = FIELD_COUNT(share_fields)};

static const struct wr_config_field store_fields[] = {
    {"url", WR_CONFIG_TEXT(struct wr_rules_store, url), .is_secret = true,
     .what = "such as redis://USER:PASSWORD@HOST:6379 or unix:/run/redis.sock; or use weir serve --store-file"},
    {"nodes", WR_CONFIG_COUNT(struct wr_rules_store, nodes), .min = 1, .max = 10000, .required = true,
     .what = "number of processes that share"},
    {"timeout", WR_CONFIG_DURATION(struct wr_rules_store, timeout_ns), .min = WEIR_MILLISECOND, .max = WEIR_MINUTE,
     .what = "time limit for a reply"},
    {"prefix", WR_CONFIG_TEXT(struct wr_rules_store, prefix), .what = "prefix of all keys in the store"},
};
static const struct wr_config_schema store_schema = {.name = "store",
                                                     .bytes = sizeof(struct wr_rules_store),
                                                     .fields = store_fields,
                                                     .count = FIELD_COUNT(store_fields)};

/* ---- rules ---- */

static const char *const missings[] = {"share", "refuse", NULL};
static const char *const matchings[] = {"first", "all", NULL};
static const char *const on_errors[] = {"closed", "open", NULL};

static const struct wr_config_field rule_fields[] = {
    {"name", WR_CONFIG_TEXT(struct wr_rule_settings, name), .required = true, .what = "name that callers see"},
    {"match", WR_CONFIG_MAPPING(struct wr_rule_settings, match, &match_schema),
     .what = "requests that the rule applies to; all if left out"},
    {"key", WR_CONFIG_LIST(struct wr_rule_settings, key, key_count, &key_item),
     .what = "ip, global, route, host, method, header:NAME or token:NAME; several together"},
    {"limit", WR_CONFIG_LIST(struct wr_rule_settings, limits, limit_count, &limit_item), .required = true,
     .what = "such as 10/s burst=20; all limits of a list must grant"},
    {"missing", WR_CONFIG_CHOICE(struct wr_rule_settings, missing), .choices = missings,
     .what = "requests without a key: share one key, or refuse"},
    {"malformed", WR_CONFIG_CHOICE(struct wr_rule_settings, malformed), .choices = missings,
     .what = "requests with an unusable key: share one key, or refuse"},
    {"cost", WR_CONFIG_COUNT(struct wr_rule_settings, cost), .min = 1, .max = WEIR_PERMITS_MAX,
     .what = "cost of a request"},
    {"cost_header", WR_CONFIG_TEXT(struct wr_rule_settings, cost_header), .check = check_header_name,
     .what = "header with the cost of a request, instead of cost"},
    {"cost_max", WR_CONFIG_COUNT(struct wr_rule_settings, cost_max), .min = 1, .max = WEIR_PERMITS_MAX,
     .what = "maximum of the value of cost_header"},
    {"plan_header", WR_CONFIG_TEXT(struct wr_rule_settings, plan_header), .check = check_header_name,
     .what = "header with the name of the plan"},
    {"plans", WR_CONFIG_LIST(struct wr_rule_settings, plans, plan_count, &plan_item),
     .what = "other limits for some keys"},
    {"allow_keys", WR_CONFIG_LIST(struct wr_rule_settings, allow_keys, allow_count, &listed_item),
     .what = "keys to admit without a limit"},
    {"deny_keys", WR_CONFIG_LIST(struct wr_rule_settings, deny_keys, deny_count, &listed_item),
     .what = "keys to refuse"},
    {"shadow", WR_CONFIG_BOOL(struct wr_rule_settings, shadow), .what = "count, but refuse no request"},
    {"share", WR_CONFIG_MAPPING(struct wr_rule_settings, share, &share_schema),
     .what = "share the limit with other processes, through the store of admission"},
    {"max_keys", WR_CONFIG_COUNT(struct wr_rule_settings, max_keys), .min = 1, .max = WEIR_KEYS_MAX,
     .what = "to be remembered"},
};

static void rule_init(void *settings)
{
    struct wr_rule_settings *rule = settings;
    rule->malformed = WR_MISSING_REFUSE;
    rule->cost = 1;
}

static const char *rule_wrong(const void *settings)
{
    const struct wr_rule_settings *rule = settings;
    if (rule->limit_count == 0)
        return "a rule has no limit; write one such as 10/s";
    if ((rule->cost_header[0] == '\0') != (rule->cost_max == 0))
        return "cost_header and cost_max belong together; write both";
    if (rule->plan_header[0] != '\0' && rule->plan_count == 0)
        return "plan_header without plans; write the plans";
    for (uint32_t i = 0; i < rule->plan_count && rule->plan_header[0] == '\0'; i++)
        if (rule->plans[i].key_count == 0)
            return "a plan without keys; write its keys, or a plan_header";
    return NULL;
}

static const struct wr_config_schema rule_schema = {.name = "a rule",
                                                    .bytes = sizeof(struct wr_rule_settings),
                                                    .fields = rule_fields,
                                                    .count = FIELD_COUNT(rule_fields),
                                                    .init = rule_init,
                                                    .wrong = rule_wrong};

const struct wr_config_field wr_rules_rule_field = {
    .kind = WR_CONFIG_IS_MAPPING, .bytes = sizeof(struct wr_rule_settings), .schema = &rule_schema};

/* ---- settings for all rules ---- */

static const char *const eithers[] = {"any", "exact", NULL};
static const char *const params[] = {"ignore", "keep", NULL};

static const struct wr_config_field path_fields[] = {
    {"case", WR_CONFIG_CHOICE(struct wr_rules_paths, letters), .choices = eithers,
     .what = "exact: no service treats /Login as /login"},
    {"slash", WR_CONFIG_CHOICE(struct wr_rules_paths, slashes), .choices = eithers,
     .what = "exact: no service treats /a/b/ or /a//b as /a/b"},
    {"params", WR_CONFIG_CHOICE(struct wr_rules_paths, params), .choices = params,
     .what = "keep: no service treats /login;a=1 as /login"},
};
static const struct wr_config_schema path_schema = {.name = "path_match",
                                                    .bytes = sizeof(struct wr_rules_paths),
                                                    .fields = path_fields,
                                                    .count = FIELD_COUNT(path_fields)};

static const struct wr_config_field admission_fields[] = {
    {"match", WR_CONFIG_CHOICE(struct wr_rules_settings, matching), .choices = matchings,
     .what = "whether the first matching rule decides, or all matching rules"},
    {"path_match", WR_CONFIG_MAPPING(struct wr_rules_settings, paths, &path_schema),
     .what = "which paths your services treat as different; default: judge each reading"},
    {"on_error", WR_CONFIG_CHOICE(struct wr_rules_settings, on_error), .choices = on_errors,
     .what = "if a rule cannot decide: refuse, or let the request in"},
    {"trusted", WR_CONFIG_LIST(struct wr_rules_settings, trusted, trusted_count, &trusted_item),
     .what = "networks of proxies whose forwarded_header is believed, and unix"},
    {"forwarded_header", WR_CONFIG_TEXT(struct wr_rules_settings, forwarded_header), .check = check_header_name,
     .what = "header in which these proxies send the caller's address"},
    {"ipv4_prefix", WR_CONFIG_COUNT(struct wr_rules_settings, v4_prefix), .min = 1, .max = 32,
     .what = "bits of an address that identify a caller"},
    {"ipv6_prefix", WR_CONFIG_COUNT(struct wr_rules_settings, v6_prefix), .min = 1, .max = 128,
     .what = "bits of an address that identify a caller"},
    {"allow", WR_CONFIG_LIST(struct wr_rules_settings, allow, allow_count, &network_item),
     .what = "networks to admit without a limit"},
    {"deny", WR_CONFIG_LIST(struct wr_rules_settings, deny, deny_count, &network_item), .what = "networks to refuse"},
    {"secret", WR_CONFIG_TEXT(struct wr_rules_settings, secret), .is_secret = true,
     .what = "secret for the digests of token: keys, which survive a restart only with it"},
    {"max_keys", WR_CONFIG_COUNT(struct wr_rules_settings, max_keys), .min = 1, .max = WEIR_KEYS_MAX,
     .what = "maximum of keys in memory, for each rule and plan"},
    {"forget", WR_CONFIG_DURATION(struct wr_rules_settings, forget_ns), .min = WEIR_SECOND, .max = 365 * WEIR_DAY,
     .what = "idle time after which a key is forgotten"},
    {"holds", WR_CONFIG_COUNT(struct wr_rules_settings, holds_max), .min = 1, .max = HOLDS_MAX,
     .what = "maximum of reservations and requests in flight"},
    {"lease", WR_CONFIG_DURATION(struct wr_rules_settings, lease_ns), .min = WEIR_MILLISECOND, .max = WEIR_DAY,
     .what = "time after which reservations and requests in flight expire"},
    {"store", WR_CONFIG_MAPPING(struct wr_rules_settings, store, &store_schema),
     .what = "Redis or Valkey, where rules with `share` are kept"},
};
const struct wr_config_schema wr_rules_admission_schema = {.name = "admission",
                                                           .bytes = sizeof(struct wr_rules_settings),
                                                           .fields = admission_fields,
                                                           .count = FIELD_COUNT(admission_fields)};

static const struct wr_config_field book_fields[] = {
    {"rules", WR_CONFIG_LIST(struct wr_rules_settings, rules, rule_count, &wr_rules_rule_field), .required = true,
     .what = "rules that admit or refuse requests"},
    {"admission", WR_CONFIG_GROUP(&wr_rules_admission_schema), .what = "settings that apply to all rules"},
};
const struct wr_config_schema wr_rules_schema = {.name = "the rules",
                                                 .bytes = sizeof(struct wr_rules_settings),
                                                 .fields = book_fields,
                                                 .count = FIELD_COUNT(book_fields)};

void wr_rules_settings_init(struct wr_rules_settings *ret_settings)
{
    static const char forwarded[] = "x-forwarded-for";
    memset(ret_settings, 0, sizeof *ret_settings);
    memcpy(ret_settings->forwarded_header, forwarded, sizeof forwarded);
    ret_settings->v4_prefix = 32;
    ret_settings->v6_prefix = 64;
    ret_settings->max_keys = KEYS_DEFAULT;
    ret_settings->forget_ns = WEIR_HOUR;
    ret_settings->holds_max = 65536;
    ret_settings->lease_ns = WEIR_MINUTE;
    ret_settings->store.timeout_ns = 4 * WEIR_MILLISECOND;
}
