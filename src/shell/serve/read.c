/* SPDX-License-Identifier: MIT */
/* read.c - the rules out of weir.yaml. */
#include "shell/serve/inside.h"

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
