/* SPDX-License-Identifier: MIT */
/* compile_rule.c - converts rules from their settings to the forms that requests are compared
 * with. */
#include "serve/rules/compile_rule.h"

#include "base/ascii.h"
#include "base/error.h"
#include "core/admit/credentials.h"
#include "core/admit/host_name.h"
#include "core/admit/key.h"
#include "core/admit/key_source.h"
#include "core/admit/method.h"
#include "core/admit/network.h"
#include "core/admit/path.h"

#include <string.h>

/* ---- settings for all rules ------------------------------------------------------------------ */

static int read_networks(const char *where, const wr_rule_word *texts, uint32_t count, weir_network *ret_networks)
{
    for (uint32_t i = 0; i < count; i++) {
        if (weir_network_parse(texts[i], &ret_networks[i]) < 0)
            return wr_invalid_in(where);
    }
    return 0;
}

static int read_ranges(const char *where, const wr_rule_word *texts, uint32_t count, struct wr_range *ret_ranges,
                       size_t *ret_count)
{
    weir_network networks[WR_RULES_NETWORKS_MAX];

    if (read_networks(where, texts, count, networks) < 0)
        return WEIR_E_INVAL;
    *ret_count = wr_ranges_make(networks, count, ret_ranges);
    return 0;
}

static int read_trusted(const struct wr_rules_settings *settings, struct wr_rules_snapshot *snapshot)
{
    for (uint32_t i = 0; i < settings->trusted_count; i++) {
        if (strcmp(settings->trusted[i], "unix") == 0)
            snapshot->client.trust_unix = true;
        else if (weir_network_parse(settings->trusted[i], &snapshot->trusted[snapshot->client.trusted_count++]) < 0)
            return wr_invalid_in("trusted");
    }
    return 0;
}

int wr_compile_admission(const struct wr_rules_settings *settings, struct wr_rules_snapshot *snapshot)
{
    weir_key_rule_init(&snapshot->client, WEIR_KEY_IP);
    memcpy(snapshot->forwarded_header, settings->forwarded_header, sizeof snapshot->forwarded_header);
    if (!wr_header_name_ok(snapshot->forwarded_header))
        return wr_invalid("forwarded_header is not the name of a header in lower case; write it as x-forwarded-for");
    snapshot->client.header = snapshot->forwarded_header;
    snapshot->client.trusted = snapshot->trusted;
    snapshot->client.v4_prefix = (uint8_t)settings->v4_prefix;
    snapshot->client.v6_prefix = (uint8_t)settings->v6_prefix;
    snapshot->lease_ns = settings->lease_ns;
    snapshot->forget_ns = settings->forget_ns;
    snapshot->opens_on_error = settings->on_error == WR_ON_ERROR_OPEN;
    snapshot->exact = (settings->paths.letters == WR_PATHS_EXACT ? WEIR_EXACT_CASE : 0U) |
                      (settings->paths.slashes == WR_PATHS_EXACT ? WEIR_EXACT_SLASHES : 0U) |
                      (settings->paths.params == WR_PATHS_EXACT ? WEIR_EXACT_PARAMS : 0U);
    int error = read_trusted(settings, snapshot);
    if (error == 0)
        error = read_ranges("allow", settings->allow, settings->allow_count, snapshot->allow, &snapshot->allow_count);
    if (error == 0)
        error = read_ranges("deny", settings->deny, settings->deny_count, snapshot->deny, &snapshot->deny_count);
    return error;
}

/* ---- match ----------------------------------------------------------------------------------- */

static int read_header_patterns(const struct wr_rule_match *written, struct wr_compiled_rule *rule)
{
    for (uint32_t i = 0; i < written->header_count; i++) {
        const struct wr_rule_header *header = &written->headers[i];
        struct wr_header_pattern *pattern = &rule->headers[i];
        pattern->name = header->name;
        pattern->any = header->value[0] == '\0';
        if (!pattern->any && wr_glob_parse_value(header->value, &pattern->value) < 0)
            return WEIR_E_INVAL;
    }
    return 0;
}

static int read_match(struct wr_rules_snapshot *snapshot, struct wr_compiled_rule *rule)
{
    const struct wr_rule_match *written = &rule->written->match;
    int error = 0;

    for (uint32_t i = 0; i < written->method_count; i++)
        rule->methods[i] = wr_span_of(written->methods[i]);
    for (uint32_t i = 0; i < written->path_count && error == 0; i++) {
        error = wr_glob_parse_path(written->paths[i], &rule->paths[i]);
        snapshot->wanted |= error == 0 ? WR_READS_LOOSE(wr_glob_varies(&rule->paths[i])) : 0;
    }
    for (uint32_t i = 0; i < written->host_count && error == 0; i++)
        error = wr_glob_parse_host(written->hosts[i], &rule->hosts[i]);
    if (error == 0)
        error = read_header_patterns(written, rule);
    snapshot->wanted |= written->path_count > 0 ? WR_READS_PATH : 0;
    snapshot->wanted |= written->host_count > 0 ? WR_READS_HOST : 0;
    rule->match = (struct wr_match){.methods = rule->methods,
                                    .paths = rule->paths,
                                    .hosts = rule->hosts,
                                    .headers = rule->headers,
                                    .method_count = written->method_count,
                                    .path_count = written->path_count,
                                    .host_count = written->host_count,
                                    .header_count = written->header_count};
    return error;
}

/* ---- key ------------------------------------------------------------------------------------- */

static size_t write_host_key(void *context, const weir_request *request, char *buffer, size_t buffer_bytes)
{
    (void)context;
    if (request->host_bytes <= buffer_bytes && request->host_bytes > 0)
        memcpy(buffer, request->host, request->host_bytes);
    return request->host_bytes;
}

static size_t write_method_key(void *context, const weir_request *request, char *buffer, size_t buffer_bytes)
{
    struct wr_buf buf;

    (void)context;
    wr_buf_init_fixed(&buf, buffer, buffer_bytes);
    wr_method_append(&buf, (struct wr_span){request->method, request->method_bytes});
    return buf.length;
}

static void fill_key(const struct wr_rules_snapshot *snapshot, enum wr_key_source source, const char *header,
                     weir_key_rule *key)
{
    static const weir_key_kind kinds[] = {WEIR_KEY_GLOBAL, WEIR_KEY_IP,   WEIR_KEY_ROUTE, WEIR_KEY_CUSTOM,
                                          WEIR_KEY_CUSTOM, WEIR_KEY_USER, WEIR_KEY_USER};

    weir_key_rule_init(key, kinds[source]);
    if (source == WR_KEY_FROM_IP)
        *key = snapshot->client;
    if (header != NULL)
        key->header = header;
    key->exact = source == WR_KEY_FROM_ROUTE ? snapshot->exact : 0;
    if (source == WR_KEY_FROM_TOKEN)
        key->secret = snapshot->secret;
    if (kinds[source] == WEIR_KEY_CUSTOM)
        key->custom = source == WR_KEY_FROM_HOST ? write_host_key : write_method_key;
}

static int read_key_part(struct wr_rules_snapshot *snapshot, const struct wr_rule_settings *written, const char *text,
                         weir_key_rule *key)
{
    enum wr_key_source source;
    const char *header;

    if (wr_key_source_parse(text, &source, &header) < 0)
        return WEIR_E_INVAL;
    fill_key(snapshot, source, header, key);
    snapshot->wanted |= source == WR_KEY_FROM_HOST ? WR_READS_HOST : 0;
    if (source != WR_KEY_FROM_IP && source != WR_KEY_FROM_HEADER && source != WR_KEY_FROM_TOKEN)
        key->fallback = source == WR_KEY_FROM_GLOBAL ? NULL : "unknown";
    if (written->missing == WR_MISSING_REFUSE)
        key->fallback = NULL;
    key->share_malformed = written->malformed == WR_MISSING_SHARE && key->fallback != NULL;
    return 0;
}

static int read_rule_key(struct wr_rules_snapshot *snapshot, struct wr_compiled_rule *rule)
{
    const struct wr_rule_settings *written = rule->written;
    int error = 0;

    if (written->missing == WR_MISSING_REFUSE && written->malformed == WR_MISSING_SHARE)
        return wr_invalid(
            "malformed keys share one, but missing ones are refused; share both, or refuse malformed ones");
    if (written->key_count == 0)
        return read_key_part(snapshot, written, "ip", &rule->key);
    if (written->key_count == 1)
        return read_key_part(snapshot, written, written->key[0], &rule->key);
    for (uint32_t i = 0; i < written->key_count && error == 0; i++) {
        error = read_key_part(snapshot, written, written->key[i], &rule->parts[i]);
        rule->part_list[i] = &rule->parts[i];
    }
    weir_key_rule_init(&rule->key, WEIR_KEY_COMPOSITE);
    rule->key.parts = rule->part_list;
    rule->key.parts_count = written->key_count;
    return error;
}

/* ---- limits and lists ------------------------------------------------------------------------ */

static int read_limit_texts(const wr_rule_word *texts, uint32_t count, uint32_t cost, weir_stack *ret_stack)
{
    weir_limit limits[WR_RULE_LIMITS_MAX];

    for (uint32_t i = 0; i < count; i++) {
        if (weir_limit_parse(texts[i], &limits[i]) < 0)
            return WEIR_E_INVAL;
        if (limits[i].permits < cost)
            return wr_invalid_text("limit", texts[i], strlen(texts[i]),
                                   "a request costs more than the limit ever grants", WR_NOWHERE,
                                   "write a smaller cost, or a burst= of it");
    }
    return weir_stack_init(ret_stack, limits, count);
}

/* Appends a listed address as the network prefix that counts as one caller. */
static int normalise_address(const weir_key_rule *key, const char *word, struct wr_buf *buf)
{
    struct wr_address address;
    weir_network network;

    if (weir_network_parse(word, &network) < 0)
        return WEIR_E_INVAL;
    memcpy(address.bytes, network.address, sizeof address.bytes);
    if (network.prefix < (wr_address_is_v4(&address) ? 96 + key->v4_prefix : key->v6_prefix))
        return wr_invalid("more than one caller; write one address; list networks in admission: allow or deny");
    wr_network_append(buf, &address, key->v4_prefix, key->v6_prefix);
    return 0;
}

static int normalise_header(const weir_key_rule *key, const char *word, struct wr_buf *buf)
{
    struct wr_span value = wr_span_trim(wr_span_of(word));

    if (key->secret != NULL && wr_digest_is(value)) {
        wr_buf_append_span(buf, value);
        return 0;
    }
    if (wr_credentials_are_in(key->header) && wr_credentials_read(value, &value) != WEIR_FAULT_NONE)
        return wr_invalid("a listed token is invalid; write a scheme and one word, such as Bearer TOKEN, or the "
                          "digest that weir shows");
    if (key->secret != NULL)
        wr_digest_append(buf, key->secret, value);
    else
        wr_buf_append_span(buf, value);
    return 0;
}

static int normalise_text(const weir_key_rule *key, const char *word, struct wr_buf *buf)
{
    struct wr_span text = wr_span_of(word);
    weir_request_fault fault = WEIR_FAULT_NONE;

    if (key->kind == WEIR_KEY_ROUTE)
        fault = wr_route_append(buf, text, key->exact);
    else if (key->custom == write_host_key)
        fault = wr_host_append(buf, text);
    else if (key->custom == write_method_key)
        wr_method_append(buf, text);
    else
        wr_buf_append_span(buf, text);
    return fault == WEIR_FAULT_NONE ? 0 : wr_invalid(weir_request_fault_text(fault));
}

static int normalise_single(const weir_key_rule *key, const char *word, struct wr_buf *buf)
{
    if (key->fallback != NULL && strcmp(word, key->fallback) == 0) {
        wr_buf_append_string(buf, word);
        return 0;
    }
    if (key->kind == WEIR_KEY_IP)
        return normalise_address(key, word, buf);
    return key->kind == WEIR_KEY_USER ? normalise_header(key, word, buf) : normalise_text(key, word, buf);
}

/* Splits off the text before the next separator, and removes each '\' that escapes a character. */
static void take_key_part(const char **rest, char separator, wr_rule_word ret_part)
{
    size_t bytes = 0;

    while (**rest != '\0' && **rest != separator) {
        *rest += **rest == '\\' && (*rest)[1] != '\0';
        ret_part[bytes++] = *(*rest)++;
    }
    ret_part[bytes] = '\0';
    *rest += **rest != '\0';
}

static int normalise_parts(const weir_key_rule *key, const char *word, struct wr_buf *buf)
{
    const char *rest = word;

    for (size_t i = 0; i < key->parts_count; i++) {
        wr_rule_word part, kept;
        struct wr_buf one;
        take_key_part(&rest, key->separator, part);
        if (part[0] == '\0' || (i + 1 == key->parts_count && *rest != '\0'))
            return wr_invalid(
                "wrong number of parts for this key; separate parts with ':', and write a ':' in a part as "
                "\"\\:\"");
        wr_buf_init_fixed(&one, kept, sizeof kept);
        if (normalise_single(key->parts[i], part, &one) < 0)
            return WEIR_E_INVAL;
        if (i > 0)
            wr_buf_append_char(buf, key->separator);
        wr_buf_append_escaped(buf, wr_buf_from(&one, 0), key->separator);
        buf->error = buf->error != 0 ? buf->error : one.error;
    }
    return 0;
}

/* Normalises a listed key like the key of a request; otherwise no request would match it. */
static int normalise_listed_key(const weir_key_rule *key, wr_rule_word word)
{
    wr_rule_word kept = "";
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, kept, sizeof kept);
    int error = key->kind == WEIR_KEY_COMPOSITE ? normalise_parts(key, word, &buf) : normalise_single(key, word, &buf);
    if (error == 0 && buf.error != 0)
        error = wr_invalid("too long after normalisation; write a shorter key");
    if (error == 0)
        memcpy(word, kept, sizeof kept);
    return error;
}

/* Reports an invalid listed key by its position, as the key may be a token. The error detail must
 * have the reason. */
static int refuse_listed_key(const char *list, uint32_t index)
{
    char where[64];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, where, sizeof where);
    wr_buf_append_string(&buf, "item ");
    wr_buf_append_u64(&buf, (uint64_t)index + 1);
    wr_buf_append_string(&buf, " of ");
    wr_buf_append_string(&buf, list);
    wr_error_set(wr_error_unquoted());
    return wr_invalid_in(where);
}

static int refuse_repeated_key(const struct wr_rule_settings *written, const char *word)
{
    static const char why[] = "it is listed twice; leave it in one list";

    wr_error_set(why);
    for (uint32_t i = 0; i < written->allow_count; i++)
        if (written->allow_keys[i] == word)
            return refuse_listed_key("allow_keys", i);
    for (uint32_t i = 0; i < written->deny_count; i++)
        if (written->deny_keys[i] == word)
            return refuse_listed_key("deny_keys", i);
    for (uint32_t i = 0; i < written->plan_count; i++)
        for (uint32_t j = 0; j < written->plans[i].key_count; j++)
            if (written->plans[i].keys[j] == word)
                return refuse_listed_key("a plan's keys", j);
    return WEIR_E_INVAL;
}

static int add_listed_keys(struct wr_compiled_rule *rule, const char *list, wr_rule_word *keys, uint32_t count,
                           uint32_t plan)
{
    int error = 0;

    for (uint32_t i = 0; i < count && error == 0; i++) {
        error = normalise_listed_key(&rule->key, keys[i]);
        if (error == WEIR_E_INVAL)
            return refuse_listed_key(list, i);
        rule->words[rule->word_count++] = (struct wr_numbered_key){wr_span_of(keys[i]), plan};
    }
    return error;
}

static int check_plan_names(const struct wr_rule_settings *written)
{
    for (uint32_t i = 0; i < written->plan_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(written->plans[i].name, written->plans[j].name) == 0)
                return wr_invalid_text("plan", written->plans[i].name, strlen(written->plans[i].name),
                                       "two plans have this name", WR_NOWHERE, "give each its own");
        }
    }
    return 0;
}

static int read_plans_and_lists(struct wr_rule_settings *written, struct wr_compiled_rule *rule)
{
    int error = check_plan_names(written);

    if (error == 0)
        error = add_listed_keys(rule, "allow_keys", written->allow_keys, written->allow_count, WR_RULE_PLAN_ALLOW);
    if (error == 0)
        error = add_listed_keys(rule, "deny_keys", written->deny_keys, written->deny_count, WR_RULE_PLAN_DENY);
    for (uint32_t i = 0; i < written->plan_count && error == 0; i++) {
        const struct wr_rule_plan *plan = &written->plans[i];
        error = read_limit_texts(plan->limits, plan->limit_count, written->cost, &rule->stacks[1 + i]);
        if (error == 0)
            error =
                add_listed_keys(rule, "a plan's keys", written->plans[i].keys, plan->key_count, WR_RULE_PLAN_FIRST + i);
    }
    if (error < 0)
        return error;
    const struct wr_numbered_key *twice = wr_numbered_keys_sort(rule->words, rule->word_count);
    return twice != NULL ? refuse_repeated_key(written, twice->text.data) : 0;
}

int wr_compile_rule(struct wr_rules_snapshot *snapshot, struct wr_rule_settings *written, struct wr_compiled_rule *rule)
{
    rule->written = written;
    int error = read_match(snapshot, rule);

    if (error == 0)
        error = read_rule_key(snapshot, rule);
    if (error == 0)
        error = read_limit_texts(rule->written->limits, written->limit_count, written->cost, &rule->stacks[0]);
    return error == 0 ? read_plans_and_lists(written, rule) : error;
}
