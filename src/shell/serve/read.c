/* SPDX-License-Identifier: MIT */
/* read.c - the rules out of weir.yaml, and whom they trust. */
#include "shell/serve/inside.h"

#include "base/address.h"

/* Sections that other commands read. */
static const struct wr_config_field fields[] = {
    {"rules", WR_CONFIG_LIST(struct wr_rulebook_settings, rules, rule_count, &wr_rulebook_rule), .required = true,
     .what = "who may come in"},
    {"admission", WR_CONFIG_GROUP(&wr_rulebook_admission), .what = "what holds for all rules"},
    {"serve", WR_CONFIG_OTHERS},
    {"pace", WR_CONFIG_OTHERS},
    {"crawl", WR_CONFIG_OTHERS},
    {"fetch", WR_CONFIG_OTHERS},
    {"warm", WR_CONFIG_OTHERS},
};

static const struct wr_config_schema schema = {.name = "the file",
                                               .bytes = sizeof(struct wr_rulebook_settings),
                                               .fields = fields,
                                               .count = sizeof fields / sizeof fields[0]};

int wr_serve_read(struct wr_serve *serve, char *ret_why, size_t why_bytes)
{
    wr_rulebook_settings_init(serve->settings);
    return wr_config_read(&schema, serve->options.config, serve->allocator, serve->settings, ret_why, why_bytes);
}

void wr_serve_why_in(const struct wr_serve *serve, char *why, size_t why_bytes)
{
    char text[WR_CONFIG_WHY_BYTES] = "";
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, text, sizeof text);
    wr_buf_append_string(&buf, why);
    wr_buf_init_fixed(&buf, why, why_bytes);
    wr_buf_append_string(&buf, serve->options.config);
    wr_buf_append_string(&buf, ": ");
    wr_buf_append_string(&buf, text);
}

int wr_trust_make(const struct wr_rulebook_settings *settings, struct wr_trust *ret_trust)
{
    ret_trust->count = 0;
    ret_trust->is_unix = false;
    for (uint32_t i = 0; i < settings->trusted_count; i++) {
        if (strcmp(settings->trusted[i], "unix") == 0) {
            ret_trust->is_unix = true;
            continue;
        }
        int error = weir_network_parse(settings->trusted[i], &ret_trust->networks[ret_trust->count]);
        if (error != 0)
            return error;
        ret_trust->count++;
    }
    return 0;
}

bool wr_trust_has(const struct wr_trust *trust, struct wr_span peer)
{
    struct wr_address address;
    if (peer.bytes > 0 && peer.data[0] == 'u') /* "unix:" */
        return trust->is_unix;
    if (trust->count == 0 || !wr_address_parse(peer, &address))
        return false;
    for (size_t i = 0; i < trust->count; i++)
        if (wr_address_begins(&address, trust->networks[i].address, trust->networks[i].prefix))
            return true;
    return false;
}
