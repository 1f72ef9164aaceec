/* SPDX-License-Identifier: MIT */
/* value.c - stores single values in their fields, and describes values in error messages. */
#include "config/value.h"

#include <assert.h>
#include <string.h>

#include "base/nearest.h"
#include "base/parse.h"

static bool text_is(struct wr_span text, const char *word)
{
    return strlen(word) == text.bytes && memcmp(text.data, word, text.bytes) == 0;
}

bool wr_config_is_null(struct wr_span text, bool quoted)
{
    return !quoted && (text.bytes == 0 || text_is(text, "~") || text_is(text, "null") || text_is(text, "Null") ||
                       text_is(text, "NULL"));
}

static bool store_text(const struct wr_config_field *field, struct wr_span text, char *ret_text)
{
    if (text.bytes == 0 || text.bytes >= field->bytes || !wr_span_is_clean(text))
        return false;
    memcpy(ret_text, text.data, text.bytes);
    memset(ret_text + text.bytes, 0, field->bytes - text.bytes);
    return true;
}

static bool store_bool(struct wr_span text, bool *ret_bool)
{
    if (!text_is(text, "true") && !text_is(text, "false"))
        return false;
    *ret_bool = text_is(text, "true");
    return true;
}

static bool store_config_count(const struct wr_config_field *field, struct wr_span text, void *ret_count)
{
    uint64_t count;
    if (!wr_scan_u64(text.data, text.bytes, field->min, field->max, &count))
        return false;
    assert(field->bytes == sizeof(uint64_t) || field->max <= INT32_MAX || field->max == UINT32_MAX);
    if (field->bytes == sizeof(uint64_t))
        *(uint64_t *)ret_count = count;
    else
        *(uint32_t *)ret_count = (uint32_t)count;
    return true;
}

static bool store_config_duration(const struct wr_config_field *field, struct wr_span text, int64_t *ret_duration_ns)
{
    int64_t duration_ns;
    if (wr_parse_duration(text.data, text.bytes, &duration_ns) < 0 || (uint64_t)duration_ns < field->min ||
        (uint64_t)duration_ns > field->max)
        return false;
    *ret_duration_ns = duration_ns;
    return true;
}

static bool store_config_size(const struct wr_config_field *field, struct wr_span text, uint64_t *ret_bytes)
{
    uint64_t bytes;
    if (wr_parse_bytes(text.data, text.bytes, &bytes) < 0 || bytes < field->min || bytes > field->max)
        return false;
    *ret_bytes = bytes;
    return true;
}

static bool store_config_choice(const struct wr_config_field *field, struct wr_span text, void *ret_choice)
{
    assert(field->bytes == sizeof(int));
    for (int i = 0; field->choices[i] != NULL; i++)
        if (text_is(text, field->choices[i])) {
            memcpy(ret_choice, &i, sizeof i);
            return true;
        }
    return false;
}

bool wr_config_store(const struct wr_config_field *field, struct wr_span text, bool quoted, char *base)
{
    void *place = base + field->offset;
    if (wr_config_is_null(text, quoted))
        return field->kind == WR_CONFIG_IS_PAIRS || field->kind == WR_CONFIG_IS_OTHERS;
    switch (field->kind) {
    case WR_CONFIG_IS_TEXT:
        return store_text(field, text, place);
    case WR_CONFIG_IS_BOOL:
        return !quoted && store_bool(text, place);
    case WR_CONFIG_IS_COUNT:
        return !quoted && store_config_count(field, text, place);
    case WR_CONFIG_IS_NUMBER:
        return !quoted && wr_parse_number(text.data, text.bytes, field->least, field->most, place) == 0;
    case WR_CONFIG_IS_DURATION:
        return store_config_duration(field, text, place);
    case WR_CONFIG_IS_SIZE:
        return store_config_size(field, text, place);
    case WR_CONFIG_IS_CHOICE:
        return store_config_choice(field, text, place);
    case WR_CONFIG_IS_OTHERS:
        return true;
    case WR_CONFIG_IS_MAPPING:
    case WR_CONFIG_IS_LIST:
    case WR_CONFIG_IS_PAIRS:
        break;
    }
    return false;
}

/* ---- error messages ---- */

static void append_names(struct wr_buf *buf, const struct wr_config_schema *schema)
{
    for (size_t i = 0; i < schema->count; i++) {
        wr_buf_append_string(buf, i > 0 ? ", " : "");
        wr_buf_append_string(buf, schema->fields[i].name);
    }
}

static void append_choices(struct wr_buf *buf, const char *const *choices)
{
    for (size_t i = 0; choices[i] != NULL; i++) {
        wr_buf_append_string(buf, i > 0 ? ", " : "");
        wr_buf_append_string(buf, choices[i]);
    }
}

static void append_config_bound(struct wr_buf *buf, const struct wr_config_field *field, uint64_t bound)
{
    if (field->kind == WR_CONFIG_IS_DURATION)
        wr_buf_append_duration(buf, (int64_t)bound);
    else
        wr_buf_append_u64(buf, bound);
}

/* Appends ", MIN ... MAX". */
static void append_range(struct wr_buf *buf, const struct wr_config_field *field)
{
    wr_buf_append_string(buf, ", ");
    append_config_bound(buf, field, field->min);
    wr_buf_append_string(buf, " ... ");
    append_config_bound(buf, field, field->max);
}

static void append_number_range(struct wr_buf *buf, const struct wr_config_field *field)
{
    wr_buf_append_string(buf, ", ");
    wr_buf_append_number(buf, field->least);
    wr_buf_append_string(buf, " ... ");
    wr_buf_append_number(buf, field->most);
}

static void append_kind(struct wr_buf *buf, const struct wr_config_field *field)
{
    switch (field->kind) {
    case WR_CONFIG_IS_TEXT:
        wr_buf_append_string(buf, "a text without control characters, of 1 ... ");
        wr_buf_append_u64(buf, field->bytes - 1);
        wr_buf_append_string(buf, " bytes");
        break;
    case WR_CONFIG_IS_BOOL:
        wr_buf_append_string(buf, "true or false");
        break;
    case WR_CONFIG_IS_COUNT:
        wr_buf_append_string(buf, "a whole number");
        append_range(buf, field);
        break;
    case WR_CONFIG_IS_NUMBER:
        wr_buf_append_string(buf, "a number");
        append_number_range(buf, field);
        break;
    case WR_CONFIG_IS_DURATION:
        wr_buf_append_string(buf, "a duration such as 500ms or 2h");
        append_range(buf, field);
        break;
    case WR_CONFIG_IS_SIZE:
        wr_buf_append_string(buf, "a size such as 64k or 1.5M, in bytes");
        append_range(buf, field);
        break;
    case WR_CONFIG_IS_CHOICE:
        wr_buf_append_string(buf, "one of ");
        append_choices(buf, field->choices);
        break;
    case WR_CONFIG_IS_MAPPING:
        wr_buf_append_string(buf, "a mapping of ");
        append_names(buf, field->schema);
        break;
    case WR_CONFIG_IS_LIST:
        wr_buf_append_string(buf, "a list of at most ");
        wr_buf_append_u64(buf, field->max);
        break;
    case WR_CONFIG_IS_PAIRS:
        wr_buf_append_string(buf, "lines of \"key: value\", indented");
        break;
    case WR_CONFIG_IS_OTHERS:
        wr_buf_append_string(buf, "anything");
        break;
    }
}

bool wr_config_is_secret(const struct wr_config_field *field)
{
    return field->is_secret || (field->kind == WR_CONFIG_IS_LIST && field->item->is_secret);
}

/* Returns true if the field takes lines of "key: value". A text in their place is not shown: it may
 * be such a line without the blank after the colon, and contain a secret. */
static bool takes_lines(const struct wr_config_field *field)
{
    enum wr_config_kind kind = field->kind == WR_CONFIG_IS_LIST ? field->item->kind : field->kind;
    return kind == WR_CONFIG_IS_MAPPING || kind == WR_CONFIG_IS_PAIRS;
}

void wr_config_append_scalar(struct wr_buf *buf, const struct wr_config_field *field, struct wr_span text)
{
    if (takes_lines(field)) {
        wr_buf_append_string(buf, text.bytes == 0 ? " is empty" : " is a text");
    } else if (wr_config_is_secret(field)) {
        wr_buf_append_string(buf, " is invalid");
    } else {
        wr_buf_append_string(buf, " is ");
        wr_buf_append_quoted(buf, text);
    }
}

void wr_config_append_wanted(struct wr_buf *buf, const struct wr_config_field *field)
{
    append_kind(buf, field);
    if (field->what == NULL)
        return;
    wr_buf_append_string(buf, " (");
    wr_buf_append_string(buf, field->what);
    wr_buf_append_string(buf, ")");
}

/* Returns the field's name if the key is "name:login", a key and its value without a blank between
 * them; else NULL. */
static const char *key_without_blank(const struct wr_config_schema *schema, struct wr_span key)
{
    size_t bytes = wr_span_find(key, ':');
    for (size_t i = 0; i < schema->count && bytes < key.bytes; i++)
        if (wr_span_is((struct wr_span){key.data, bytes}, schema->fields[i].name))
            return schema->fields[i].name;
    return NULL;
}

/* An unknown key is shown only if it resembles a field's name. Any other may be a secret in the
 * wrong line or after a missing blank. */
void wr_config_append_unknown(struct wr_buf *buf, const struct wr_config_schema *schema, struct wr_span key)
{
    char word[64] = "";
    const char *name = key_without_blank(schema, key);
    if (name != NULL) {
        wr_buf_append_string(buf, "a blank is missing after \"");
        wr_buf_append_string(buf, name);
        wr_buf_append_string(buf, ":\"; write \"key: value\"");
        return;
    }
    memcpy(word, key.data, wr_name_bytes(key));
    struct wr_nearest nearest = {.word = word};
    for (size_t i = 0; i < schema->count; i++)
        wr_nearest_offer(&nearest, schema->fields[i].name);
    wr_buf_append_string(buf, "unknown key ");
    if (nearest.best != NULL) {
        wr_buf_append_name(buf, key);
        wr_buf_append_char(buf, ' ');
    }
    wr_buf_append_string(buf, "in ");
    wr_buf_append_string(buf, schema->name);
    wr_buf_append_string(buf, nearest.best != NULL ? "; did you mean \"" : "; there are ");
    if (nearest.best == NULL) {
        append_names(buf, schema);
        return;
    }
    wr_buf_append_string(buf, nearest.best);
    wr_buf_append_string(buf, "\"?");
}
