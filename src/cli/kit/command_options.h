/* SPDX-License-Identifier: MIT */
/* command_options.h - parses, checks and explains the options of a command by one table.
 *
 *     struct settings { uint64_t keys; bool json; };
 *     static const struct wr_option options[] = {
 *         {"keys", WR_COUNT(struct settings, keys), .value = "N", .min = 1, .max = 1000,
 *          .help = "Keys in the table"},
 *         {"json", WR_FLAG(struct settings, json), .help = "Print JSON"},
 *     };
 *     static const struct wr_usage usage = {.who = "weir bench table", .options = options, ...};
 *
 *     struct settings settings = {.keys = 100};            the defaults, which --help shows
 *     if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
 *         return status;
 *
 * Users write --keys 5 or --keys=5. If an option is repeated the last value counts, except for
 * lists, which keep all values. "--" ends the options. Other arguments are operands and may stand
 * anywhere. Each error is reported in one line that says what would be valid.
 *
 * A command with a `section` reads the same settings also from its section of a file and from the
 * environment: see sources.h. It has an option of the kind WR_OPTION_CONFIG.
 */
#ifndef WR_CLI_KIT_COMMAND_OPTIONS_H
#define WR_CLI_KIT_COMMAND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define WR_STATE_FILE "weir.db" /* default file for the state of a crawl */

enum wr_option_kind {
    WR_OPTION_FLAG,     /* field: bool */
    WR_OPTION_COUNT,    /* field: uint64_t */
    WR_OPTION_SIZE,     /* field: uint64_t, bytes; text such as "64k" or "1.5M" */
    WR_OPTION_DURATION, /* field: int64_t, ns; text such as "500ms" or "2h" */
    WR_OPTION_CHOICE,   /* field: int, index into `choices` */
    WR_OPTION_STRING,   /* field: const char *, points into argv */
    WR_OPTION_LIST,     /* field: struct wr_option_list, all values that were given */
    WR_OPTION_CONFIG,   /* field: struct wr_sources, the settings file */
    WR_OPTION_SET,      /* field: struct wr_pace_texts; text "pace.NAME=VALUE" */
};

#define WR_OPTION_LIST_MAX 64

struct wr_option_list {
    const char *items[WR_OPTION_LIST_MAX]; /* values of the option, pointers into argv */
    size_t count;
};

/* Source of a value, in ascending order of precedence. */
enum wr_value_source_kind {
    WR_FROM_DEFAULT,
    WR_FROM_FILE,
    WR_FROM_ENVIRONMENT,
    WR_FROM_FLAG,
};

struct wr_value_source {
    enum wr_value_source_kind kind;
    bool is_shared; /* set in pace for all commands; a value for this command has precedence */
    uint32_t line;  /* line in the settings file */
};

#define WR_OPTIONS_MAX 96 /* maximum number of options of a command with a section */

struct wr_sources {
    const char *path; /* value of --config; NULL: not given */
    const char *file; /* settings file that was read; NULL: none */
    struct wr_value_source of[WR_OPTIONS_MAX];
};

struct wr_option {
    const char *name; /* name without the dashes */
    enum wr_option_kind kind;
    size_t offset;              /* offset of the field in the settings */
    const char *value;          /* placeholder of the value in --help; NULL for flags and choices */
    uint64_t min, max;          /* bounds of a count, size or duration (ns) */
    const char *const *choices; /* texts of the choices; ends with NULL */
    /* One line of at most 72 columns that begins with a verb: "Skip URLs that match PATTERN" */
    const char *help;
    /* Checks a string or list item: returns 0, or WEIR_E_INVAL with a detail; NULL: no check. */
    int (*check)(const char *text);
    /* Do not show or store the value; for a string only if it has an '@' or a password. */
    bool is_secret;
    const char *heading; /* heading that --help all prints above this option; NULL: none */
    bool is_basic;       /* --help lists only the basic options, if the command has any */
};

/* Sets kind and offset of a field. Does not compile if the field has another type than the kind. */
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

/* The option --config of a command with a section. `title` is its heading, or NULL. */
#define WR_CONFIG_OPTION(settings, field, title)                                                                   \
    {                                                                                                              \
        "config", WR_CONFIG_FILE(settings, field), .value = "FILE", .help = "Read settings from FILE (weir.yaml)", \
                                                   .is_basic = true, .heading = (title)                            \
    }

struct wr_usage {
    const char *who;      /* the whole command, such as "weir bench table" */
    const char *section;  /* section of the settings file, such as "crawl"; NULL: none */
    const char *operands; /* operands in --help, such as "URL..."; NULL: the command takes none */
    size_t operands_min, operands_max;
    const char *about; /* description of the command for --help, in paragraphs */
    const struct wr_option *options;
    size_t count;
};

/* Returns the option with the name of `length` bytes; NULL if the command has no such option. */
const struct wr_option *wr_option_find(const struct wr_usage *usage, const char *name, size_t length);

/* Parses argv[0] ... argv[*argc - 1], without a program name, into `settings`, which holds the
 * defaults. Moves the operands to the front of argv and sets *argc to their number. From now on
 * error messages name this command. Returns false if there is nothing to run, after --help or an
 * error: the caller exits with *ret_status. */
bool wr_options_parse(const struct wr_usage *usage, int *argc, char **argv, void *settings, int *ret_status);

/* Parses the arguments only, without file and environment. Returns false after printing an
 * error. */
bool wr_options_read(const struct wr_usage *usage, int *argc, char **argv, void *settings);

/* Converts `text` and stores it. If `settings` is NULL, or a stored value has precedence, it only
 * checks the text. `text` must stay valid; NULL is a flag without a value. Returns false and
 * appends the reason to `why`, as a text that follows the option's name. */
bool wr_option_assign(const struct wr_usage *usage, const struct wr_option *option, const char *text,
                      struct wr_value_source origin, void *settings, struct wr_buf *why);

/* Returns true if a value from `now` replaces one from `old`. */
bool wr_value_source_yields(struct wr_value_source old, struct wr_value_source now);

/* Returns the sources of the settings; NULL if the command has no section. */
struct wr_sources *wr_options_sources(const struct wr_usage *usage, void *settings);

/* Returns true if this value of the option must not be shown or stored. */
bool wr_option_hides(const struct wr_option *option, const char *text);

#endif
