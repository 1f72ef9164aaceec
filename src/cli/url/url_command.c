/* SPDX-License-Identifier: MIT */
/* url_command.c - weir url: prints one URL, resolved and normalised. */
#include "cli/url/url_command.h"

#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/kit/given_url.h"
#include "cli/kit/sanitise.h"

struct url_settings {
    const char *base;
    bool json;
};

static const struct wr_option options[] = {
    {"base", WR_STRING(struct url_settings, base), .value = "URL", .help = "Resolve relative URLs against URL"},
    {"json", WR_FLAG(struct url_settings, json), .help = "Print JSON with url, canonical, key and robots_url"},
};

static const struct wr_usage usage = {
    .who = "weir url",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Prints a URL as weir fetches it: resolved and normalised by the WHATWG URL standard. An\n"
             "invalid URL, or one that is not http or https, is refused with a reason and status 1.\n"
             "\n"
             "  canonical    the form by which weir recognises a page that it has seen\n"
             "  key          the host by which weir paces, with its port if that is not the usual one\n"
             "  robots_url   the robots.txt that applies to the URL\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static void print_url_member(const char *name, void append(struct wr_buf *, const struct wr_url *),
                             const struct wr_url *url)
{
    char memory[3 * WR_URL_ROOM];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append(&buf, url);
    wr_print(", \"%s\": ", name);
    wr_print_json_string(wr_buf_from(&buf, 0));
}

static void print_url_json(const struct wr_url *url)
{
    wr_print("{\"url\": ");
    wr_print_json_string((struct wr_span){url->text, url->bytes});
    print_url_member("canonical", wr_url_append_canonical, url);
    print_url_member("key", wr_url_append_key, url);
    print_url_member("robots_url", wr_url_append_robots, url);
    wr_print("}\n");
}

int wr_url_run(int argc, char **argv)
{
    struct url_settings settings = {.base = NULL};
    char base_memory[WR_URL_ROOM], memory[WR_URL_ROOM];
    struct wr_url base, url;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    if (settings.base != NULL && !wr_given_url("--base ", settings.base, NULL, base_memory, &base))
        return WR_EXIT_FAILED;
    if (!wr_given_url("", argv[0], settings.base == NULL ? NULL : &base, memory, &url))
        return WR_EXIT_FAILED;
    if (settings.json)
        print_url_json(&url);
    else
        wr_print("%s\n", url.text);
    return WR_EXIT_OK;
}
