/* SPDX-License-Identifier: MIT */
/* fetch_share.c - weir fetch --share: starts the shared gates and reports problems of the Redis
 * store. */
#include "cli/fetch/fetch_share.h"

#include "cli/kit/console.h"
#include "cluster/gate/shared_gate.h"
#include "cluster/limit/redis_address.h"

int wr_check_store(const char *text)
{
    struct wr_redis_address address;
    return wr_redis_address_parse(text, &address);
}

static void print_store_notice(void *context, const char *why)
{
    (void)context;
    if (why != NULL)
        wr_complain("--share: the store cannot be reached (%s); hosts wait until it answers, at most --max-defer. To "
                    "fetch without it, restart without --share, and set your part of the rate with --max-rate",
                    why);
    else
        wr_complain("--share: the store can be reached again");
}

static const char *null_if_no_text(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

bool wr_fetch_share_start(const char *url, const char *prefix, weir_pacer *pacer, struct wr_shared_gate **ret_relay)
{
    struct wr_redis_address address;
    int error = wr_redis_address_parse(url, &address);
    if (error == 0) {
        struct wr_shared_gate_options options = {
            .wire = {.path = null_if_no_text(address.path),
                     .host = null_if_no_text(address.host),
                     .port = address.port,
                     .user = null_if_no_text(address.user),
                     .password = null_if_no_text(address.password)},
            .prefix = prefix,
            .notice = print_store_notice,
        };
        error = wr_shared_gate_new(&options, pacer, ret_relay);
    }
    if (error != 0)
        wr_complain("--share: %s", error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
    return error == 0;
}
