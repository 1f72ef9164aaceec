/* SPDX-License-Identifier: MIT */
/* fuzz_config.c - fuzzes configuration files: each is read into the bounds of its fields, or
 * refused in one line with line and column. */
#include <stdio.h>
#include <string.h>
#include <weir/error.h>
#include <weir/time.h>

#include "config/config.h"
#include "fuzz/fuzz.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum colour {
    RED,
    GREEN
};
struct pane {
    char name[8];
    double tint;
};
struct house {
    char name[16];
    bool open;
    uint32_t doors;
    uint64_t bricks, attic;
    double slope;
    int64_t age_ns;
    enum colour colour;
    struct pane panes[3];
    uint32_t pane_count;
    char pets[2][8];
    uint32_t pet_count;
    bool has_key, in_list; /* state of the taker of "garden" */
};

static const char *const colours[] = {[RED] = "red", [GREEN] = "green", NULL};
static const struct wr_config_field pane_fields[] = {
    {"name", WR_CONFIG_TEXT(struct pane, name), .required = true},
    {"tint", WR_CONFIG_NUMBER(struct pane, tint), .least = 0, .most = 1},
};
static const struct wr_config_schema pane_schema = {
    .name = "pane", .bytes = sizeof(struct pane), .fields = pane_fields, .count = COUNT(pane_fields)};
static const struct wr_config_field pane_item = {.kind = WR_CONFIG_IS_MAPPING, .schema = &pane_schema};
static const struct wr_config_field pet_item = {.kind = WR_CONFIG_IS_TEXT, .bytes = 8};
static const struct wr_config_field roof_fields[] = {
    {"slope", WR_CONFIG_NUMBER(struct house, slope), .least = 0, .most = 90},
    {"attic", WR_CONFIG_SIZE(struct house, attic), .max = 4096},
};
static const struct wr_config_schema roof_schema = {.name = "roof", .fields = roof_fields, .count = COUNT(roof_fields)};

/* Checks the order of calls: a key before each value, items only after the start of a list, and no
 * mapping. */
static int take_key(void *settings, const struct wr_config_field *field, const struct wr_config_word *key,
                    struct wr_buf *why)
{
    struct house *house = settings;
    fuzz_check(strcmp(field->name, "garden") == 0 && key->text.data != NULL && why->length > 0);
    house->has_key = key->text.bytes < 4;
    house->in_list = false;
    return house->has_key ? 0 : WEIR_E_INVAL;
}

static int take_value(void *settings, const struct wr_config_word *word, struct wr_buf *why)
{
    struct house *house = settings;
    fuzz_check(house->has_key && word->line >= 1 && why->length > 0 && (!word->is_item || house->in_list));
    fuzz_check(!word->is_item || word->part == WR_CONFIG_VALUE);
    if (word->part == WR_CONFIG_LIST_BEGINS)
        house->in_list = true;
    else if (!word->is_item)
        house->has_key = false;
    return word->part == WR_CONFIG_MAPPING_BEGINS ? WEIR_E_INVAL : 0;
}

static const struct wr_config_taker taker = {take_key, take_value};
static const struct wr_config_field fields[] = {
    {"name", WR_CONFIG_TEXT(struct house, name), .required = true},
    {"open", WR_CONFIG_BOOL(struct house, open)},
    {"doors", WR_CONFIG_COUNT(struct house, doors), .min = 1, .max = 9},
    {"bricks", WR_CONFIG_COUNT(struct house, bricks), .max = UINT64_MAX, .instead_of = "colour"},
    {"age", WR_CONFIG_DURATION(struct house, age_ns), .max = (uint64_t)WEIR_DAY},
    {"colour", WR_CONFIG_CHOICE(struct house, colour), .choices = colours},
    {"roof", WR_CONFIG_GROUP(&roof_schema)},
    {"panes", WR_CONFIG_LIST(struct house, panes, pane_count, &pane_item)},
    {"pets", WR_CONFIG_LIST(struct house, pets, pet_count, &pet_item)},
    {"garden", WR_CONFIG_PAIRS(&taker)},
    {"rules", WR_CONFIG_OTHERS},
};
static const struct wr_config_schema schema = {
    .name = "a house", .bytes = sizeof(struct house), .fields = fields, .count = COUNT(fields)};

static void check_house(const struct house *house)
{
    fuzz_check(house->name[0] != '\0' && memchr(house->name, 0, sizeof house->name) != NULL);
    fuzz_check(house->doors >= 1 && house->doors <= 9);
    fuzz_check(house->slope >= 0 && house->slope <= 90 && house->attic <= 4096);
    fuzz_check(house->age_ns >= 0 && house->age_ns <= WEIR_DAY);
    fuzz_check(house->colour == RED || house->colour == GREEN);
    fuzz_check(house->pane_count <= 3 && house->pet_count <= 2);
    for (uint32_t i = 0; i < house->pane_count; i++)
        fuzz_check(house->panes[i].name[0] != '\0' && house->panes[i].tint >= 0 && house->panes[i].tint <= 1);
}

static void check_refusal(int error, const char *why, const struct house *house, const struct house *before)
{
    unsigned line = 0, column = 0;
    fuzz_check(error == WEIR_E_INVAL);
    fuzz_check(sscanf(why, "x:%u:%u: ", &line, &column) == 2 && line >= 1 && column >= 1);
    fuzz_check(strchr(why, '\n') == NULL);
    fuzz_check(memcmp(house, before, sizeof *house) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct house before = {.doors = 2}, house = before;
    char why[WR_CONFIG_WHY_BYTES];
    if (bytes > WR_CONFIG_BYTES_MAX)
        return 0;
    memcpy(&house, &before, sizeof house);
    int error =
        wr_config_parse(&schema, "x", (const char *)data, bytes, weir_allocator_system(), &house, why, sizeof why);
    if (error == 0)
        check_house(&house);
    else
        check_refusal(error, why, &house, &before);
    return 0;
}
