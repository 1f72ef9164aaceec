/* SPDX-License-Identifier: MIT */
/* shared.c - rules whose limits are shared with other processes through a store. */
#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "shell/rulebook/book.h"
#include "shell/share/address.h"

#include <string.h>

static int read_overshoot(const char *text, uint32_t *ret_millionths)
{
    static const char right[] = "use a percentage as 1% or 0.5%, at most 100%; 0% is exact";
    size_t bytes = strlen(text);
    double percent = 0;

    if (bytes < 2 || text[bytes - 1] != '%')
        return wr_invalid_text("overshoot", text, bytes, "it is not a percentage", WR_NOWHERE, right);
    if (wr_parse_number(text, bytes - 1, 0, 100, &percent) != 0)
        return wr_invalid_text("overshoot", text, bytes, "it is not a percentage", WR_NOWHERE, right);
    *ret_millionths = (uint32_t)(percent * 10000);
    return 0;
}

static bool needs_store(const struct wr_rulebook_settings *settings)
{
    for (uint32_t i = 0; i < settings->rule_count; i++) {
        if (wr_rule_is_shared(&settings->rules[i]))
            return true;
    }
    return false;
}

int wr_book_join(struct wr_rulebook *book, const struct wr_rulebook_settings *settings)
{
    const struct wr_book_store *store = &settings->store;
    struct wr_store_address address;

    if (!needs_store(settings))
        return 0;
    if (store->url[0] == '\0')
        return wr_invalid(
            "a rule has share:, but there is no store; set url and nodes in admission: store:, or set nodes there "
            "and give the URL by --store-file");
    int error = wr_store_address_parse(store->url, &address);
    if (error < 0)
        return error;
    const struct wr_agency_options options = {
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
    if (book->agency == NULL)
        return wr_agency_new(&options, &book->agency);
    return wr_agency_is(book->agency, &options)
               ? 0
               : wr_invalid("the store, or how many nodes share, is another; that takes a restart");
}

static int make_options(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_buf *name,
                        struct wr_budget_options *ret_options)
{
    static const enum wr_fallback fallbacks[] = {WR_FALLBACK_SHARE, WR_FALLBACK_OPEN, WR_FALLBACK_CLOSED};

    wr_buf_append_string(name, wish->rule->name);
    /* always appended: a rule's name and a plan's name must not run together */
    wr_buf_append_char(name, '\n');
    wr_buf_append_string(name, wish->plan != NULL ? wish->plan : "");
    wr_buf_append_char(name, '\0');
    *ret_options = (struct wr_budget_options){
        .name = name->bytes,
        .stack = *wish->stack,
        .fallback = fallbacks[wish->rule->share.on_outage],
        .max_keys = wish->max_keys,
        .clock = book->clock,
    };
    return read_overshoot(wish->rule->share.overshoot, &ret_options->overshoot);
}

int wr_book_budget(const struct wr_rulebook *book, const struct wr_drawer_wish *wish, struct wr_budget **ret_budget)
{
    struct wr_budget_options options;
    char memory[512];
    struct wr_buf name;

    wr_buf_init_fixed(&name, memory, sizeof memory);
    int error = make_options(book, wish, &name, &options);
    return error < 0 ? error : wr_budget_new(book->agency, &options, ret_budget);
}

bool wr_book_budget_is(const struct wr_rulebook *book, const struct wr_drawer_wish *wish,
                       const struct wr_budget *budget)
{
    struct wr_budget_options options;
    char memory[512];
    struct wr_buf name;

    wr_buf_init_fixed(&name, memory, sizeof memory);
    return make_options(book, wish, &name, &options) == 0 && wr_budget_is(budget, book->agency, &options);
}
