/* SPDX-License-Identifier: MIT */
/* options.h - the options of a command: one table from which they are parsed, checked and explained.
 *
 *     struct settings { uint64_t keys; bool json; };
 *     static const struct wr_option options[] = {
 *         {"keys", WR_COUNT(struct settings, keys), .value = "N", .min = 1, .max = 1000, .help = "Keys in the table"},
 *         {"json", WR_FLAG(struct settings, json), .help = "Print JSON"},
 *     };
 *     static const struct wr_usage usage = {.who = "weir bench table", .options = options, .count = 2, …};
 *
 *     struct settings settings = {.keys = 100};          the defaults, which --help shows
 *     if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
 *         return status;
 *
 * Users write --keys 5 or --keys=5; of two the last counts, but for lists, which keep all; "--" ends the options; other
 * words are operands and may stand anywhere. Every mistake is answered with one line that says what would be right.
 *
 * A command with a `section` has the same settings from its section of a file and from the environment, too: see
 * sources.h. It has an option of the kind WR_OPTION_CONFIG.
 */
#ifndef WR_CLI_KIT_OPTIONS_H
#define WR_CLI_KIT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define WR_STATE_FILE "weir.db" /* of a crawl, where none is named */

enum wr_option_kind {
    WR_OPTION_FLAG,     /* bool */
    WR_OPTION_COUNT,    /* uint64_t */
    WR_OPTION_SIZE,     /* uint64_t, bytes: "64k", "1.5M" */
    WR_OPTION_DURATION, /* int64_t, ns: "500ms", "2h" */
    WR_OPTION_CHOICE,   /* int, index into choices */
    WR_OPTION_STRING,   /* const char *, into argv */
    WR_OPTION_LIST,     /* struct wr_option_list, of all that were given */
    WR_OPTION_CONFIG,   /* struct wr_sources: the file */
    WR_OPTION_SET,      /* struct wr_pace_texts: "pace.NAME=VALUE" */
};

#define WR_OPTION_LIST_MAX 64

struct wr_option_list {
    const char *items[WR_OPTION_LIST_MAX]; /* into argv */
    size_t count;
};

/* Where a value came from. Of two the one from further down counts. */
enum wr_whence_kind {
    WR_FROM_DEFAULT,
    WR_FROM_FILE,
    WR_FROM_ENVIRONMENT,
    WR_FROM_FLAG,
};

struct wr_whence {
    enum wr_whence_kind kind;
    bool is_shared; /* said of pace for all commands, which gives way to what is said for this one */
    uint32_t line;  /* of the file */
};

#define WR_OPTIONS_MAX 96 /* of a command that has a section */

struct wr_sources {
    const char *path; /* --config; NULL: not given */
    const char *file; /* that was read; NULL: none */
    struct wr_whence of[WR_OPTIONS_MAX];
};

struct wr_option {
    const char *name; /* without the dashes */
    enum wr_option_kind kind;
    size_t offset;                  /* of the field in the settings */
    const char *value;              /* what --help calls the value; NULL for flags and choices */
    uint64_t min, max;              /* count, size and duration (ns) */
    const char *const *choices;     /* ends with NULL */
    const char *help;               /* "Skip URLs that match PATTERN": at most 72 columns, a verb first */
    int (*check)(const char *text); /* string and list: 0, or WEIR_E_INVAL with a detail; NULL: anything goes */
    bool is_secret;                 /* not to be shown or kept; of a string, if it has an '@' */
    const char *heading;            /* --help all prints it above this option; NULL: none begins here */
    bool is_basic;                  /* --help lists only these, if there are any */
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

#define WR_CONFIG_FILE(settings, field) WR_FIELD(settings, field, struct wr_sources, WR_OPTION_CONFIG)

/* Of a command with a section. `title` is its heading, or NULL. */
#define WR_CONFIG_OPTION(settings, field, title)                                                                   \
    {                                                                                                              \
        "config", WR_CONFIG_FILE(settings, field), .value = "FILE", .help = "Read settings from FILE (weir.yaml)", \
                                                   .is_basic = true, .heading = (title)                            \
    }

struct wr_usage {
    const char *who;      /* the whole command, "weir bench table" */
    const char *section;  /* of a file, "crawl"; NULL: it has none */
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

/* The same for the words only, whatever file and environment say. False after a complaint. */
bool wr_options_read(const struct wr_usage *usage, int *argc, char **argv, void *settings);

/* Stores a value, unless one is there that counts for more: then it is only checked, as it is if `settings` is NULL.
 * `text` must stay; NULL is a flag without a value. False, with what is wrong appended to `why`, to be read behind the
 * option's name. */
bool wr_option_assign(const struct wr_usage *usage, const struct wr_option *option, const char *text,
                      struct wr_whence origin, void *settings, struct wr_buf *why);

/* Whether what was said there gives way to what is said here. */
bool wr_whence_yields(struct wr_whence old, struct wr_whence now);

/* NULL: the command has no section. */
struct wr_sources *wr_options_sources(const struct wr_usage *usage, void *settings);

/* Whether this value of it is not to be shown or kept. */
bool wr_option_hides(const struct wr_option *option, const char *text);

#endif
