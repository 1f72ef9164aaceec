/* SPDX-License-Identifier: MIT */
/* robots_command.c - weir robots: lists its commands and reads the robots.txt for them. */
#include "cli/robots/robots_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kit/command.h"
#include "cli/kit/console.h"

static const struct wr_command list[] = {
    {"check", "Show whether URLs may be fetched, and by which line", wr_robots_check_run, NULL},
    {"show", "List the rules, delay and sitemaps for an agent", wr_robots_show_run, NULL},
};

static const struct wr_commands commands = {
    .who = "weir robots",
    .about = "Reads a robots.txt as weir crawl does, by RFC 9309.",
    .list = list,
    .count = sizeof list / sizeof list[0],
};

int wr_robots_run(int argc, char **argv)
{
    return wr_commands_run(&commands, argc, argv);
}

/* Reads at most one byte more than the parser uses, so that the parser notices a longer file. */
static bool read_robots_stream(FILE *file, char **ret_text, size_t *ret_bytes)
{
    char *text = malloc(WR_ROBOTS_MAX + 1);

    if (text == NULL) {
        errno = ENOMEM;
        return false;
    }
    *ret_bytes = fread(text, 1, WR_ROBOTS_MAX + 1, file);
    *ret_text = text;
    if (!ferror(file))
        return true;
    free(text);
    return false;
}

static bool read_robots_file(const char *name, char **ret_text, size_t *ret_bytes)
{
    bool is_stdin = strcmp(name, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(name, "rb");
    bool is_read = file != NULL && read_robots_stream(file, ret_text, ret_bytes);

    if (!is_read)
        wr_complain_read_failed(NULL, is_stdin ? "standard input" : name, errno);
    if (file != NULL && !is_stdin)
        fclose(file);
    return is_read;
}

bool wr_robots_input_ok(const struct wr_robots_input *source)
{
    if (source->agent == NULL)
        wr_complain("--agent is missing; give --agent NAME");
    else if (source->file == NULL && source->url == NULL)
        wr_complain("--file is missing; give --file FILE, or --url URL");
    else if (source->file != NULL && source->url != NULL)
        wr_complain("--file and --url are both given; give one of them");
    else
        return true;
    return false;
}

bool wr_robots_load(const struct wr_robots_input *source, struct wr_robots **ret_robots)
{
    struct wr_robots_options options = {.agent = wr_span_of(source->agent), .delay_max_ns = WR_ROBOTS_DELAY_MAX_NS};
    char *text;
    size_t bytes;

    if (source->url != NULL ? !wr_robots_fetch_text(source, &text, &bytes)
                            : !read_robots_file(source->file, &text, &bytes))
        return false;
    int error = wr_robots_parse((struct wr_span){text, bytes}, &options, weir_allocator_system(), ret_robots);
    free(text);
    if (error != 0)
        wr_complain("%s", weir_error_text(error));
    return error == 0;
}
