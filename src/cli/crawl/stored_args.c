/* SPDX-License-Identifier: MIT */
/* stored_args.c - stores the arguments of a crawl with its job and reads them back. */
#include "cli/crawl/stored_args.h"

#include <stdlib.h>

#include "base/ascii.h"

#define TITLE "weir-crawl/1"
#define KEPT_NOT \
    "append", "config", "job", "json", "listen", "listen-hosts", "listen-name", "quiet", "resume", "state", "token-file"

/* Options that are not stored if several processes share the job: each process has its own. */
#define OWN                                                                                                     \
    "bandwidth", "concurrency", "diff", "global-rate", "lease", "log", "loops", "max-bytes", "max-time", "out", \
        "report", "save-bodies", "view", "warc", "warc-size"

/* ---- writing ---- */

static bool is_in_list(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_stored_option(const char *name, bool is_shared)
{
    static const char *const others[] = {KEPT_NOT}, *const own[] = {OWN};
    return !is_in_list(name, others, sizeof others / sizeof others[0]) &&
           !(is_shared && is_in_list(name, own, sizeof own / sizeof own[0]));
}

static void append_escaped(struct wr_buf *buf, const char *text)
{
    for (; *text != '\0'; text++) {
        if (wr_ascii_is_printable(*text) && *text != ' ' && *text != '\\') {
            wr_buf_append_char(buf, *text);
            continue;
        }
        wr_buf_append_string(buf, "\\x");
        wr_buf_append_hex(buf, (unsigned char)*text, 2, WR_HEX_SMALL);
    }
}

static void append_option(struct wr_buf *buf, const struct wr_option *option, const char *value)
{
    bool hides = value != NULL && wr_option_hides(option, value);
    wr_buf_append_string(buf, hides ? " -" : " --");
    wr_buf_append_string(buf, option->name);
    if (value != NULL && !hides) {
        wr_buf_append_char(buf, '=');
        append_escaped(buf, value);
    }
}

void wr_stored_args_begin(struct wr_buf *buf)
{
    wr_buf_append_string(buf, TITLE);
}

void wr_stored_args_append(struct wr_buf *buf, const struct wr_usage *usage, bool is_shared, int argc,
                           char *const *argv)
{
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_operands || strncmp(word, "--", 2) != 0) {
            wr_buf_append_char(buf, ' ');
            append_escaped(buf, word);
            continue;
        }
        size_t length = strcspn(word + 2, "=");
        const struct wr_option *option = wr_option_find(usage, word + 2, length);
        only_operands = option == NULL; /* the argument is "--" */
        if (option == NULL)
            continue;
        const char *value = word[2 + length] == '=' ? word + 2 + length + 1 : NULL;
        if (value == NULL && option->kind != WR_OPTION_FLAG && i + 1 < argc)
            value = argv[++i];
        if (is_stored_option(option->name, is_shared))
            append_option(buf, option, value);
    }
}

/* ---- reading ---- */

/* Decodes the text in place: it only gets shorter. */
static void unescape_arg(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        int high = from[0] == '\\' && from[1] == 'x' ? wr_ascii_hex_value(from[2]) : -1;
        int low = high >= 0 ? wr_ascii_hex_value(from[3]) : -1;
        *to++ = low >= 0 ? (char)(high << 4 | low) : *from;
        from += low >= 0 ? 4 : 1;
    }
    *to = '\0';
}

static void add_stored_arg(struct wr_stored_args *words, char *word)
{
    if (strcmp(word, "-header") == 0) {
        words->lacks_header = true;
    } else if (strcmp(word, "-proxy") == 0) {
        words->lacks_proxy = true;
    } else {
        unescape_arg(word);
        words->list[words->count++] = word;
    }
}

/* Splits the text into arguments. A blank precedes each of them. */
static void split_stored_args(struct wr_stored_args *words)
{
    char *word = words->text, *end;
    for (bool is_last = *word++ != ' '; !is_last; word = end + 1) {
        end = word + strcspn(word, " ");
        is_last = *end == '\0';
        *end = '\0';
        add_stored_arg(words, word);
    }
}

static size_t count_blanks(struct wr_span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.bytes; i++)
        count += text.data[i] == ' ';
    return count;
}

int wr_stored_args_read(struct wr_stored_args *ret_words, struct wr_span settings)
{
    struct wr_stored_args words = {.text = NULL};
    size_t title = sizeof TITLE - 1;
    if (settings.bytes < title || memcmp(settings.data, TITLE, title) != 0)
        return WEIR_E_INVAL;
    settings = wr_span_after(settings, title);
    words.text = malloc(settings.bytes + 1);
    words.list = malloc((count_blanks(settings) + 1) * sizeof *words.list);
    if (words.text == NULL || words.list == NULL) {
        wr_stored_args_release(&words);
        return WEIR_E_NOMEM;
    }
    memcpy(words.text, settings.data, settings.bytes);
    words.text[settings.bytes] = '\0';
    split_stored_args(&words);
    *ret_words = words;
    return 0;
}

/* Returns true if an argument describes the job itself, rather than one run of it or its seeds. */
static bool is_job_option(const char *word)
{
    static const char *const others[] = {"seeds-file", "recrawl", "due", "diff", "report", "out", "log"};
    if (strncmp(word, "--", 2) != 0)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(word + 2, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

char **wr_stored_args_join(const struct wr_stored_args *old, int argc, char **argv, int *ret_count)
{
    int count = 0;
    char **joined = malloc(((size_t)old->count + (size_t)argc + 1) * sizeof *joined);
    if (joined == NULL)
        return NULL;
    for (int i = 0; i < old->count; i++)
        if (is_job_option(old->list[i]))
            joined[count++] = old->list[i];
    memcpy(joined + count, argv, (size_t)argc * sizeof *joined);
    *ret_count = count + argc;
    return joined;
}

void wr_stored_args_agent(struct wr_span settings, char *ret_agent, size_t room)
{
    static const char name[] = "--user-agent=";
    struct wr_stored_args words;
    struct wr_buf buf;
    if (wr_stored_args_read(&words, settings) != 0)
        return;
    for (int i = 0; i < words.count; i++) {
        if (strncmp(words.list[i], name, sizeof name - 1) != 0)
            continue;
        wr_buf_init_fixed(&buf, ret_agent, room);
        wr_buf_append_string(&buf, words.list[i] + sizeof name - 1);
    }
    wr_stored_args_release(&words);
}

void wr_stored_args_release(struct wr_stored_args *words)
{
    free(words->text);
    free(words->list);
    *words = (struct wr_stored_args){.text = NULL};
}
