/* SPDX-License-Identifier: MIT */
/* read_config.c - reads the rules from weir.yaml. */
#include "serve/daemon/serve_internal.h"

#include <sys/stat.h>

/* Sections of the file. Those of other commands are ignored (WR_CONFIG_OTHERS). */
static const struct wr_config_field fields[] = {
    {"rules", WR_CONFIG_LIST(struct wr_rules_settings, rules, rule_count, &wr_rules_rule_field), .required = true,
     .what = "rules that admit or refuse requests"},
    {"admission", WR_CONFIG_GROUP(&wr_rules_admission_schema), .what = "settings that apply to all rules"},
    {"serve", WR_CONFIG_OTHERS},
    {"pace", WR_CONFIG_OTHERS},
    {"crawl", WR_CONFIG_OTHERS},
    {"fetch", WR_CONFIG_OTHERS},
    {"warm", WR_CONFIG_OTHERS},
};

static const struct wr_config_schema schema = {.name = "the file",
                                               .bytes = sizeof(struct wr_rules_settings),
                                               .fields = fields,
                                               .count = sizeof fields / sizeof fields[0]};

/* Copies `text`, which comes from a file of its own, to a setting. Returns what is wrong, or
 * NULL. */
static const char *copy_secret(const char *text, char *setting, size_t room, const char *is_there, const char *is_long)
{
    if (text == NULL)
        return NULL;
    if (setting[0] != '\0')
        return is_there;
    if (strlen(text) >= room)
        return is_long;
    memcpy(setting, text, strlen(text) + 1);
    return NULL;
}

static const char *copy_secrets(const struct wr_serve *serve, struct wr_rules_settings *settings)
{
    const char *why = copy_secret(serve->options.secret, settings->secret, sizeof settings->secret,
                                  "admission: secret is set here and by --secret-file; remove one of them",
                                  "the line in the file of --secret-file is too long; write at most 127 characters");
    if (why != NULL || settings->store.nodes == 0)
        return why;
    return copy_secret(serve->options.store, settings->store.url, sizeof settings->store.url,
                       "store: url is set here and by --store-file; remove one of them",
                       "the line in the file of --store-file is too long; write at most 255 characters");
}

/* Warns if the file has secrets and every user can read it. Call it before secrets from other files
 * are added. */
static void warn_of_readers(struct wr_serve *serve)
{
    const struct wr_rules_settings *settings = serve->settings;
    bool has_secret = settings->secret[0] != '\0' || strchr(settings->store.url, '@') != NULL;
    struct stat status;
    if (has_secret && stat(serve->options.config, &status) == 0 && (status.st_mode & S_IROTH) != 0)
        wr_serve_log(
            serve, "every user can read the secrets of this file; chmod 640 it, or use --secret-file and --store-file:",
            serve->options.config);
}

int wr_serve_read_config(struct wr_serve *serve, char *ret_why, size_t why_bytes)
{
    wr_rules_settings_init(serve->settings);
    int error = wr_config_read(&schema, serve->options.config, serve->allocator, serve->settings, ret_why, why_bytes);
    if (error != 0)
        return error;
    warn_of_readers(serve);
    const char *why = copy_secrets(serve, serve->settings);
    struct wr_buf buf;
    if (why == NULL)
        return 0;
    wr_buf_init_fixed(&buf, ret_why, why_bytes);
    wr_buf_append_string(&buf, why);
    wr_serve_prepend_file(serve, ret_why, why_bytes);
    return WEIR_E_INVAL;
}

void wr_serve_prepend_file(const struct wr_serve *serve, char *why, size_t why_bytes)
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
