/* SPDX-License-Identifier: MIT */
/* config.h - a YAML file read into a struct, as a table of its fields says.
 *
 *     struct door { char name[32]; uint32_t width; int64_t open_ns; };
 *     static const struct wr_config_field fields[] = {
 *         {"name", WR_CONFIG_TEXT(struct door, name), .required = true, .what = "what it is called"},
 *         {"width", WR_CONFIG_COUNT(struct door, width), .min = 1, .max = 500, .what = "in cm"},
 *         {"open", WR_CONFIG_DURATION(struct door, open_ns), .max = WEIR_DAY, .what = "how long it stays open"},
 *     };
 *     static const struct wr_config_schema schema = {"a door", sizeof(struct door), fields, 3};
 *
 *     struct door door = {.width = 90};                                        the defaults
 *     if (wr_config_read(&schema, "door.yaml", allocator, &door, why, sizeof why) < 0)
 *         complain(why);                   door.yaml:2:8: width is "wide"; it must be a whole number, 1 ... 500 (in cm)
 *
 * Of YAML it takes what a configuration needs: one document of mappings, lists and plain values. Keys that are not in
 * the table or come twice are refused, and so are anchors, aliases, tags and tabs: a file means what it looks like, and
 * is as large as it looks.
 *
 * Memory is the given allocator's, but for libyaml's own parser, which calls malloc: its memory is a small multiple of
 * the file, which is at most WR_CONFIG_BYTES_MAX. The stack does not grow with the input.
 */
#ifndef WR_SHELL_CONFIG_CONFIG_H
#define WR_SHELL_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/memory.h>

#include "base/buf.h"

#define WR_CONFIG_BYTES_MAX ((size_t)1 << 20) /* of a file */
#define WR_CONFIG_FIELDS_MAX 64               /* of a schema */
#define WR_CONFIG_DEPTH_MAX 8                 /* of schemas in schemas */
#define WR_CONFIG_WHY_BYTES 512               /* room for what is wrong */

struct wr_config_field;

enum wr_config_kind {
    WR_CONFIG_IS_TEXT,     /* char[], terminated */
    WR_CONFIG_IS_BOOL,     /* bool */
    WR_CONFIG_IS_COUNT,    /* uint32_t, uint64_t or int, whole and not negative */
    WR_CONFIG_IS_NUMBER,   /* double */
    WR_CONFIG_IS_DURATION, /* int64_t, ns: "500ms", "2h" */
    WR_CONFIG_IS_SIZE,     /* uint64_t, bytes: "64k", "1.5M" */
    WR_CONFIG_IS_CHOICE,   /* an enum, as the index into choices */
    WR_CONFIG_IS_MAPPING,  /* a struct with a schema of its own */
    WR_CONFIG_IS_LIST,     /* an array in the struct, and a uint32_t that counts its items */
    WR_CONFIG_IS_PAIRS,    /* a mapping whose keys another table lists: a taker gets them, and nothing is stored */
    WR_CONFIG_IS_OTHERS,   /* whatever stands there is passed over: somebody else reads it */
};

/* What stands where a taker gets a value. */
enum wr_config_part {
    WR_CONFIG_VALUE,   /* a value, or an item of a list */
    WR_CONFIG_NOTHING, /* no value at all: null */
    WR_CONFIG_LIST_BEGINS,
    WR_CONFIG_MAPPING_BEGINS, /* to be refused */
};

struct wr_config_word {
    enum wr_config_part part;
    struct wr_span text;
    bool is_quoted; /* it is text, whatever it looks like */
    bool is_item;   /* of a list */
    uint32_t line;  /* from 1 */
};

/* Gets the keys of a mapping and what stands behind each, in their order: the struct that the field is in, and what
 * stands there. 0, or WEIR_E_INVAL with what is wrong and what would be right appended to `why`, where the place is
 * told already; WEIR_E_NOMEM. */
struct wr_config_taker {
    int (*key)(void *settings, const struct wr_config_field *field, const struct wr_config_word *key,
               struct wr_buf *why);
    int (*value)(void *settings, const struct wr_config_word *word, struct wr_buf *why);
};

struct wr_config_field {
    const char *name; /* in a list's item: NULL */
    enum wr_config_kind kind;
    size_t offset;                         /* from the start of the schema's struct */
    size_t bytes;                          /* of the field; of one item of a list */
    uint64_t min, max;                     /* count, size, duration (ns); `max`: items of a list */
    double least, most;                    /* number; finite, at most 10^18 */
    const char *const *choices;            /* ends with NULL */
    const struct wr_config_schema *schema; /* mapping */
    const struct wr_config_field *item;    /* list; not itself a list */
    size_t count_offset;                   /* list */
    const struct wr_config_taker *taker;   /* pairs */
    int (*check)(const char *text); /* text: WEIR_E_INVAL with what is wrong in weir_error_detail(3); may be NULL */
    bool is_secret;                 /* text: it is in no complaint, whatever is wrong with it */
    bool required;
    const char *instead_of; /* another field, which may not be there, and must if this one is not; may be NULL */
    const char *what;       /* it means, in a few words; may be NULL */
};

struct wr_config_schema {
    const char *name; /* "a door", "network" */
    size_t bytes;     /* of the struct */
    const struct wr_config_field *fields;
    size_t count;
    void (*init)(void *settings);               /* the defaults of a list's item; NULL: zeros */
    const char *(*wrong)(const void *settings); /* "what is wrong; what would be right", or NULL; may be NULL */
    bool may_be_empty;                          /* of a whole file: one without any line is as good */
};

/* Kind, offset and size of a field; does not compile if the field is not of the kind's type. */
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
/* A mapping in the file that is no struct of its own: the fields of its schema lie in the same struct. */
#define WR_CONFIG_GROUP(its_schema) .kind = WR_CONFIG_IS_MAPPING, .offset = 0, .schema = (its_schema)
#define WR_CONFIG_LIST(type, array, counter, its_item)                                           \
    .kind = _Generic(((type *)NULL)->counter, uint32_t                                           \
                     : WR_CONFIG_IS_LIST),                                                       \
    .offset = offsetof(type, array), .bytes = sizeof(((type *)NULL)->array[0]),                  \
    .max = sizeof(((type *)NULL)->array) / sizeof(((type *)NULL)->array[0]), .item = (its_item), \
    .count_offset = offsetof(type, counter)

#define WR_CONFIG_PAIRS(its_taker) .kind = WR_CONFIG_IS_PAIRS, .taker = (its_taker)
#define WR_CONFIG_OTHERS .kind = WR_CONFIG_IS_OTHERS

/* Reads a file into `settings`, which holds the defaults. WEIR_E_INVAL: its content is refused; WEIR_E_SYSTEM: it
 * cannot be read; WEIR_E_NOMEM. After an error `settings` is as it was, and `ret_why` (WR_CONFIG_WHY_BYTES are enough)
 * is one line that begins with the path, and with line and column where they are known. */
int wr_config_read(const struct wr_config_schema *schema, const char *path, const weir_allocator *allocator,
                   void *settings, char *ret_why, size_t why_bytes);

/* The same for text that is there already; `file` is what it is called in `ret_why`. */
int wr_config_parse(const struct wr_config_schema *schema, const char *file, const char *text, size_t text_bytes,
                    const weir_allocator *allocator, void *settings, char *ret_why, size_t why_bytes);

#endif
