/* SPDX-License-Identifier: MIT */
/* test_nearest.c - tests which known word is suggested for an unknown one, and when none is. */
#include "base/nearest.h"
#include "lib/test.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const char *nearest_of(const char *word)
{
    static const char *const words[] = {"append", "seeds", "a",     "depth",     "keys",           "bench",
                                        "table",  "tide",  "limit", "max-pages", "user-agent",     "output-format",
                                        "aimd",   "of",    "warc",  "crawl",     "robots-max-age", "max-hosts"};
    struct wr_nearest nearest = {.word = word};
    for (size_t i = 0; i < COUNT(words); i++)
        wr_nearest_offer(&nearest, words[i]);
    return nearest.best;
}

static void word_is_suggested_only_if_few_letters_differ(void **state)
{
    (void)state;
    static const struct {
        const char *word, *best;
    } rows[] = {
        /* one letter differs, in short words too */
        {"dept", "depth"},
        {"kees", "keys"},
        {"key", "keys"},
        {"limitt", "limit"},
        {"og", "of"},
        {"seed", "seeds"},
        /* swapped neighbours count as one */
        {"tabel", "table"},
        {"tied", "tide"},
        {"amid", "aimd"},
        {"benhc", "bench"},
        {"crwal", "crawl"},
        {"fo", "of"},
        /* a third of the letters differ */
        {"max-page", "max-pages"},
        {"maxpages", "max-pages"},
        {"usr-agnt", "user-agent"},
        {"out-put-fromat", "output-format"},
        {"apend", "append"},
        {"aplend", "append"},
        /* the nearest word counts; a known word gives itself */
        {"max-hoses", "max-hosts"},
        {"warc", "warc"},
        /* no suggestion */
        {"sped", NULL},
        {"append-to-a-file", NULL},
        {"lime", NULL},
        {"robots", NULL},
        {"x", NULL},
        {"", NULL},
        {"b", NULL},
        {"retry", NULL},
        {"hosts", NULL},
        {"speed", NULL},
        /* longer than any known word */
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *best = nearest_of(rows[i].word);
        if (rows[i].best == NULL ? best != NULL : best == NULL || strcmp(best, rows[i].best) != 0)
            fail_msg("%s: %s", rows[i].word, best != NULL ? best : "nothing");
    }
}

WEIR_TESTS(test(word_is_suggested_only_if_few_letters_differ))
