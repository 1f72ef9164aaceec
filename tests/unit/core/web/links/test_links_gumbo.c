/* SPDX-License-Identifier: MIT */
/* test_links_gumbo.c - compares the link scanner with a real parser, gumbo, page by page. PAGES is
 * the folder of hand-made pages. */
#include "lib/test.h"

#include "finds.h"
#include "pages.h"

#include <dirent.h>
#include <stdlib.h>

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define MADE_PAGES 1000

static struct finds ours, theirs;

/* Stores the sorted names of the files in PAGES: those with known differences, or all others. */
static size_t list_pages(bool differing, char ret_names[][64], size_t most)
{
    struct dirent **entries;
    int count = scandir(PAGES, &entries, NULL, alphasort);
    size_t kept = 0;

    assert_true(count > 2);
    for (int i = 0; i < count; i++) {
        bool differs = strncmp(entries[i]->d_name, "differs-", 8) == 0;
        if (entries[i]->d_name[0] != '.' && differs == differing) {
            assert_true(kept < most && strlen(entries[i]->d_name) < 64);
            memcpy(ret_names[kept++], entries[i]->d_name, strlen(entries[i]->d_name) + 1);
        }
        free(entries[i]);
    }
    free(entries);
    return kept;
}

static size_t read_page(const char *name, char ret_page[PAGE_BYTES])
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", PAGES, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t bytes = fread(ret_page, 1, PAGE_BYTES, file);
    fclose(file);
    assert_true(bytes < PAGE_BYTES);
    return bytes;
}

static void judge(const char *page, size_t bytes, const char *name)
{
    finds_scan(&ours, page, bytes, 0);
    if (!finds_judge(&theirs, page, bytes))
        fail_msg("%s: gumbo crashed", name);
}

static void assert_judged_alike(const char *page, size_t bytes, const char *name)
{
    judge(page, bytes, name);
    if (finds_same(&ours, &theirs))
        return;
    finds_print_difference(&ours, &theirs);
    fail_msg("%s: the links differ from those of gumbo", name);
}

static void pages_made_by_hand_have_the_links_that_gumbo_finds(void **state)
{
    static char page[PAGE_BYTES], names[400][64];
    size_t count = list_pages(false, names, COUNT(names)), links = 0;

    (void)state;
    assert_true(count >= 230);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = read_page(names[i], page);
        assert_judged_alike(page, bytes, names[i]);
        links += ours.count;
    }
    print_message("%zu pages, %zu links\n", count, links);
    assert_true(links > 1000);
}

/* In these pages, the names of links begin with "yes" for real links and with "no" for text that
 * only looks like one. */
static void scanner_reports_no_link_where_there_is_none(void **state)
{
    static char page[PAGE_BYTES], names[400][64];
    size_t count = list_pages(false, names, COUNT(names));

    (void)state;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = read_page(names[i], page);
        finds_scan(&ours, page, bytes, 0);
        for (size_t j = 0; j < ours.count; j++)
            if (strncmp(strrchr(ours.lines[j], ' ') + 1, "no", 2) == 0 &&
                strspn(strrchr(ours.lines[j], ' ') + 3, "0123456789") == strlen(strrchr(ours.lines[j], ' ') + 3))
                fail_msg("%s: %s", names[i], ours.lines[j]);
    }
}

static void random_pages_have_the_links_that_gumbo_finds(void **state)
{
    static char page[PAGE_BYTES];
    uint64_t seed = weir_test_seed();
    size_t links = 0;

    (void)state;
    for (uint64_t i = 0; i < MADE_PAGES; i++) {
        struct wr_rng rng;
        char name[64];
        wr_rng_init(&rng, seed + i);
        size_t bytes = make_page(&rng, 5 + (int)(i % 60), false, page);
        snprintf(name, sizeof name, "page %llu of the seed", (unsigned long long)i);
        assert_judged_alike(page, bytes, name);
        links += ours.count;
    }
    assert_true(links > 10000);
}

/* docs/internals/links.md explains each difference. After a fix, its page loses the prefix
 * "differs-". */
static void every_known_difference_from_gumbo_is_the_documented_one(void **state)
{
    static const struct {
        const char *page, *ours, *theirs; /* NULL: no line that the other does not have */
    } rows[] = {
        {"differs-entity.html", "a &fjlig;", "a fj"},
        {"differs-frameset.html", "a ours", NULL},
        {"differs-gumbo-control.html", "a a\\x02b", "a a\\xef\\xbf\\xbdb"},
        {"differs-gumbo-nul.html", NULL, "a theirs"},
        {"differs-gumbo-number.html", "a \\xef\\xbf\\xbd", "a \\xff"},
        {"differs-gumbo-svg-end.html", NULL, "a theirs"},
        {"differs-gumbo-unknown.html", "a ours", NULL},
        {"differs-head-in-select.html", "title </select><a\\x20href=theirs>1</a>", "a theirs"},
        {"differs-island-cdata.html", "a ours", NULL},
        {"differs-island-open.html", "a ours", NULL},
        {"differs-late-frameset.html", "frame ours", NULL},
        {"differs-select.html", "a ours", NULL},
        {"differs-svg-stray-end.html", NULL, "a theirs"},
        {"differs-title-in-table.html", "title ours", "title theirs"},
    };
    static char page[PAGE_BYTES], names[64][64];

    (void)state;
    assert_int_equal(list_pages(true, names, COUNT(names)), COUNT(rows));
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool has_ours = rows[i].ours == NULL, has_theirs = rows[i].theirs == NULL;
        size_t bytes = read_page(rows[i].page, page);
        judge(page, bytes, rows[i].page);
        for (size_t j = 0; j < ours.count; j++)
            has_ours = has_ours || strcmp(ours.lines[j], rows[i].ours) == 0;
        for (size_t j = 0; j < theirs.count; j++)
            has_theirs = has_theirs || strcmp(theirs.lines[j], rows[i].theirs) == 0;
        assert_true(has_ours);
        if (strncmp(rows[i].page, "differs-gumbo-", 14) == 0 && finds_same(&ours, &theirs))
            continue; /* a bug of gumbo that the installed version has fixed */
        assert_true(has_theirs);
        assert_false(finds_same(&ours, &theirs));
        if (rows[i].ours == NULL || rows[i].theirs == NULL)
            assert_int_equal(ours.count + (rows[i].theirs != NULL), theirs.count + (rows[i].ours != NULL));
    }
}

WEIR_TESTS(test(pages_made_by_hand_have_the_links_that_gumbo_finds), test(scanner_reports_no_link_where_there_is_none),
           test(random_pages_have_the_links_that_gumbo_finds),
           test(every_known_difference_from_gumbo_is_the_documented_one))
