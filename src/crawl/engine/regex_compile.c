/* SPDX-License-Identifier: MIT */
/* regex_compile.c - compiles a regular expression to nodes, in one pass and without recursion. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/ascii.h"
#include "base/error.h"
#include "crawl/engine/regex_program.h"

#define NO_END UINT16_MAX /* a count without upper limit */

/* An open group, or the whole expression, such as "a|b|c". */
struct regex_group {
    uint16_t begin;  /* index of its first node */
    uint16_t branch; /* index of the first node after the last '|' */
    bool has_branches;
};

struct regex_repeat {
    uint16_t least, most;
};

struct regex_parser {
    const char *at;
    const char *wrong, *right; /* error and advice for the user; NULL: no error */
    struct wr_regex_program *program;
    struct regex_group groups[WR_REGEX_MAX + 1];
    size_t depth;
    uint16_t last; /* first node of the part that a count would repeat */
    bool has_last, last_is_place;
};

/* Classes of the C locale, which the program uses. */
static const struct regex_class {
    const char *name;
    int (*has)(int c);
} classes[] = {
    {"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
    {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
    {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
};

static int is_word_char(int c)
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

/* ---- nodes ---- */

static void fail_regex(struct regex_parser *parser, const char *wrong, const char *right)
{
    if (parser->wrong == NULL) {
        parser->wrong = wrong;
        parser->right = right;
    }
    parser->at += strlen(parser->at); /* skips the rest of the text */
}

/* Returns false if there is no room for `more` nodes and the final one. */
static bool has_node_room(struct regex_parser *parser, size_t more)
{
    if (parser->program->node_count + more < WR_REGEX_NODES_MAX)
        return true;
    fail_regex(parser, "repeats too much",
               "use smaller counts in {}: written out, an expression has at most 2000 characters");
    return false;
}

static void add_node(struct regex_parser *parser, struct wr_regex_node node)
{
    struct wr_regex_program *program = parser->program;
    if (!has_node_room(parser, 1))
        return;
    node.next = 1;
    parser->last = (uint16_t)program->node_count;
    parser->has_last = true;
    parser->last_is_place = node.kind >= WR_REGEX_BEGIN;
    program->nodes[program->node_count++] = node;
}

static void add_set(struct regex_parser *parser, const struct wr_regex_set *set)
{
    struct wr_regex_program *program = parser->program;
    size_t i = 0;
    while (i < program->set_count && memcmp(&program->sets[i], set, sizeof *set) != 0)
        i++;
    assert(i < WR_REGEX_SETS_MAX);
    program->sets[i] = *set;
    program->set_count += i == program->set_count;
    add_node(parser, (struct wr_regex_node){.kind = WR_REGEX_SET, .set = (uint16_t)i});
}

static struct wr_regex_node split_node(size_t next, size_t other)
{
    return (struct wr_regex_node){.kind = WR_REGEX_SPLIT, .next = (int16_t)next, .other = (int16_t)other};
}

static struct wr_regex_node jump_back_node(size_t by)
{
    return (struct wr_regex_node){.kind = WR_REGEX_SPLIT, .next = (int16_t)-by, .other = (int16_t)-by};
}

/* Joins the branches so far, from group->begin to group->branch, and the one after them:
 *     split to both | the first | jump to the end | the second */
static void join_branches(struct regex_parser *parser, const struct regex_group *group)
{
    struct wr_regex_program *program = parser->program;
    size_t first = group->branch - group->begin, second = program->node_count - group->branch;
    struct wr_regex_node *at = &program->nodes[group->begin];
    if (!group->has_branches || !has_node_room(parser, 2))
        return;
    memmove(at + first + 2, at + first, second * sizeof *at);
    memmove(at + 1, at, first * sizeof *at);
    at[0] = split_node(1, first + 2);
    at[first + 1] = split_node(second + 1, second + 1);
    program->node_count += 2;
}

/* Writes "x*" as: split | x | jump back. */
static void write_loop(struct wr_regex_program *program, size_t begin, size_t count)
{
    struct wr_regex_node *at = &program->nodes[begin];
    memmove(at + 1, at, count * sizeof *at);
    at[0] = split_node(1, count + 2);
    at[count + 1] = jump_back_node(count + 1);
    program->node_count += 2;
}

/* Repeats the last part: as often as it must occur, then as often as it may. */
static void write_repeat(struct regex_parser *parser, const struct regex_repeat *repeat)
{
    struct wr_regex_program *program = parser->program;
    struct wr_regex_node *nodes = program->nodes;
    size_t begin = parser->last, count = program->node_count - begin, at = begin;
    size_t optional = repeat->most == NO_END ? 0 : (size_t)repeat->most - repeat->least;
    struct wr_regex_node part[WR_REGEX_NODES_MAX];
    if (count == 0 || !has_node_room(parser, repeat->least * count + optional * (count + 1) + 2))
        return;
    if (repeat->most == NO_END && repeat->least == 0) {
        write_loop(program, begin, count);
        return;
    }
    memcpy(part, nodes + begin, count * sizeof *part);
    for (uint16_t i = 0; i < repeat->least; i++, at += count)
        memcpy(nodes + at, part, count * sizeof *part);
    if (repeat->most == NO_END) {
        nodes[at++] = (struct wr_regex_node){.kind = WR_REGEX_SPLIT, .next = 1, .other = (int16_t)-count};
    }
    for (size_t i = optional; i > 0; i--, at += count + 1) {
        nodes[at] = split_node(1, i * (count + 1));
        memcpy(nodes + at + 1, part, count * sizeof *part);
    }
    program->node_count = at;
}

/* ---- sets ---- */

/* Reads a class such as "[:alpha:]" after its first '['. */
static void read_class(struct regex_parser *parser, struct wr_regex_set *set)
{
    const char *name = parser->at + 1, *end = strstr(name, ":]");

    for (size_t i = 0; end != NULL && i < sizeof classes / sizeof classes[0]; i++)
        if (strlen(classes[i].name) == (size_t)(end - name) &&
            memcmp(classes[i].name, name, (size_t)(end - name)) == 0) {
            set_add_class(set, classes[i].has);
            parser->at = end + 2;
            return;
        }
    fail_regex(parser, "has a class that does not exist",
               "use [:alnum:], [:alpha:], [:digit:], [:punct:] or another POSIX class");
}

/* Reads one byte or a range of bytes, such as "a-z". */
static void read_range(struct regex_parser *parser, struct wr_regex_set *set)
{
    unsigned char first = (unsigned char)*parser->at++, last = first;

    if (parser->at[0] == '-' && parser->at[1] != ']' && parser->at[1] != '\0') {
        last = (unsigned char)parser->at[1];
        parser->at += 2;
    }
    if (last < first || (last == '[' && strchr(".=:", *parser->at) != NULL)) {
        fail_regex(parser, "has a range that is invalid", "write the smaller character first, as in [0-9]");
        return;
    }
    for (unsigned byte = first; byte <= last; byte++)
        wr_regex_set_add(set, (unsigned char)byte);
}

/* Reads a set such as "[a-z]" after its '['. */
static void read_bracket(struct regex_parser *parser)
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
            fail_regex(parser, "has [. .] or [= =]", "write the characters themselves");
        else
            read_class(parser, &set);
    }
    if (*parser->at == '\0') {
        fail_regex(parser, "has a [ without its ]", "write \\[ for a literal [");
        return;
    }
    parser->at++;
    if (is_inverted)
        set_invert(&set);
    add_set(parser, &set);
}

static void add_class(struct regex_parser *parser, int (*has)(int c), bool is_inverted)
{
    struct wr_regex_set set = {{0}};
    set_add_class(&set, has);
    if (is_inverted)
        set_invert(&set);
    add_set(parser, &set);
}

/* ---- text ---- */

static enum wr_regex_kind position_kind(char letter)
{
    switch (letter) {
    case 'b':
        return WR_REGEX_WORD_EDGE;
    case 'B':
        return WR_REGEX_NO_WORD_EDGE;
    case '<':
        return WR_REGEX_WORD_BEGIN;
    case '>':
        return WR_REGEX_WORD_END;
    default:
        return WR_REGEX_BYTE;
    }
}

/* Reads an escape after its '\'. */
static void read_regex_escape(struct regex_parser *parser)
{
    char c = *parser->at;
    enum wr_regex_kind kind = position_kind(c);
    if (c == '\0') {
        fail_regex(parser, "ends with a \\", "write \\\\ for a literal \\");
        return;
    }
    parser->at++;
    if (c == 'w' || c == 'W')
        add_class(parser, is_word_char, c == 'W');
    else if (c == 's' || c == 'S')
        add_class(parser, isspace, c == 'S');
    else if (wr_ascii_is_digit(c))
        fail_regex(parser, "has a back-reference", "\\1 to \\9 are not supported; write the repeated part out");
    else if (kind == WR_REGEX_BYTE && wr_ascii_is_alpha(c))
        fail_regex(parser, "has an unknown escape", "for \\d write [0-9]; letters need no \\");
    else
        add_node(parser, (struct wr_regex_node){.kind = (uint8_t)kind, .byte = (uint8_t)c});
}

/* Reads a number. Returns false if there is no digit. */
static bool read_repeat_count(struct regex_parser *parser, uint16_t *ret_count)
{
    unsigned count = 0;

    if (!wr_ascii_is_digit(*parser->at))
        return false;
    for (; wr_ascii_is_digit(*parser->at); parser->at++)
        count = count > WR_REGEX_COUNT_MAX ? count : count * 10 + (unsigned)(*parser->at - '0');
    *ret_count = (uint16_t)count;
    if (count > WR_REGEX_COUNT_MAX)
        fail_regex(parser, "repeats too much", "a count in {} is at most 1000");
    return true;
}

/* Reads the counts of "{3}", "{3,}", "{,5}" or "{3,5}" after the '{'. */
static void read_repeat_counts(struct regex_parser *parser, struct regex_repeat *repeat)
{
    bool has_least = read_repeat_count(parser, &repeat->least);

    repeat->most = repeat->least;
    if (*parser->at == ',') {
        parser->at++;
        repeat->most = NO_END;
        has_least |= read_repeat_count(parser, &repeat->most);
    }
    if (*parser->at != '}' || !has_least || repeat->most < repeat->least)
        fail_regex(parser, "has an invalid count", "write {3}, {3,} or {3,5}, or \\{ for a literal {");
    else
        parser->at++;
}

/* Reads a repetition after its first character, one of "*+?{". */
static void read_repeat(struct regex_parser *parser, char c)
{
    struct regex_repeat repeat = {c == '+', c == '?' ? 1 : NO_END};
    if (!parser->has_last)
        fail_regex(parser, "repeats nothing", "write \\*, \\+, \\? or \\{ for a literal character");
    else if (parser->last_is_place)
        fail_regex(parser, "repeats an anchor", "write ^, $ and \\b without *, +, ? or {}");
    else if (c == '{')
        read_repeat_counts(parser, &repeat);
    if (parser->wrong == NULL)
        write_repeat(parser, &repeat);
}

static void open_group(struct regex_parser *parser)
{
    uint16_t begin = (uint16_t)parser->program->node_count;
    parser->groups[parser->depth++] = (struct regex_group){begin, begin, false};
    parser->has_last = false;
}

static void begin_branch(struct regex_parser *parser)
{
    struct regex_group *group = &parser->groups[parser->depth - 1];
    join_branches(parser, group);
    group->branch = (uint16_t)parser->program->node_count;
    group->has_branches = true;
    parser->has_last = false;
}

/* Closes a group. The whole group can be repeated. */
static void close_group(struct regex_parser *parser)
{
    const struct regex_group *group = &parser->groups[parser->depth - 1];
    if (parser->depth == 1) {
        fail_regex(parser, "has a ) without its (", "write \\) for a literal )");
        return;
    }
    join_branches(parser, group);
    parser->last = group->begin;
    parser->has_last = true;
    parser->last_is_place = false;
    parser->depth--;
}

static void read_next_part(struct regex_parser *parser)
{
    static const struct wr_regex_set any = {{~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)}};
    char c = *parser->at++;
    switch (c) {
    case '(':
        open_group(parser);
        break;
    case '|':
        begin_branch(parser);
        break;
    case ')':
        close_group(parser);
        break;
    case '*':
    case '+':
    case '?':
    case '{':
        read_repeat(parser, c);
        break;
    case '[':
        read_bracket(parser);
        break;
    case '\\':
        read_regex_escape(parser);
        break;
    case '.':
        add_set(parser, &any);
        break;
    case '^':
        add_node(parser, (struct wr_regex_node){.kind = WR_REGEX_BEGIN});
        break;
    case '$':
        add_node(parser, (struct wr_regex_node){.kind = WR_REGEX_END});
        break;
    default:
        add_node(parser, (struct wr_regex_node){.kind = WR_REGEX_BYTE, .byte = (uint8_t)c});
        break;
    }
}

static void read_expression(struct regex_parser *parser)
{
    open_group(parser);
    while (*parser->at != '\0')
        read_next_part(parser);
    if (parser->depth > 1)
        fail_regex(parser, "has a ( without its )", "write \\( for a literal (");
    join_branches(parser, &parser->groups[0]);
}

int wr_regex_compile(const char *text, struct wr_regex_program *ret_program)
{
    struct regex_parser parser = {.at = text, .program = ret_program};
    size_t bytes = strlen(text);
    ret_program->node_count = ret_program->set_count = 0;
    if (bytes > WR_REGEX_MAX)
        fail_regex(&parser, "too long", "a regular expression has at most 255 bytes");
    else if (bytes == 0)
        fail_regex(&parser, "nothing after \"re:\"", "write a regular expression after it");
    else
        read_expression(&parser);
    if (parser.wrong != NULL)
        return wr_invalid_text("pattern", text, bytes, parser.wrong, WR_NOWHERE, parser.right);
    ret_program->nodes[ret_program->node_count++] = (struct wr_regex_node){.kind = WR_REGEX_MATCH};
    return 0;
}
