/* SPDX-License-Identifier: MIT */
/* test_config.c - tests that valid files are read, and invalid ones refused with line and
 * column. */
#include "lib/alloc.h"
#include "lib/test.h"

#include <unistd.h>
#include <weir/error.h>
#include <weir/time.h>

#include "base/rng.h"
#include "config/config.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum wood {
    WOOD_OAK,
    WOOD_PINE
};

struct hinge {
    uint32_t screws;
    double angle;
};

struct door {
    char name[8];
    bool open;
    uint32_t width;
    uint64_t serial;
    int status, code;
    double gap;
    int64_t close_ns;
    uint64_t weight;
    enum wood wood;
    struct hinge lock;
    struct {
        uint32_t turns;
    } knob; /* a group of fields: its schema writes into struct door */
    struct hinge hinges[3];
    uint32_t hinge_count;
    char colours[2][6];
    uint32_t colour_count;
};

static const char *const woods[] = {[WOOD_OAK] = "oak", [WOOD_PINE] = "pine", NULL};

static const char *hinge_wrong(const void *settings)
{
    const struct hinge *hinge = settings;
    return hinge->screws == 13 ? "13 screws; take 12" : NULL;
}

static void hinge_init(void *settings)
{
    ((struct hinge *)settings)->angle = 90;
}

static const struct wr_config_field hinge_fields[] = {
    {"screws", WR_CONFIG_COUNT(struct hinge, screws), .min = 1, .max = 100},
    {"angle", WR_CONFIG_NUMBER(struct hinge, angle), .least = 0, .most = 180},
};
static const struct wr_config_schema hinge_schema = {
    "a hinge", sizeof(struct hinge), hinge_fields, COUNT(hinge_fields), hinge_init, hinge_wrong, false,
};
static const struct wr_config_field knob_fields[] = {
    {"turns", WR_CONFIG_COUNT(struct door, knob.turns), .max = 9, .required = true, .what = "to the left"},
};
static const struct wr_config_schema knob_schema = {"knob", 0, knob_fields, COUNT(knob_fields), NULL, NULL, false};
static const struct wr_config_field hinge_item = {.kind = WR_CONFIG_IS_MAPPING, .schema = &hinge_schema};
static const struct wr_config_field colour_item = {.kind = WR_CONFIG_IS_TEXT, .bytes = 6};

static const struct wr_config_field fields[] = {
    {"name", WR_CONFIG_TEXT(struct door, name), .required = true, .what = "what it is called"},
    {"open", WR_CONFIG_BOOL(struct door, open)},
    {"width", WR_CONFIG_COUNT(struct door, width), .min = 1, .max = 500, .what = "in cm"},
    {"serial", WR_CONFIG_COUNT(struct door, serial), .max = UINT64_MAX},
    {"code", WR_CONFIG_COUNT(struct door, code), .max = 99, .instead_of = "status"},
    {"status", WR_CONFIG_COUNT(struct door, status), .min = 400, .max = 599},
    {"gap", WR_CONFIG_NUMBER(struct door, gap), .least = 0, .most = 1.5},
    {"close", WR_CONFIG_DURATION(struct door, close_ns), .min = 1000, .max = (uint64_t)WEIR_HOUR},
    {"weight", WR_CONFIG_SIZE(struct door, weight), .max = 1 << 20},
    {"wood", WR_CONFIG_CHOICE(struct door, wood), .choices = woods},
    {"lock", WR_CONFIG_MAPPING(struct door, lock, &hinge_schema)},
    {"knob", WR_CONFIG_GROUP(&knob_schema)},
    {"hinges", WR_CONFIG_LIST(struct door, hinges, hinge_count, &hinge_item)},
    {"colours", WR_CONFIG_LIST(struct door, colours, colour_count, &colour_item)},
};
static const struct wr_config_schema schema = {"a door", sizeof(struct door), fields, COUNT(fields), NULL, NULL, false};

static const struct door defaults = {.width = 90, .hinges = {{7, 7}}, .hinge_count = 1, .lock = {2, 45}};

static const char whole[] = "# a door\n"
                            "name: front\n"
                            "open: true\n"
                            "width: 100\n"
                            "serial: 18446744073709551615\n"
                            "status: 403\n"
                            "gap: 0.25\n"
                            "close: 1m30s\n"
                            "weight: 64k\n"
                            "wood: pine\n"
                            "lock: { screws: 4 }\n"
                            "knob:\n"
                            "  turns: 3\n"
                            "hinges:\n"
                            "  - { screws: 3 }\n"
                            "  - screws: 4\n"
                            "    angle: 120.5\n"
                            "colours: [ red, \"3\" ]\n";

static int parse_with(const weir_allocator *allocator, const char *text, size_t bytes, struct door *door, char *why)
{
    /* Parses a copy of exactly `bytes` bytes, so that the sanitizer reports every read beyond
     * them. */
    char *copy = malloc(bytes > 0 ? bytes : 1);
    memcpy(copy, text, bytes);
    int error = wr_config_parse(&schema, "door.yaml", copy, bytes, allocator, door, why, WR_CONFIG_WHY_BYTES);
    free(copy);
    return error;
}

static void expect_whole(const struct door *door)
{
    assert_string_equal(door->name, "front");
    assert_true(door->open);
    assert_int_equal(door->width, 100);
    assert_true(door->serial == UINT64_MAX);
    assert_int_equal(door->status, 403);
    assert_true(door->gap == 0.25);
    assert_true(door->close_ns == 90 * WEIR_SECOND);
    assert_int_equal(door->weight, 65536);
    assert_int_equal(door->wood, WOOD_PINE);
    assert_int_equal(door->lock.screws, 4);
    assert_true(door->lock.angle == 45);
    assert_int_equal(door->knob.turns, 3);
    assert_int_equal(door->hinge_count, 2);
    assert_int_equal(door->hinges[0].screws, 3);
    assert_true(door->hinges[0].angle == 90);
    assert_true(door->hinges[1].angle == 120.5);
    assert_int_equal(door->colour_count, 2);
    assert_string_equal(door->colours[0], "red");
    assert_string_equal(door->colours[1], "3");
}

static void every_kind_of_field_is_read(void **state)
{
    (void)state;
    struct door door = defaults;
    char why[WR_CONFIG_WHY_BYTES] = "untouched";
    assert_int_equal(parse_with(weir_allocator_system(), whole, strlen(whole), &door, why), 0);
    expect_whole(&door);
}

static void unset_fields_keep_their_defaults(void **state)
{
    (void)state;
    struct door door = defaults;
    char why[WR_CONFIG_WHY_BYTES];
    static const char text[] = "\xef\xbb\xbf---\r\nname: 'a b'\r\ncode: 5\r\n";
    assert_int_equal(parse_with(weir_allocator_system(), text, strlen(text), &door, why), 0);
    assert_string_equal(door.name, "a b");
    assert_int_equal(door.width, 90);
    assert_int_equal(door.hinge_count, 1);
    assert_int_equal(door.lock.screws, 2);
}

struct refusal {
    const char *text, *why;
};

static void expect_refused(const struct refusal *row)
{
    struct door door = defaults;
    char why[WR_CONFIG_WHY_BYTES];
    int error = parse_with(weir_allocator_system(), row->text, strlen(row->text), &door, why);
    if (error != WEIR_E_INVAL || strcmp(why, row->why) != 0)
        fail_msg("error %d, \"%s\" instead of \"%s\", for\n%s", error, why, row->why, row->text);
    assert_memory_equal(&door, &defaults, sizeof door);
}

static void wrong_keys_are_refused_with_line_and_column(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"name: x\nwidht: 5\n", "door.yaml:2:1: unknown key \"widht\" in a door; did you mean \"width\"?"},
        {"name: x\nlock: { skrews: 5 }\n",
         "door.yaml:2:9: unknown key \"skrews\" in a hinge; did you mean \"screws\"?"},
        {"name: x\nlock: { zz: 5 }\n", "door.yaml:2:9: unknown key in a hinge; there are screws, angle"},
        {"name: x\nlock: { \"\\x1b[0m\": 5 }\n", "door.yaml:2:9: unknown key in a hinge; there are screws, angle"},
        {"name: x\nopen: true\nname: y\n", "door.yaml:3:1: name is given twice; remove one of them"},
        {"lock: { angle: 1, angle: 1 }\n", "door.yaml:1:19: angle is given twice; remove one of them"},
        {"width: 5\n", "door.yaml:1:1: name is missing; it must be a text without control characters, of 1 ... 7 bytes "
                       "(what it is called)"},
        {"name: x\n", "door.yaml:1:1: code is missing; it must be a whole number, 0 ... 99"},
        {"name: x\ncode: 5\nstatus: 400\n", "door.yaml:1:1: both code and status; leave one of them out"},
        {"name: x\nknob: {}\n", "door.yaml:2:7: turns is missing; it must be a whole number, 0 ... 9 (to the left)"},
        {"name: x\nlock: { screws: 13 }\n", "door.yaml:2:7: 13 screws; take 12"},
        {"? {a: b}\n: c\n", "door.yaml:1:3: a key that is not a plain word; write lines of \"key: value\""},
        {"? [a]\n: c\n", "door.yaml:1:3: a key that is not a plain word; write lines of \"key: value\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_refused(&rows[i]);
}

static void values_of_the_wrong_kind_are_refused_naming_the_right_kind(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"width: wide", "door.yaml:1:8: width is \"wide\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: 501", "door.yaml:1:8: width is \"501\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: -1", "door.yaml:1:8: width is \"-1\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: 1.5", "door.yaml:1:8: width is \"1.5\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: 0x10", "door.yaml:1:8: width is \"0x10\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: \"5\"", "door.yaml:1:8: width is \"5\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width:", "door.yaml:1:7: width is \"\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: ~", "door.yaml:1:8: width is \"~\"; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: { a: 1 }", "door.yaml:1:8: width is a mapping; it must be a whole number, 1 ... 500 (in cm)"},
        {"width: [ 1 ]", "door.yaml:1:8: width is a list; it must be a whole number, 1 ... 500 (in cm)"},
        {"gap: .nan", "door.yaml:1:6: gap is \".nan\"; it must be a number, 0 ... 1.5"},
        {"gap: nan", "door.yaml:1:6: gap is \"nan\"; it must be a number, 0 ... 1.5"},
        {"gap: .inf", "door.yaml:1:6: gap is \".inf\"; it must be a number, 0 ... 1.5"},
        {"gap: 1e1", "door.yaml:1:6: gap is \"1e1\"; it must be a number, 0 ... 1.5"},
        {"gap: 1.50001", "door.yaml:1:6: gap is \"1.50001\"; it must be a number, 0 ... 1.5"},
        {"open: yes", "door.yaml:1:7: open is \"yes\"; it must be true or false"},
        {"open: 'true'", "door.yaml:1:7: open is \"true\"; it must be true or false"},
        {"close: 5 s", "door.yaml:1:8: close is \"5 s\"; it must be a duration such as 500ms or 2h, 1us ... 1h"},
        {"close: 2h", "door.yaml:1:8: close is \"2h\"; it must be a duration such as 500ms or 2h, 1us ... 1h"},
        {"close: -1s", "door.yaml:1:8: close is \"-1s\"; it must be a duration such as 500ms or 2h, 1us ... 1h"},
        {"weight: 2M",
         "door.yaml:1:9: weight is \"2M\"; it must be a size such as 64k or 1.5M, in bytes, 0 ... 1048576"},
        {"wood: Oak", "door.yaml:1:7: wood is \"Oak\"; it must be one of oak, pine"},
        {"name: eightlet",
         "door.yaml:1:7: name is \"eightlet\"; it must be a text without control characters, of 1 ... 7 bytes "
         "(what it is called)"},
        {"name: \"a\\nb\"",
         "door.yaml:1:7: name is \"a\\x0ab\"; it must be a text without control characters, of 1 ... 7 bytes "
         "(what it is called)"},
        {"name: ''", "door.yaml:1:7: name is \"\"; it must be a text without control characters, of 1 ... 7 bytes "
                     "(what it is called)"},
        {"lock: 5", "door.yaml:1:7: lock is a text; it must be a mapping of screws, angle"},
        {"lock: [ 5 ]", "door.yaml:1:7: lock is a list; it must be a mapping of screws, angle"},
        {"hinges: 5", "door.yaml:1:9: hinges is a text; it must be a list of at most 3"},
        {"hinges: { screws: 5 }", "door.yaml:1:9: hinges is a mapping; it must be a list of at most 3"},
        {"hinges: [ 5 ]", "door.yaml:1:11: an item is a text; it must be a mapping of screws, angle"},
        {"hinges: [ [ 5 ] ]", "door.yaml:1:11: an item is a list; it must be a mapping of screws, angle"},
        {"hinges: [ {}, {}, {}, {} ]", "door.yaml:1:23: hinges is too long; it must be a list of at most 3"},
        {"colours: [ yellow ]", "door.yaml:1:12: an item is \"yellow\"; it must be a text without control "
                                "characters, of 1 ... 5 bytes"},
        {"colours: [ a, b, c ]", "door.yaml:1:18: colours is too long; it must be a list of at most 2"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_refused(&rows[i]);
}

static void files_that_are_not_a_configuration_are_refused(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"", "door.yaml:1:1: empty; write lines of \"key: value\""},
        {"# nothing\n", "door.yaml:2:1: empty; write lines of \"key: value\""},
        {"---\n", "door.yaml:2:1: not a mapping; write lines of \"key: value\""},
        {"hello\n", "door.yaml:1:1: not a mapping; write lines of \"key: value\""},
        {"- a\n", "door.yaml:1:1: not a mapping; write lines of \"key: value\""},
        {"name: x\ncode: 5\n---\nname: y\n", "door.yaml:3:1: a second document; there may be only one"},
        {"name: &a x\n", "door.yaml:1:7: an anchor (&); write the value out where it belongs"},
        {"lock: &a { screws: 1 }\n", "door.yaml:1:7: an anchor (&); write the value out where it belongs"},
        {"colours: &a [ b ]\n", "door.yaml:1:10: an anchor (&); write the value out where it belongs"},
        {"name: *a\n", "door.yaml:1:7: an alias (*); write the value out where it belongs"},
        {"name: !!str x\n", "door.yaml:1:7: a tag (!); write the plain value"},
        {"lock: !a {}\n", "door.yaml:1:7: a tag (!); write the plain value"},
        {"name: x\nlock:\n\tscrews: 1\n", "door.yaml:3:1: a tab; write spaces"},
        {"name: x # \xc3\xa4\t\n", "door.yaml:1:12: a tab; write spaces"},
        {"name: x\nopen: \xff\n", "door.yaml:2:7: invalid leading UTF-8 octet; it must be UTF-8 text"},
        {"name: \xc0\xaf\n", "door.yaml:1:7: invalid length of a UTF-8 sequence; it must be UTF-8 text"},
        {"name: x\nname: \x01\n", "door.yaml:2:7: control characters are not allowed; it must be UTF-8 text"},
        {"name: x\nlock: { screws: 1\n", "door.yaml:3:1: while parsing a flow mapping, did not find expected ',' or "
                                         "'}'; write lines of \"key: value\", "
                                         "and indent them alike, with blanks"},
        {"name: x\n  width: 5\n",
         "door.yaml:2:8: mapping values are not allowed in this context; write lines of \"key: "
         "value\", and indent them alike, with blanks"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_refused(&rows[i]);
}

static void files_of_endlessly_repeated_syntax_are_refused(void **state)
{
    (void)state;
    struct door door = defaults;
    char why[WR_CONFIG_WHY_BYTES];
    size_t bytes = WR_CONFIG_BYTES_MAX;
    char *text = malloc(bytes);
    static const char *const units[] = {"[", "{a: ", "- ", "? ", "!", "&a", "a: ", "\n"};
    for (size_t unit = 0; unit < COUNT(units); unit++) {
        size_t length = strlen(units[unit]);
        for (size_t i = 0; i < bytes; i++)
            text[i] = units[unit][i % length];
        assert_int_equal(wr_config_parse(&schema, "bomb", text, bytes, weir_allocator_system(), &door, why, sizeof why),
                         WEIR_E_INVAL);
        assert_memory_equal(why, "bomb:", 5);
        assert_memory_equal(&door, &defaults, sizeof door);
    }
    free(text);
}

static void message_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    struct door door = defaults;
    char why[12];
    memset(why, 'x', sizeof why);
    assert_int_equal(wr_config_parse(&schema, "door.yaml", "a: b", 4, weir_allocator_system(), &door, why, sizeof why),
                     WEIR_E_INVAL);
    assert_string_equal(why, "door.yaml:1");
}

static void failed_allocation_leaves_the_settings_unchanged(void **state)
{
    (void)state;
    test_allocator test;
    char path[] = "/tmp/weir-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, whole, strlen(whole)), strlen(whole));
    close(fd);
    test_allocator_init(&test);
    int error = WEIR_E_NOMEM;
    for (long n = 1; error != 0; n++) {
        struct door door = defaults;
        char why[WR_CONFIG_WHY_BYTES];
        test.fail_at = n;
        error = wr_config_read(&schema, path, &test.allocator, &door, why, sizeof why);
        assert_int_equal(test.live, 0);
        if (error == 0) {
            assert_true(n > 2); /* the text of the file and the copy of the settings */
            expect_whole(&door);
            break;
        }
        assert_int_equal(error, WEIR_E_NOMEM);
        assert_memory_equal(&door, &defaults, sizeof door);
        assert_non_null(strstr(why, ": out of memory"));
    }
    unlink(path);
}

static void unreadable_file_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct door door = defaults;
    char why[WR_CONFIG_WHY_BYTES];
    const weir_allocator *system = weir_allocator_system();
    assert_int_equal(wr_config_read(&schema, "/nowhere/x.yaml", system, &door, why, sizeof why), WEIR_E_SYSTEM);
    assert_string_equal(why, "/nowhere/x.yaml: No such file or directory; name a file that exists, or write one as "
                             "docs/guide/configuring.md shows");
    assert_int_equal(wr_config_read(&schema, "/", system, &door, why, sizeof why), WEIR_E_SYSTEM);
    assert_string_equal(why, "/: Is a directory; name a file in it");
    assert_int_equal(wr_config_read(&schema, "/dev/null", system, &door, why, sizeof why), WEIR_E_INVAL);
    assert_string_equal(why, "/dev/null:1:1: empty; write lines of \"key: value\"");
    assert_int_equal(wr_config_read(&schema, "/dev/zero", system, &door, why, sizeof why), WEIR_E_INVAL);
    assert_string_equal(why, "/dev/zero: longer than 1 MiB; use at most 1 MiB");
    assert_memory_equal(&door, &defaults, sizeof door);
}

/* Changes, removes or duplicates a few bytes at random. */
static size_t mutate(struct wr_rng *rng, char *text, size_t bytes, size_t room)
{
    static const char letters[] = "{}[]:,-#&*!|>'\"%@`?~ \n\r\t0123456789.ensmx\xc3\xa4\xff\x01";
    for (uint64_t changes = 1 + wr_rng_below(rng, 4); changes > 0; changes--) {
        size_t at = (size_t)wr_rng_below(rng, bytes), length = 1 + (size_t)wr_rng_below(rng, 8);
        length = length < bytes - at ? length : bytes - at;
        switch (wr_rng_below(rng, 4)) {
        case 0:
            memmove(text + at, text + at + length, bytes - at - length);
            bytes -= bytes > length ? length : 0;
            break;
        case 1:
            if (bytes + length <= room) {
                memmove(text + at + length, text + at, bytes - at);
                bytes += length;
            }
            break;
        default:
            text[at] = letters[wr_rng_below(rng, sizeof letters - 1)];
        }
    }
    return bytes;
}

static void mutated_file_is_read_within_bounds_or_refused_with_a_message(void **state)
{
    (void)state;
    struct wr_rng rng;
    unsigned read = 0, refused = 0;
    wr_rng_init(&rng, weir_test_seed());
    for (int step = 0; step < 20000; step++) {
        struct door door = defaults;
        char text[sizeof whole + 64], why[WR_CONFIG_WHY_BYTES] = "";
        memcpy(text, whole, sizeof whole);
        size_t bytes = mutate(&rng, text, strlen(whole), sizeof text);
        int error = parse_with(weir_allocator_system(), text, bytes, &door, why);
        if (error == 0) {
            read++;
            assert_in_range(door.width, 1, 500);
            assert_in_range(door.close_ns, 0, WEIR_HOUR);
            assert_true(door.gap >= 0 && door.gap <= 1.5);
            assert_true(door.wood == WOOD_OAK || door.wood == WOOD_PINE);
            assert_true(door.hinge_count <= 3 && door.colour_count <= 2);
            assert_true(memchr(door.name, 0, sizeof door.name) != NULL);
            continue;
        }
        refused++;
        assert_int_equal(error, WEIR_E_INVAL);
        assert_memory_equal(why, "door.yaml:", 10);
        assert_non_null(strstr(why, "; "));
        assert_memory_equal(&door, &defaults, sizeof door);
    }
    assert_true(read > 100 && refused > 1000); /* otherwise the mutations test nothing */
}

WEIR_TESTS(test(every_kind_of_field_is_read), test(unset_fields_keep_their_defaults),
           test(wrong_keys_are_refused_with_line_and_column),
           test(values_of_the_wrong_kind_are_refused_naming_the_right_kind),
           test(files_that_are_not_a_configuration_are_refused), test(files_of_endlessly_repeated_syntax_are_refused),
           test(message_that_does_not_fit_is_cut), test(failed_allocation_leaves_the_settings_unchanged),
           test(unreadable_file_is_refused_with_the_reason),
           test(mutated_file_is_read_within_bounds_or_refused_with_a_message))
