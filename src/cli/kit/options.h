/* SPDX-License-Identifier: MIT */
/* options.h - the options of a command: one table from which they are parsed, checked and explained.
 *
 *     struct settings { uint64_t keys; bool json; };
 *     static const struct wr_option options[] = {
 *         {"keys", WR_COUNT(struct settings, keys), .value = "N", .min = 1, .max = 1000, .help = "keys in the table"},
 *         {"json", WR_FLAG(struct settings, json), .help = "print JSON"},
 *     };
 *     static const struct wr_usage usage = {.who = "weir bench table", .options = options, .count = 2, …};
 *
 *     struct settings settings = {.keys = 100};          the defaults, which --help shows
 *     if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
 *         return status;
 *
 * Users write --keys 5 or --keys=5; of two the last counts, but for lists, which keep all; "--" ends the options; other
 * words are operands and may stand anywhere. Every mistake is answered with one line that says what would be right.
 */
#ifndef WR_CLI_KIT_OPTIONS_H
#define WR_CLI_KIT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_STATE_FILE "weir.db" /* of a crawl, where none is named */

enum wr_option_kind {
    WR_OPTION_FLAG,     /* bool */
    WR_OPTION_COUNT,    /* uint64_t */
    WR_OPTION_SIZE,     /* uint64_t, bytes: "64k", "1.5M" */
    WR_OPTION_DURATION, /* int64_t, ns: "500ms", "2h" */
    WR_OPTION_CHOICE,   /* int, index into choices */
    WR_OPTION_STRING,   /* const char *, into argv */
    WR_OPTION_LIST,     /* struct wr_option_list, of all that were given */
};

#define WR_OPTION_LIST_MAX 64

struct wr_option_list {
    const char *items[WR_OPTION_LIST_MAX]; /* into argv */
    size_t count;
};

struct wr_option {
    const char *name; /* without the dashes */
    enum wr_option_kind kind;
    size_t offset;              /* of the field in the settings */
    const char *value;          /* what --help calls the value; NULL for flags and choices */
    uint64_t min, max;          /* count, size and duration (ns) */
    const char *const *choices; /* ends with NULL */
    const char *help;           /* one line, without a full stop */
};

/* Kind and offset of a field; does not compile if the field is not of the kind's type. */
#define WR_FIELD(settings, field, c_type, option_kind) \
    .kind = _Generic(((settings *)NULL)->field, c_type : (option_kind)), .offset = offsetof(settings, field)
#define WR_FLAG(settings, field) WR_FIELD(settings, field, bool, WR_OPTION_FLAG)
#define WR_COUNT(settings, field) WR_FIELD(settings, field, uint64_t, WR_OPTION_COUNT)
#define WR_SIZE(settings, field) WR_FIELD(settings, field, uint64_t, WR_OPTION_SIZE)
#define WR_DURATION(settings, field) WR_FIELD(settings, field, int64_t, WR_OPTION_DURATION)
#define WR_CHOICE(settings, field) WR_FIELD(settings, field, int, WR_OPTION_CHOICE)
#define WR_STRING(settings, field) WR_FIELD(settings, field, const char *, WR_OPTION_STRING)
#define WR_LIST(settings, field) WR_FIELD(settings, field, struct wr_option_list, WR_OPTION_LIST)

struct wr_usage {
    const char *who;      /* the whole command, "weir bench table" */
    const char *operands; /* what --help calls them, "URL…"; NULL: takes none */
    size_t operands_min, operands_max;
    const char *about; /* paragraphs for --help */
    const struct wr_option *options;
    size_t count;
};

/* The option of this name, of `length` bytes; NULL: there is none. */
const struct wr_option *wr_option_find(const struct wr_usage *usage, const char *name, size_t length);

/* Parses argv[0] … argv[*argc - 1] (no program name) into `settings`, which holds the defaults. Moves the operands to
 * the front of argv, and their number to *argc. From here on complaints are the command's. False: there is nothing
 * to run (help was asked for, or a mistake complained of), exit with *ret_status. */
bool wr_options_parse(const struct wr_usage *usage, int *argc, char **argv, void *settings, int *ret_status);

#endif
