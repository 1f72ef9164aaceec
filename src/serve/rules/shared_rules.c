/* SPDX-License-Identifier: MIT */
/* shared_rules.c - rules whose limits are shared with other processes through a store. */
#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "cluster/limit/redis_address.h"
#include "serve/rules/rules_internal.h"

#include <string.h>

static int read_overshoot(const char *text, uint32_t *ret_millionths)
{
    static const char right[] = "use a percentage such as 1% or 0.5%, at most 100%; 0% is exact";
    size_t bytes = strlen(text);
    double percent = 0;

    if (bytes < 2 || text[bytes - 1] != '%')
        return wr_invalid_text("overshoot", text, bytes, "it is not a percentage", WR_NOWHERE, right);
    if (wr_parse_number(text, bytes - 1, 0, 100, &percent) != 0)
        return wr_invalid_text("overshoot", text, bytes, "it is not a percentage", WR_NOWHERE, right);
    *ret_millionths = (uint32_t)(percent * 10000);
    return 0;
}

static bool needs_store(const struct wr_rules_settings *settings)
{
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        if (wr_rule_is_shared(&settings->rules[i]))
            return true;
    }
    return false;
}

int wr_rules_open_store(struct wr_rules *book, const struct wr_rules_settings *settings)
{
    const struct wr_rules_store *store = &settings->store;
    struct wr_redis_address address;

    if (!needs_store(settings))
        return 0;
    if (store->url[0] == '\0')
        return wr_invalid(
            "a rule has share:, but there is no store; set url and nodes in admission: store:, or set nodes there "
            "and give the URL by --store-file");
    int error = wr_redis_address_parse(store->url, &address);
    if (error < 0)
        return error;
    const struct wr_redis_client_options options = {
        .wire = {.path = address.path[0] != '\0' ? address.path : NULL,
                 .host = address.host[0] != '\0' ? address.host : NULL,
                 .port = address.port,
                 .user = address.user[0] != '\0' ? address.user : NULL,
                 .password = address.password[0] != '\0' ? address.password : NULL,
                 .timeout_ns = store->timeout_ns},
        .nodes = store->nodes,
        .prefix = store->prefix[0] != '\0' ? store->prefix : NULL,
        .allocator = book->allocator,
    };
    if (book->redis_client == NULL)
        return wr_redis_client_new(&options, &book->redis_client);
    return wr_redis_client_has_options(book->redis_client, &options)
               ? 0
               : wr_invalid("the store or its number of nodes differs, which needs a restart");
}

static int make_shared_limit_options(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                                     struct wr_buf *name, struct wr_shared_limit_options *ret_options)
{
    static const enum wr_shared_limit_fallback fallbacks[] = {WR_FALLBACK_SHARE, WR_FALLBACK_OPEN, WR_FALLBACK_CLOSED};

    wr_buf_append_string(name, table_options->rule->name);
    /* always appended: a rule's name and a plan's name must not run together */
    wr_buf_append_char(name, '\n');
    wr_buf_append_string(name, table_options->plan != NULL ? table_options->plan : "");
    wr_buf_append_char(name, '\0');
    *ret_options = (struct wr_shared_limit_options){
        .name = name->bytes,
        .stack = *table_options->stack,
        .fallback = fallbacks[table_options->rule->share.on_outage],
        .max_keys = table_options->max_keys,
        .clock = book->clock,
    };
    return read_overshoot(table_options->rule->share.overshoot, &ret_options->overshoot);
}

int wr_rules_shared_limit_new(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                              struct wr_shared_limit **ret_budget)
{
    struct wr_shared_limit_options options;
    char memory[512];
    struct wr_buf name;

    wr_buf_init_fixed(&name, memory, sizeof memory);
    int error = make_shared_limit_options(book, table_options, &name, &options);
    return error < 0 ? error : wr_shared_limit_new(book->redis_client, &options, ret_budget);
}

bool wr_rules_shared_limit_fits(const struct wr_rules *book, const struct wr_rule_table_options *table_options,
                                const struct wr_shared_limit *budget)
{
    struct wr_shared_limit_options options;
    char memory[512];
    struct wr_buf name;

    wr_buf_init_fixed(&name, memory, sizeof memory);
    return make_shared_limit_options(book, table_options, &name, &options) == 0 &&
           wr_shared_limit_has_options(budget, book->redis_client, &options);
}
