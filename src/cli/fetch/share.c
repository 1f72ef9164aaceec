/* SPDX-License-Identifier: MIT */
/* share.c - weir fetch --share: starts the shared gates and reports problems of the Redis store. */
#include "cli/fetch/share.h"

#include "cli/kit/output.h"
#include "shell/relay/relay.h"
#include "shell/share/address.h"

int wr_check_store(const char *text)
{
    struct wr_store_address address;
    return wr_store_address_parse(text, &address);
}

static void notice(void *context, const char *why)
{
    (void)context;
    if (why != NULL)
        wr_complain("--share: the store cannot be reached (%s); hosts wait until it can be, for --max-defer at most. "
                    "To go on alone, end this one and leave out --share, with a --max-rate that is your part",
                    why);
    else
        wr_complain("--share: the store can be reached again");
}

static const char *or_none(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

bool wr_share_start(const char *url, const char *prefix, weir_pacer *pacer, struct wr_relay **ret_relay)
{
    struct wr_store_address address;
    int error = wr_store_address_parse(url, &address);
    if (error == 0) {
        struct wr_relay_options options = {
            .wire = {.path = or_none(address.path),
                     .host = or_none(address.host),
                     .port = address.port,
                     .user = or_none(address.user),
                     .password = or_none(address.password)},
            .prefix = prefix,
            .notice = notice,
        };
        error = wr_relay_new(&options, pacer, ret_relay);
    }
    if (error != 0)
        wr_complain("--share: %s", error == WEIR_E_INVAL ? weir_error_detail() : weir_error_text(error));
    return error == 0;
}
