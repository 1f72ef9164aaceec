/* SPDX-License-Identifier: MIT */
/* yaml_reader.c - checks libyaml's events against the schemas and stores the values. */
#include <assert.h>
#include <string.h>
#include <weir/error.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/error.h"
#include "config/config.h"
#include "config/value.h"

#define SKIPPED_DEPTH_MAX 32 /* levels in an ignored value; libyaml's time grows with their square */

/* A mapping or a list whose end has not been read yet. */
struct frame {
    const struct wr_config_schema *schema; /* schema of the mapping; NULL for a list */
    /* Mapping: the field whose value comes next; NULL if a key comes next. List: its field. */
    const struct wr_config_field *field;
    /* Start of the struct that holds the fields or the list. */
    char *base;
    uint64_t seen; /* bit i is set when field i of the schema was read */
    yaml_mark_t start;
};

/* The event that the parser expects next in a WR_CONFIG_IS_PAIRS mapping. */
enum pair {
    PAIR_NONE, /* not in a WR_CONFIG_IS_PAIRS mapping */
    PAIR_KEY,
    PAIR_VALUE,
    PAIR_ITEM, /* an item of a list, or the end of the list */
};

struct yaml_reader {
    yaml_parser_t yaml;
    yaml_event_t event;
    const struct wr_config_schema *schema;
    char *settings;
    struct frame frames[WR_CONFIG_DEPTH_MAX];
    size_t depth;
    enum pair pair;
    size_t passed; /* open mappings and lists within an ignored value */
    size_t documents;
    const char *file, *text;
    struct wr_buf why;
};

/* ---- error messages ---- */

static struct wr_buf *start_error_at(struct yaml_reader *reader, size_t line, size_t column)
{
    wr_buf_clear(&reader->why);
    wr_buf_append_string(&reader->why, reader->file);
    wr_buf_append_char(&reader->why, ':');
    wr_buf_append_u64(&reader->why, line + 1);
    wr_buf_append_char(&reader->why, ':');
    wr_buf_append_u64(&reader->why, column + 1);
    wr_buf_append_string(&reader->why, ": ");
    return &reader->why;
}

/* Starts an error message with the line and column of the current event. */
static struct wr_buf *start_error(struct yaml_reader *reader)
{
    return start_error_at(reader, reader->event.start_mark.line, reader->event.start_mark.column);
}

static int refuse_event(struct yaml_reader *reader, const char *why)
{
    wr_buf_append_string(start_error(reader), why);
    return WEIR_E_INVAL;
}

/* Starts an error message for a byte offset. Columns count characters, as libyaml's do. */
static struct wr_buf *start_error_at_offset(struct yaml_reader *reader, size_t offset)
{
    size_t line = 0, column = 0;
    for (size_t i = 0; i < offset; i++) {
        column += ((unsigned char)reader->text[i] & 0xc0) != 0x80;
        if (reader->text[i] == '\n') {
            line++;
            column = 0;
        }
    }
    return start_error_at(reader, line, column);
}

/* Returns a hint on how to correct a YAML error. An unquoted pattern such as *.example.org is a
 * common cause: YAML reads it as an alias. */
static const char *yaml_advice(const yaml_parser_t *yaml)
{
    if (yaml->error == YAML_READER_ERROR)
        return "; it must be UTF-8 text";
    if (yaml->context != NULL &&
        (strstr(yaml->context, "an alias") != NULL || strstr(yaml->context, "an anchor") != NULL))
        return "; write a text that begins with * or & in quotes, as \"*.example.org\"";
    return "; write lines of \"key: value\", and indent them alike, with blanks";
}

/* Reports libyaml's error, with its position and a hint. */
static int refuse_yaml(struct yaml_reader *reader)
{
    const yaml_parser_t *yaml = &reader->yaml;
    if (yaml->error == YAML_MEMORY_ERROR)
        return WEIR_E_NOMEM;
    struct wr_buf *why = yaml->error == YAML_READER_ERROR
                             ? start_error_at_offset(reader, yaml->problem_offset)
                             : start_error_at(reader, yaml->problem_mark.line, yaml->problem_mark.column);
    if (yaml->context != NULL) {
        wr_buf_append_string(why, yaml->context);
        wr_buf_append_string(why, ", ");
    }
    wr_buf_append_string(why, yaml->problem != NULL ? yaml->problem : "not YAML");
    wr_buf_append_string(why, yaml_advice(yaml));
    return WEIR_E_INVAL;
}

static struct wr_span scalar_of(const yaml_event_t *event)
{
    return (struct wr_span){(const char *)event->data.scalar.value, event->data.scalar.length};
}

static struct wr_buf *start_field_error(struct yaml_reader *reader, const struct wr_config_field *field)
{
    struct wr_buf *why = start_error(reader);
    wr_buf_append_string(why, field->name != NULL ? field->name : "an item");
    return why;
}

static int refuse_field_value(struct yaml_reader *reader, const struct wr_config_field *field)
{
    struct wr_buf *why = start_field_error(reader, field);
    switch (reader->event.type) {
    case YAML_SCALAR_EVENT:
        wr_config_append_scalar(why, field, scalar_of(&reader->event));
        break;
    case YAML_MAPPING_START_EVENT:
        wr_buf_append_string(why, " is a mapping");
        break;
    default:
        wr_buf_append_string(why, " is a list");
        break;
    }
    wr_buf_append_string(why, "; it must be ");
    wr_config_append_wanted(why, field);
    return WEIR_E_INVAL;
}

static int refuse_unknown_key(struct yaml_reader *reader, const struct wr_config_schema *schema)
{
    wr_config_append_unknown(start_error(reader), schema, scalar_of(&reader->event));
    return WEIR_E_INVAL;
}

/* ---- values ---- */

static uint32_t *item_count(const struct frame *frame)
{
    return (uint32_t *)(void *)(frame->base + frame->field->count_offset);
}

/* Returns the field of the next value, and in `ret_base` the struct that contains the field.
 * Returns NULL if a mapping expects a key. */
static const struct wr_config_field *next_field(struct yaml_reader *reader, char **ret_base)
{
    struct frame *frame = &reader->frames[reader->depth - 1];
    *ret_base = frame->base;
    if (frame->schema != NULL)
        return frame->field;
    *ret_base = frame->base + frame->field->offset + *item_count(frame) * frame->field->bytes;
    return frame->field->item;
}

/* Notes that the innermost mapping or list has received a value. */
static void finish_value(struct yaml_reader *reader)
{
    struct frame *frame = &reader->frames[reader->depth - 1];
    if (frame->schema != NULL)
        frame->field = NULL;
    else
        ++*item_count(frame);
}

static int take_config_key(struct yaml_reader *reader, struct frame *frame)
{
    struct wr_span key = scalar_of(&reader->event);
    const struct wr_config_schema *schema = frame->schema;
    size_t i = 0;
    while (i < schema->count &&
           (strlen(schema->fields[i].name) != key.bytes || memcmp(schema->fields[i].name, key.data, key.bytes) != 0))
        i++;
    if (i == schema->count)
        return refuse_unknown_key(reader, schema);
    if ((frame->seen >> i & 1) != 0) {
        struct wr_buf *why = start_error(reader);
        wr_buf_append_string(why, schema->fields[i].name);
        wr_buf_append_string(why, " is given twice; remove one of them");
        return WEIR_E_INVAL;
    }
    frame->seen |= UINT64_C(1) << i;
    frame->field = &schema->fields[i];
    return 0;
}

static int refuse_long_list(struct yaml_reader *reader, const struct frame *list)
{
    struct wr_buf *why = start_error(reader);
    wr_buf_append_string(why, list->field->name);
    wr_buf_append_string(why, " is too long; it must be ");
    wr_config_append_wanted(why, list->field);
    return WEIR_E_INVAL;
}

static bool is_null_value(const struct yaml_reader *reader)
{
    return reader->event.type == YAML_SCALAR_EVENT &&
           wr_config_is_null(scalar_of(&reader->event), reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
}

static bool is_empty_file(const struct yaml_reader *reader)
{
    return reader->schema->may_be_empty && is_null_value(reader);
}

/* Checks that a value may begin here: type of the document, length of the list, kind of the key. */
static int expect_value(struct yaml_reader *reader)
{
    if (reader->depth == 0 && reader->event.type != YAML_MAPPING_START_EVENT && !is_empty_file(reader))
        return refuse_event(reader, "not a mapping; write lines of \"key: value\"");
    if (reader->depth == 0)
        return 0;
    const struct frame *frame = &reader->frames[reader->depth - 1];
    if (frame->schema == NULL && *item_count(frame) == frame->field->max)
        return refuse_long_list(reader, frame);
    if (frame->field == NULL && reader->event.type != YAML_SCALAR_EVENT)
        return refuse_event(reader, "a key that is not a plain word; write lines of \"key: value\"");
    return 0;
}

/* Stores and checks a value. Error messages name the field `called`. */
static int store_value(struct yaml_reader *reader, const struct wr_config_field *field, char *base,
                       const struct wr_config_field *called)
{
    bool quoted = reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (!wr_config_store(field, scalar_of(&reader->event), quoted, base))
        return refuse_field_value(reader, called);
    if (field->check == NULL || field->check(base + field->offset) == 0)
        return 0;
    if (!wr_config_is_secret(called))
        return refuse_event(reader, weir_error_detail());
    struct wr_buf *why = start_field_error(reader, called);
    wr_buf_append_string(why, ": ");
    wr_buf_append_string(why, wr_error_unquoted());
    return WEIR_E_INVAL;
}

/* Stores a single value, given in place of a list, as a list of one item. */
static int take_only_item(struct yaml_reader *reader, const struct wr_config_field *list, char *base)
{
    char *item = base + list->offset;
    memset(item, 0, list->bytes);
    int error = store_value(reader, list->item, item, list);
    if (error != 0)
        return error;
    *(uint32_t *)(void *)(base + list->count_offset) = 1;
    finish_value(reader);
    return 0;
}

static int take_scalar(struct yaml_reader *reader)
{
    char *base;
    if (reader->depth == 0)
        return 0; /* an empty file */
    struct frame *frame = &reader->frames[reader->depth - 1];
    if (frame->field == NULL)
        return take_config_key(reader, frame);
    const struct wr_config_field *field = next_field(reader, &base);
    if (field->kind == WR_CONFIG_IS_LIST)
        return take_only_item(reader, field, base);
    if (frame->schema == NULL)
        memset(base, 0, frame->field->bytes); /* clears the item, which may hold a default */
    int error = store_value(reader, field, base, field);
    if (error == 0)
        finish_value(reader);
    return error;
}

static void push_frame(struct yaml_reader *reader, struct frame frame)
{
    assert(reader->depth < WR_CONFIG_DEPTH_MAX); /* the program's own schemas are not deeper */
    frame.start = reader->event.start_mark;
    reader->frames[reader->depth++] = frame;
}

static int open_mapping(struct yaml_reader *reader)
{
    char *base;
    if (reader->depth == 0) {
        push_frame(reader, (struct frame){.schema = reader->schema, .base = reader->settings});
        return 0;
    }
    bool is_item = reader->frames[reader->depth - 1].schema == NULL;
    const struct wr_config_field *field = next_field(reader, &base);
    if (field->kind == WR_CONFIG_IS_PAIRS) {
        reader->pair = PAIR_KEY;
        return 0;
    }
    if (field->kind != WR_CONFIG_IS_MAPPING)
        return refuse_field_value(reader, field);
    assert(field->schema->count <= WR_CONFIG_FIELDS_MAX);
    base += field->offset;
    if (is_item)
        memset(base, 0, field->schema->bytes);
    if (is_item && field->schema->init != NULL)
        field->schema->init(base);
    push_frame(reader, (struct frame){.schema = field->schema, .base = base});
    return 0;
}

static int open_config_list(struct yaml_reader *reader)
{
    char *base;
    const struct wr_config_field *field = next_field(reader, &base);
    if (field->kind != WR_CONFIG_IS_LIST)
        return refuse_field_value(reader, field);
    push_frame(reader, (struct frame){.field = field, .base = base});
    *item_count(&reader->frames[reader->depth - 1]) = 0;
    return 0;
}

static bool is_present(const struct frame *frame, const char *name)
{
    for (size_t i = 0; i < frame->schema->count; i++)
        if (strcmp(frame->schema->fields[i].name, name) == 0)
            return (frame->seen >> i & 1) != 0;
    return false;
}

static int refuse_missing(struct yaml_reader *reader, const struct frame *frame, const struct wr_config_field *field)
{
    struct wr_buf *why = start_error_at(reader, frame->start.line, frame->start.column);
    wr_buf_append_string(why, field->name);
    wr_buf_append_string(why, " is missing; it must be ");
    wr_config_append_wanted(why, field);
    return WEIR_E_INVAL;
}

static int refuse_both(struct yaml_reader *reader, const struct frame *frame, const struct wr_config_field *field)
{
    struct wr_buf *why = start_error_at(reader, frame->start.line, frame->start.column);
    wr_buf_append_string(why, "both ");
    wr_buf_append_string(why, field->name);
    wr_buf_append_string(why, " and ");
    wr_buf_append_string(why, field->instead_of);
    wr_buf_append_string(why, "; leave one of them out");
    return WEIR_E_INVAL;
}

/* Checks `required` and `instead_of` of a field at the end of its mapping. */
static int check_presence(struct yaml_reader *reader, const struct frame *frame, const struct wr_config_field *field)
{
    bool came = is_present(frame, field->name);
    if (field->instead_of != NULL && came == is_present(frame, field->instead_of))
        return came ? refuse_both(reader, frame, field) : refuse_missing(reader, frame, field);
    return field->required && !came ? refuse_missing(reader, frame, field) : 0;
}

/* Checks at the end of a mapping that all required fields are present and consistent. */
static int close_mapping(struct yaml_reader *reader)
{
    const struct frame *frame = &reader->frames[reader->depth - 1];
    const struct wr_config_schema *schema = frame->schema;
    for (size_t i = 0; i < schema->count; i++) {
        int error = check_presence(reader, frame, &schema->fields[i]);
        if (error != 0)
            return error;
    }
    const char *wrong = schema->wrong != NULL ? schema->wrong(frame->base) : NULL;
    if (wrong == NULL)
        return 0;
    wr_buf_append_string(start_error_at(reader, frame->start.line, frame->start.column), wrong);
    return WEIR_E_INVAL;
}

static void pop_frame(struct yaml_reader *reader)
{
    reader->depth--;
    if (reader->depth > 0)
        finish_value(reader);
}

/* Rejects anchors and tags: with them a file could mean something other than it shows. */
static int refuse_marks(struct yaml_reader *reader, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL)
        return refuse_event(reader, "an anchor (&); write the value out where it belongs");
    if (tag != NULL)
        return refuse_event(reader, "a tag (!); write the plain value");
    return 0;
}

static int check_marks(struct yaml_reader *reader)
{
    const yaml_event_t *event = &reader->event;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse_event(reader, "an alias (*); write the value out where it belongs");
    case YAML_SCALAR_EVENT:
        return refuse_marks(reader, event->data.scalar.anchor, event->data.scalar.tag);
    case YAML_MAPPING_START_EVENT:
        return refuse_marks(reader, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    case YAML_SEQUENCE_START_EVENT:
        return refuse_marks(reader, event->data.sequence_start.anchor, event->data.sequence_start.tag);
    default:
        return 0;
    }
}

/* ---- values without a schema ---- */

/* Skips one event of an ignored value, until the value ends. */
static int skip_event(struct yaml_reader *reader)
{
    yaml_event_type_t type = reader->event.type;
    if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
        reader->passed++;
    else if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
        reader->passed--;
    if (reader->passed == 0)
        finish_value(reader);
    return reader->passed <= SKIPPED_DEPTH_MAX ? 0 : refuse_event(reader, "nested too deep; use at most 32 levels");
}

static struct wr_config_word config_word_of(const struct yaml_reader *reader)
{
    const yaml_event_t *event = &reader->event;
    struct wr_config_word word = {.line = (uint32_t)event->start_mark.line + 1, .is_item = reader->pair == PAIR_ITEM};
    if (event->type == YAML_SCALAR_EVENT) {
        word.part = is_null_value(reader) ? WR_CONFIG_NULL : WR_CONFIG_VALUE;
        word.text = scalar_of(event);
        word.is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    } else {
        word.part = event->type == YAML_MAPPING_START_EVENT ? WR_CONFIG_MAPPING_BEGINS : WR_CONFIG_LIST_BEGINS;
    }
    return word;
}

static int take_pair_value(struct yaml_reader *reader, const struct frame *frame)
{
    struct wr_config_word word = config_word_of(reader);
    if (reader->pair == PAIR_ITEM && word.part != WR_CONFIG_VALUE)
        return refuse_event(reader, "an item that is not a plain value; write \"- value\"");
    int error = frame->field->taker->value(frame->base, &word, start_error(reader));
    assert(error != 0 || word.part != WR_CONFIG_MAPPING_BEGINS);
    if (reader->pair == PAIR_VALUE)
        reader->pair = word.part == WR_CONFIG_LIST_BEGINS ? PAIR_ITEM : PAIR_KEY;
    return error;
}

/* Handles an event within a WR_CONFIG_IS_PAIRS mapping. */
static int take_pair(struct yaml_reader *reader)
{
    const struct frame *frame = &reader->frames[reader->depth - 1];
    yaml_event_type_t type = reader->event.type;
    if (type == YAML_MAPPING_END_EVENT) {
        reader->pair = PAIR_NONE;
        finish_value(reader);
        return 0;
    }
    if (type == YAML_SEQUENCE_END_EVENT) {
        reader->pair = PAIR_KEY;
        return 0;
    }
    if (reader->pair != PAIR_KEY)
        return take_pair_value(reader, frame);
    if (type != YAML_SCALAR_EVENT)
        return refuse_event(reader, "a key that is not a plain word; write lines of \"key: value\"");
    struct wr_config_word key = config_word_of(reader);
    reader->pair = PAIR_VALUE;
    return frame->field->taker->key(frame->base, frame->field, &key, start_error(reader));
}

/* ---- events ---- */

static int take_config_value(struct yaml_reader *reader)
{
    char *base;
    int error = expect_value(reader);
    if (error != 0)
        return error;
    if (reader->event.type == YAML_SCALAR_EVENT)
        return take_scalar(reader);
    if (reader->depth > 0 && next_field(reader, &base)->kind == WR_CONFIG_IS_OTHERS) {
        reader->passed = 1;
        return 0;
    }
    return reader->event.type == YAML_MAPPING_START_EVENT ? open_mapping(reader) : open_config_list(reader);
}

static int take_event(struct yaml_reader *reader)
{
    int error = check_marks(reader);
    if (error != 0)
        return error;
    if (reader->passed > 0)
        return skip_event(reader);
    if (reader->pair != PAIR_NONE)
        return take_pair(reader);
    switch (reader->event.type) {
    case YAML_DOCUMENT_START_EVENT:
        return reader->documents++ > 0 ? refuse_event(reader, "a second document; there may be only one") : 0;
    case YAML_SCALAR_EVENT:
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return take_config_value(reader);
    case YAML_MAPPING_END_EVENT:
        error = close_mapping(reader);
        if (error == 0)
            pop_frame(reader);
        return error;
    case YAML_SEQUENCE_END_EVENT:
        pop_frame(reader);
        return 0;
    case YAML_STREAM_END_EVENT:
        return reader->documents == 0 && !reader->schema->may_be_empty
                   ? refuse_event(reader, "empty; write lines of \"key: value\"")
                   : 0;
    default:
        return 0;
    }
}

static int read_events(struct yaml_reader *reader)
{
    for (;;) {
        if (yaml_parser_parse(&reader->yaml, &reader->event) == 0)
            return refuse_yaml(reader);
        int error = take_event(reader);
        bool end = reader->event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&reader->event);
        if (error != 0 || end)
            return error;
    }
}

/* Rejects tabs, because libyaml's own message about them is unhelpful. */
static int refuse_tab(struct yaml_reader *reader, size_t text_bytes)
{
    const char *tab = memchr(reader->text, '\t', text_bytes);
    if (tab == NULL)
        return 0;
    wr_buf_append_string(start_error_at_offset(reader, (size_t)(tab - reader->text)), "a tab; write spaces");
    return WEIR_E_INVAL;
}

static int parse_yaml(struct yaml_reader *reader, const char *text, size_t text_bytes)
{
    /* Skips a byte order mark, which Windows editors may write */
    size_t mark_bytes = text_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    text_bytes -= mark_bytes;
    reader->text = text_bytes > 0 ? text + mark_bytes : "";
    int error = refuse_tab(reader, text_bytes);
    if (error != 0)
        return error;
    if (yaml_parser_initialize(&reader->yaml) == 0)
        return WEIR_E_NOMEM;
    yaml_parser_set_input_string(&reader->yaml, (const unsigned char *)reader->text, text_bytes);
    yaml_parser_set_encoding(&reader->yaml, YAML_UTF8_ENCODING);
    error = read_events(reader);
    yaml_parser_delete(&reader->yaml);
    return error;
}

int wr_config_parse(const struct wr_config_schema *schema, const char *file, const char *text, size_t text_bytes,
                    const weir_allocator *allocator, void *settings, char *ret_why, size_t why_bytes)
{
    /* Fills in a copy, so that a failure leaves `settings` unchanged. */
    char *copy = wr_alloc(allocator, schema->bytes, _Alignof(max_align_t));
    struct yaml_reader reader = {.schema = schema, .settings = copy, .file = file};
    int error = WEIR_E_NOMEM;
    assert(schema->count <= WR_CONFIG_FIELDS_MAX && text_bytes <= WR_CONFIG_BYTES_MAX);
    wr_buf_init_fixed(&reader.why, ret_why, why_bytes);
    if (copy != NULL) {
        memcpy(copy, settings, schema->bytes);
        error = parse_yaml(&reader, text, text_bytes);
    }
    if (error == 0)
        memcpy(settings, copy, schema->bytes);
    if (error == WEIR_E_NOMEM) {
        wr_buf_clear(&reader.why);
        wr_buf_append_string(&reader.why, file);
        wr_buf_append_string(&reader.why, ": out of memory");
    }
    wr_free(allocator, copy, schema->bytes, _Alignof(max_align_t));
    return error;
}
