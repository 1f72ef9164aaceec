/* SPDX-License-Identifier: MIT */
/* words.c - stores the arguments of a crawl with its job and reads them back. */
#include "cli/crawl/words.h"

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

static bool is_in(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_kept(const char *name, bool is_shared)
{
    static const char *const others[] = {KEPT_NOT}, *const own[] = {OWN};
    return !is_in(name, others, sizeof others / sizeof others[0]) &&
           !(is_shared && is_in(name, own, sizeof own / sizeof own[0]));
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

void wr_words_begin(struct wr_buf *buf)
{
    wr_buf_append_string(buf, TITLE);
}

void wr_words_append(struct wr_buf *buf, const struct wr_usage *usage, bool is_shared, int argc, char *const *argv)
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
        if (is_kept(option->name, is_shared))
            append_option(buf, option, value);
    }
}

/* ---- reading ---- */

/* Decodes the text in place: it only gets shorter. */
static void unescape(char *text)
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

static void take_word(struct wr_words *words, char *word)
{
    if (strcmp(word, "-header") == 0) {
        words->lacks_header = true;
    } else if (strcmp(word, "-proxy") == 0) {
        words->lacks_proxy = true;
    } else {
        unescape(word);
        words->list[words->count++] = word;
    }
}

/* Splits the text into arguments. A blank precedes each of them. */
static void take_words(struct wr_words *words)
{
    char *word = words->text, *end;
    for (bool is_last = *word++ != ' '; !is_last; word = end + 1) {
        end = word + strcspn(word, " ");
        is_last = *end == '\0';
        *end = '\0';
        take_word(words, word);
    }
}

static size_t count_blanks(struct wr_span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.bytes; i++)
        count += text.data[i] == ' ';
    return count;
}

int wr_words_read(struct wr_words *ret_words, struct wr_span settings)
{
    struct wr_words words = {.text = NULL};
    size_t title = sizeof TITLE - 1;
    if (settings.bytes < title || memcmp(settings.data, TITLE, title) != 0)
        return WEIR_E_INVAL;
    settings = wr_span_after(settings, title);
    words.text = malloc(settings.bytes + 1);
    words.list = malloc((count_blanks(settings) + 1) * sizeof *words.list);
    if (words.text == NULL || words.list == NULL) {
        wr_words_release(&words);
        return WEIR_E_NOMEM;
    }
    memcpy(words.text, settings.data, settings.bytes);
    words.text[settings.bytes] = '\0';
    take_words(&words);
    *ret_words = words;
    return 0;
}

/* Returns true if an argument describes the job itself, rather than one run of it or its seeds. */
static bool is_of_any_job(const char *word)
{
    static const char *const others[] = {"seeds-file", "recrawl", "due", "diff", "report", "out", "log"};
    if (strncmp(word, "--", 2) != 0)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(word + 2, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

char **wr_words_join(const struct wr_words *old, int argc, char **argv, int *ret_count)
{
    int count = 0;
    char **joined = malloc(((size_t)old->count + (size_t)argc + 1) * sizeof *joined);
    if (joined == NULL)
        return NULL;
    for (int i = 0; i < old->count; i++)
        if (is_of_any_job(old->list[i]))
            joined[count++] = old->list[i];
    memcpy(joined + count, argv, (size_t)argc * sizeof *joined);
    *ret_count = count + argc;
    return joined;
}

void wr_words_agent(struct wr_span settings, char *ret_agent, size_t room)
{
    static const char name[] = "--user-agent=";
    struct wr_words words;
    struct wr_buf buf;
    if (wr_words_read(&words, settings) != 0)
        return;
    for (int i = 0; i < words.count; i++) {
        if (strncmp(words.list[i], name, sizeof name - 1) != 0)
            continue;
        wr_buf_init_fixed(&buf, ret_agent, room);
        wr_buf_append_string(&buf, words.list[i] + sizeof name - 1);
    }
    wr_words_release(&words);
}

void wr_words_release(struct wr_words *words)
{
    free(words->text);
    free(words->list);
    *words = (struct wr_words){.text = NULL};
}
