/* SPDX-License-Identifier: MIT */
/* url.c - weir url: one URL, resolved and normalised. */
#include "cli/url/url.h"

#include "cli/kit/foreign.h"
#include "cli/kit/given_url.h"
#include "cli/kit/options.h"
#include "cli/kit/output.h"

struct settings {
    const char *base;
    bool json;
};

static const struct wr_option options[] = {
    {"base", WR_STRING(struct settings, base), .value = "URL", .help = "what a relative URL is resolved against"},
    {"json", WR_FLAG(struct settings, json), .help = "print JSON: url, canonical, key and robots_url"},
};

static const struct wr_usage usage = {
    .who = "weir url",
    .operands = "URL",
    .operands_min = 1,
    .operands_max = 1,
    .about = "Prints a URL as weir fetches it: resolved and normalised by the WHATWG URL standard.\n"
             "One that is invalid, or whose scheme is not http or https, is refused with a reason\n"
             "and status 1.\n"
             "\n"
             "  canonical    what all spellings of the page have in common; decides whether it was seen\n"
             "  key          whom politeness is owed: the host, and the port if it is not the usual one\n"
             "  robots_url   where the rules for it are\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static void print_member(const char *name, void append(struct wr_buf *, const struct wr_url *),
                         const struct wr_url *url)
{
    char memory[3 * WR_URL_ROOM];
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, memory, sizeof memory);
    append(&buf, url);
    wr_print(", \"%s\": ", name);
    wr_print_json_string(wr_buf_from(&buf, 0));
}

static void print_json(const struct wr_url *url)
{
    wr_print("{\"url\": ");
    wr_print_json_string((struct wr_span){url->text, url->bytes});
    print_member("canonical", wr_url_append_canonical, url);
    print_member("key", wr_url_append_key, url);
    print_member("robots_url", wr_url_append_robots, url);
    wr_print("}\n");
}

int wr_url_run(int argc, char **argv)
{
    struct settings settings = {.base = NULL};
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
        print_json(&url);
    else
        wr_print("%s\n", url.text);
    return WR_EXIT_OK;
}
