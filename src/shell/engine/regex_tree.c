/* SPDX-License-Identifier: MIT */
/* regex_tree.c - reads a regular expression, from left to right. */
#include "shell/engine/regex_tree.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/ascii.h"
#include "base/error.h"

struct parser {
    const char *at;
    const char *wrong, *right; /* NULL: nothing is */
    struct wr_regex_tree *tree;
};

/* In the C locale, which is the program's. */
static const struct class
{
    const char *name;
    int (*has)(int c);
} classes[] = {
    {"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
    {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
    {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
};

static int is_word(int c)
{
    return isalnum(c) || c == '_';
}

static void set_add_class(struct wr_regex_set *set, int (*has)(int c))
{
    for (int byte = 0; byte < 128; byte++)
        if (has(byte))
            wr_regex_set_add(set, (unsigned char)byte);
}

static void set_invert(struct wr_regex_set *set)
{
    for (size_t i = 0; i < 4; i++)
        set->bits[i] = ~set->bits[i];
}

static uint16_t fail(struct parser *parser, const char *wrong, const char *right)
{
    if (parser->wrong == NULL) {
        parser->wrong = wrong;
        parser->right = right;
    }
    parser->at += strlen(parser->at); /* nothing more is read */
    return 0;
}

static uint16_t add_part(struct parser *parser, struct wr_regex_part part)
{
    assert(parser->tree->part_count < WR_REGEX_PARTS_MAX);
    parser->tree->parts[parser->tree->part_count] = part;
    return (uint16_t)parser->tree->part_count++;
}

static uint16_t add_set(struct parser *parser, const struct wr_regex_set *set)
{
    for (size_t i = 0; i < parser->tree->set_count; i++)
        if (memcmp(&parser->tree->sets[i], set, sizeof *set) == 0)
            return add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_SET, .set = (uint16_t)i});
    assert(parser->tree->set_count < WR_REGEX_SETS_MAX);
    parser->tree->sets[parser->tree->set_count] = *set;
    return add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_SET, .set = (uint16_t)parser->tree->set_count++});
}

/* "[:alpha:]" behind its first '['. */
static void read_class(struct parser *parser, struct wr_regex_set *set)
{
    const char *name = parser->at + 1, *end = strstr(name, ":]");

    for (size_t i = 0; end != NULL && i < sizeof classes / sizeof classes[0]; i++)
        if (strlen(classes[i].name) == (size_t)(end - name) &&
            memcmp(classes[i].name, name, (size_t)(end - name)) == 0) {
            set_add_class(set, classes[i].has);
            parser->at = end + 2;
            return;
        }
    fail(parser, "has a class that is not known", "there are [:alnum:], [:alpha:], [:digit:], [:punct:] and so on");
}

/* One byte, or a range of them. */
static void read_range(struct parser *parser, struct wr_regex_set *set)
{
    unsigned char first = (unsigned char)*parser->at++, last = first;

    if (parser->at[0] == '-' && parser->at[1] != ']' && parser->at[1] != '\0') {
        last = (unsigned char)parser->at[1];
        parser->at += 2;
    }
    if (last < first || (last == '[' && strchr(".=:", *parser->at) != NULL)) {
        fail(parser, "has a range that is none", "write it from the smaller to the larger, as in [0-9]");
        return;
    }
    for (unsigned byte = first; byte <= last; byte++)
        wr_regex_set_add(set, (unsigned char)byte);
}

/* Behind the '['. */
static uint16_t read_bracket(struct parser *parser)
{
    struct wr_regex_set set = {{0}};
    bool is_inverted = *parser->at == '^';

    parser->at += is_inverted;
    for (bool is_first = true; *parser->at != '\0' && (is_first || *parser->at != ']'); is_first = false) {
        char second = parser->at[1];
        if (*parser->at != '[' || (second != ':' && second != '.' && second != '=')) {
            read_range(parser, &set);
            continue;
        }
        parser->at++;
        if (second != ':')
            return fail(parser, "has [. .] or [= =]", "write the characters themselves");
        read_class(parser, &set);
    }
    if (*parser->at == '\0')
        return fail(parser, "has a [ without its ]", "write \\[ for one that is itself");
    parser->at++;
    if (is_inverted)
        set_invert(&set);
    return add_set(parser, &set);
}

static uint16_t add_class(struct parser *parser, int (*has)(int c), bool is_inverted)
{
    struct wr_regex_set set = {{0}};

    set_add_class(&set, has);
    if (is_inverted)
        set_invert(&set);
    return add_set(parser, &set);
}

/* Behind the '\'. */
static uint16_t read_escape(struct parser *parser)
{
    static const struct {
        char letter;
        enum wr_regex_kind kind;
    } edges[] = {
        {'b', WR_REGEX_WORD_EDGE}, {'B', WR_REGEX_NO_WORD_EDGE}, {'<', WR_REGEX_WORD_BEGIN}, {'>', WR_REGEX_WORD_END}};
    char c = *parser->at;

    if (c == '\0')
        return fail(parser, "ends with a \\", "write \\\\ for one that is itself");
    parser->at++;
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        if (edges[i].letter == c)
            return add_part(parser, (struct wr_regex_part){.kind = (uint8_t)edges[i].kind});
    if (c == 'w' || c == 'W')
        return add_class(parser, is_word, c == 'W');
    if (c == 's' || c == 'S')
        return add_class(parser, isspace, c == 'S');
    if (wr_ascii_is_digit(c))
        return fail(parser, "refers back", "\\1 and the like are not known; write out what is repeated");
    if (wr_ascii_is_alpha(c))
        return fail(parser, "has an escape that is not known", "for \\d write [0-9]; letters need no \\");
    return add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_BYTE, .byte = (uint8_t)c});
}

static uint16_t read_either(struct parser *parser);

/* Behind the '('. */
static uint16_t read_group(struct parser *parser)
{
    uint16_t inside = read_either(parser);

    if (*parser->at != ')')
        return fail(parser, "has a ( without its )", "write \\( for one that is itself");
    parser->at++;
    return inside;
}

static uint16_t read_atom(struct parser *parser)
{
    struct wr_regex_set any = {{~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)}};
    char c = *parser->at++;

    switch (c) {
    case '(':
        return read_group(parser);
    case '[':
        return read_bracket(parser);
    case '\\':
        return read_escape(parser);
    case '.':
        return add_set(parser, &any);
    case '^':
        return add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_BEGIN});
    case '$':
        return add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_END});
    case '*':
    case '+':
    case '?':
    case '{':
        return fail(parser, "repeats nothing", "write \\*, \\+, \\? or \\{ for one that is itself");
    default:
        return add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_BYTE, .byte = (uint8_t)c});
    }
}

/* False: there is no number. */
static bool read_count(struct parser *parser, uint16_t *ret_count)
{
    unsigned count = 0;

    if (!wr_ascii_is_digit(*parser->at))
        return false;
    for (; wr_ascii_is_digit(*parser->at); parser->at++)
        count = count > WR_REGEX_COUNT_MAX ? count : count * 10 + (unsigned)(*parser->at - '0');
    *ret_count = (uint16_t)count;
    if (count > WR_REGEX_COUNT_MAX)
        fail(parser, "repeats too much", "a count in {} is at most 1000");
    return true;
}

/* "{3}", "{3,}", "{,5}", "{3,5}" behind the '{'. */
static void read_counts(struct parser *parser, struct wr_regex_part *repeat)
{
    bool has_least = read_count(parser, &repeat->least);

    repeat->most = repeat->least;
    if (*parser->at == ',') {
        parser->at++;
        repeat->most = WR_REGEX_NO_END;
        has_least |= read_count(parser, &repeat->most);
    }
    if (*parser->at != '}' || !has_least || repeat->most < repeat->least)
        fail(parser, "has a { that counts nothing", "write it as {3}, {3,} or {3,5}, and \\{ for one that is itself");
    else
        parser->at++;
}

static uint16_t read_repeat(struct parser *parser)
{
    uint16_t what = read_atom(parser);

    while (*parser->at != '\0' && strchr("*+?{", *parser->at) != NULL) {
        struct wr_regex_part repeat = {.kind = WR_REGEX_REPEAT, .left = what, .most = WR_REGEX_NO_END};
        char c = *parser->at++;
        uint8_t kind = parser->tree->parts[what].kind;
        if (kind >= WR_REGEX_BEGIN && kind <= WR_REGEX_WORD_END)
            return fail(parser, "repeats a place", "^, $ and \\b stand where they are, once");
        if (c == '{')
            read_counts(parser, &repeat);
        repeat.least = c == '+' ? 1 : repeat.least;
        repeat.most = c == '?' ? 1 : repeat.most;
        what = add_part(parser, repeat);
    }
    return what;
}

static uint16_t read_join(struct parser *parser)
{
    uint16_t all = add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_EMPTY});

    while (*parser->at != '\0' && *parser->at != '|' && *parser->at != ')') {
        uint16_t next = read_repeat(parser);
        if (parser->wrong == NULL)
            all = add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_JOIN, .left = all, .right = next});
    }
    return all;
}

static uint16_t read_either(struct parser *parser)
{
    uint16_t all = read_join(parser);

    while (*parser->at == '|') {
        parser->at++;
        uint16_t other = read_join(parser);
        all = add_part(parser, (struct wr_regex_part){.kind = WR_REGEX_EITHER, .left = all, .right = other});
    }
    return all;
}

static uint16_t read_all(struct parser *parser)
{
    uint16_t all = read_either(parser);

    return *parser->at == ')' ? fail(parser, "has a ) without its (", "write \\) for one that is itself") : all;
}

int wr_regex_read(const char *text, struct wr_regex_tree *ret_tree)
{
    struct parser parser = {.at = text, .tree = ret_tree};

    if (strlen(text) > WR_REGEX_MAX)
        return wr_invalid_text("pattern", text, strlen(text), "too long", WR_NOWHERE,
                               "a regular expression has at most 255 bytes");
    if (text[0] == '\0')
        return wr_invalid_text("pattern", text, 0, "nothing after \"re:\"", WR_NOWHERE,
                               "a regular expression follows it");
    ret_tree->part_count = ret_tree->set_count = 0;
    ret_tree->root = read_all(&parser);
    if (parser.wrong == NULL)
        return 0;
    return wr_invalid_text("pattern", text, strlen(text), parser.wrong, WR_NOWHERE, parser.right);
}
