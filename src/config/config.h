/* SPDX-License-Identifier: MIT */
/* config.h - reads a YAML file into a struct, according to a table of the struct's fields.
 *
 *     struct door { char name[32]; uint32_t width; int64_t open_ns; };
 *     static const struct wr_config_field fields[] = {
 *         {"name", WR_CONFIG_TEXT(struct door, name), .required = true, .what = "its name"},
 *         {"width", WR_CONFIG_COUNT(struct door, width), .min = 1, .max = 500, .what = "in cm"},
 *         {"open", WR_CONFIG_DURATION(struct door, open_ns), .max = WEIR_DAY},
 *     };
 *     static const struct wr_config_schema schema = {"a door", sizeof(struct door), fields, 3};
 *
 *     struct door door = {.width = 90};                the struct holds the defaults
 *     if (wr_config_read(&schema, "door.yaml", allocator, &door, why, sizeof why) < 0)
 *         complain(why);
 *
 * An error: door.yaml:2:8: width is "wide"; it must be a whole number, 1 ... 500 (in cm)
 *
 * The parser accepts a subset of YAML: one document of mappings, lists and plain values. It rejects
 * unknown and duplicate keys, anchors, aliases, tags and tabs. So a file means what it looks like,
 * and needs no more memory than its length suggests.
 *
 * Memory comes from the given allocator. Only libyaml's parser calls malloc, for a small multiple
 * of the file's size (at most WR_CONFIG_BYTES_MAX). The stack does not grow with the input.
 */
#ifndef WR_CONFIG_CONFIG_H
#define WR_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/memory.h>

#include "base/buf.h"

#define WR_CONFIG_BYTES_MAX ((size_t)1 << 20) /* largest file, bytes */
#define WR_CONFIG_FIELDS_MAX 64               /* most fields in a schema */
#define WR_CONFIG_DEPTH_MAX 8                 /* most levels of nested schemas */
#define WR_CONFIG_WHY_BYTES 512               /* buffer size for an error message */

struct wr_config_field;

enum wr_config_kind {
    WR_CONFIG_IS_TEXT,     /* char[], NUL-terminated */
    WR_CONFIG_IS_BOOL,     /* bool */
    WR_CONFIG_IS_COUNT,    /* uint32_t, uint64_t or int; a whole number, not negative */
    WR_CONFIG_IS_NUMBER,   /* double */
    WR_CONFIG_IS_DURATION, /* int64_t, ns: "500ms", "2h" */
    WR_CONFIG_IS_SIZE,     /* uint64_t, bytes: "64k", "1.5M" */
    WR_CONFIG_IS_CHOICE,   /* an enum, stored as the index into `choices` */
    WR_CONFIG_IS_MAPPING,  /* a struct that has its own schema */
    WR_CONFIG_IS_LIST,     /* an array in the struct, and a uint32_t with the number of its items */
    WR_CONFIG_IS_PAIRS,    /* mapping of free keys: passed to a wr_config_taker, not stored */
    WR_CONFIG_IS_OTHERS,   /* any value; ignored, because other code reads it */
};

/* The kind of value that a wr_config_taker receives. */
enum wr_config_part {
    WR_CONFIG_VALUE, /* a scalar value, or an item of a list */
    WR_CONFIG_NULL,  /* null: the key has no value */
    WR_CONFIG_LIST_BEGINS,
    WR_CONFIG_MAPPING_BEGINS, /* a mapping; the function that takes the value must reject it */
};

struct wr_config_word {
    enum wr_config_part part;
    struct wr_span text;
    bool is_quoted; /* the value was quoted, so it is always text */
    bool is_item;   /* the value is an item of a list */
    uint32_t line;  /* line in the file, from 1 */
};

/* Receives the keys and values of a WR_CONFIG_IS_PAIRS mapping, in file order. `settings` is the
 * struct that contains the field. Both functions return 0, WEIR_E_INVAL or WEIR_E_NOMEM. For
 * WEIR_E_INVAL they append to `why` what is wrong and what is expected; file, line and column are
 * already in it. */
struct wr_config_taker {
    int (*key)(void *settings, const struct wr_config_field *field, const struct wr_config_word *key,
               struct wr_buf *why);
    int (*value)(void *settings, const struct wr_config_word *word, struct wr_buf *why);
};

struct wr_config_field {
    const char *name; /* key in the file; NULL for the item of a list */
    enum wr_config_kind kind;
    size_t offset; /* offset from the start of the schema's struct */
    size_t bytes;  /* size of the field, or of one item of a list */
    /* Range of a count, size or duration (ns). For a list, `max` is the most items. */
    uint64_t min, max;
    double least, most;                    /* range of a number; finite, at most 10^18 */
    const char *const *choices;            /* names of the enum's values; NULL-terminated */
    const struct wr_config_schema *schema; /* for a mapping: the schema of its struct */
    const struct wr_config_field *item;    /* for a list: describes an item; not itself a list */
    size_t count_offset;                   /* for a list: offset of the item counter */
    const struct wr_config_taker *taker;   /* for pairs: receives the keys and values */
    /* For a text, may be NULL: returns 0, or WEIR_E_INVAL with weir_error_detail(3). */
    int (*check)(const char *text);
    bool is_secret; /* for a text: error messages never show the value */
    bool required;
    /* Name of another field: exactly one of the two must be present. May be NULL. */
    const char *instead_of;
    const char *what; /* short description for error messages; may be NULL */
};

struct wr_config_schema {
    const char *name; /* name in error messages: "a door", "network" */
    size_t bytes;     /* size of the struct */
    const struct wr_config_field *fields;
    size_t count;
    /* Sets the defaults of a list item. NULL: all zeros. */
    void (*init)(void *settings);
    /* Returns NULL if the struct is valid, else the error and a remedy. May be NULL. */
    const char *(*wrong)(const void *settings);
    bool may_be_empty; /* an empty file is valid */
};

/* Sets kind, offset and size of a field. Fails to compile if type and kind do not match. */
#define WR_CONFIG_OF(type, field, c_type, its_kind) \
    .kind = _Generic(((type *)NULL)->field, c_type  \
                     : (its_kind)),                 \
    .offset = offsetof(type, field), .bytes = sizeof(((type *)NULL)->field)
#define WR_CONFIG_TEXT(type, field) WR_CONFIG_OF(type, field, char *, WR_CONFIG_IS_TEXT)
#define WR_CONFIG_BOOL(type, field) WR_CONFIG_OF(type, field, bool, WR_CONFIG_IS_BOOL)
#define WR_CONFIG_NUMBER(type, field) WR_CONFIG_OF(type, field, double, WR_CONFIG_IS_NUMBER)
#define WR_CONFIG_DURATION(type, field) WR_CONFIG_OF(type, field, int64_t, WR_CONFIG_IS_DURATION)
#define WR_CONFIG_SIZE(type, field) WR_CONFIG_OF(type, field, uint64_t, WR_CONFIG_IS_SIZE)
#define WR_CONFIG_COUNT(type, field)                 \
    .kind = _Generic(((type *)NULL)->field, uint32_t \
                     : WR_CONFIG_IS_COUNT, uint64_t  \
                     : WR_CONFIG_IS_COUNT, int       \
                     : WR_CONFIG_IS_COUNT),          \
    .offset = offsetof(type, field), .bytes = sizeof(((type *)NULL)->field)
#define WR_CONFIG_CHOICE(type, field) \
    .kind = WR_CONFIG_IS_CHOICE, .offset = offsetof(type, field), .bytes = sizeof(((type *)NULL)->field)
#define WR_CONFIG_MAPPING(type, field, its_schema) \
    .kind = WR_CONFIG_IS_MAPPING, .offset = offsetof(type, field), .schema = (its_schema)
/* A mapping in the file without a struct of its own: its fields belong to the enclosing struct. */
#define WR_CONFIG_GROUP(its_schema) .kind = WR_CONFIG_IS_MAPPING, .offset = 0, .schema = (its_schema)
#define WR_CONFIG_LIST(type, array, counter, its_item)                                           \
    .kind = _Generic(((type *)NULL)->counter, uint32_t                                           \
                     : WR_CONFIG_IS_LIST),                                                       \
    .offset = offsetof(type, array), .bytes = sizeof(((type *)NULL)->array[0]),                  \
    .max = sizeof(((type *)NULL)->array) / sizeof(((type *)NULL)->array[0]), .item = (its_item), \
    .count_offset = offsetof(type, counter)

#define WR_CONFIG_PAIRS(its_taker) .kind = WR_CONFIG_IS_PAIRS, .taker = (its_taker)
#define WR_CONFIG_OTHERS .kind = WR_CONFIG_IS_OTHERS

/* Reads a file into `settings`, which holds the defaults. Returns WEIR_E_INVAL if the content is
 * invalid, WEIR_E_SYSTEM if the file cannot be read, or WEIR_E_NOMEM. After an error `settings` is
 * unchanged. `ret_why` then holds one line: the path, line and column if known, and the reason.
 * WR_CONFIG_WHY_BYTES are enough for it. */
int wr_config_read(const struct wr_config_schema *schema, const char *path, const weir_allocator *allocator,
                   void *settings, char *ret_why, size_t why_bytes);

/* Like wr_config_read, for text in memory. `file` is the name that `ret_why` shows for it. */
int wr_config_parse(const struct wr_config_schema *schema, const char *file, const char *text, size_t text_bytes,
                    const weir_allocator *allocator, void *settings, char *ret_why, size_t why_bytes);

#endif
